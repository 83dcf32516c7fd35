"""Every sentence that a finding says and what it tells to do, one a line: `python benchmarks/sentences.py [NAME ...]`.

Findings come from the sick networks of tests/ailments; errors of a run, which need one, show their sentence with its gaps.
"""

import ast
import importlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from theodolite import catalogue

TESTS = Path(__file__).parents[1] / "tests"
AILMENTS = Path(catalogue.__file__).parent / "ailments"


def sentences(name: str) -> Iterator[str]:
    """The lines of one ailment."""
    module = name.replace("-", "_")
    for node in ast.walk(ast.parse((AILMENTS / f"{module}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "silent_error":
            own = {word.arg: word.value.value for word in node.keywords if isinstance(word.value, ast.Constant)}
            yield f"{own['severity']}: {own['says']} -> {own['remedy']}"
    if not (TESTS / "ailments" / f"test_{module}.py").exists():
        return
    judged = importlib.import_module("fixtures.judging").judged
    for build in getattr(importlib.import_module(f"test_{module}"), "SICK", ()):
        for found in judged(name, build(0)):
            yield f"{found.severity}: {found.says} -> {found.remedy}"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.path[:0] = [str(TESTS), str(TESTS / "ailments")]
    for name in sys.argv[1:] or catalogue.ailment_names():
        for line in dict.fromkeys(sentences(name)):
            print(f"{name}: {line}", flush=True)
