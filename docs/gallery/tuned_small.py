"""A learning rate tuned on a small network and used on a large one.

The best learning rate of a network with 32 hidden units is too large for one with 512 in the usual parametrization. With
`th.transfer` the same learning rate is right for both, so only the small network has to be tuned. Here the large network with a
learning rate of its own is still slightly better: a transfer also keeps the small network's other settings.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th

digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 4 - 1.2, torch.tensor(digits.target)


def network(width):
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(64, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 10),
    )


def loss_after(model, groups, lr, steps=80):
    optimizer = torch.optim.AdamW(groups, lr=lr, weight_decay=0.01)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, total_iters=steps)
    order = torch.Generator().manual_seed(1)
    for _ in range(steps):
        rows = torch.randint(len(x), (64,), generator=order)
        optimizer.zero_grad()
        cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
        falling.step()
    with torch.no_grad():
        return cross_entropy(model(x), y).item()


def usual(width, lr):
    model = network(width)
    return loss_after(model, model.parameters(), lr)


def transferred(width, lr):
    model = network(width)
    plan = th.transfer(model, network(32)).initialize_(torch.Generator().manual_seed(0))
    return loss_after(model, plan.groups(lr=lr, weight_decay=0.01), lr)


lrs = [2.0**power for power in range(-9, -2)]
small = [usual(32, lr) for lr in lrs]
large = [usual(512, lr) for lr in lrs]
moved = [transferred(512, lr) for lr in lrs]
print(th.transfer(network(512), network(32)))
print("learning rate   32 units   512 units   512 units, transferred")
for row in zip(lrs, small, large, moved, strict=True):
    print("{:13.4f}  {:9.3f}  {:10.3f}  {:10.3f}".format(*row))
at = small.index(min(small))
print(
    f"Best with 32 units: {lrs[at]:g}. With 512 units that reaches {large[at]:.3f} as usual, {moved[at]:.3f} transferred."
)


def picture(words, losses):
    caption = f"Loss after 80 steps against the learning rate: 512 units {words} as points, 32 units as a line"
    names = {"line_label": "32 units", "x_label": "learning rate", "y_label": "loss, 512 units"}
    return caption, th.Series(x=tuple(lrs), measured=tuple(losses), line=tuple(small), log="xy", **names)


pictures = [picture("as usual", large), picture("transferred", moved)]
