"""What the clinic, the field and the ladder come to: docs/clinic.md, docs/field.md and how often each finding was right.

    python benchmarks/figures.py [--clinic FILE] [--field FILE] [--truth FILE] [--ladder FILE] [--determinism FILE]

Files are those that benchmarks/clinic.py, field.py (--truth, too), ladder.py and determinism.py wrote with --out; what is not
given is left out of the pages, and they say so. A finding counts as right where the run is known to have that fault, whatever
else was said; it counts as wrong on any other run, on every cure and on every rung of the ladder.
"""

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path

import field
import ladder
from clinic_cases import cases, report
from clinic_field import CASES
from kept_rows import read

from theodolite import catalogue

ROOT = Path(__file__).resolve().parents[1]
COUNTS = ROOT / "src" / "theodolite" / "evidence" / "clinic.json"
SCRIPTS = ("clinic", "field", "truth", "ladder", "determinism")


def alarms_of(rows):
    """(case, the names that are right, the names that were raised) of every run of the three collections, each name once."""
    for row in report.counted(rows["clinic"]):
        yield row["case"], row["right"], {f["name"] for f in row["findings"] if f["severity"] in field.BAD}
    for row in rows["field"]:
        case = CASES[row["case"]]
        accept = () if row["fixed"] else case.accept
        names = {f["name"] for f in row["found"] if f["severity"] in field.BAD}
        right = {name for name in names if field.american(name) in map(field.american, accept)}
        yield row["case"], right, names
    for row in rows["ladder"]:
        if "found" in row:
            yield row["run"], (), {name for name, severity, *_ in row["found"] if severity in field.BAD}


def counts_of(rows):
    """Of each finding how often it was right and how often it was raised."""
    found = defaultdict(lambda: [0, 0])
    for _, right, names in alarms_of(rows):
        for name in names:
            found[name][0] += name in right
            found[name][1] += 1
    return dict(sorted(found.items()))


def clinic_page(rows, counts):
    """docs/clinic.md."""
    planned = sum(case.split == "unseen" for case in cases())
    text = (
        report.page(rows["clinic"], "unseen", planned)
        if rows["clinic"]
        else "# The clinic\n\nThe runs were not made.\n"
    )
    lines = [text, "## The ladder\n"]
    answers = [row for row in rows["ladder"] if "found" in row]
    lines.append(
        "Healthy runs (the clinic's, and the field's after their cure) at a third, one and three times their best learning rate "
        f"(`python benchmarks/ladder.py --diagnose`): {ladder.summary(answers)}.\n"
        if answers
        else "Not made.\n"
    )
    for row in answers:
        bad = [f"{name} ({stage})" for name, severity, stage, _ in row["found"] if severity in (*field.BAD, "error")]
        lines += [f"- `{row['run']}` at 3^{row['power']:+d}: {', '.join(bad)}"] if bad else []
    lines += ["\n## The same findings everywhere\n", same_everywhere(rows["determinism"])]
    lines += [
        "\n## How often each finding is right\n",
        "Over the unseen half, the field and the ladder together, false alarms included, with Wilson's 95 % interval. The",
        "package shows this with each finding.\n",
        "| finding | right of raised |",
        "| --- | --- |",
        *(f"| {name} | {report.interval(right, raised)} |" for name, (right, raised) in counts.items()),
    ]
    return "\n".join(lines) + "\n"


def same_everywhere(rows):
    """How many diagnoses differ from the first one of the same run."""
    said = {(row["condition"], row["case"], row["cured"]): row["said"] for row in rows}
    first = {key[1:]: value for key, value in said.items() if key[0] == "quiet"}
    if not first:
        return "Not made."
    lines = [f"{len(first)} runs of the field, diagnosed again (`python benchmarks/determinism.py`).\n"]
    for condition in dict.fromkeys(key[0] for key in said if key[0] != "quiet"):
        own = {key[1:]: value for key, value in said.items() if key[0] == condition and key[1:] in first}
        apart = [key[0] for key, value in own.items() if value != first[key]]
        names = f": {', '.join(apart)}" if apart else ""
        lines.append(f"- {condition}: {len(apart)} of {len(own)} differ{names}")
    return "\n".join(lines)


def field_page(rows):
    """docs/field.md."""
    truth, known = rows["truth"], {field.american(name) for name in catalogue.ailment_names()}
    said = {(row["case"], row["fixed"]): (field.verdict(CASES[row["case"]], row), row) for row in rows["field"]}
    text = f"""# The field: what people ask

Public questions about training that did not work, rebuilt in small size, next to the same run with the accepted answer.
Architecture, loss, optimizer, batch size and the scale of the data follow the question; code, data and words are our own. Made
by `python benchmarks/field.py`, with `--truth` and without; *kept* is the largest share of the cured run's skill
(0 when ignoring the input, 1 when perfect) that the run as asked keeps, over two seeds. A run is faulty if it keeps at most
{field.KEPT} of it and the cured run learns. Scores are accuracies or shares of variance on held-out data, as the model is used (a
language model given only what came before, a table without the leaked column).

{field.summary(truth) if truth else "The cured runs were not trained."}

{diagnosed(said)}

Names marked * are not in the catalogue of ailments.
"""
    lines = [text]
    truths = {row["case"]: row for row in truth}
    for kind in dict.fromkeys(case.kind for case in CASES.values()):
        lines += [
            f"\n## {kind.capitalize()}\n",
            "| case | asked | cured | kept | right answers, the cause first | found | source |",
        ]
        lines.append("|---|---:|---:|---:|---|---|---|")
        for case in (case for case in CASES.values() if case.kind == kind):
            row = truths.get(case.name)
            scores = ("–", "–", "–") if row is None else tuple(f"{row[k]:.2f}" for k in ("asked", "cured", "kept"))
            stars = [name + ("" if field.american(name) in known else "*") for name in case.accept]
            names = ", ".join(stars) or "nothing is wrong"
            note = f"; no cost yet: {case.costs_nothing}" if case.costs_nothing else ""
            cells = case.name, *scores, names + note, answer(said, case), case.source
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def answer(said, case):
    """What the library said of a case, and of its cure where that is an alarm."""
    words = {"OK": "yes", "MISS": "no", "ALARM": "false alarm"} if case.accept else {"OK": "–", "ALARM": "false alarm"}
    if (case.name, False) not in said:
        return "–"
    (verdict, first, names), _ = said[case.name, False]
    text = words[verdict] + (", not first" if verdict == "OK" and case.accept and not first else "")
    text += f" ({', '.join(dict.fromkeys(names))})" if names and not first else ""
    cured = said.get((case.name, True))
    return text + ("; cure: " + ", ".join(cured[0][2]) if cured and cured[0][0] == "ALARM" else "")


def diagnosed(said):
    """The totals of what the library said, and what it took beside training."""
    if not said:
        return "The library was not run."
    tally, first, errors = Counter(), 0, 0
    ratios, times = [], []
    for (name, fixed), ((verdict, leads, _), row) in said.items():
        tally[bool(not fixed and CASES[name].accept), verdict] += 1
        first += leads
        errors += any(f["severity"] == "error" for f in row["found"])
        seconds = row["seconds"]
        times += [max(seconds["start"], seconds["run"])]
        ratios += [times[-1] / max(2.0, seconds["training"])]
    faulty, healthy = (sum(n for (sick, _), n in tally.items() if sick == kind) for kind in (True, False))
    times.sort()
    return (
        f"The library, run before the first step and after the last, found {report.interval(tally[True, 'OK'], faulty)}, "
        f"the cause first {report.interval(first, faulty)}; healthy runs with an alarm "
        f"{report.interval(tally[False, 'ALARM'], healthy)}; "
        f"{errors} exceptions. The longer of the two diagnoses takes a median of {times[len(times) // 2]:.1f} s of one core, "
        f"{times[-1]:.1f} s at most, and no more than the training or 2 s in {sum(r <= 1 for r in ratios)} of {len(ratios)}."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in SCRIPTS:
        parser.add_argument(f"--{name}", type=Path)
    options = parser.parse_args()
    rows = {name: read(getattr(options, name)) for name in SCRIPTS}
    if rows["clinic"]:
        report.put_twins(rows["clinic"], {c.name: c for c in cases()}, read(options.clinic.with_suffix(".twins.jsonl")))
    counts = counts_of(rows)
    COUNTS.write_text(json.dumps(counts, indent=1) + "\n")
    (ROOT / "docs" / "clinic.md").write_text(clinic_page(rows, counts), encoding="utf-8")
    if rows["field"] or rows["truth"]:
        (ROOT / "docs" / "field.md").write_text(field_page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
