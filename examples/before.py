"""Before training: ask theory which initialization lets a deep GELU network pass signals, and use it."""

import torch
from torch import nn

import theodolite as th

print(th.design(activation="gelu", depth=50, width=256))

layers: list[nn.Module] = [nn.Linear(64, 256), nn.GELU()]
for _ in range(49):
    layers += [nn.Linear(256, 256), nn.GELU()]
model = nn.Sequential(*layers, nn.Linear(256, 10))

x = torch.randn(128, 64, generator=torch.Generator().manual_seed(0))
print("as PyTorch makes it, outputs of different inputs differ by", model(x).std(0).mean().item())
th.initialize_(model, "gelu", mean_square=x.square().mean().item(), generator=torch.Generator().manual_seed(1))
print("at criticality they differ by", model(x).std(0).mean().item())
