"""A training that stops too early: `theodolite run examples/train.py` says why."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
x, y = torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(labels)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10), nn.Softmax(1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(10):
    for rows in torch.randperm(1400).split(64):
        optimizer.zero_grad()
        loss = cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()

with torch.no_grad():
    accuracy = (model(x[1400:]).argmax(1) == y[1400:]).float().mean()
print(f"held-out accuracy: {accuracy:.1%}")
