"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.arguments import WRONG_INPUT, completion, configure, parser
from theodolite.core.checks import InputError
from theodolite.io.files import json_ready, json_text, printable, said

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from theodolite.verbs._presented import Presentable

DONE, BROKEN = 0, 1
ISSUES = "https://github.com/theodolite/theodolite/issues"
"""Where defects are reported; pyproject.toml has it too."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command; 0 done and holds, 1 a law is broken or --fail-on was met, 2 the input is wrong."""
    whole = parser(_RUNS)
    try:
        configure(whole, Path.cwd())
    except (InputError, OSError) as error:
        return _wrong(error)
    options = whole.parse_args(arguments)
    if not hasattr(options, "run"):
        whole.print_help()
        return DONE
    try:
        return int(options.run(options))
    except BrokenPipeError:  # `theodolite list | head`
        sys.stderr.close()
        return DONE
    except InputError as error:
        return _wrong(error)
    except OSError as error:  # a full disk, a folder that may not be written: the machine's words, in our sentence
        return _wrong(
            f"expected files that can be read and written, got {error}; free some space or choose another folder"
        )
    except MemoryError:
        return _wrong("expected enough memory, got none left; use less data or a larger machine")
    except KeyboardInterrupt:
        print("theodolite: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        error.add_note(f"Unless your own code raised this, it is a bug in theodolite. Please report it: {ISSUES}")
        raise


def _wrong(error: Exception | str) -> int:
    """One line on standard error, safe to print; the exit status of wrong input."""
    print("theodolite: " + said(error if isinstance(error, Exception) else ValueError(error), 380), file=sys.stderr)
    return WRONG_INPUT


def _survey(options: argparse.Namespace) -> int:
    if "torch" not in sys.modules:  # threads that wait for work sleep: spinning takes the time of those that have some
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from theodolite.io.datasets import dataset
    from theodolite.io.loading import asked_subject
    from theodolite.verbs.surveying import survey

    out = options.out or (None if options.json else Path("survey"))
    facts = {name: getattr(options, name) for name in ("against", "base", "device", "lr", "activation")}
    result = survey(
        asked_subject(options.target, options.data, **facts),
        instruments=options.instrument,
        cost=options.cost,
        budget=None if options.budget == "none" else options.budget,
        jobs=options.jobs,
        backend=options.backend,
        out=out,
        validation=dataset(options.validation) if options.validation else None,
    )
    status = _present(result, options, out, _SURVEY_FILES, detailed=options.all)
    if result.faults:
        name, reason = next(iter(result.faults.items()))
        more = f" (and {len(result.faults) - 1} more)" if len(result.faults) > 1 else ""
        tensors = "tensor" if len(result.faults) == 1 else "tensors"
        return _wrong(f"{len(result.faults)} {tensors} could not be read: {name}{more}: {reason}")
    return status


def _diagnose(options: argparse.Namespace) -> int:
    from theodolite.io.datasets import dataset
    from theodolite.io.loading import asked_subject
    from theodolite.verbs.diagnosis import diagnose

    if options.target and (Path(options.target) / "command.json").is_file():
        from theodolite.verbs.running.scripts import run_again

        return run_again(Path(options.target))
    validation = dataset(options.validation) if options.validation else None
    subject = asked_subject(
        options.target, options.data, against=options.against, device=options.device, lr=options.lr, checked=False
    )
    result = diagnose(subject, validation=validation, budget=options.budget)
    _present(result, options, options.out, {"diagnosis.html": "The page", "diagnosis.json": ""})
    return BROKEN if options.fail_on and result.meets(options.fail_on) else DONE


def _run(options: argparse.Namespace) -> int:
    from theodolite.verbs.running.scripts import run_script

    every = options.every if options.every == "auto" else int(options.every) if options.every.isdecimal() else 0
    if every == 0:
        raise InputError(f"expected a number of steps from 1 on, or auto, got --every {options.every}")
    return run_script(
        options.script,
        options.arguments,
        out=options.out,
        every=every,
        level=options.level,
        diagnose=not options.no_diagnosis,
        module=options.module,
    )


def _compare(options: argparse.Namespace) -> int:
    from theodolite.verbs.comparing import compared_runs, is_run

    if not any(map(is_run, (options.one, options.other))):  # two checkpoints
        from theodolite.io.loading import asked_subject
        from theodolite.verbs.surveying import survey

        changed = asked_subject(options.other, against=options.one)
        return _present(survey(changed, instruments=["training-change"]), options, None, {}, detailed=True)
    found = compared_runs(options.one, options.other)
    print(json_text(json_ready(found.document())) if options.json else "\n".join(found.lines()))
    return DONE


def _design(options: argparse.Namespace) -> int:
    import theodolite as th
    from theodolite.io.datasets import dataset

    data = dataset(options.data) if options.data else None
    result = th.design(
        activation=options.activation, depth=options.depth, width=options.width, samples=options.samples, data=data
    )
    return _present(result, options, options.out, {"design.html": "The page"})


def _transfer(options: argparse.Namespace) -> int:
    import torch

    import theodolite as th
    from theodolite.io.datasets import dataset
    from theodolite.io.loading import target

    torch.manual_seed(0)  # both are drawn here, and the sizes of the small one's weights are in the table
    small, large = (target(name, checked=False).model for name in (options.small, options.large))
    columns = dataset(options.data) if options.data else None
    inputs = None if columns is None else (columns[0] if isinstance(columns, tuple) else columns)[:2]
    if small is None or large is None:
        raise InputError(
            "expected two functions that build a model, got a checkpoint; pass PACKAGE:small PACKAGE:large"
        )
    return _present(th.transfer(large, small, inputs=inputs), options, options.out, {"transfer.html": "The page"})


def _dimension(options: argparse.Namespace) -> int:
    from theodolite.io.datasets import table
    from theodolite.verbs.dimensions.panel import dimension

    x, labels = table(options.data)
    if options.method is not None:
        from theodolite.report.text import estimate_text

        print(estimate_text(dimension(x, options.method), as_json=options.json))
        return DONE
    out = options.out or (None if options.json else Path("dimension"))
    result = dimension(x, labels=labels, picture=out is not None, name=printable(Path(options.data).name, 200))
    return _present(result, options, out, {"dimension.html": "The page", "dimension.json": ""})


def _check(options: argparse.Namespace) -> int:
    from theodolite import catalogue
    from theodolite.report.progress import tracked
    from theodolite.verbs.checking import Atlas, CheckSettings, checked_laws

    names = catalogue.law_names(options.law)
    settings = CheckSettings(options.size, options.seed, options.break_assumptions)
    found = checked_laws(names, settings, jobs=options.jobs, backend=options.backend, out=options.out)
    results = {r.verdict.law.name: r for r in tracked(found, total=len(names), label="checking laws")}
    atlas = Atlas(tuple(results[name] for name in names))
    status = _present(atlas, options, options.out, {"atlas.html": "The atlas"})
    return status if atlas.good else BROKEN


def _memorize(options: argparse.Namespace) -> int:
    from theodolite.verbs.memorizing import memorize_file

    print(memorize_file(options.data, options.out, options))
    return DONE


def _doctor(options: argparse.Namespace) -> int:
    import theodolite as th

    found = th.doctor()
    _present(found, options, None, {})
    return DONE if found.good else BROKEN


def _list(options: argparse.Namespace) -> int:
    from theodolite import catalogue

    if options.json:
        rows = [{"name": e.name, "kind": e.kind, "topic": e.topic, "summary": e.summary} for e in catalogue.entries()]
        print(json_text(rows))
        return DONE
    from theodolite.report.overview import listing

    _show(listing(catalogue.entries(), catalogue.topics()))
    return DONE


def _explain(options: argparse.Namespace) -> int:
    from theodolite import catalogue

    entry = catalogue.entry(options.name)
    if entry.kind == "ailment" and not options.json:
        from theodolite.report.text import ailment_explanation

        _show(ailment_explanation(entry.name, catalogue.ailment_facts(entry.name), entry.docstring))
        return DONE
    subject: Any = catalogue.ailment(entry.name) if entry.kind == "ailment" else catalogue.stated(entry.name)
    if options.json:
        hidden = ("predict", "measure", "refuted", "read", "judge", "interventions", "sign", "while_training")
        facts: dict[str, Any] = {key: value for key, value in vars(subject).items() if key not in hidden}
        if entry.kind == "law":
            facts["reference"] = catalogue.references().get(facts["source"].partition(",")[0], "")
        else:
            facts["needs"] = sorted(facts["needs"])
        print(json_text(json_ready({"kind": entry.kind, "notes": entry.docstring, **facts})))
        return DONE
    from theodolite.report.text import explanation

    _show(explanation(subject, entry.docstring, catalogue.references()))
    return DONE


def _completion(options: argparse.Namespace) -> int:
    print(completion(options.shell, parser(_RUNS)), end="")
    return DONE


_RUNS = {
    "survey": _survey,
    "diagnose": _diagnose,
    "run": _run,
    "compare": _compare,
    "design": _design,
    "transfer": _transfer,
    "dimension": _dimension,
    "memorize": _memorize,
    "check": _check,
    "doctor": _doctor,
    "list": _list,
    "explain": _explain,
    "completion": _completion,
}
_SURVEY_FILES = {"report.html": "The page", "readings.json": "", "readings.csv": "Every reading"}


def _present(
    result: Presentable, options: argparse.Namespace, out: Path | None, files: Mapping[str, str], **how: Any
) -> int:
    """Write the files, each in the form that its name asks for; then, even where that fails, show JSON or the table."""
    trouble = _written(result, out, files) if out is not None else None
    if options.json:
        print(result.json())
    else:
        _show(result.table(**how))
        if out is not None and trouble is None:
            print("\n" + "\n".join(f"{words}: {printable(str(out / name))}" for name, words in files.items() if words))
        elif files and trouble is None:
            print("\nAdd --out DIR to write a page.")
    sys.stdout.flush()
    words = f"expected a folder that can be written, got {out}: {trouble}; pass another --out"
    return DONE if trouble is None else _wrong(words)


def _written(result: Presentable, out: Path, files: Mapping[str, str]) -> OSError | None:
    try:
        for name in files:
            getattr(result, Path(name).suffix[1:])(out / name)
    except OSError as error:
        return error
    return None


def _show(renderable: RenderableType) -> None:
    """On a terminal as wide as that is; elsewhere as wide as COLUMNS says or 120, plain and without blanks at the end."""
    from rich.console import Console

    console = Console(highlight=False)
    if console.is_terminal:
        console.print(renderable)
        return
    from theodolite.report.text import as_text

    sys.stdout.write(as_text(renderable, width=console.width if "COLUMNS" in os.environ else 120))


if __name__ == "__main__":
    sys.exit(main())
