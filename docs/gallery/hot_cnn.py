"""A convolutional network with too large a learning rate, and its cure.

A small network on 8 x 8 digits is trained with a learning rate that is too large. The watch says so while the network trains, and
suggests one that it has tried on a copy.
"""

import math

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th

digits = load_digits()
x, y = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16, torch.tensor(digits.target)


def network():
    torch.manual_seed(0)
    body = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(32 * 16, 10))


def trained(model, lr, steps=120):
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=lr), []
    watch = th.Watch(
        model, optimizer=optimizer, probe=(x[:256], y[:256]), loss=cross_entropy, every=20, budget=math.inf
    )
    for step in range(steps):
        rows = torch.randperm(1400, generator=torch.Generator().manual_seed(step))[:64]
        optimizer.zero_grad()
        loss = cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        watch(step)
    return losses, watch


hot, watch = trained(network(), lr=3.0)
print(watch.diagnosis)
watch.html("hot.html")
suggested = next((f.suggested["lr"] for f in watch.diagnosis.findings if "lr" in f.suggested), 0.1)
cured, calm = trained(network(), lr=suggested)
print(
    f"\nwith lr={suggested:.2g}: loss of the last ten batches {sum(cured[-10:]) / 10:.3g} instead of {sum(hot[-10:]) / 10:.3g}"
)

pictures = [
    (
        "Loss of each batch: the cured run as points, the hot one as a line",
        th.Series(
            x=tuple(range(0, 120, 2)),
            measured=tuple(cured[::2]),
            line=tuple(min(loss, 1e3) if loss == loss else 1e3 for loss in hot[::2]),
            line_label="lr=3",
            x_label="step",
            y_label=f"loss with lr={suggested:.2g}",
            log="y",
        ),
    )
]
