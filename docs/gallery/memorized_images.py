"""Memorizing every image of MNIST by construction.

A theorem writes the weights down; nothing is trained. All training labels are right, even random ones, and new images are
classified at chance level: memorizing is not learning. Without MNIST on disk, scikit-learn's digits are used.
"""

import gzip
import os
import pathlib

import numpy as np
import torch
from sklearn.datasets import load_digits

import theodolite as th


def idx(path):
    """The array in a gzipped idx file."""
    raw = gzip.decompress(path.read_bytes())
    shape = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


folder = pathlib.Path(os.environ.get("MNIST", "mnist"))  # the folder with the four idx files
if folder.is_dir():
    x, y = idx(folder / "train-images-idx3-ubyte.gz"), idx(folder / "train-labels-idx1-ubyte.gz")
    new_x, new_y = idx(folder / "t10k-images-idx3-ubyte.gz"), idx(folder / "t10k-labels-idx1-ubyte.gz")
else:
    digits = load_digits()
    x, y, new_x, new_y = digits.images[:1400], digits.target[:1400], digits.images[1400:], digits.target[1400:]
x, new_x = x.reshape(len(x), -1).astype(np.float64), new_x.reshape(len(new_x), -1).astype(np.float64)

lot = np.random.default_rng(0).permutation(y)
right = {}
for name, labels in (("true labels", y), ("labels by lot", lot)):
    net = th.memorize(x, labels)
    with torch.no_grad():
        answers = torch.cat([net(torch.from_numpy(part)).argmax(1) for part in np.array_split(new_x, 8)]).numpy()
    right[name] = 100 * (answers == new_y).mean()
    print(
        f"{name}: {net.report.points} labels in hidden layers of {net.report.widths} ReLU units, "
        f"{100 * net.report.labels_right:.6g} % right; on new images {right[name]:.1f} %"
    )
print("certain capacity of these widths:", net.report.capacity)

pictures = [
    (
        "New images answered right, in per cent; the band is chance",
        th.Series(
            x=tuple(right),
            measured=tuple(right.values()),
            stderr=tuple((p * (100 - p) / len(new_y)) ** 0.5 for p in right.values()),
            low=(7.0, 7.0),
            high=(13.0, 13.0),
            y_label="right, %",
        ),
    )
]
