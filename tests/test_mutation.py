"""The small errors that theory is tried with: one change of arithmetic each, the same sample whatever else is edited."""

import ast
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks is no installed package

from benchmarks.mutation.footprints import footprint
from benchmarks.mutation.sites import mutants, sample

from theodolite import catalogue

CODE = '''
def edge(a, b):
    """Not 3 + 4."""
    if a < 0.5 * b:
        raise ValueError("a + b" + f"{a + 2}")
    rows = a[b + 1 :]
    words = (f"{a} times" if a > 9 else "once") + " below" * (a < 7)
    return -a + 2 * b**2 - sum(range(b + 3)) + tuple([1] + [2])[0]
'''


def changes(folder, text):
    (folder / "theory").mkdir(exist_ok=True)
    (folder / "theory" / "edges.py").write_text(text)
    return mutants(folder / "theory" / "edges.py", folder)


def test_constants_terms_signs_and_exponents_are_changed_and_indices_and_words_are_not(tmp_path):
    found = {(m.kind, m.before, m.after) for m in changes(tmp_path, CODE)}
    assert ("constant", "2", "2.2") in found
    assert ("exponent", "b ** 2", "b ** (2 + 1)") in found
    assert ("sign", "-a", "a") in found
    assert ("term", "-a + 2 * b ** 2", "-a") in found
    assert ("sign", "-a + 2 * b ** 2", "-a - 2 * b ** 2") in found
    assert not any("below" in before for _, before, _ in found)
    assert not any("range" in before and kind == "constant" for kind, before, _ in found)
    assert not any(before in ("b + 1", "b + 3", "[1] + [2]", "a + 2", "0.5", "1", "3", "7") for _, before, _ in found)


def test_a_mutant_differs_from_its_source_in_one_place_and_is_python(tmp_path):
    for mutant in changes(tmp_path, CODE):
        new = mutant.applied(CODE.encode()).decode()
        ast.parse(new)
        assert new != CODE
        assert new.startswith(CODE[: mutant.span[0]])
        assert new.endswith(CODE[mutant.span[1] :])


def test_an_edit_of_another_function_leaves_the_keys(tmp_path):
    before = {m.key for m in changes(tmp_path, CODE)}
    after = {m.key for m in changes(tmp_path, "# a comment\ndef other(a):\n    return a + 1\n" + CODE)}
    assert before < after


def test_the_sample_is_fixed_and_spread_over_the_modules_of_theory():
    chosen = sample(catalogue.ROOT, 200)
    assert chosen == sample(catalogue.ROOT, 200)
    assert len({mutant.key for mutant in chosen}) == 200
    modules = {p.relative_to(catalogue.ROOT).as_posix() for p in catalogue.ROOT.glob("theory/**/[!_]*.py")}
    topics = {module.split("/")[1] for module in modules if module.count("/") == 2}
    assert {mutant.module.split("/")[1] for mutant in chosen} >= topics - {"nonlinearities"}
    assert chosen[:40] == sample(catalogue.ROOT, 40)


def test_lines_run_by_a_law_are_told_apart_from_those_of_its_prediction():
    found = footprint(catalogue.law("relu-critical"))
    assert found.holds
    assert not found.measured
    (module,) = [name for name in found.predicted if "signal_maps" in name or "relu" in name][:1]
    lines = found.predicted[module]
    assert found.runs("predicted", module, (lines[0], lines[-1]))
    assert not found.runs("predicted", module, (lines[-1] + 1, lines[-1] + 1))
    assert not found.runs("measured", module, (lines[0], lines[-1]))


def test_what_only_guards_checks_counts_or_begins_a_search_is_left_alone(tmp_path):
    text = """
def root(a, b, eps):
    if a > 3:
        a = 1
        raise ValueError
    low, high = a - 1, a + 1
    step = 4 * a
    while a < b + 2:
        a = a * (1 + eps)
        if a - 3 < b:
            break
    steps = len(b) - 1 + -(-b // 5)
    return brentq(lambda x: 7 * x, a - 9, b + 9) if a - b < 1e-9 else low
"""
    assert {m.before for m in changes(tmp_path, text)} <= {"7", "len(b) - 1 + -(-b // 5)"}


def test_a_mutant_knows_the_lines_of_its_statement(tmp_path):
    (found,) = {
        m.lines for m in changes(tmp_path, "def f(a):\n    if (\n        a > 1 - a\n    ):\n        return 2\n")
    }
    assert found == (2, 4)
