"""Is every case what it claims to be? Each is run beside its healthy twin, on the first seed of its half.

    python -m benchmarks.clinic_cases.verify [--only TEXT ...] [--without TEXT ...] [--processes 2] [--seed-index 0]

A healthy run reaches the score of its data set (healthy.THRESHOLDS), and its held-out loss ends within a fifth of its lowest.
A sick run keeps at most 0.9 (mild) or 0.6 (severe) of its twin's skill, which is the score less chance; where the ailment is
true by another fact, that fact is looked at after the run, and the score is only printed.
"""

import argparse
import multiprocessing
import time
from collections import Counter

import torch

from . import Case, Setup, cases, held_out_loss, run, score
from .healthy import THRESHOLDS
from .run import chance

KEPT = {"mild": 0.9, "severe": 0.6}
RISE = 1.2


def _healthy(case: Case, seed: int) -> tuple[bool, str]:
    setup = case.build(seed)
    lowest = float("inf")

    def watch(step: int) -> None:
        nonlocal lowest
        if (step + 1) % max(setup.steps // 8, 1) == 0:
            lowest = min(lowest, held_out_loss(setup))

    run(setup, watch=watch)
    reached, least = score(setup, *setup.validation), case.threshold or THRESHOLDS[case.data]
    rise = held_out_loss(setup) / lowest
    return reached >= least and rise <= RISE, f"score {reached:.3f} (at least {least:.2f}) loss over lowest {rise:.2f}"


_twins: dict[tuple[str, int], Setup] = {}  # sites are run once


def _twin(case: Case, seed: int) -> Setup:
    if (case.site, seed) in _twins:
        return _twins[case.site, seed]
    twin = case.twin(seed)
    run(twin)
    if case.site:
        _twins[case.site, seed] = twin
    return twin


def _sick(case: Case, seed: int) -> tuple[bool, str]:
    setup, twin = case.build(seed), _twin(case, seed)
    run(setup)
    poor, good = (score(each, *each.validation, balanced=case.balanced) for each in (setup, twin))
    base = chance(twin, balanced=case.balanced)
    kept = max(poor - base, 0.0) / max(good - base, 1e-9)
    said = f"score {poor:.3f} twin {good:.3f} skill kept {kept:.2f}"
    well = good - base > 0.25 * (1 - base)
    if case.holds is not None:
        return well and case.holds(setup), f"{said}; {case.fact}"
    return well and kept <= KEPT[case.grade], said


def verdict(number: int, place: int = 0) -> tuple[str, bool, str, float]:
    """Name, whether it is what it claims, the figures, and the seconds it took."""
    torch.set_num_threads(1)
    case = cases()[number]
    started = time.process_time()
    seed = case.seeds[place]
    true, said = (_healthy if case.ailment is None else _sick)(case, seed)
    return case.name, true, said, time.process_time() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="parts of names")
    parser.add_argument("--without", nargs="*", default=[], help="parts of names to leave out")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed-index", type=int, default=0)
    options = parser.parse_args()
    listed = cases()
    numbers = [i for i, c in enumerate(listed) if not options.only or any(part in c.name for part in options.only)]
    numbers = [i for i in numbers if not any(part in listed[i].name for part in options.without)]
    failed, counts = [], Counter()
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        jobs = [(number, pool.apply_async(verdict, (number, options.seed_index))) for number in numbers]
        for number, job in jobs:
            name, true, said, seconds = job.get()
            counts[listed[number].ailment or "healthy", true] += 1
            failed += [] if true else [name]
            print(f"{'yes' if true else 'NO ':3} {name:62} {seconds:5.1f} s  {said}", flush=True)
    for ailment in dict.fromkeys(name for name, _ in counts):
        print(f"{ailment:24} {counts[ailment, True]:3} true, {counts[ailment, False]} not")
    print(f"{sum(counts.values())} cases, {len(failed)} are not what they claim: {', '.join(failed) or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
