"""Bytes and seconds of three pages: the survey of the built-in network, a run's, and the atlas of three laws.

What the pages show is measured first and not counted. Times are processor seconds: the first is that of a fresh process,
which loads what drawing needs; the second is the best of five more. Run with ``--json`` for the figures alone, and with
``--out DIR`` to keep the pages.
"""

import argparse
import json
import time
from pathlib import Path

import torch
from torch.nn.functional import mse_loss

import theodolite as th
from theodolite.construct.propagation import network
from theodolite.io.builtin_network import builtin
from theodolite.report.html import survey_page
from theodolite.verbs._presented import laws_of
from theodolite.verbs.checking import Atlas, CheckSettings, checked_laws

LAWS = ("marchenko-pastur", "nngp-limit", "tanh-one-over-depth")


def surveyed():
    found = th.survey(builtin(), budget=None)  # the same readings, however busy the machine is
    opening = found.opening()  # the diagnosis is made where it is asked for first
    sheet, laws = found.sheet(), laws_of(found.answers)
    return lambda: {
        "survey.html": survey_page(sheet.title, sheet.answers, sheet.skipped, sheet.facts, opening=opening, laws=laws)
    }


def watched():
    x = torch.linspace(-1, 1, 20, dtype=torch.float64)[:, None]
    y = 8 * x**4 - 8 * x**2 + 1
    spec = th.Mlp(widths=(16, 16, 16), activation="tanh", weight_variance=1.5, bias_variance=0.1)
    model = network(spec, 1, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.075)
    watch = th.Watch(model, probe=(x, y), loss=mse_loss, every=20, budget=float("inf"))
    for step in range(801):
        watch(step, lr=0.075)
        optimizer.zero_grad()
        mse_loss(model(x), y).backward()
        optimizer.step()
    watch.opening()
    return lambda: {"watch.html": watch.html()}


def charted():
    atlas = Atlas(tuple(checked_laws(LAWS, CheckSettings(break_assumptions=True))))
    return atlas.files


def measured(make):
    """The files, the seconds of the first making, and the best of five more."""
    times = []
    for _ in range(6):
        start = time.process_time()
        files = make()
        times.append(time.process_time() - start)
    return files, times[0], min(times[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    makers = {"survey": surveyed(), "watch": watched(), "atlas": charted()}
    rows = {}
    for name, make in makers.items():
        files, first, best = measured(make)
        rows[name] = {"files": len(files), "bytes": sum(len(t.encode()) for t in files.values())}
        rows[name] |= {"first": round(first, 4), "best": round(best, 4)}
        for path, text in files.items() if given.out else ():
            (given.out / path).parent.mkdir(parents=True, exist_ok=True)
            (given.out / path).write_text(text, encoding="utf-8")
    if given.json:
        print(json.dumps(rows))
        return
    print(f"{'page':8}{'files':>6}{'bytes':>12}{'first, s':>10}{'best, s':>10}")
    for name, row in rows.items():
        print(f"{name:8}{row['files']:6}{row['bytes']:12,}{row['first']:10.3f}{row['best']:10.3f}")


if __name__ == "__main__":
    main()
