"""The built-in network: a small ReLU net on scikit-learn's digits, as it was before and after training.

``python -m theodolite.io.builtin_network`` trains it again and writes both files anew.
"""

from itertools import pairwise
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from theodolite.core.subject import Subject
from theodolite.io.datasets import digits

FOLDER = Path(__file__).with_name("builtin")
WIDTHS = (64, 128, 128, 128, 10)
LR, MOMENTUM, WEIGHT_DECAY, BATCH, EPOCHS, SEED = 0.02, 0.9, 1e-3, 64, 60, 0


def untrained() -> nn.Sequential:
    """The architecture, with whatever weights torch gives it."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(WIDTHS):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def builtin() -> Subject:
    """The trained network as a subject: weights, data, loss, step size, and the weights it started from."""
    model = untrained()
    model.load_state_dict(load_file(FOLDER / "digits_end.safetensors"))
    return Subject(
        model,
        data=digits(),
        loss=cross_entropy,
        lr=LR,
        momentum=MOMENTUM,
        name="built-in digits network",
        origin=load_file(FOLDER / "digits_start.safetensors"),
    )


def trained(seed: int = SEED) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The weights at He initialization, and after training on the first 1,437 images."""
    generator = torch.Generator().manual_seed(seed)
    model = untrained()
    with torch.no_grad():
        for layer in model:
            if isinstance(layer, nn.Linear):
                layer.weight.normal_(0.0, (2 / layer.in_features) ** 0.5, generator=generator)
                layer.bias.zero_()
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    x, y = (column[:1437] for column in digits())
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    for _ in range(EPOCHS):
        for rows in torch.split(torch.randperm(len(x), generator=generator), BATCH):
            optimizer.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return start, {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    start, end = trained()
    save_file(start, FOLDER / "digits_start.safetensors")
    save_file(end, FOLDER / "digits_end.safetensors")
