"""A plain loop: a small network on clouds of points, with dropout and a seed from the command line."""

import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
lr = float(sys.argv[2]) if len(sys.argv) > 2 else 0.1
labels = torch.randint(0, 4, (512,))
x = torch.randn(512, 10) + 2 * torch.eye(10)[labels]
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.5)
for epoch in range(3):
    for rows in torch.randperm(512).split(32):
        optimizer.zero_grad()
        loss = cross_entropy(model(x[rows]), labels[rows])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.17g}")
print(sum(p.double().sum().item() for p in model.parameters()), torch.rand(1).item())
sys.exit(3)
