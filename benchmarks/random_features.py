"""CorrectiveFeatures beside scikit-learn's RBFSampler and Nystroem in a pipeline, at equal numbers of components.

Digits and diabetes come with scikit-learn; MNIST is read from ../shared/data/mnist or from --mnist FOLDER (four idx files,
plain or gzipped) and left out otherwise. The regularizer, and the kernel's width for the two peers, are chosen on a held-out
part of the training data for every method alike; scores are on the test part, means over seeds; times are processor seconds
of one fit and one transform of all data.
"""

import argparse
import gzip
import itertools
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from theodolite.construct.capacity import CorrectiveFeatures

ALPHAS = tuple(10.0**k for k in range(-6, 3))


def methods(components, inputs, seed):
    wide = (0.1 / inputs, 0.3 / inputs, 1.0 / inputs)
    yield "CorrectiveFeatures, ReLU", [CorrectiveFeatures(components, random_state=seed)]
    yield "CorrectiveFeatures, SReLU_1", [CorrectiveFeatures(components, order=1, random_state=seed)]
    yield "RBFSampler", [RBFSampler(gamma=g, n_components=components, random_state=seed) for g in wide]
    yield "Nystroem", [Nystroem(gamma=g, n_components=components, random_state=seed) for g in wide]


def score(candidates, model, parts):
    """The test score of the candidate and ridge that did best on the validation part, and the time of its features."""
    x_train, x_valid, x_test, y_train, y_valid, y_test = parts
    best = (-np.inf, np.nan, np.nan)
    for features in candidates:
        started = time.process_time()
        train = features.fit(x_train).transform(x_train)
        valid, test = features.transform(x_valid), features.transform(x_test)
        spent = time.process_time() - started
        for alpha in ALPHAS:
            fitted = model(alpha=alpha).fit(train, y_train)
            seen = fitted.score(valid, y_valid)
            if seen > best[0]:
                best = (seen, fitted.score(test, y_test), spent)
    return best[1:]


def compare(name, x, y, model, sizes, seeds):
    print(
        f"\n{name}: {len(x)} samples, {x.shape[1]} inputs, {'accuracy' if model is RidgeClassifier else 'R^2'} on a fifth"
    )
    for components in sizes:
        found = {}
        for seed in range(seeds):
            x_rest, x_test, y_rest, y_test = train_test_split(x, y, test_size=0.2, random_state=seed)
            x_train, x_valid, y_train, y_valid = train_test_split(x_rest, y_rest, test_size=0.25, random_state=seed)
            scaler = StandardScaler().fit(x_train)
            parts = (*map(scaler.transform, (x_train, x_valid, x_test)), y_train, y_valid, y_test)
            for label, candidates in methods(components, x.shape[1], seed):
                found.setdefault(label, []).append(score(candidates, model, parts))
        for label, rows in found.items():
            scores, times = np.array(rows).T
            print(
                f"  {components:5d} components  {label:28} {scores.mean():.4f} +- {scores.std(ddof=1) / len(rows) ** 0.5:.4f}  "
                f"features {times.mean():.3f} s",
                flush=True,
            )


def idx(path):
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    dimensions = [int.from_bytes(content[4 + 4 * i : 8 + 4 * i], "big") for i in range(content[3])]
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * content[3]).reshape(dimensions)


def mnist(folder, samples):
    found = {}
    for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"):
        files = sorted(f for f in folder.rglob("train*") if kind in f.name.replace(".idx", "-idx"))
        if not files:
            return None
        found[kind] = idx(files[0])
    images, labels = found.values()
    return images.reshape(len(images), -1)[:samples].astype(np.float32) / 255, labels[:samples]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mnist", type=Path, default=Path(__file__).resolve().parents[2] / "shared/data/mnist")
    parser.add_argument("--samples", type=int, default=6000, help="of MNIST")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    compare("digits", *load_digits(return_X_y=True), RidgeClassifier, (100, 400), options.seeds)
    compare("diabetes", *load_diabetes(return_X_y=True), Ridge, (50, 200), options.seeds)
    x = np.random.default_rng(0).uniform(-1, 1, (4000, 8))
    y = sum(x[:, i] * x[:, j] * (i - j + 0.5) for i, j in itertools.combinations(range(8), 2))
    compare("a quadratic form in 8 variables", x, y, Ridge, (100, 400), options.seeds)
    read = mnist(options.mnist, options.samples)
    if read is None:
        print(f"\nMNIST: no files in {options.mnist}; left out")
    else:
        compare("MNIST", *read, RidgeClassifier, (400, 1000), 2)


if __name__ == "__main__":
    main()
