r"""In the dimension that a union bound asks for k points, one distance leaves its band with chance at most $k^{-2}$ a side."""

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.capacity import embedding_dimension


def predict(count: int, distortion: float) -> Band:
    return Band(high=embedding_dimension(count, distortion=distortion))


def measure(count: int, distortion: float, *, copies: int = 1) -> float:
    r"""The least m with $P(\chi^2_m>(1+\delta)m)\le k^{-2}$, the chance being exact: a Gaussian map's squared lengths."""
    from scipy.special import gammaincc

    square = distortion * distortion
    delta = (square - 1) / (square + 1)

    def chance(m: int) -> float:
        free = m / copies  # rows that are repeated say nothing new
        return float(gammaincc(free / 2, (1 + delta) * free / 2))

    low, high = 0, 1
    while chance(high) > count**-2:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if chance(middle) > count**-2 else (low, middle)
    return float(high)


law = Law(
    claim="A Gaussian map into 4 log k / (d^2/2 - d^3/3) dimensions stretches a distance by more than the factor root of 1 + d "
    "with a chance of at most one over k squared, so that the pairs of k points are kept together; hardly fewer would do.",
    formula=r"m\ge\frac{4\ln k}{\delta^2/2-\delta^3/3}\ \Rightarrow\ P\big(\|Ax\|^2>(1+\delta)\|x\|^2\big)\le k^{-2}",
    assumes={"independent rows": {"copies": 2}, "Gaussian entries": None},
    source="dasgupta2003",
    predict=predict,
    measure=measure,
    cases=tuple({"count": k, "distortion": d} for k, d in ((1000, 1.2), (10**6, 1.2), (10**6, 2.0), (10**9, 1.05))),
    # what Chernoff's bound leaves out is a factor of 1/(delta sqrt(pi m)) in the chance: a share of it, over 4 ln k, in m
    resolution=1.2,
    quantity="least dimension in which one distance is kept",
)
