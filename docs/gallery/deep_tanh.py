"""A deep network that does not train, and the one line that cures it.

Twenty tanh layers with PyTorch's default weights learn nothing in ten epochs of scikit-learn's digits. The diagnosis says why
and what to type; with that line the same network learns at once.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th

digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)


def network():
    torch.manual_seed(0)
    hidden = [layer for _ in range(20) for layer in (nn.Linear(64, 64), nn.Tanh())]
    return nn.Sequential(*hidden, nn.Linear(64, 10))


def trained(model, epochs=10):
    """The loss of each epoch, and the optimizer."""
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
    for epoch in range(epochs):
        for rows in torch.randperm(1400, generator=torch.Generator().manual_seed(epoch)).split(64):
            optimizer.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            losses.append(cross_entropy(model(x[:1400]), y[:1400]).item())
    return losses, optimizer


model = network()
before, optimizer = trained(model)
found = th.diagnose(
    model,
    data=(x[:1400], y[:1400]),
    loss=cross_entropy,
    optimizer=optimizer,
    validation=(x[1400:], y[1400:]),
    budget="10s",
)
print(found)
found.html("diagnosis.html")

model = network()
th.initialize_(model, "tanh")  # what the diagnosis said to type
after, optimizer = trained(model)
print(f"\nwith this line the training loss is {after[-1]:.3g}, not {before[-1]:.3g}")

pictures = [
    (
        "Training loss with PyTorch's weights and with those of th.initialize_",
        th.Series(
            x=tuple(range(1, 11)),
            measured=tuple(after),
            line=tuple(before),
            line_label="PyTorch's weights",
            x_label="epoch",
            y_label="training loss, after th.initialize_",
        ),
    )
]
