"""The JSON documents that results are written as: their schemas, their version, and old ones read as new.

``schemas/KIND.json`` says what a document of each kind holds. A change that a reader of old documents would notice raises
`VERSION`, and `upgraded` learns how the version before becomes this one.
"""

import json
from pathlib import Path
from typing import Any

from theodolite.core.checks import InputError
from theodolite.io.files import printable

VERSION = 1
KINDS = ("survey", "watch", "verdict", "diagnosis", "doctor")
_MARKS = {"phase": "watch", "law": "verdict", "findings": "diagnosis", "readings": "survey"}
"""What documents from before there was a version are told by, in this order."""


def schema(kind: str) -> dict[str, Any]:
    """The JSON schema of a kind of document.

    >>> schema("survey")["title"]
    'The readings of one subject'
    """
    if kind not in KINDS:
        raise InputError(f"expected a kind among {', '.join(KINDS)}, got {kind!r}; choose one of them")
    text = (Path(__file__).parent / "schemas" / f"{kind}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def stamped(kind: str, document: Any) -> Any:
    """The document with its schema and version; a list of documents with those of each; as it is without a kind."""
    if not kind:
        return document
    if isinstance(document, list):
        return [stamped(kind, member) for member in document]
    return {"schema": f"theodolite/{kind}", "version": VERSION, **document}


def upgraded(document: Any) -> Any:
    """A document of this or an earlier version as one of this version.

    >>> upgraded({"subject": "m", "readings": [], "skipped": [], "facts": {}})["version"]
    1
    """
    if isinstance(document, list):
        return [upgraded(member) for member in document]
    if not isinstance(document, dict):
        raise InputError(f"expected a theodolite document, got {type(document).__name__}; pass what --json wrote")
    version = document.get("version", 0)
    kind = str(document.get("schema", "")).removeprefix("theodolite/") or _kind_of(document)
    if kind not in KINDS or type(version) is not int:
        raise InputError("expected a theodolite document, got another; pass what --json wrote")
    if version > VERSION:
        raise InputError(f"expected version {VERSION} or before, got {version}; update theodolite")
    return document if version == VERSION else stamped(kind, _from_0(kind, document))


def loaded(path: str | Path) -> Any:
    """A document from a file, as one of this version."""
    try:
        return upgraded(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, RecursionError, json.JSONDecodeError) as error:
        words = printable(" ".join(str(error).split()), 160)
        raise InputError(f"expected a theodolite document in {path}, got {words}; write it again") from error


def _kind_of(document: dict[str, Any]) -> str:
    return next((kind for mark, kind in _MARKS.items() if mark in document), "")


def _from_0(kind: str, document: dict[str, Any]) -> dict[str, Any]:
    """Documents without a version: bands were not said to be of a law, and what was not surveyed was not listed."""
    new = dict(document)
    for key in ("readings", "refuted"):
        if key in new:
            new[key] = [{"against": "", **row} for row in new[key]]
    if kind == "survey":
        new = {"diagnosis": None, "unsurveyed": {}, "facts": {}, "skipped": [], **new}
    if kind == "diagnosis":
        new = {"scores": {}, "checked": [], "unchecked": {}, "facts": {}, **new}
    return new
