"""A root between two ends; scipy's would do, but its optimizers take half a second to load."""

from collections.abc import Callable


def root(f: Callable[[float], float], low: float, high: float, *, xtol: float) -> float:
    """The root of a continuous ``f`` between ends of different sign, within ``xtol`` or rounding: Chandrupatla (1997).

    A step of inverse quadratic interpolation is taken where the last three points make it safe, else one of bisection.

    >>> round(root(lambda x: x * x - 2, 1.0, 2.0, xtol=1e-14), 12)
    1.414213562373
    """
    a, b, c = high, low, high
    fa, fb, fc = f(a), f(b), f(high)
    share = 0.5
    while True:
        x = a + share * (b - a)
        fx = f(x)
        if (fx > 0) == (fa > 0):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = x, fx
        best, value = (a, fa) if abs(fa) < abs(fb) else (b, fb)
        least = (0.5 * xtol + 4e-16 * abs(best)) / abs(b - a) if b != a else 1.0
        if value == 0 or least > 0.5:
            return best
        place, height = (a - b) / (c - b), (fa - fb) / (fc - fb)
        share = 0.5
        if height * height < place and (1 - height) ** 2 < 1 - place:
            share = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        share = min(1 - least, max(least, share))
