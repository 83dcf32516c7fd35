"""What stands beside the readings of a survey: its facts, and what of a checkpoint was not surveyed, with the reason."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from theodolite.core.checks import InputError
from theodolite.core.question import Answer, Skipped
from theodolite.io.weights import Weight, left_out

if TYPE_CHECKING:
    from theodolite.core.subject import Subject

UNREAD = "matrix without a spectrum to fit"
"""The quantity under which matrices are named that are none: integers, masks, empty ones."""

FEW = 3
"""Names that a line of the table has; the JSON document has all of them."""


def unread(subject: Subject, answers: Iterable[Answer]) -> dict[str, tuple[str, ...]]:
    """The tensors of a checkpoint that no reading speaks of, and what its file holds beside the weights."""
    if subject.model is not None:
        return {}
    readings = [reading for answer in answers for reading in answer.readings]
    told = {reading.where.partition("[")[0].strip() for reading in readings}
    told |= {reading.where.replace("weight", "bias") for reading in readings if reading.quantity.startswith("C_b")}
    names: dict[str, list[str]] = {}
    for name, weight in subject.weights.items():
        if name not in told and name.partition("[")[0].strip() not in told and name not in subject.faults:
            names.setdefault(_reason(weight), []).append(name)
    return {**left_out(subject.weights), **{why: tuple(members) for why, members in names.items()}}


def skips_of(unsurveyed: Mapping[str, tuple[str, ...]]) -> list[Skipped]:
    """One line a reason, with the first names."""
    notes = ("classes", "tolerated")  # of the file, not of weights in it
    return [
        Skipped(_words(names) if why.startswith(notes) else f"weights {_words(names)}", why)
        for why, names in unsurveyed.items()
    ]


def _words(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - FEW:,} more" if len(names) > FEW else ""
    return ", ".join(names[:FEW]) + more


def _reason(weight: Weight) -> str:
    if 0 in weight.shape:
        return "empty"
    if not weight.floating:
        return f"stored as {weight.kind}: indices, counts or masks, not weights"
    if len(weight.shape) < 2:
        return "vectors and single numbers: these instruments measure matrices, and biases together with their weight"
    return "nothing in it that these instruments can measure"


def says_nothing(answers: Iterable[Answer]) -> bool:
    """Whether all that the instruments have to say is that there is nothing to read."""
    return all(reading.quantity == UNREAD for answer in answers for reading in answer.readings)


def nothing_read(subject: Subject, unsurveyed: Mapping[str, tuple[str, ...]], answers: Iterable[Answer]) -> InputError:
    """The error for a checkpoint of which no instrument could read anything."""
    named = [reading for answer in answers for reading in answer.readings]
    whys = [f"{reading.where}: {reading.meaning.partition('. ')[0]}" for reading in named[:1]]
    whys += [f"{len(names):,} ({names[0]}): {why}" for why, names in unsurveyed.items()]
    return InputError(
        f"expected weights that an instrument reads in {subject.name}, got {'; '.join(whys) or 'none'}; "
        "pass the file that holds the matrices"
    )


def _version(package: str) -> str:
    """What `importlib.metadata` says, read off the name of the folder where there is one: to load that takes longer."""
    for folder in map(Path, sys.path):
        for found in folder.glob(f"{package}-*.dist-info"):
            return found.name.removesuffix(".dist-info").partition("-")[2]
    from importlib.metadata import version

    return version(package)


def facts_of(subject: Subject, seconds: float) -> dict[str, str]:
    """Size, device, data and step size of the subject, how long the survey took, and with what it was made."""
    from theodolite import __version__
    from theodolite.verbs.doctoring import quick_health

    own = [weight for weight in subject.weights.values() if weight.floating or "complex" in weight.kind]
    own = own or list(subject.weights.values())  # indices and masks are no parameters, unless all that there is
    sizes, kinds = [math.prod(weight.shape) for weight in own], sorted({weight.kind for weight in own})
    facts = {"parameters": f"{sum(sizes):,} in {len(sizes)} tensors ({', '.join(kinds)})"}
    if subject.model is not None:
        facts["device"] = str(next((p.device for p in subject.model.parameters()), "cpu"))
    if subject.data is not None:
        facts["data"] = f"first batch {subject.data.first().shapes()}"
    if "random" in subject.seen:
        facts["answers"] = subject.seen["random"]
    if subject.lr is not None:
        facts["learning rate"] = f"{subject.lr:g}"
    versions = f"theodolite {__version__}, torch {_version('torch')}"
    trusted = f"{quick_health().headline} (theodolite doctor)"
    made = {
        "time": f"{seconds:.1f} s",
        "made with": versions,
        "seeds": "fixed in each instrument",
        "installation": trusted,
    }
    program, *words = sys.argv
    if PurePath(program).stem == "theodolite":
        made["command"] = " ".join(["theodolite", *map(shlex.quote, words)])
    return {**facts, **made}
