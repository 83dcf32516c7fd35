"""A layer that training never reached.

CHGNet, a network for the energies of crystals, updates the features of its angles after each of three convolutions. Nothing reads
the last of these updates, because the output is computed from the atoms. The released weights show it: those of that update still
have their initial values. The outputs are the same without that layer, so it can be removed. If the package chgnet is not
installed, a small network with the same unused layer takes its place.
"""

import importlib.util
import pathlib

import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th
from theodolite.io.checkpoints import checkpoint


def packaged():
    """The newest checkpoint within the package, or None."""
    found = importlib.util.find_spec("chgnet")
    files = pathlib.Path(found.origin).parent.glob("pretrained/0.3.0/*.pth.tar") if found and found.origin else ()
    return next(iter(files), None)


class TwoStreams(nn.Module):
    """Atoms read pairs in each round, and pairs are then updated: after the last round nobody reads them."""

    def __init__(self, rounds=3, width=64):
        super().__init__()
        self.atoms = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(rounds))
        self.pairs = nn.ModuleList(nn.Linear(width, width) for _ in range(rounds))
        self.last = nn.Linear(width, 10)

    def forward(self, x):
        pair = x
        for own, update in zip(self.atoms, self.pairs, strict=True):
            x = x + torch.relu(own(torch.cat([x, pair], 1)))
            pair = pair + torch.relu(update(pair))
        return self.last(x)


def stand_in():
    digits = load_digits()
    x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    torch.manual_seed(0)
    model = TwoStreams()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(300):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    save_file(model.state_dict(), "stand_in.safetensors")
    return pathlib.Path("stand_in.safetensors")


path = packaged() or stand_in()
found = th.diagnose(path)
print(found)
found.html("diagnosis.html")
weights = checkpoint(path)
untrained = next(finding.where for finding in found.findings if finding.name == "layer-untrained")
entries = weights[untrained].read().flatten().sort().values
bound, fan_in = entries.abs().max().item(), weights[untrained].shape[1]
print(f"{untrained}: {len(entries):,} entries, none beyond {bound:.5g}; 1 / sqrt(fan-in) is {fan_in**-0.5:.5g}.")

places = torch.linspace(0, len(entries) - 1, 40).long()
pictures = [
    (
        f"Entries of {untrained} in order, compared with a uniform draw between plus and minus 1 / sqrt(fan-in)",
        th.Series(
            x=tuple(((places + 0.5) / len(entries)).tolist()),
            measured=tuple(entries[places].tolist()),
            line=tuple((bound * (2 * (places + 0.5) / len(entries) - 1)).tolist()),
            line_label="a uniform draw",
            x_label="share of entries below",
            y_label="entry",
        ),
    )
]
