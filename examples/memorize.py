"""Memorize the labels of MNIST, true and drawn by lot, with a network that is written down and not trained.

    python examples/memorize.py [--data FOLDER] [--embeddings FILE.npz] [--out memorize.html]

FOLDER holds the four idx files of MNIST (gzip); where there is none, scikit-learn's digits are used. FILE.npz holds x and y,
such as sentence embeddings of CoLA with their marks. Both networks answer every training image right; on new images the one
that was shown the truth is hardly better than the one that was not. The figure shows why: along the way from one image to
the next the answer jumps through the classes, and nothing but the training images themselves fixes it.
"""

import argparse
import gzip
import time
from pathlib import Path

import numpy as np
import torch

import theodolite as th
from theodolite.report.drawing.charts import Bars, Figure, Points, Polyline
from theodolite.report.drawing.scales import Scale, named_scale
from theodolite.report.rendering import document_page


def idx(path):
    """The array in a gzipped idx file."""
    raw = gzip.decompress(path.read_bytes())
    shape = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def images(folder):
    """Training and test images with their labels, and what they are called."""
    names = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    if all((folder / name).exists() for name in names):
        return "MNIST", *(idx(folder / name) for name in names)
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return "digits", bunch.images[:1400], bunch.target[:1400], bunch.images[1400:], bunch.target[1400:]


def memorized(name, x, y, test_x, test_y):
    start = time.perf_counter()
    net = th.memorize(x, y)
    seconds, report = time.perf_counter() - start, net.report
    with torch.no_grad():
        new = [(net(torch.from_numpy(some)).argmax(1)) for some in np.array_split(test_x, -(-len(test_x) // 4096))]
    accuracy = (torch.cat(new).numpy() == test_y).mean()
    print(
        f"{name}: {report.points} labels in {report.widths} ReLU units, {seconds:.1f} s, "
        f"{100 * report.labels_right:.6g}% right; on new images {100 * accuracy:.1f}% (chance 10%)",
        flush=True,
    )
    return net, float(accuracy)


def figure(path, name, nets, x, y):
    """A page with what is right of the images that were given and of new ones, and the answers between two images."""
    labels = list(nets)
    places = range(len(labels))
    bars = [
        Bars(places, [100] * len(labels), "c0", "images it was given", width=0.4, beside=-0.2),
        Bars(places, [100 * nets[key][1] for key in labels], "c1", "new images", width=0.4, beside=0.2),
    ]
    chance = Polyline(places, [10] * len(labels), "ink", "dotted", "chance")
    right = Figure(
        named_scale(labels), Scale(0, 100), [*bars, chance], [*bars, chance], y_label="right, %", spoken=name
    )
    net = nets["true labels"][0]
    same = np.flatnonzero(y == y[0])[:2]
    share = np.linspace(0, 1, 2001)
    between = x[same[0]] + share.reshape(-1, *[1] * (x.ndim - 1)) * (x[same[1]].astype(float) - x[same[0]])
    with torch.no_grad():
        answers = net(torch.from_numpy(between)).numpy()
    told = np.where(answers.max(1) > 0.5, answers.argmax(1), np.nan)
    turns = np.flatnonzero(np.diff(told, prepend=np.nan) != 0)  # where the answer changes
    ends = Points([0, 1], [y[0]] * 2, group=1, label=f"two images of a {y[0]}")
    way = Figure(
        Scale(-0.02, 1.02),
        Scale(-0.5, 9.5),
        [Points(share[turns], told[turns]), ends],
        [ends],
        x_label="from one image to the other",
        y_label="class answered",
        spoken="Between two images of one class the answer jumps about",
    )
    body = f"<h1>{name}: memory is not learning</h1>{right.svg()}<h2>{way.spoken}</h2>{way.svg()}"
    path.write_text(document_page(f"{name}, memorized", body), encoding="utf-8")
    print(f"The figures: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data" / "mnist")
    parser.add_argument("--embeddings", type=Path)
    parser.add_argument("--out", type=Path, default=Path("memorize.html"))
    options = parser.parse_args()
    name, x, y, test_x, test_y = images(options.data)
    x, y, test_x = x.copy(), y.astype(np.int64), test_x.copy()  # writable, as torch likes it
    by_lot = np.random.default_rng(0).permutation(y)
    nets = {
        "true labels": memorized(f"{name}, true labels", x, y, test_x, test_y),
        "labels by lot": memorized(f"{name}, labels by lot", x, by_lot, test_x, test_y),
    }
    if options.embeddings:
        with np.load(options.embeddings) as file:
            report = th.memorize(file["x"], file["y"].astype(np.int64)).report
        print(
            f"{options.embeddings.name}: {report.points} marks in {report.widths} ReLU units, "
            f"{report.seconds:.1f} s, {100 * report.labels_right:.6g}% right"
        )
    figure(options.out, name, nets, x, y)


if __name__ == "__main__":
    main()
