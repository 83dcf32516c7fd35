"""The small errors that theory is tried with: one change of arithmetic each, the same sample whatever else is edited."""

import ast
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks is no installed package

from benchmarks.mutation.sites import mutants, sample
from benchmarks.mutation.trials import measurement_reaches

from theodolite import catalogue

CODE = '''
def edge(a, b):
    """Not 3 + 4."""
    if a < 0.5 * b:
        raise ValueError("a + b" + f"{a + 2}")
    rows = a[b + 1 :]
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
    assert not any("range" in before and kind == "constant" for kind, before, _ in found)
    assert not any(before in ("b + 1", "b + 3", "[1] + [2]", "a + 2", "0.5", "1", "3") for _, before, _ in found)


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


def test_what_a_measurement_reaches_leaves_the_prediction_out():
    reached = measurement_reaches(catalogue.ROOT, catalogue.entry("relu-critical").path)
    names = {path.relative_to(catalogue.ROOT).as_posix() for path in reached if path.is_relative_to(catalogue.ROOT)}
    assert "measure/experiments/ensembles.py" in names
    assert not any(name.startswith("theory/") and not name.endswith("__init__.py") for name in names)
