"""After training: survey any module with its data; the page goes to survey/report.html."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th
from theodolite.io.datasets import digits

x, y = digits()
model = nn.Sequential(nn.Linear(64, 100), nn.Tanh(), nn.Linear(100, 100), nn.Tanh(), nn.Linear(100, 10))
start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(200):
    optimizer.zero_grad()
    cross_entropy(model(x), y).backward()
    optimizer.step()

subject = th.Subject(model, data=(x, y), loss=cross_entropy, lr=1e-3, origin=start)
survey = th.survey(subject)
print(survey)
survey.html("survey/report.html")
