"""The data of the clinic: small sets, scaled as they should be, each with a part held out.

Images come from the folder named by THEODOLITE_DATA (../shared/data beside the repository where that is not set), the rest
from scikit-learn or a fixed seed. Every set is the same for every seed of a case; a seed draws weights and batches only.
"""

import csv
import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

LETTERS = " abcdefghijklmnopqrstuvwxyz"
LENGTH = 24  # characters of a sentence
TRAIN, HELD_OUT = 2000, 1000


@dataclass(frozen=True)
class Data:
    """Training and held-out samples of one set; kind: classes, numbers or tokens (a class at every place)."""

    name: str
    x: Tensor
    y: Tensor
    x_held: Tensor
    y_held: Tensor
    kind: str
    outputs: int


def folder() -> Path:
    """Where the shared data lie."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(os.environ.get("THEODOLITE_DATA", beside))


def generator_of(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _idx(path: Path, header: int) -> np.ndarray:
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def _standard(x: Tensor, like: Tensor) -> Tensor:
    return (x - like.mean()) / like.std()


def _columns(x: Tensor, like: Tensor) -> Tensor:
    return (x - like.mean(0)) / like.std(0).clamp_min(1e-9)


def _split(x: Tensor, y: Tensor, train: int, held: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    order = torch.randperm(len(x), generator=generator_of(20))
    a, b = order[:train], order[train : train + held]
    return x[a], y[a], x[b], y[b]


def _classes(name: str, parts: tuple[Tensor, Tensor, Tensor, Tensor], scale: Callable, outputs: int) -> Data:
    x, y, x_held, y_held = parts
    return Data(name, scale(x, x), y, scale(x_held, x), y_held, "classes", outputs)


def _numbers(name: str, parts: tuple[Tensor, Tensor, Tensor, Tensor]) -> Data:
    x, y, x_held, y_held = parts
    y, y_held = y.reshape(len(y), -1), y_held.reshape(len(y_held), -1)
    return Data(name, _columns(x, x), _columns(y, y), _columns(x_held, x), _columns(y_held, y), "numbers", y.shape[1])


def digits() -> Data:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x, dtype=torch.float32).reshape(-1, 1, 8, 8)
    return _classes("digits", _split(x, torch.tensor(y), 1200, 597), _standard, 10)


def _small_images(name: str, stem: str) -> Data:
    root = folder() / name
    x = _idx(root / f"{stem}-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)[:10_000]
    y = _idx(root / f"{stem}-labels-idx1-ubyte.gz", 8)[:10_000]
    x = F.avg_pool2d(torch.tensor(x, dtype=torch.float32)[:, None], 2)
    return _classes(name, _split(x, torch.tensor(y).long(), TRAIN * 2, HELD_OUT), _standard, 10)


def mnist() -> Data:
    return _small_images("mnist", "train")


def fashion() -> Data:
    return _small_images("fashion", "t10k")


def cifar() -> Data:
    from PIL import Image

    root, parts = folder() / "cifar10", []
    for stem in ("train_first5000", "test_first1000"):
        x = np.asarray(Image.open(root / f"{stem}.png").convert("RGB"), np.float32).reshape(-1, 32, 32, 3)
        y = np.fromfile(root / f"{stem}_labels.u8", np.uint8)
        parts += [F.avg_pool2d(torch.tensor(x).permute(0, 3, 1, 2), 2), torch.tensor(y).long()]
    return _classes("cifar", tuple(parts), _standard, 10)


def _sentences() -> list[str]:
    with open(folder() / "cola" / "in_domain_train.tsv", encoding="utf-8") as file:
        rows = [row[3].lower() for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    return ["".join(c for c in row if c in LETTERS) for row in rows]


def _codes(sentences: list[str], length: int) -> Tensor:
    return torch.tensor([[LETTERS.index(c) for c in s[:length]] for s in sentences if len(s) >= length])


def cola_letters() -> Data:
    """The next character of a sentence, at every place."""
    codes = _codes(_sentences(), LENGTH + 1)
    parts = _split(codes[:, :-1], codes[:, 1:], 2 * TRAIN, HELD_OUT)
    return Data("cola-letters", *parts, "tokens", len(LETTERS))


def cola_direction() -> Data:
    """Is the sentence spelt forwards or backwards?"""
    codes = _codes(_sentences(), LENGTH)
    backwards = torch.arange(len(codes)) % 2
    x = torch.where(backwards[:, None] == 1, codes.flip(1), codes)
    return Data("cola-direction", *_split(x, backwards, 2 * TRAIN, HELD_OUT), "classes", 2)


def copy() -> Data:
    """Eight random letters, a mark, and the same letters again; the first half cannot be foretold."""
    draw = torch.randint(1, 12, (2 * TRAIN + HELD_OUT, 8), generator=generator_of(21))
    row = torch.cat([draw, torch.zeros(len(draw), 1, dtype=torch.long), draw], 1)
    return Data("copy", *_split(row[:, :-1], row[:, 1:], 2 * TRAIN, HELD_OUT), "tokens", 12)


def tones() -> Data:
    """Which of six frequencies lies under the noise of a short wave."""
    g = generator_of(22)
    n, time = TRAIN + HELD_OUT, torch.arange(24)
    y = torch.randint(0, 6, (n,), generator=g)
    phase = 6.2832 * torch.rand(n, 1, generator=g)
    wave = torch.sin(0.25 * (1 + y[:, None]) * time + phase) + 0.4 * torch.randn(n, 24, generator=g)
    return _classes("tones", _split(wave[:, :, None], y, TRAIN, HELD_OUT), _standard, 6)


def clusters() -> Data:
    """Five classes of two clouds each in twenty dimensions."""
    from sklearn.datasets import make_classification

    x, y = make_classification(
        3000, 20, n_informative=10, n_redundant=4, n_classes=5, class_sep=1.8, flip_y=0.0, random_state=23
    )
    return _classes(
        "clusters", _split(torch.tensor(x, dtype=torch.float32), torch.tensor(y), TRAIN, HELD_OUT), _columns, 5
    )


def _table(name: str, train: int, held: int, outputs: int) -> Data:
    from sklearn import datasets

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return _classes(name, _split(torch.tensor(x, dtype=torch.float32), torch.tensor(y), train, held), _columns, outputs)


def breast_cancer() -> Data:
    return _table("breast_cancer", 380, 189, 2)


def wine() -> Data:
    return _table("wine", 110, 68, 3)


def diabetes() -> Data:
    from sklearn.datasets import load_diabetes

    x, y = load_diabetes(return_X_y=True, scaled=False)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    return _numbers("diabetes", _split(x, y, 300, 142))


def friedman() -> Data:
    from sklearn.datasets import make_friedman1

    x, y = make_friedman1(TRAIN + HELD_OUT, 10, noise=1.0, random_state=24)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    return _numbers("friedman", _split(x, y, TRAIN, HELD_OUT))


def housing() -> Data:
    """Prices made up from place, age, income and rooms, in the units and with the tails of such tables."""
    g = generator_of(25)
    n = TRAIN + HELD_OUT
    draw = torch.randn(n, 6, generator=g)
    income, age, rooms = torch.exp(1.2 + 0.45 * draw[:, 0]), 28 + 12 * draw[:, 1], torch.exp(1.6 + 0.3 * draw[:, 2])
    people = torch.exp(7 + 0.7 * draw[:, 3])
    north, east = 35.6 + 2.1 * draw[:, 4], -119.6 + 2.0 * draw[:, 5]
    coast = torch.exp(-((north - 37.7) ** 2 + (east + 122.4) ** 2) / 8)
    price = 0.45 * income + 0.3 * torch.log(rooms) * income.sqrt() + 1.5 * coast - 0.1 * torch.log(people)
    price = price + 0.005 * age + 0.3 * torch.randn(n, generator=g)
    table = torch.stack([income, age, rooms, people, north, east], 1)
    return _numbers("housing", _split(table, price, TRAIN, HELD_OUT))


def _itself(name: str, source: Data) -> Data:
    return Data(
        name, source.x, source.x.flatten(1), source.x_held, source.x_held.flatten(1), "numbers", source.x[0].numel()
    )


def digits_itself() -> Data:
    return _itself("digits-itself", digits())


def mnist_itself() -> Data:
    return _itself("mnist-itself", mnist())


def fashion_itself() -> Data:
    return _itself("fashion-itself", fashion())


SETS = (
    digits,
    mnist,
    fashion,
    cifar,
    cola_letters,
    cola_direction,
    copy,
    tones,
    clusters,
    breast_cancer,
    wine,
    diabetes,
    friedman,
    housing,
    digits_itself,
    mnist_itself,
    fashion_itself,
)
BY_NAME = {maker.__name__.replace("_", "-"): maker for maker in SETS}
SHARED = {name: name.split("-")[0] for name in BY_NAME if name.split("-")[0] in ("mnist", "fashion", "cola")}
SHARED["cifar"] = "cifar10"


@cache
def data_of(name: str) -> Data:
    """The set of this name, read once."""
    return BY_NAME[name]()


def is_there(name: str) -> bool:
    """Whether the set can be read on this machine."""
    return name not in SHARED or (folder() / SHARED[name]).is_dir()
