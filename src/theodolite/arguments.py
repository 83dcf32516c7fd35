"""What can be typed on the command line, and what each option means."""

import argparse
import difflib
import re
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from theodolite.core.checks import InputError

WRONG_INPUT = 2


_EXAMPLES = """examples:
  theodolite run train.py                       your training script, unchanged
  theodolite diagnose zoo:model --data x.npz    a function that returns a model
  theodolite survey model.safetensors           a checkpoint alone
  theodolite design --activation gelu --depth 50

exit status:
  0 done, 1 a law is broken or --fail-on was met, 2 wrong input"""


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
        return self.found.add_parser(
            name, help=help, description=help[0].upper() + help[1:] + ("" if help.endswith("?") else ".")
        )


class _Parser(argparse.ArgumentParser):
    """An argparse parser whose complaint is one line, with the nearest name."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """A command complains of its own unknown options; argparse leaves them to the parser above it."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        known = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)$", message)
        asked, names = ("", []) if known is None else (known[1], re.findall(r"[\w-]+", known[2]))
        unknown = re.match(r"unrecognized arguments: (-[^\s=]*)", message)
        if unknown is not None:
            asked, names = unknown[1], [name for action in self._actions for name in action.option_strings]
        near = difflib.get_close_matches(asked, names, n=1)
        message = f"{message}; did you mean {near[0]}?" if near else message
        self.exit(WRONG_INPUT, f"theodolite: {message}; see `{self.prog} --help`\n")


def parser(runs: Mapping[str, Callable[[argparse.Namespace], int]]) -> argparse.ArgumentParser:
    """Every command with its options; ``runs`` is what each does."""
    whole = _Parser(
        prog="theodolite",
        description="Finds what is wrong with your PyTorch model and what to change.",
        epilog=_EXAMPLES,
        formatter_class=_Wide,
    )
    whole.add_argument("--version", action="version", version=f"theodolite {_version()}")
    commands = _Commands(whole.add_subparsers(metavar="command", parser_class=_Parser, title="commands"))

    _survey_parser(commands)
    _diagnose_parser(commands)
    _run_parser(commands)
    _compare_parser(commands)
    _design_parser(commands)
    _transfer_parser(commands)
    _data_parsers(commands)
    _law_parsers(commands)
    for name, run in runs.items():
        commands.choices[name].set_defaults(run=run)
    return whole


def configure(whole: argparse.ArgumentParser, folder: Path) -> None:
    """Take defaults from [tool.theodolite] of the nearest pyproject.toml; [tool.theodolite.COMMAND] is for one command."""
    file = next((p / "pyproject.toml" for p in (folder, *folder.parents) if (p / "pyproject.toml").is_file()), None)
    if file is None or b"tool.theodolite" not in (text := file.read_bytes()):
        return
    import tomllib

    try:
        table = tomllib.loads(text.decode())["tool"]["theodolite"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"expected a table [tool.theodolite] in {file}, got {error}; correct the file") from error
    commands = next(a.choices for a in whole._actions if isinstance(a, argparse._SubParsersAction))
    for name, value in table.items():
        if isinstance(value, dict):
            if name not in commands:
                raise InputError(
                    f"expected a command in [tool.theodolite.{name}] of {file}, got {name!r}; one of {', '.join(commands)}"
                )
            for key, inner in value.items():
                _set_default(commands[name], key, inner, file)
        else:
            having = [command for command in commands.values() if _option(command, name) is not None]
            if not having:
                raise InputError(
                    f"expected an option in [tool.theodolite] of {file}, got {name!r}; see `theodolite --help`"
                )
            for command in having:
                _set_default(command, name, value, file)


def _option(command: argparse.ArgumentParser, key: str) -> argparse.Action | None:
    wanted = "--" + key.replace("_", "-")
    return next(
        (action for action in command._actions if wanted in action.option_strings and action.dest != "help"), None
    )


def _set_default(command: argparse.ArgumentParser, key: str, value: Any, file: Path) -> None:
    action = _option(command, key)
    if action is None:
        raise InputError(f"expected an option of `{command.prog}` in {file}, got {key!r}; see `{command.prog} --help`")
    if isinstance(action, argparse._StoreTrueAction):
        good = isinstance(value, bool)
    else:
        good = isinstance(value, str | int | float) and not isinstance(value, bool)
        good = good and (action.choices is None or value in action.choices)
    if not good:
        wanted = f"one of {', '.join(map(str, action.choices))}" if action.choices else "a value as on the command line"
        raise InputError(f"expected {wanted} for {key} in {file}, got {value!r}; correct the file")
    command.set_defaults(**{action.dest: value if isinstance(value, bool) else str(value)})


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
    survey = commands.add_parser(
        "survey", help="measure a model or a checkpoint; each number next to what theory expects"
    )
    add = survey.add_argument
    add("target", nargs="?", help="checkpoint, folder or package.module:function (none: a built-in network)")
    add("--data", help="digits, a .npz with x and y, or a .npy with x")
    add("--validation", help="held-out data, in the same formats")
    add("--against", metavar="BASE", help="a checkpoint from before training or fine-tuning, to compare with")
    add("--base", metavar="BASE", help="for an adapter (LoRA): the checkpoint it belongs to")
    add("--device", default="cpu", help="where to compute, such as cuda")
    add("--lr", type=float, help="the learning rate of training")
    add("--activation", help="the activation function, for a checkpoint without its code")
    add("--instrument", action="append", default=[], metavar="NAME", help="take only this measurement; may be repeated")
    add("--all", action="store_true", help="print every reading, not one row per quantity")
    costs = ("free", "forward", "backward", "hvp", "train")
    add(
        "--budget",
        default="60s",
        metavar="TIME",
        help="how long it may take, such as 60s or 2m, or none for no limit (60s)",
    )
    add("--cost", default="train", choices=costs, help="the most expensive kind of work allowed")
    _shared(survey, out="folder for report.html and readings.json (survey)", jobs=True)


def _diagnose_parser(commands: Any) -> None:
    diagnose = commands.add_parser("diagnose", help="find what is wrong with a model, and what to change")
    add = diagnose.add_argument
    add("target", nargs="?", help="checkpoint, folder or package.module:function (none: a built-in network)")
    add("--data", help="digits, a .npz with x and y, or a .npy with x")
    add("--validation", help="held-out data, in the same formats")
    add("--against", metavar="BASE", help="the weights from before training")
    add("--lr", type=float, help="the learning rate of training (plain gradient descent is assumed)")
    add("--device", default="cpu", help="where to compute, such as cuda")
    add("--budget", default="25s", help="how long it may take, such as 60s or 2m")
    add("--fail-on", choices=("critical", "warning"), help="exit with status 1 if a finding is this bad or worse")
    _shared(diagnose, out="folder for diagnosis.html and diagnosis.json")


def _run_parser(commands: Any) -> None:
    run = commands.add_parser(
        "run", help="run your training script unchanged and say what goes wrong; a page at the end"
    )
    add = run.add_argument
    add("--every", default="auto", help="measure every N steps, or auto: at most 5 %% of the time (auto)")
    add("--level", default="standard", choices=("cheap", "standard", "full"), help="how much to measure each time")
    add("--out", type=Path, metavar="DIR", default=Path("run"), help="folder for run.html and run.json (run)")
    add("--no-diagnosis", action="store_true", help="no diagnosis at the end: only what was seen during the run")
    add("-m", dest="module", action="store_true", help="the script is the name of a module, as in python -m")
    add("script", help="the script, run as python would run it")
    add("arguments", nargs=argparse.REMAINDER, metavar="ARG", help="its own arguments")


def _compare_parser(commands: Any) -> None:
    compare = commands.add_parser("compare", help="two runs: where they first differ; or two checkpoints: what changed")
    add = compare.add_argument
    add("one", metavar="ONE", help="a folder that theodolite run wrote to, its run.json, or a checkpoint")
    add("other", metavar="OTHER", help="the same of the other")
    add("--json", action="store_true", help="one JSON document on standard output")


def _design_parser(commands: Any) -> None:
    design = commands.add_parser("design", help="before training: initialization, depth and learning rate of a network")
    add = design.add_argument
    add("--activation", default="relu", help="a name as in torch.nn.functional")
    add("--depth", type=int, default=10, help="hidden layers")
    add("--width", type=int, default=512, help="units per hidden layer")
    add("--samples", type=int, help="size of the training set")
    add("--data", help="digits, a .npz or a .npy, for the scale of the inputs")
    _shared(design, out="folder for design.html")


def _transfer_parser(commands: Any) -> None:
    transfer = commands.add_parser(
        "transfer", help="carry learning rates from a small network over to a large one, tensor by tensor"
    )
    add = transfer.add_argument
    add("small", help="package.module:function that builds the small network")
    add("large", help="package.module:function that builds the large one with the same code")
    add("--data", help="inputs to run both on: finds attention and residual branches of your own")
    _shared(transfer, out="folder for transfer.html")


def _data_parsers(commands: Any) -> None:
    dimension = commands.add_parser("dimension", help="estimate the intrinsic dimension of a data set")
    dimension.add_argument("data", help="digits, or a file that is .npy, .npz (x and perhaps y), .csv or .parquet")
    dimension.add_argument("--method", metavar="NAME", help="use one estimator, such as twonn, mle, gride, calibrated")
    _shared(dimension, out="folder for dimension.html and dimension.json (dimension)")

    memorize = commands.add_parser("memorize", help="construct a network that fits the data exactly, without training")
    add = memorize.add_argument
    add("data", help="digits, or an .npz with x and y; whole-number y are classes")
    add("--activation", default="relu", choices=("relu", "hardtanh"), help="activation function (relu)")
    add("--widths", help="hidden widths such as 200,200 (default: those of the theorem)")
    add("--float32", action="store_true", help="write float32 and report what that costs")
    add("--seed", type=int, default=0, help="seed of the random projection (0)")
    add("--out", type=Path, metavar="FILE", default=Path("net.safetensors"), help="file to write the network to")
    _shared(memorize)


def _law_parsers(commands: Any) -> None:
    check = commands.add_parser("check", help="run the laws: compare each theorem's prediction with an experiment")
    add = check.add_argument
    add("law", nargs="*", help="laws or topics (none: all of them)")
    add("--size", default="quick", choices=("quick", "full"), help="quick: seconds per law; full: minutes")
    add("--seed", type=int, default=0, help="seed of every experiment (0)")
    add("--break-assumptions", action="store_true", help="also break each assumption and check that the law fails")
    _shared(check, out="folder for atlas.html and each verdict; an interrupted run continues there", jobs=True)

    _shared(commands.add_parser("doctor", help="self-test of this installation"))
    _shared(commands.add_parser("list", help="list every law, instrument and ailment"))
    explain = commands.add_parser("explain", help="explain a finding (ailment), a measurement (instrument) or a law")
    explain.add_argument("name", help="as `theodolite list` shows it")
    _shared(explain)
    completion = commands.add_parser(
        "completion", help="print a script that completes commands, options and names in your shell"
    )
    completion.add_argument(
        "shell", choices=("bash", "zsh", "fish"), help='such as: eval "$(theodolite completion bash)"'
    )


def _shared(parser: argparse.ArgumentParser, *, out: str = "", jobs: bool = False) -> None:
    add = parser.add_argument
    add("--json", action="store_true", help="one JSON document on standard output, nothing else there")
    if out:
        add("--out", type=Path, metavar="DIR", help=out)
    if jobs:
        add("--jobs", type=int, default=1, help="worker processes; -1: every core")
        add("--backend", default="loky", choices=("loky", "dask", "ray"), help="where workers run (loky: here)")


def _version() -> str:
    from theodolite import __version__

    return __version__
