r"""What entries of a weight tensor look like when nothing was learned and nothing went wrong: bounds, tails, distances."""

import math

from theodolite.core.checks import InputError, at_least, positive, within


def gap_probability(ratio: float, *, rank: int, exponent: float) -> float:
    r"""The chance that the first ``rank`` of many magnitudes lie ``ratio`` times above the next: $r^{-\alpha k}$.

    For a tail $P(|w|>t)\propto t^{-\alpha}$ the log-spacings $k\log(x_{(k)}/x_{(k+1)})$ are exponential with rate
    $\alpha$ (Renyi's representation). Lighter tails have a larger $\alpha$ at their top, so that the same gap is rarer there.

    >>> round(gap_probability(10.0, rank=1, exponent=3.0), 12)
    0.001
    """
    if not ratio >= 1.0:
        raise InputError(f"expected a ratio of at least 1, got {ratio}; divide the larger by the smaller")
    positive(exponent=exponent)
    return math.exp(max(-700.0, -exponent * rank * math.log(ratio)))


def gaussian_maximum(entries: int) -> float:
    r"""The largest of n Gaussian magnitudes in standard deviations, to leading order $\sqrt{2\log n}$.

    >>> round(gaussian_maximum(1_000_000), 2)
    5.26
    """
    at_least(0, entries=entries)
    return math.sqrt(2.0 * math.log(max(2, entries)))


def initial_bounds(shape: tuple[int, ...]) -> dict[str, float]:
    r"""Half-widths of the uniform distributions that layers of this shape are drawn from.

    PyTorch's own for linear and convolutional layers ($1/\sqrt{\text{fan-in}}$), He's, Glorot's and LeCun's, and those of
    recurrent layers ($1/\sqrt{\text{hidden}}$, with one, three or four gates).

    >>> initial_bounds((16, 4))["PyTorch"]
    0.5
    """
    if len(shape) < 2 or min(shape) < 1:
        raise InputError(f"expected the shape of a layer's weights, at least two positive sizes, got {shape}")
    fan_in = math.prod(shape[1:])
    fan_out = shape[0] * math.prod(shape[2:])
    bounds = {
        "PyTorch": 1 / math.sqrt(fan_in),
        "He": math.sqrt(6 / fan_in),
        "Glorot": math.sqrt(6 / (fan_in + fan_out)),
        "LeCun": math.sqrt(3 / fan_in),
    }
    if len(shape) == 2:
        bounds |= {f"recurrent, {gates} gates": math.sqrt(gates / shape[0]) for gates in (1, 3, 4)}
    return bounds


def largest_uniform_shortfall(entries: int, *, chance: float = 1e-5) -> float:
    r"""How far below its bound the largest of n uniform magnitudes lies at most, but for this chance: $-\log(p)/n$.

    >>> round(largest_uniform_shortfall(1000), 4)
    0.0115
    """
    at_least(1, entries=entries)
    positive(chance=chance)
    return -math.log(chance) / entries


def kolmogorov_distance(entries: int, *, chance: float = 1e-3) -> float:
    r"""The distance between the empirical law of n draws and their own law that is exceeded with this chance.

    $\sqrt{\log(2/p)/(2n)}$, the bound of Dvoretzky, Kiefer and Wolfowitz with Massart's constant.

    >>> round(kolmogorov_distance(10_000), 4)
    0.0195
    """
    at_least(1, entries=entries)
    positive(chance=chance)
    within(0, 1, chance=chance)
    return math.sqrt(math.log(2 / chance) / (2 * entries))
