"""Every sentence that a finding says and what it tells to do, one a line: `python benchmarks/sentences.py [NAME ...]`.

Findings come from the sick networks of tests/ailments; errors of a run, which need one, show their sentence with its gaps.
"""

import importlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from theodolite import catalogue

TESTS = Path(__file__).parents[1] / "tests"


def sentences(name: str) -> Iterator[str]:
    """The lines of one ailment."""
    module = name.replace("-", "_")
    facts = catalogue.ailment_facts(name)
    if "fact" in facts:
        yield f"{facts['severity']}: {facts['says']} -> {facts.get('remedy', '')}"
    if not (TESTS / "ailments" / f"test_{module}.py").exists():
        return
    judged = importlib.import_module("fixtures.judging").judged
    for build in getattr(importlib.import_module(f"test_{module}"), "SICK", ()):
        for found in judged(name, build(0)):
            yield f"{found.severity}: {found.says} -> {found.remedy}"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.path[:0] = [str(TESTS.parent), str(TESTS), str(TESTS / "ailments")]
    for name in sys.argv[1:] or catalogue.ailment_names():
        for line in dict.fromkeys(sentences(name)):
            print(f"{name}: {line}", flush=True)
