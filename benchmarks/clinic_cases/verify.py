"""Is every case what it claims to be? Each is run beside its healthy twin, on the first seed of its half.

    python -m benchmarks.clinic_cases.verify [--only TEXT ...] [--without TEXT ...] [--processes 2] [--seed-index 0]
                                             [--ran clinic.jsonl ...]

A healthy run reaches the score of its data set (healthy.THRESHOLDS), and its held-out loss ends within a fifth of its lowest.
A sick run keeps at most 0.9 (mild) or 0.6 (severe) of its twin's skill, which is the score less chance; where the ailment is
true by another fact, that fact is looked at after the run, and the score is only printed. Runs that the clinic has made already
(--ran) are not made again: only their scores are read there, and their twins are run.
"""

import argparse
import functools
import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

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


_twins: dict[tuple[str, int], Setup] = {}  # run once for the cases that share it


def _twin(case: Case, seed: int) -> Setup:
    key = case.twin_name, seed
    if key not in _twins:
        _twins[key] = case.twin(seed)
        run(_twins[key])
    return _twins[key]


def _ran(case: Case, seed: int) -> Mapping[str, float | bool | None]:
    setup = case.build(seed)
    run(setup)
    holds = None if case.holds is None else case.holds(setup)
    return {"score": score(setup, *setup.validation, balanced=case.balanced), "holds": holds}


def _sick(case: Case, seed: int, known: Mapping[str, Mapping] | None = None) -> tuple[bool, str]:
    ran, twin = (known or {}).get(case.name) or _ran(case, seed), _twin(case, seed)
    poor, good = ran["score"], score(twin, *twin.validation, balanced=case.balanced)
    base = chance(twin, balanced=case.balanced)
    kept = max(poor - base, 0.0) / max(good - base, 1e-9)
    said = f"score {poor:.3f} twin {good:.3f} skill kept {kept:.2f}"
    well = good - base > 0.25 * (1 - base)
    if case.holds is not None:
        return well and bool(ran["holds"]), f"{said}; {case.fact}"
    return well and kept <= KEPT[case.grade], said


def verdicts(
    numbers: list[int], place: int = 0, known: Mapping[str, Mapping] | None = None
) -> list[tuple[int, bool, str, float]]:
    """Number of the case, whether it is what it claims, the figures, and the seconds it took."""
    torch.set_num_threads(1)
    listed, found = cases(), []
    for number in numbers:
        case, started = listed[number], time.process_time()
        seed = case.seeds[place]
        true, said = _healthy(case, seed) if case.ailment is None else _sick(case, seed, known)
        found.append((number, true, said, time.process_time() - started))
    _twins.clear()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="parts of names")
    parser.add_argument("--without", nargs="*", default=[], help="parts of names to leave out")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed-index", type=int, default=0)
    parser.add_argument(
        "--ran", nargs="*", type=Path, default=[], help="results of the clinic: only these, not run again"
    )
    options = parser.parse_args()
    listed = cases()
    rows = [json.loads(line) for file in options.ran for line in file.read_text().splitlines()]
    known = {row["case"]: row for row in rows if row.get("score") is not None}
    numbers = [i for i, c in enumerate(listed) if not options.only or any(part in c.name for part in options.only)]
    numbers = [i for i in numbers if not any(part in listed[i].name for part in options.without)]
    numbers = [i for i in numbers if not known or (listed[i].name in known and listed[i].ailment)]
    failed, counts = [], Counter()
    groups: dict[str, list[int]] = {}
    for number in numbers:
        groups.setdefault(listed[number].twin_name, []).append(number)
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        of_group = functools.partial(verdicts, place=options.seed_index, known=known)
        for group in pool.imap_unordered(of_group, groups.values()):
            for number, true, said, seconds in group:
                name = listed[number].name
                counts[listed[number].ailment or "healthy", true] += 1
                failed += [] if true else [name]
                print(f"{'yes' if true else 'NO ':3} {name:62} {seconds:5.1f} s  {said}", flush=True)
    for ailment in dict.fromkeys(name for name, _ in counts):
        print(f"{ailment:24} {counts[ailment, True]:3} true, {counts[ailment, False]} not")
    print(f"{sum(counts.values())} cases, {len(failed)} are not what they claim: {', '.join(failed) or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
