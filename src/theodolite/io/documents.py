"""The JSON documents that results are written as: their schemas and their version.

``schemas/KIND.json`` says what a document of each kind holds. A change that a reader of documents would notice raises `VERSION`.
"""

import json
from pathlib import Path
from typing import Any

from theodolite.core.checks import InputError, one_of
from theodolite.io.files import printable

VERSION = 1
KINDS = ("survey", "watch", "verdict", "diagnosis", "doctor")


def schema(kind: str) -> dict[str, Any]:
    """The JSON schema of a kind of document.

    >>> schema("survey")["title"]
    'The readings of one subject'
    """
    one_of(KINDS, kind=kind)
    text = (Path(__file__).parent / "schemas" / f"{kind}.json").read_text(encoding="utf-8")
    return json.loads(text)


def stamped(kind: str, document: Any) -> Any:
    """The document with its schema and version; a list of documents with those of each; as it is without a kind."""
    if not kind:
        return document
    if isinstance(document, list):
        return [stamped(kind, member) for member in document]
    return {"schema": f"theodolite/{kind}", "version": VERSION, **document}


def loaded(path: str | Path) -> Any:
    """A document, or a list of them, from a file; an error in words where it is none of this version."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecursionError, json.JSONDecodeError) as error:
        words = printable(" ".join(str(error).split()), 160)
        raise InputError(f"expected a theodolite document in {path}, got {words}; write it again") from error
    for document in found if isinstance(found, list) else [found]:
        kind = str(document.get("schema", "")).removeprefix("theodolite/") if isinstance(document, dict) else ""
        if kind not in KINDS:
            raise InputError(f"expected a theodolite document in {path}, got another; pass what --json wrote")
        if document["version"] > VERSION:
            raise InputError(f"expected version {VERSION} or before, got {document['version']}; update theodolite")
    return found
