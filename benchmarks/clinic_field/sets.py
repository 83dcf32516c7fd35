"""Small sets of data, scaled as they should be, each with a part held out; the same for every seed of a case."""

from functools import cache

import numpy as np
import torch
from sklearn import datasets
from torch import Tensor

from .case import Pair


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _split(x: Tensor, y: Tensor, train: int, *, seed: int = 0) -> tuple[Pair, Pair]:
    order = torch.randperm(len(x), generator=_generator(seed))
    x, y = x[order], y[order]
    return (x[:train], y[:train]), (x[train:], y[train:])


def _scaled(x: Tensor, like: Tensor) -> Tensor:
    return (x - like.mean(0)) / like.std(0).clamp_min(1e-6)


def standardized(train: Pair, held: Pair) -> tuple[Pair, Pair]:
    """Features with mean 0 and deviation 1 over the training part."""
    return (_scaled(train[0], train[0]), train[1]), (_scaled(held[0], train[0]), held[1])


@cache
def raw_digits() -> tuple[Pair, Pair]:
    """Digits of 8 x 8 pixels from 0 to 16, as rows of 64."""
    x, y = datasets.load_digits(return_X_y=True)
    return _split(torch.tensor(x, dtype=torch.float32), torch.tensor(y), 1300)


@cache
def digits(train: int = 1300) -> tuple[Pair, Pair]:
    """Digits as rows of 64, with one mean and deviation for all pixels."""
    (x, y), (x_held, y_held) = raw_digits()
    x, y = x[:train], y[:train]
    return ((x - 4.9) / 6.0, y), ((x_held - 4.9) / 6.0, y_held)


@cache
def images(train: int = 1300) -> tuple[Pair, Pair]:
    """Digits as images of one channel."""
    (x, y), (x_held, y_held) = digits(train)
    return (x.view(-1, 1, 8, 8), y), (x_held.view(-1, 1, 8, 8), y_held)


@cache
def wine() -> tuple[Pair, Pair]:
    """Wines of three growers, 13 features."""
    x, y = datasets.load_wine(return_X_y=True)
    return standardized(*_split(torch.tensor(x, dtype=torch.float32), torch.tensor(y), 120))


@cache
def raw_wine() -> tuple[Pair, Pair]:
    """The same, in the units of its file: from tenths to a thousand."""
    x, y = datasets.load_wine(return_X_y=True)
    return _split(torch.tensor(x, dtype=torch.float32), torch.tensor(y), 120)


@cache
def clusters(classes: int = 4, features: int = 16, *, spread: float = 1.0, samples: int = 1200) -> tuple[Pair, Pair]:
    """Classes of two clouds each, so that a plane does not part them."""
    rng = np.random.default_rng(classes)
    centers = rng.normal(size=(classes, 2, features)) * 1.2
    y = rng.integers(classes, size=samples + 600)
    x = centers[y, rng.integers(2, size=len(y))] + spread * rng.normal(size=(len(y), features))
    return _split(torch.tensor(x, dtype=torch.float32), torch.tensor(y), samples)


@cache
def circles(samples: int = 600) -> tuple[Pair, Pair]:
    """A ring around a disc: no line helps at all."""
    x, y = datasets.make_circles(samples + 400, noise=0.08, factor=0.45, random_state=0)
    return standardized(*_split(torch.tensor(x, dtype=torch.float32), torch.tensor(y), samples))


@cache
def friedman(samples: int = 1000) -> tuple[Pair, Pair]:
    """A smooth function of five of ten features, standardized."""
    x, y = datasets.make_friedman1(samples + 500, n_features=10, noise=0.5, random_state=0)
    y = (y - y.mean()) / y.std()
    pairs = _split(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)[:, None], samples)
    return standardized(*pairs)


@cache
def chain(symbols: int = 8, length: int = 16, samples: int = 1500) -> Tensor:
    """Rows of symbols; each follows from the two before it, four times of five."""
    g = _generator(1)
    rows = torch.randint(symbols, (samples, length), generator=g)
    for t in range(2, length):
        follows = (3 * rows[:, t - 2] + rows[:, t - 1] + 1) % symbols
        kept = torch.rand(samples, generator=g) < 0.8
        rows[:, t] = torch.where(kept, follows, rows[:, t])
    return rows


@cache
def language(symbols: int = 8, length: int = 17) -> tuple[Pair, Pair]:
    """Rows of the chain, and at every place the symbol that follows."""
    rows = chain(symbols, length)
    x, y = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
    return (x[:1000], y[:1000]), (x[1000:], y[1000:])


@cache
def tones(length: int = 24, channels: int = 4) -> tuple[Pair, Pair]:
    """Waves in several channels; the class is how the frequency changes along the way."""
    g = _generator(2)
    n, t = 1400, torch.linspace(0, 1, length)
    y = torch.randint(3, (n,), generator=g)
    bend = (y.float() - 1)[:, None] * 1.5
    start = 3 + torch.rand(n, 1, generator=g)
    angle = 6.283 * (start * t + bend * t * t + torch.rand(n, 1, generator=g))
    phases = torch.arange(channels) * 1.57
    x = torch.sin(angle[:, :, None] + phases) + 0.3 * torch.randn(n, length, channels, generator=g)
    return _split(x, y, 900)


@cache
def padded(length: int = 24, symbols: int = 9) -> tuple[Pair, Pair]:
    """Rows of 4 to 10 symbols, then padding (0); the class is told by the last symbol."""
    g = _generator(3)
    n = 1500
    x = torch.randint(1, symbols, (n, length), generator=g)
    size = torch.randint(4, 11, (n,), generator=g)
    last = x[torch.arange(n), size - 1]
    y = (last - 1) % 4
    x = torch.where(torch.arange(length) < size[:, None], x, torch.zeros_like(x))
    return _split(x, y, 1000)


@cache
def ordered(length: int = 10, symbols: int = 10) -> tuple[Pair, Pair]:
    """Rows that hold symbol 1 and symbol 2 once each among others; the class is which of them comes first."""
    g = _generator(4)
    n = 1500
    x = torch.randint(3, symbols, (n, length), generator=g)
    places = torch.stack([torch.randperm(length, generator=g)[:2] for _ in range(n)])
    x[torch.arange(n), places[:, 0]], x[torch.arange(n), places[:, 1]] = 1, 2
    return _split(x, (places[:, 0] < places[:, 1]).long(), 1000)


@cache
def strokes(side: int = 12) -> tuple[Pair, Pair]:
    """Noisy images with one short bright stroke; the target says for every pixel whether the stroke is there."""
    g = _generator(5)
    n = 500
    x = 0.7 * torch.randn(n, 1, side, side, generator=g)
    y = torch.zeros(n, side, side, dtype=torch.long)
    rows = torch.randint(side, (n,), generator=g)
    starts = torch.randint(side - 3, (n,), generator=g)
    for i in range(n):
        y[i, rows[i], starts[i] : starts[i] + 3] = 1
    return _split(x + 1.6 * y[:, None], y, 300)


@cache
def wave(cycles: float = 12.0, samples: int = 600) -> tuple[Pair, Pair]:
    """A rough function of one coordinate from -1 to 1."""
    g = _generator(6)
    x = 2 * torch.rand(samples + 300, 1, generator=g) - 1
    y = torch.sin(3.1416 * cycles * x) + 0.5 * torch.cos(3.1416 * 0.6 * cycles * x)
    return _split(x, y / y.std(), samples)


def with_mistakes(y: Tensor, classes: int, share: float = 0.4) -> Tensor:
    """Labels of which a share is that of some other class."""
    g = _generator(17)
    other = (y + torch.randint(1, classes, y.shape, generator=g)) % classes
    return torch.where(torch.rand(len(y), generator=g) < share, other, y)
