"""How far outside its band a law lands when one assumption is broken: is each breaking the smallest honest violation?

    python benchmarks/breakings.py                           every breaking of every law, at seeds 0 and 1
    python benchmarks/breakings.py --laws bbp-spikes --seeds 0 1 2
    python benchmarks/breakings.py --least --jobs 16         and where the breaking is a number, the least that still tells

A distance is counted in half-widths of the band (of a one-sided band: in sizes of its edge; where three standard errors are
longer than that: in those), from the edge outwards. At one or more the reading is decisively outside. A breaking has a size
where each keyword of it is a number on both sides, broken and unbroken; an activation exchanged or a symmetry dropped has none,
and neither has a number whose unbroken value differs from case to case. ``--least`` looks between the two, by the power by which
the distance grew so far, for the least that lands `WANTED` half-widths out at seeds 0 to 2. Where the distance falls slower than
the `LEAST_POWER`-th power of the number (a bias that is there or not) the table says that any size breaks the law. ``--out FILE``
keeps one JSON line a breaking, and does not measure again what it holds.
"""

import argparse
import dataclasses
import functools
import inspect
import json
import math
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from theodolite import catalogue

WANTED = 1.5  # half a half-width more than what is asked: another BLAS rounds otherwise
ENOUGH = 3.0  # the search goes no further down below this
FAR = 5.0
LEAST_POWER = 0.2
SEEDS = (0, 1, 2)
SECONDS = 60.0  # of processor time, for the search of one breaking


def distance(reading, *, noise=True):
    """From the nearest edge outwards, in half-widths; 0 inside, infinite where neither band nor error has a width.

    Without ``noise`` the standard error is not looked at.
    """
    band, value = reading.expected, reading.measured
    if value in band:
        return 0.0
    if not math.isfinite(value):
        return math.inf
    outside = band.low - value if value < band.low else value - band.high
    one_sided = math.isinf(band.low) or math.isinf(band.high)
    half = abs(band.middle) if one_sided else 0.5 * (band.high - band.low)
    unit = max(half, 3 * reading.stderr) if noise else half
    return outside / unit if unit else math.inf


def landed(law, assumption, change, seed, **options):
    """How far the worst reading lies outside with the assumption broken by these keywords."""
    broken = dataclasses.replace(law, assumes={**law.assumes, assumption: change})
    return max(distance(reading, **options) for reading in broken.check(assumption, seed=seed).readings)


def truth(law, change):
    """The unbroken values of a breaking's keywords, or None where it has no size."""
    parameters, found = inspect.signature(law.measure).parameters, {}
    for name, value in change.items():
        default = parameters[name].default if name in parameters else None
        unbroken = {case.get(name, default) for case in law.cases}
        if len(unbroken) != 1 or not all(type(v) in (int, float) for v in (value, *unbroken)):
            return None
        (found[name],) = unbroken
    return found


def between(unbroken, change, share):
    """Keywords a share of the way from unbroken to broken; two digits of the way, or whole numbers where both ends are."""

    def at(start, end):
        way = share * (end - start)
        if type(start) is type(end) is int:
            return start + (math.ceil(way) if way > 0 else math.floor(way))
        return float(f"{start + float(f'{way:.2g}'):.12g}")

    return {name: at(unbroken[name], change[name]) for name in change}


def least(law, assumption, change, unbroken, first):
    """The least keywords found that break the law at every seed, and how far out they land: nothing where none is nearer."""
    began, seeds = time.process_time(), SEEDS if "generator" in inspect.signature(law.measure).parameters else (0,)

    @functools.cache
    def far(share):
        return landed(law, assumption, between(unbroken, change, share), 0)

    good, bad, power = 1.0, 0.0, 1.0
    reached = first
    while reached > ENOUGH and good - bad > 0.25 * good and time.process_time() - began < SECONDS:
        if bad:
            share = math.sqrt(good * bad)
        else:
            share = good * min(0.5, max(1e-3, (2.0 / reached) ** (1 / power)))
        if between(unbroken, change, share) in (between(unbroken, change, good), between(unbroken, change, bad)):
            break
        found = far(share)
        if found >= WANTED:
            if math.isfinite(reached) and found < reached:
                power = max(0.5, math.log(reached / found) / math.log(good / share))
            good, reached = share, found
        else:
            bad = share
    if math.isinf(reached):
        good *= 10  # a count has no half-widths, and where it turns the last bits decide
    while good < 1.0:
        chosen = between(unbroken, change, good)
        distances = [landed(law, assumption, chosen, seed) for seed in seeds]
        if min(distances) >= WANTED and chosen != change:
            if good < 1e-3:  # else it is of the same order
                whole, part = (landed(law, assumption, kind, 0, noise=False) for kind in (change, chosen))
                if not whole > part / good**LEAST_POWER:
                    return {"any": True}
            return {"least": chosen, "least_distances": distances} if max(distances) < first else {}
        good *= 1.25
    return {}


def measured(task):
    """One breaking's line."""
    name, assumption, seeds, look = task
    import torch

    torch.set_num_threads(1)
    law = catalogue.law(name)
    change, began = dict(law.assumes[assumption]), time.process_time()
    record = {"law": name, "assumption": assumption, "change": change}
    try:
        record["distances"] = [landed(law, assumption, change, seed) for seed in seeds]
        unbroken = truth(law, change)
        record["size"] = unbroken is not None and unbroken != change
        if look and record["size"] and min(record["distances"]) > ENOUGH:
            record |= least(law, assumption, change, unbroken, record["distances"][0])
    except Exception as error:  # a line of the table too
        record["error"] = repr(error)
    return {**record, "seconds": round(time.process_time() - began, 2)}


def line(record):
    words = ", ".join(f"{name}={value!r}" for name, value in record["change"].items())
    if "error" in record:
        return f"{record['law']} | {record['assumption']} | {words} | {record['error']}"
    found = " ".join(f"{d:.3g}" for d in record["distances"])
    size = "any size" if record.get("any") else "" if record["size"] else "no size"
    text = f"{record['law']} | {record['assumption']} | {words} | {found}{size and ' | ' + size}"
    if "least" in record:
        smaller = ", ".join(f"{name}={value!r}" for name, value in record["least"].items())
        text += f" | least {smaller}: {' '.join(f'{d:.3g}' for d in record['least_distances'])}"
    return text


def summary(records):
    known = [r for r in records if "distances" in r]
    sized = [r for r in known if r["size"]]
    print(
        f"\n{len(records)} breakings, {len(sized)} with a size; beyond {FAR:g} half-widths at the first seed:", end=" "
    )
    print(f"{sum(r['distances'][0] > FAR for r in sized)} of those with a size,", end=" ")
    print(f"{sum(r['distances'][0] > FAR for r in known if not r['size'])} of those without")
    nearest = [r for r in known if min(r["distances"]) < 1.0]
    print(f"less than one half-width out at some seed: {len(nearest)}")
    for record in nearest:
        print("  " + line(record))


def known(path, names):
    if not path or not Path(path).exists():
        return []
    return [r for r in map(json.loads, Path(path).read_text(encoding="utf-8").splitlines()) if r["law"] in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laws", nargs="+", metavar="LAW", help="only these")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--least", action="store_true", help="look for the least that still breaks")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", metavar="FILE")
    arguments = parser.parse_args()
    names = arguments.laws or catalogue.law_names()
    records = known(arguments.out, names)
    done = {(r["law"], r["assumption"], json.dumps(r["change"])) for r in records}
    tasks = [
        (name, text, arguments.seeds, arguments.least)
        for name in names
        for text, change in catalogue.law(name).assumes.items()
        if change and (name, text, json.dumps(dict(change))) not in done
    ]
    for record in records:
        print(line(record))
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for record in pool.map(measured, tasks):
            records.append(record)
            print(line(record), flush=True)
            if arguments.out:
                with open(arguments.out, "a", encoding="utf-8") as file:
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
    summary(records)
    return 0


if __name__ == "__main__":
    sys.exit(main())
