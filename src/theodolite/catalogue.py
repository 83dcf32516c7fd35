"""Finds laws, instruments and ailments by their files. There is no registry: a new file is all it takes."""

from __future__ import annotations

import ast
import contextlib
import difflib
import functools
import importlib
import inspect
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from theodolite.core.checks import InputError

if TYPE_CHECKING:
    from theodolite.core.ailment import Ailment
    from theodolite.core.instrument import Instrument
    from theodolite.core.law import Law
    from theodolite.core.question import Question

ROOT = Path(__file__).parent


@dataclass(frozen=True)
class CatalogueEntry:
    """A law, an instrument or an ailment as its file shows it, without importing it."""

    name: str
    kind: Literal["law", "instrument", "ailment"]
    topic: str
    path: Path

    @property
    def summary(self) -> str:
        """The first line of the file's docstring."""
        return _docstring(self.path).partition("\n")[0]

    @property
    def docstring(self) -> str:
        """The whole docstring of the file."""
        return _docstring(self.path)

    @property
    def module(self) -> str:
        """The dotted name under which Python imports it."""
        return ".".join(("theodolite", *self.path.relative_to(ROOT).with_suffix("").parts))


@functools.cache
def entries() -> tuple[CatalogueEntry, ...]:
    """Every law, by topic and name, then every instrument, then every ailment."""
    laws = [CatalogueEntry(_name(p), "law", p.parent.name, p) for p in sorted(ROOT.glob("laws/*/[!_]*.py"))]
    instruments = [CatalogueEntry(_name(p), "instrument", "", p) for p in sorted(ROOT.glob("instruments/[!_]*.py"))]
    ailments = [CatalogueEntry(_name(p), "ailment", "", p) for p in sorted(ROOT.glob("ailments/[!_]*.py"))]
    return (*laws, *instruments, *ailments)


def entry(name: str) -> CatalogueEntry:
    """The entry of that name; hyphens and underscores are alike."""
    wanted = name.replace("_", "-")
    found = next((e for e in entries() if e.name == wanted), None)
    if found is None:
        names = [e.name for e in entries()]
        near = difflib.get_close_matches(wanted, names, n=3, cutoff=0.75) or _about(wanted)
        near = near or difflib.get_close_matches(wanted, names, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`theodolite list` shows them all"
        raise InputError(f"expected the name of a law, an instrument or an ailment, got {name!r}; {hint}")
    return found


def _about(words: str) -> list[str]:
    """The entries whose names and questions have most of these words, ailments first: "learning rate" finds step-too-large."""
    stems = [re.sub(r"(ing|ed|s)$", "", word) for word in re.findall(r"[a-z]{3,}", words.lower())]
    asked = [re.compile(rf"\b{stem}", re.IGNORECASE) for stem in stems]
    found: dict[int, list[str]] = {}
    for one in sorted(entries(), key=lambda one: one.kind):
        text = one.name + one.path.read_text(encoding="utf-8").partition("\n")[0]
        found.setdefault(sum(bool(word.search(text)) for word in asked), []).append(one.name)
    return found[max(found)][:5] if max(found) else []


def law(name: str) -> Law:
    """The law of that name."""
    return _imported(name, "law")


def instrument(name: str) -> Instrument:
    """The instrument of that name."""
    return _imported(name, "instrument")


def ailment(name: str) -> Ailment:
    """The ailment of that name."""
    return _imported(name, "ailment")


@functools.cache
def _imported(name: str, kind: str) -> Any:
    found = entry(name)
    if found.kind != kind:
        article = "a" if kind == "law" else "an"
        raise InputError(
            f"expected the name of {article} {kind}, got the {found.kind} {name!r}; `theodolite list` shows them all"
        )
    known = {"name": found.name, "topic": found.topic} if kind == "law" else {"name": found.name}
    return replace(getattr(importlib.import_module(found.module), kind), **known)


def ailment_names() -> tuple[str, ...]:
    """The names of all ailments."""
    return tuple(e.name for e in entries() if e.kind == "ailment")


@functools.cache
def question(name: str) -> Question:
    """What the instrument of that name asks, needs and costs, read from its file without importing it."""
    from theodolite.core.question import Question

    found = entry(name)
    facts = _literals(found.path, "instrument") if found.kind == "instrument" else None
    if facts is None:  # a law, which is refused in words; or an instrument whose facts are computed
        return instrument(name)
    return Question(**facts, name=found.name)


@functools.cache
def ailment_facts(name: str) -> Mapping[str, Any]:
    """What the ailment of that name asks and needs, and whether it can be seen live, read from its file without importing it."""
    facts = _literals(entry(name).path, "ailment") or vars(ailment(name))
    text = entry(name).path.read_text(encoding="utf-8")
    if "\nailment = silent_error(" in text:  # it needs a run and is seen live unless it says otherwise
        return {"needs": frozenset({"run"}), "live": True, **facts}
    of_depth = {"needs": frozenset({"model", "data", "loss"})} if "\nailment = depth_ailment(" in text else {}
    return {**of_depth, **facts, "live": "while_training=" in text}


def stated(name: str) -> Law | Instrument:
    """The law or instrument of that name with the words of its file; nothing heavy is imported, so it cannot be run.

    The file is executed without what it imports of torch and of ours, and without constants made of those, so its functions have
    their words and their arguments only. Where the law or instrument itself needs one of them, the file is imported whole.
    """
    found = entry(name)
    tree = ast.parse(found.path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": __name__}  # dataclasses look their module up
    flags = annotations.compiler_flag  # the types of arguments are not looked up
    for node in (node for node in tree.body if not _heavy(node)):
        with contextlib.suppress(NameError):
            exec(compile(ast.Module([node], []), str(found.path), "exec", flags, dont_inherit=True), names)
    if found.kind not in names:
        return law(name) if found.kind == "law" else instrument(name)
    known = {"name": found.name, "topic": found.topic} if found.kind == "law" else {"name": found.name}
    return replace(names[found.kind], **known)


def _heavy(node: ast.stmt) -> bool:
    """Whether it imports anything but Python's own modules, numpy and the nouns."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return False
    modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    light = {*sys.stdlib_module_names, "numpy"}
    return not all(m.partition(".")[0] in light or m.startswith("theodolite.core.") for m in modules)


def law_names(chosen: Iterable[str] = ()) -> tuple[str, ...]:
    """The names of all laws, or of those chosen by their own name or by their topic, in the catalogue's order."""
    known = [e for e in entries() if e.kind == "law"]
    wanted = {word.replace("_", "-") for word in chosen}
    if not wanted:
        return tuple(e.name for e in known)
    for word in wanted - {e.topic for e in known}:
        law(word)
    return tuple(e.name for e in known if e.name in wanted or e.topic in wanted)


def instrument_names() -> tuple[str, ...]:
    """The names of all instruments."""
    return tuple(e.name for e in entries() if e.kind == "instrument")


def topics() -> dict[str, str]:
    """Each topic that has laws, with the first line of its folder's docstring."""
    names = dict.fromkeys(e.topic for e in entries() if e.kind == "law")
    return {name: _docstring(ROOT / "laws" / name / "__init__.py").partition("\n")[0] for name in names}


@functools.cache
def references() -> dict[str, str]:
    """The bibliography: key to authors, year, title and where it appeared, and what of that could not be checked."""
    text = (ROOT / "laws" / "references.bib").read_text(encoding="utf-8")
    found = {}
    for key, body in re.findall(r"@\w+\{([^,\s]+),(.*?)\n\}", text, flags=re.DOTALL):
        fields = dict(re.findall(r"(\w+)\s*=\s*[{\"](.*?)[}\"],?\s*(?=\n|$)", body))
        where = fields.get("journal") or fields.get("booktitle") or fields.get("publisher") or fields.get("note", "")
        parts = [
            fields.get("author", "").replace(" and ", "; "),
            f"({fields.get('year', '')})",
            fields.get("title", ""),
        ]
        found[key] = _letters(" ".join(parts) + (f". {where}." if where else "."))
        if "unchecked" in fields:
            found[key] += f" [Not checked against public text: {fields['unchecked']}.]"
    return found


_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "v": "\u030c", "c": "\u0327"}


def _letters(text: str) -> str:
    r"""TeX's accents as letters, its braces and backslashes gone.

    >>> _letters(r"{M}ont\'ufar, Sch\"{o}lkopf, Structures \& Algorithms")
    'Montúfar, Schölkopf, Structures & Algorithms'
    """
    accented = re.sub(
        r"\\(['`^\"~]|[vc](?![A-Za-z]))\s*\{?([A-Za-z])\}?", lambda found: found[2] + _ACCENTS[found[1]], text
    )
    return unicodedata.normalize("NFC", re.sub(r"[{}]|\\(?=\W)", "", accented))


def _name(path: Path) -> str:
    return path.stem.replace("_", "-")


@functools.cache
def _docstring(path: Path) -> str:
    if not path.exists():
        return ""
    words = re.match(r'r?"""(?:[^\\]|\\.)*?"""', text := path.read_text(encoding="utf-8"), re.DOTALL)
    if words is not None:  # nothing behind it need be parsed
        return inspect.cleandoc(ast.literal_eval(words[0]))
    return ast.get_docstring(ast.parse(text)) or ""


FUNCTIONS = ("read", "finds", "judge", "interventions", "sign", "while_training", "static")


def _literals(path: Path, kind: str) -> dict[str, Any] | None:
    """The keywords of ``instrument = Instrument(...)`` in a file, but its functions; None where one is not a literal."""
    text = path.read_text(encoding="utf-8")
    for node in ast.parse(text[max(0, text.rfind(f"\n{kind} = ")) :]).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _target(node) == kind:
            try:
                return {str(k.arg): ast.literal_eval(k.value) for k in node.value.keywords if k.arg not in FUNCTIONS}
            except ValueError:
                return None
    return None


def _target(node: ast.Assign) -> str:
    return node.targets[0].id if isinstance(node.targets[0], ast.Name) else ""
