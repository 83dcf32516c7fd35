"""How time and memory grow with a size: exponents fitted over three sizes, beside what is expected."""

import math


def exponent(sizes, values):
    """The slope of log value on log size by least squares; None where a value is too small to say."""
    if min(values) <= 0:
        return None
    x, y = [math.log(size) for size in sizes], [math.log(value) for value in values]
    middle, level = sum(x) / len(x), sum(y) / len(y)
    return sum((a - middle) * (b - level) for a, b in zip(x, y, strict=True)) / sum((a - middle) ** 2 for a in x)


def growth_row(work, sizes, found, expected, *, counts="", scale=None, keys=("wall", "above")):
    """What grew how, in words: ``found`` holds for each size a dictionary of seconds and megabytes under these keys."""
    times, memory = ([one[key] for one in found] for key in keys)
    powers = [exponent(scale or sizes, values) for values in (times, memory)]
    shown = ["too small to say" if power is None else f"{power:.2f}" for power in powers]
    return {
        "work": work,
        "sizes": f"{', '.join(f'{size:,g}' for size in sizes)} {counts}".rstrip(),
        "times": ", ".join(seconds_words(value) for value in times),
        "memory": ", ".join(f"{value:.0f}" for value in memory) + " MB",
        "time exponent": shown[0],
        "memory exponent": shown[1],
        "expected": "; ".join(expected),
    }


def growth_table(rows):
    """A table of the terminal."""
    from rich.table import Table

    columns = {
        "work": "work",
        "sizes": "sizes",
        "times": "times",
        "memory": "memory",
        "time exponent": "exponent of time",
        "memory exponent": "of memory",
        "expected": "expected: time; memory",
    }
    table = Table(*columns.values(), title="growth, ours")
    for row in rows:
        table.add_row(*(row[key] for key in columns))
    return table


def seconds_words(value):
    """Seconds in three figures."""
    return f"{value:.1f} s" if value >= 10 else f"{value:.2f} s" if value >= 0.1 else f"{1e3 * value:.3g} ms"
