"""What can be typed on the command line, and what each option means."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

WRONG_INPUT = 2


_EXAMPLES = """examples:
  theodolite run train.py                       your training script, watched
  theodolite diagnose zoo:model --data x.npz    a function that returns a model
  theodolite survey model.safetensors           a checkpoint alone
  theodolite design --activation gelu --depth 50

exit status:
  0 done, 1 a law is broken or --fail-on was met, 2 the input is wrong"""


class _Wide(argparse.RawDescriptionHelpFormatter):
    """Names of commands beside their help, and the examples as they are written."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=17)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        kept = text.startswith("examples:")
        return super()._fill_text(text, width, indent) if kept else textwrap.fill(text, width)


class _Commands:
    """The commands of a parser; what the list says of one stands at the head of its own help too."""

    def __init__(self, found: Any) -> None:
        self.found = found
        self.choices = found.choices

    def add_parser(self, name: str, *, help: str) -> argparse.ArgumentParser:
        """A command with its one line."""
        made: argparse.ArgumentParser = self.found.add_parser(
            name, help=help, description=help[0].upper() + help[1:] + ("" if help.endswith("?") else ".")
        )
        return made


class _Parser(argparse.ArgumentParser):
    """An argparse parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_INPUT, f"theodolite: {message}; see `{self.prog} --help`\n")


def parser(runs: Mapping[str, Callable[[argparse.Namespace], int]]) -> argparse.ArgumentParser:
    """Every command with its options; ``runs`` is what each does."""
    whole = _Parser(
        prog="theodolite",
        description="Says what is wrong with a neural network, how that is known and what to type; every number stands beside "
        "the one that a theorem expects.",
        epilog=_EXAMPLES,
        formatter_class=_Wide,
    )
    whole.add_argument("--version", action="version", version=f"theodolite {_version()}")
    commands = _Commands(whole.add_subparsers(metavar="command", parser_class=_Parser, title="commands"))

    _survey_parser(commands)
    _diagnose_parser(commands)
    _run_parser(commands)
    _design_parser(commands)
    _transfer_parser(commands)
    _data_parsers(commands)
    _law_parsers(commands)
    for name, run in runs.items():
        commands.choices[name].set_defaults(run=run)
    return whole


def completion(shell: str, whole: argparse.ArgumentParser) -> str:
    """The script that completes commands, options, and the names of laws, instruments and ailments in a shell."""
    from theodolite import catalogue
    from theodolite.report.completion import SHELLS, completion_script

    laws, everything = catalogue.law_names(), [entry.name for entry in catalogue.entries()]
    instruments = [entry.name for entry in catalogue.entries() if entry.kind == "instrument"]
    names = {
        "check": [*catalogue.topics(), *laws],
        "explain": everything,
        "completion": SHELLS,
        "--instrument": instruments,
        "--data": ["digits"],
        "dimension": ["digits"],
        "memorize": ["digits"],
    }
    return completion_script(shell, whole, names)


def _survey_parser(commands: Any) -> None:
    survey = commands.add_parser("survey", help="measure a model or a checkpoint against theory")
    survey.add_argument(
        "target", nargs="?", help="checkpoint, folder or package.module:function (none: a built-in network)"
    )
    survey.add_argument("--data", help="digits, a .npz with x and y, or a .npy with x")
    survey.add_argument("--validation", help="held-out data, in the same forms")
    survey.add_argument(
        "--against", metavar="BASE", help="a checkpoint from before training or fine-tuning, to compare with"
    )
    survey.add_argument("--base", metavar="BASE", help="of an adapter (LoRA): the checkpoint that it belongs to")
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
    _shared(survey, out="folder for report.html and readings.json (survey)", jobs=True)


def _diagnose_parser(commands: Any) -> None:
    diagnose = commands.add_parser("diagnose", help="what is wrong with a network, how that is known, what to type")
    diagnose.add_argument(
        "target", nargs="?", help="checkpoint, folder or package.module:function (none: a built-in network)"
    )
    diagnose.add_argument("--data", help="digits, a .npz with x and y, or a .npy with x")
    diagnose.add_argument("--validation", help="held-out data, in the same forms")
    diagnose.add_argument("--against", metavar="BASE", help="the weights from before training")
    diagnose.add_argument("--lr", type=float, help="the learning rate of training, plain descent assumed")
    diagnose.add_argument("--budget", default="25s", help="how long it may take, such as 60s or 2m")
    diagnose.add_argument(
        "--fail-on", choices=("critical", "warning"), help="exit status 1 where something as bad was found"
    )
    _shared(diagnose, out="folder for diagnosis.html and diagnosis.json")


def _run_parser(commands: Any) -> None:
    run = commands.add_parser(
        "run", help="a training script as it is, watched: findings while it runs, the page at the end"
    )
    run.add_argument("--every", default="auto", help="steps between looks, or auto: as 5 %% of the time allow (auto)")
    run.add_argument("--level", default="standard", choices=("cheap", "standard", "full"), help="what each look reads")
    run.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("run"), help="folder for run.html and run.json (run)"
    )
    run.add_argument("script", help="the script, run as python would run it")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARG", help="its own arguments")


def _design_parser(commands: Any) -> None:
    design = commands.add_parser("design", help="before training: initialization and how deep a signal lives")
    design.add_argument("--activation", default="relu", help="a name as in torch.nn.functional")
    design.add_argument("--depth", type=int, default=10, help="hidden layers")
    design.add_argument("--width", type=int, default=512, help="units a hidden layer")
    design.add_argument("--samples", type=int, help="examples that a step of full-batch descent averages over")
    design.add_argument("--data", help="digits, a .npz or a .npy: the scale of the inputs is taken from it")
    _shared(design, out="folder for design.html")


def _transfer_parser(commands: Any) -> None:
    transfer = commands.add_parser(
        "transfer", help="step sizes of a small network for a large one: what each tensor is, how it begins, its step"
    )
    transfer.add_argument("small", help="package.module:function that builds the small network")
    transfer.add_argument("large", help="package.module:function that builds the large one by the same code")
    transfer.add_argument("--data", help="inputs to run both on: finds attention and residual branches of your own")
    _shared(transfer, out="folder for transfer.html")


def _data_parsers(commands: Any) -> None:
    dimension = commands.add_parser("dimension", help="how many directions the rows of a data set really use")
    dimension.add_argument("data", help="digits, or a file that is .npy, .npz (x and perhaps y), .csv or .parquet")
    dimension.add_argument(
        "--method", metavar="NAME", help="one estimator alone, such as twonn, mle, gride, calibrated"
    )
    _shared(dimension, out="folder for dimension.html and dimension.json (dimension)")

    memorize = commands.add_parser("memorize", help="a network written down, not trained, that fits the data exactly")
    memorize.add_argument("data", help="digits, or an .npz with x and y; whole-number y are classes")
    memorize.add_argument("--activation", default="relu", choices=("relu", "hardtanh"), help="of its units (relu)")
    memorize.add_argument("--widths", help="hidden widths such as 200,200 (default: those of the theorem)")
    memorize.add_argument("--float32", action="store_true", help="write float32 and say what that costs")
    memorize.add_argument("--seed", type=int, default=0, help="another projection (0)")
    memorize.add_argument("--out", type=Path, metavar="FILE", default=Path("net.safetensors"), help="the network")
    _shared(memorize)


def _law_parsers(commands: Any) -> None:
    check = commands.add_parser("check", help="run laws: prediction beside experiment")
    check.add_argument("law", nargs="*", help="laws or topics; none: all of them")
    check.add_argument("--size", default="quick", choices=("quick", "full"), help="seconds a law, or minutes")
    check.add_argument("--seed", type=int, default=0, help="another draw of every experiment (0)")
    check.add_argument(
        "--break-assumptions", action="store_true", help="also break each assumption and see the law fail"
    )
    _shared(check, out="folder for atlas.html and each verdict; a killed run goes on there", jobs=True)

    _shared(
        commands.add_parser("doctor", help="known answers asked of this installation: can its arithmetic be trusted?")
    )
    _shared(commands.add_parser("list", help="every law, instrument and ailment"))
    explain = commands.add_parser("explain", help="a law, an instrument or an ailment in full")
    explain.add_argument("name", help="as `theodolite list` shows it")
    _shared(explain)
    completion = commands.add_parser(
        "completion", help="a script that completes commands, options and names in a shell"
    )
    completion.add_argument(
        "shell", choices=("bash", "zsh", "fish"), help='such as: eval "$(theodolite completion bash)"'
    )


def _shared(parser: argparse.ArgumentParser, *, out: str = "", jobs: bool = False) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output, nothing else there")
    if out:
        parser.add_argument("--out", type=Path, metavar="DIR", help=out)
    if jobs:
        parser.add_argument("--jobs", type=int, default=1, help="worker processes; -1: every core")
        parser.add_argument(
            "--backend", default="loky", choices=("loky", "dask", "ray"), help="where workers run (loky: here)"
        )


def _version() -> str:
    from theodolite import __version__

    return __version__
