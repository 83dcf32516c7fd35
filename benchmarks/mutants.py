"""Small errors put into theory one at a time: do tests notice, and do the laws alone?

    python benchmarks/mutants.py --to 40             the first forty of the sample of 200; known ones are not run again
    python benchmarks/mutants.py --laws-only         only what the laws say (seconds a mutant)
    python benchmarks/mutants.py --survivors         only what the tests say of those that no law noticed
    python benchmarks/mutants.py --jobs 16           shared out among processes
    python benchmarks/mutants.py --stop 400          no mutant is begun after 400 s; the next call goes on from there
    python benchmarks/mutants.py --show              only the report of what is known

A mutant is a constant changed by a tenth, a term left out, a sign turned or an exponent raised by one; ``mutation/sites.py``
says what is not changed, and why. It is tried in a copy of the package, on the tests that reach the changed module and on the
laws that run the changed statement, until the first notices. Where a law's measurement does not run it, the stored estimates
stand and only the prediction is worked out again: seconds a mutant. Lines of ``mutants.jsonl`` in ``--results``
are trusted while the files that they rest on are unchanged. ``mutants.md`` says why nothing notices some.
"""

import argparse
import contextlib
import json
import math
import os
import signal
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: children are forked, and threads do not survive that

from mutation.footprints import footprints
from mutation.sites import sample
from mutation.trials import Trials

from theodolite import catalogue

RESULTS = Path(__file__).resolve().parent / "results"
COUNT = 200


def known(trials, mutants, file):
    """Killed while the killer is as it was, or alive while all that was tried is."""
    found, by_key = {}, {mutant.key: mutant for mutant in mutants}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        record = json.loads(line)
        if record["key"] not in by_key:
            continue
        if record["file"]:
            files = [trials.folder / record["file"]]
        else:
            files = trials.files(record["part"], by_key[record["key"]])
        if all(path.exists() for path in files) and trials.mark(files) == record["mark"]:
            found[record["key"], record["part"]] = record
    return found


def tried(trials, mutant, part, limit, results):
    start = time.monotonic()
    killer, file = trials.killer(part, mutant, limit)
    files = [trials.folder / file] if file else trials.files(part, mutant)
    record = {
        "key": mutant.key,
        "part": part,
        "module": mutant.module,
        "mutant": str(mutant),
        "killer": killer,
        "file": file,
        "mark": trials.mark(files),
        "reached": bool(part == "tests" or trials.relevant_laws(mutant)),
        "seconds": round(time.monotonic() - start, 1),
    }
    with results.open("ab", buffering=0) as out:  # one write a line: several processes add to it
        out.write((json.dumps(record, ensure_ascii=False) + "\n").encode())
    return record


def try_all(trials, part, numbered, arguments):
    """Each of these mutants on the tests or on the laws, one after the other."""
    for number, mutant in numbered:
        if time.monotonic() > arguments.stop:
            return
        record = tried(trials, mutant, part, arguments.limit, arguments.results / "mutants.jsonl")
        verdict = record["killer"] or "ALIVE"
        print(f"{number} {part} {record['seconds']} s {mutant}: {verdict}", file=sys.stderr, flush=True)


def try_all_shared(trials, part, numbered, arguments):
    """The same, shared out among processes that have a copy of the package each; whoever is free takes the next."""
    taken, queue = os.pipe()  # a place is two bytes, which one process reads; all of them wait in the pipe
    os.write(queue, b"".join(place.to_bytes(2) for place in range(len(numbered))))
    os.close(queue)
    children = []
    for _ in range(min(arguments.jobs, len(numbered))):
        child = os.fork()
        if not child:
            own, code = None, 1
            try:
                own = Trials(trials.footprints)
                places = iter(lambda: os.read(taken, 2), b"")
                try_all(own, part, (numbered[int.from_bytes(place)] for place in places), arguments)
                code = 0
            finally:
                if own:
                    own.close()
                os._exit(code)
        children.append(child)
    os.close(taken)
    try:
        for child in children:
            os.waitpid(child, 0)
    except BaseException:
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
        raise


def report(mutants, found):
    rows = [(m, found.get((m.key, "tests")), found.get((m.key, "laws"))) for m in mutants]
    print(f"mutants: {len(rows)} of the sample of {COUNT}")
    for name, part in (("tests", 1), ("laws", 2)):
        tried_on = [row[part] for row in rows if row[part]]
        share = f" ({100 * sum(map(killed, tried_on)) / len(tried_on):.0f} %)" if tried_on else ""
        print(f"killed by {name}: {sum(map(killed, tried_on))} of {len(tried_on)}{share}")
    reached = [row[2] for row in rows if row[2] and row[2]["reached"]]
    share = f" ({100 * sum(map(killed, reached)) / len(reached):.0f} %)" if reached else ""
    print(
        f"killed by laws, of those whose statement some law runs: {sum(map(killed, reached))} of {len(reached)}{share}"
    )
    total = sum(noticed(row[1]) or noticed(row[2]) for row in rows)
    print(f"killed by tests or laws: {total} of {len(rows)} ({100 * total / max(1, len(rows)):.0f} %)")
    both = [row for row in rows if row[1] and row[2]]
    print(f"killed by laws and by no test: {sum(killed(row[2]) and not killed(row[1]) for row in both)} of {len(both)}")
    alive = [row for row in both if not killed(row[1]) and not killed(row[2])]
    print(f"survivors: {len(alive)} of the {len(both)} tried on both")
    for mutant, _, _ in alive:
        print(f"  {mutant}")
    for title, part in (("not noticed by a test", 1), ("not noticed by a law", 2)):
        print(f"\n{title}:")
        for row in rows:
            if row[part] and not killed(row[part]):
                why = row[part]["killer"] or ("" if row[part]["reached"] else "run by none")
                print(f"  {row[0]}{f' ({why})' if why else ''}")


def killed(record):
    """Whether something noticed: a run that was out of time, or could not be made, has noticed nothing."""
    return record["killer"] not in ("", "time", "crash")


def noticed(record):
    return record is not None and killed(record)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="I")
    parser.add_argument("--to", dest="last", type=int, default=COUNT, metavar="J")
    parser.add_argument("--seed", type=int, default=0, help="another sample of 200")
    parser.add_argument("--laws-only", action="store_true")
    parser.add_argument("--tests-only", action="store_true")
    parser.add_argument(
        "--survivors", action="store_true", help="the tests, on those that no law is known to have noticed"
    )
    parser.add_argument(
        "--limit", type=float, default=300.0, metavar="SECONDS", help="of processor time, for one mutant and part"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants of the whole package whose line holds this")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--stop", type=float, default=math.inf, metavar="SECONDS", help="begin nothing after so long")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument("--show", action="store_true", help="run nothing")
    arguments = parser.parse_args()
    arguments.stop += time.monotonic()
    arguments.results.mkdir(exist_ok=True)
    without = {"laws": arguments.tests_only or arguments.survivors, "tests": arguments.laws_only}
    parts = [part for part in without if not without[part]]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the copy is removed and the child ended
    preload()
    names = [] if arguments.only and "laws" not in parts else catalogue.law_names()
    trials = Trials(footprints(arguments.results / "footprints.jsonl", names, jobs=arguments.jobs))
    if arguments.only:
        mutants = [m for m in sample(trials.root, 10**6) if arguments.only in str(m)]
    else:
        mutants = sample(trials.root, COUNT, arguments.seed)[arguments.first : arguments.last]
    try:
        found = known(trials, mutants, arguments.results / "mutants.jsonl")
        if not arguments.show:
            for part in parts:
                spared = {key for key, name in found if arguments.survivors and name == "laws"}
                spared = {key for key in spared if noticed(found[key, "laws"])}
                numbered = [
                    (number, mutant)
                    for number, mutant in enumerate(mutants, start=arguments.first)
                    if (mutant.key, part) not in found and mutant.key not in spared
                ]
                (try_all_shared if arguments.jobs > 1 else try_all)(trials, part, numbered, arguments)
                found = known(trials, mutants, arguments.results / "mutants.jsonl")
        report(mutants, found)
    finally:
        trials.close()


def preload():
    """What every child needs, loaded once: a fork is then cheap."""
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import scipy.linalg
    import scipy.optimize
    import scipy.special
    import scipy.stats  # noqa: F401
    import torch

    torch.set_num_threads(1)


if __name__ == "__main__":
    main()
