"""The driver of the benchmarks: what was measured is kept, whatever happens to a section."""

import itertools
import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))  # no installed package

import bench
from bench_table import Row, row_records
from bpe import decoded, encoded, learned_pairs
from growth import exponent, growth_row

SAYS = """
import json, sys, time
row = {"work": sys.argv[1], "size": "3 of them", "ours": "1 s", "theirs": [], "goal": "2 s", "met": True, "why": ""}
print("LINE " + json.dumps(["row", row]), flush=True)
if sys.argv[1] == "fails":
    raise RuntimeError("no such thing")
if sys.argv[1] == "hangs":
    time.sleep(60)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "sections.py"
    path.write_text(SAYS, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "seconds", "error"),
    [("works", 30, ""), ("fails", 30, "RuntimeError: no such thing"), ("hangs", 1, "stopped after 1 s")],
)
def test_a_section_that_fails_or_hangs_keeps_what_it_said(script, name, seconds, error):
    found = bench.section_result(script, name, seconds=seconds)
    assert found["error"] == error
    assert [row["work"] for row in found["rows"]] == [name]


def test_the_page_names_misses_failures_and_what_was_measured_elsewhere():
    row = {"work": "a", "size": "1", "ours": "2 s", "theirs": [{"told": "peer 1 s", "ratio": "0.5"}], "goal": "1 s"}
    missed, met = {**row, "met": False, "why": "it is so"}, {**row, "work": "b", "met": True, "why": "unsaid"}
    usual = {"growth": [], "error": "", "date": "2026-01-02", "machine": "here", "seconds": 30.0}
    results = {
        "one": {**usual, "rows": [missed]},
        "two": {**usual, "rows": [met], "error": "lost"},
        "far": {**usual, "rows": [], "machine": "there"},
    }
    told = bench.page(results, ["one", "two", "far", "never run"], gpu=True)
    assert "1 of 2 rows that have a goal meet it" in told
    assert "- a, 1: goal 1 s; measured 2 s. It is so." in told and "unsaid" not in told
    assert "- far: 2026-01-02, there." in told and "- two: lost." in told


def test_exponents_are_those_of_powers():
    assert exponent([1, 2, 4], [3, 12, 48]) == pytest.approx(2)
    assert exponent([1, 2, 4], [0, 1, 2]) is None
    found = [{"wall": n**1.5, "above": 7.0} for n in (1, 10, 100)]
    line = growth_row("work", (1, 10, 100), found, ("1.5", "0"))
    assert (line["time exponent"], line["memory exponent"]) == ("1.50", "0.00")


def test_a_row_whose_peer_is_not_installed_is_told_and_its_goal_not_decided(monkeypatch, tmp_path):
    monkeypatch.setattr("bench_table.PEERS", tmp_path)
    row = Row("power law", "a fit", "values", (200, 400, 800), ("WeightWatcher",), ("1", "1"), "a sort")
    kinds = dict(row_records(row))
    assert kinds["row"]["met"] is None and kinds["row"]["theirs"] == [
        {"told": "WeightWatcher: not installed", "ratio": ""}
    ]
    assert "ms" in kinds["row"]["ours"] and kinds["row"]["floor"]
    assert kinds["growth"]["sizes"] == "200, 400, 800 values"


@pytest.mark.parametrize("gpu", [False, True])
def test_what_is_kept_is_on_its_page(gpu):
    stem = "bench_gpu_results.json" if gpu else "bench_results.json"
    store = bench.HERE / stem
    page = (bench.ROOT / "docs" / f"benchmarks{'_gpu' if gpu else ''}.md").read_text(encoding="utf-8")
    for found in json.loads(store.read_text(encoding="utf-8")).values():
        for row in found["rows"]:
            assert f"| {row['work']} | {row.get('size', '')} | {row['ours']} |" in page


def test_byte_pairs_are_those_of_a_loop_and_of_the_tokenizers_library():
    import tokenizers

    said = "aaaa aaa bananas and ananas: aa, banana; the same pairs again and again, aaaaa" * 3
    text = np.frombuffer(said.encode(), dtype=np.uint8)
    pairs = learned_pairs(text, 40)
    slow = list(said.encode())
    for i, (a, b) in enumerate(pairs):  # the most frequent pair, then each from the left
        counts = Counter(itertools.pairwise(slow))
        assert counts[a, b] == max(counts.values())
        out, place = [], 0
        while place < len(slow):
            same = tuple(slow[place : place + 2]) == (a, b)
            out.append(256 + i if same else slow[place])
            place += 1 + same
        slow = out
    assert encoded(text, pairs).tolist() == slow
    assert decoded(slow, pairs) == said.encode()
    names = [chr(i) for i in range(256)]
    for a, b in pairs:
        names.append(names[a] + names[b])
    vocabulary = {name: i for i, name in enumerate(names)}
    own = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [(names[a], names[b]) for a, b in pairs]))
    assert own.encode(said).ids == slow
