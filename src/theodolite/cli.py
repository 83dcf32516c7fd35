"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from theodolite.verbs._shown import Shown

DONE, BROKEN, WRONG_INPUT = 0, 1, 2


class _Parser(argparse.ArgumentParser):
    """An argparse parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_INPUT, f"theodolite: {message}; see `{self.prog} --help`\n")


def main(arguments: list[str] | None = None) -> int:
    """Run a command; 0 done and holds, 1 a law is broken or --fail-on was met, 2 the input is wrong."""
    options = _parser().parse_args(arguments)
    if not hasattr(options, "run"):
        _parser().print_help()
        return DONE
    try:
        return int(options.run(options))
    except BrokenPipeError:  # `theodolite list | head`
        sys.stderr.close()
        return DONE
    except OSError as error:  # a full disk, a folder that may not be written: the machine's words, in our sentence
        ours = str(error).startswith("expected")
        return _wrong(error if ours else f"expected files that can be read and written, got {error}; see to that first")
    except (ValueError, TypeError, ImportError) as error:
        if not str(error).startswith("expected"):  # not one of our own sentences: a defect, and worth its traceback
            raise
        return _wrong(error)
    except MemoryError:
        return _wrong("expected memory for this, got none left; take a smaller part, or a larger machine")
    except KeyboardInterrupt:
        print("theodolite: interrupted", file=sys.stderr)
        return 130


def _wrong(error: Exception | str) -> int:
    """One line on standard error, safe to print; the exit status of wrong input."""
    from theodolite.io.files import said

    print("theodolite: " + said(error if isinstance(error, Exception) else ValueError(error), 380), file=sys.stderr)
    return WRONG_INPUT


def _survey(options: argparse.Namespace) -> int:
    from theodolite.io.loading import asked_subject
    from theodolite.verbs.surveying import survey

    out = options.out or (None if options.json else Path("survey"))
    facts = {"against": options.against, "device": options.device, "lr": options.lr, "activation": options.activation}
    result = survey(
        asked_subject(options.target, options.data, **facts),
        instruments=options.instrument,
        cost=options.cost,
        budget=None if options.budget == "none" else options.budget,
        jobs=options.jobs,
        backend=options.backend,
        out=out,
    )
    status = _present(result, options, out, _SURVEY_FILES, detailed=options.all)
    if result.faults:
        name, reason = next(iter(result.faults.items()))
        more = f" (and {len(result.faults) - 1} more)" if len(result.faults) > 1 else ""
        return _wrong(f"{len(result.faults)} of the tensors could not be read: {name}{more}: {reason}")
    return status


def _diagnose(options: argparse.Namespace) -> int:
    from theodolite.io.loading import asked_subject, dataset
    from theodolite.verbs.diagnosis import diagnose

    validation = dataset(options.validation) if options.validation else None
    subject = asked_subject(options.target, options.data, against=options.against, lr=options.lr, checked=False)
    result = diagnose(subject, validation=validation, budget=options.budget)
    _present(result, options, options.out, {"diagnosis.html": "The page", "diagnosis.json": ""})
    return BROKEN if options.fail_on and result.meets(options.fail_on) else DONE


def _design(options: argparse.Namespace) -> int:
    from theodolite.io import loading as load
    from theodolite.verbs.designing.advice import design

    data = load.dataset(options.data) if options.data else None
    result = design(
        activation=options.activation, depth=options.depth, width=options.width, samples=options.samples, data=data
    )
    return _present(result, options, options.out, {"design.html": "The page"})


def _dimension(options: argparse.Namespace) -> int:
    from theodolite.io import loading as load
    from theodolite.verbs.dimensions.panel import dimension

    x, labels = load.table(options.data)
    if options.method is not None:
        from dataclasses import asdict

        from theodolite.io.files import json_ready
        from theodolite.report.words import number

        found = dimension(x, options.method)
        print(json.dumps(json_ready(asdict(found))) if options.json else number(found.value, found.stderr))
        return DONE
    out = options.out or (None if options.json else Path("dimension"))
    result = dimension(x, labels=labels, picture=out is not None, name=Path(options.data).name)
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
    from theodolite.construct.capacity import memorizing as memory
    from theodolite.io import loading as load
    from theodolite.report.overview import memory_words

    data = load.dataset(options.data, exact=True)
    if not isinstance(data, tuple):
        raise ValueError(
            f"expected an .npz with x and y, got {options.data} without targets; numpy.savez(path, x=x, y=y)"
        )
    widths = [int(width) for width in options.widths.split(",")] if options.widths else None
    net = memory.memorize(*data, activation=options.activation, widths=widths, seed=options.seed)
    if options.float32:
        net = memory.in_float32(net, *data)
    memory.save(net, options.out)
    if options.json:
        from dataclasses import asdict

        print(
            json.dumps({**asdict(net.report), "file": str(options.out), "dtype": str(net[-1].weight.dtype)}, indent=2)
        )
    else:
        print(memory_words(net.report, str(net[-1].weight.dtype)) + f"\nThe network: {options.out}")
    return DONE


def _list(options: argparse.Namespace) -> int:
    from theodolite import catalogue

    if options.json:
        rows = [{"name": e.name, "kind": e.kind, "topic": e.topic, "summary": e.summary} for e in catalogue.entries()]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return DONE
    from theodolite.report.overview import listing

    _show(listing(catalogue.entries(), catalogue.topics()))
    return DONE


def _explain(options: argparse.Namespace) -> int:
    from theodolite import catalogue
    from theodolite.core.law import Law

    entry = catalogue.entry(options.name)
    subject = getattr(catalogue, entry.kind)(entry.name)
    if options.json:
        from theodolite.io.files import json_ready

        hidden = ("predict", "measure", "refuted", "read", "judge", "examples")
        facts: dict[str, Any] = {key: value for key, value in vars(subject).items() if key not in hidden}
        if entry.kind == "law":
            facts["reference"] = catalogue.references().get(facts["source"].partition(",")[0], "")
        else:
            facts["needs"] = sorted(facts["needs"])
        print(
            json.dumps(
                json_ready({"kind": entry.kind, "notes": entry.docstring, **facts}), indent=2, ensure_ascii=False
            )
        )
        return DONE
    from theodolite.report.text import explanation

    verdict = subject.check() if isinstance(subject, Law) else None
    _show(explanation(subject, references=catalogue.references(), documentation=entry.docstring, verdict=verdict))
    return DONE


_SURVEY_FILES = {"report.html": "The page", "readings.json": "", "readings.csv": "Every reading"}


def _present(result: Shown, options: argparse.Namespace, out: Path | None, files: Mapping[str, str], **how: Any) -> int:
    """Write the files, each in the form that its name asks for; then, even where that fails, show JSON or the table."""
    trouble = _written(result, out, files) if out is not None else None
    if options.json:
        print(result.json())
    else:
        _show(result.table(**how))
        if out is not None and trouble is None:
            print("\n" + "\n".join(f"{words}: {out / name}" for name, words in files.items() if words))
    sys.stdout.flush()
    words = f"expected a folder that can be written, got {out}: {trouble}; pass another --out"
    return DONE if trouble is None else _wrong(words)


def _written(result: Shown, out: Path, files: Mapping[str, str]) -> OSError | None:
    try:
        for name in files:
            getattr(result, Path(name).suffix[1:])(out / name)
    except OSError as error:
        return error
    return None


def _show(renderable: RenderableType) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    Console(highlight=False, width=console.width if console.is_terminal else 120).print(renderable)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="theodolite", description="Theory predicts, a measurement is taken, the two are laid side by side."
    )
    parser.add_argument("--version", action="version", version=f"theodolite {_version()}")
    commands = parser.add_subparsers(metavar="command", parser_class=_Parser)

    _survey_parser(commands)
    _diagnose_parser(commands)
    _design_parser(commands)
    _data_parsers(commands)
    _law_parsers(commands)
    return parser


def _survey_parser(commands: Any) -> None:
    survey = commands.add_parser("survey", help="measure a model or a checkpoint against theory")
    survey.add_argument(
        "target", nargs="?", help="checkpoint, folder or package.module:function (none: a built-in network)"
    )
    survey.add_argument("--data", help="digits, a .npz with x and y, or a .npy with x")
    survey.add_argument(
        "--against", metavar="BASE", help="a checkpoint from before training or fine-tuning, to compare with"
    )
    survey.add_argument("--device", default="cpu", help="where the tensors of a checkpoint are worked on, such as cuda")
    survey.add_argument("--lr", type=float, help="the learning rate of training")
    survey.add_argument("--activation", help="the nonlinearity, where it cannot be seen (a bare checkpoint)")
    survey.add_argument(
        "--instrument", action="append", default=[], metavar="NAME", help="only this one; may be repeated"
    )
    survey.add_argument("--all", action="store_true", help="every reading, not one row a quantity")
    costs = ("free", "forward", "backward", "hvp", "train")
    survey.add_argument("--budget", default="60s", metavar="TIME", help="such as 60s or 2m; none: no limit (60s)")
    survey.add_argument("--cost", default="train", choices=costs, help="the dearest work allowed")
    _shared(survey, _survey, out="folder for report.html and readings.json (survey)", jobs=True)


def _diagnose_parser(commands: Any) -> None:
    diagnose = commands.add_parser("diagnose", help="what is wrong with a network, how that is known, what to type")
    diagnose.add_argument(
        "target", nargs="?", help="checkpoint, folder or package.module:function (none: a built-in network)"
    )
    diagnose.add_argument("--data", help="digits, a .npz with x and y, or a .npy with x")
    diagnose.add_argument("--validation", help="held-out data, in the same forms")
    diagnose.add_argument("--against", metavar="BASE", help="the weights from before training")
    diagnose.add_argument("--lr", type=float, help="the learning rate of training, plain descent assumed")
    diagnose.add_argument("--budget", default="30s", help="how long it may take, such as 60s or 2m")
    diagnose.add_argument(
        "--fail-on", choices=("critical", "warning"), help="exit status 1 where something as bad was found"
    )
    _shared(diagnose, _diagnose, out="folder for diagnosis.html and diagnosis.json")


def _design_parser(commands: Any) -> None:
    design = commands.add_parser("design", help="before training: initialisation and how deep a signal lives")
    design.add_argument("--activation", default="relu", help="a name as in torch.nn.functional")
    design.add_argument("--depth", type=int, default=10, help="hidden layers")
    design.add_argument("--width", type=int, default=512, help="units a hidden layer")
    design.add_argument("--samples", type=int, help="examples that a step of full-batch descent averages over")
    design.add_argument("--data", help="digits, a .npz or a .npy: the scale of the inputs is taken from it")
    _shared(design, _design, out="folder for design.html")


def _data_parsers(commands: Any) -> None:
    dimension = commands.add_parser("dimension", help="how many directions the rows of a data set really use")
    dimension.add_argument("data", help="digits, or a file that is .npy, .npz (x and perhaps y), .csv or .parquet")
    dimension.add_argument(
        "--method", metavar="NAME", help="one estimator alone, such as twonn, mle, gride, calibrated"
    )
    _shared(dimension, _dimension, out="folder for dimension.html and dimension.json (dimension)")

    memorize = commands.add_parser("memorize", help="a network written down, not trained, that fits the data exactly")
    memorize.add_argument("data", help="digits, or an .npz with x and y; whole-number y are classes")
    memorize.add_argument("--activation", default="relu", choices=("relu", "hardtanh"))
    memorize.add_argument("--widths", help="hidden widths such as 200,200 (default: those of the theorem)")
    memorize.add_argument("--float32", action="store_true", help="write float32 and say what that costs")
    memorize.add_argument("--seed", type=int, default=0)
    memorize.add_argument("--out", type=Path, metavar="FILE", default=Path("net.safetensors"), help="the network")
    _shared(memorize, _memorize)


def _law_parsers(commands: Any) -> None:
    check = commands.add_parser("check", help="run laws: prediction beside experiment")
    check.add_argument("law", nargs="*", help="laws or topics; none: all of them")
    check.add_argument("--size", default="quick", choices=("quick", "full"), help="seconds a law, or minutes")
    check.add_argument("--seed", type=int, default=0)
    check.add_argument(
        "--break-assumptions", action="store_true", help="also break each assumption and see the law fail"
    )
    _shared(check, _check, out="folder for atlas.html and each verdict; a killed run goes on there", jobs=True)

    _shared(commands.add_parser("list", help="every law, instrument and ailment"), _list)
    explain = commands.add_parser("explain", help="a law, an instrument or an ailment in full")
    explain.add_argument("name")
    _shared(explain, _explain)


def _shared(parser: argparse.ArgumentParser, run: Any, *, out: str = "", jobs: bool = False) -> None:
    parser.set_defaults(run=run)
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output, nothing else there")
    if out:
        parser.add_argument("--out", type=Path, metavar="DIR", help=out)
    if jobs:
        parser.add_argument("--jobs", type=int, default=1, help="worker processes; -1: every core")
        parser.add_argument("--backend", default="loky", choices=("loky", "dask", "ray"))


def _version() -> str:
    from theodolite import __version__

    return __version__


if __name__ == "__main__":
    sys.exit(main())
