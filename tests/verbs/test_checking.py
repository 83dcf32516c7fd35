"""Verdicts on disk: kept, reused, measured anew when the law or the run changes; a killed run goes on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

import theodolite as th
from theodolite import catalogue, cli
from theodolite.core.law import Law
from theodolite.verbs import checking
from theodolite.verbs.checking import Atlas, CheckSettings, checked_laws

NAMES = ("relu-critical", "deep-linear-critical", "fan-in-scaling")


def test_check_takes_names_and_laws():
    assert th.check("relu-critical").holds
    law = Law(claim="", formula="", assumes={}, source="", predict=lambda: 1.0, measure=lambda: 1.0, cases=({},))
    assert th.check(law).holds
    with pytest.raises(ValueError, match="did you mean"):
        th.check("relu-criticall")


def test_kept_verdicts_are_not_measured_again(tmp_path, monkeypatch):
    first = {r.verdict.law.name: r.verdict.readings for r in checked_laws(NAMES, out=tmp_path)}
    monkeypatch.setattr(checking, "_measured", lambda *_: pytest.fail("measured again"))
    second = {r.verdict.law.name: r.verdict.readings for r in checked_laws(NAMES, out=tmp_path)}
    assert first == second


@pytest.mark.parametrize(
    "run", [CheckSettings(seed=1), CheckSettings(size="full"), CheckSettings(break_assumptions=True)]
)
def test_another_run_is_measured_anew(tmp_path, run):
    list(checked_laws(NAMES[:1], out=tmp_path))
    old = (tmp_path / "records.jsonl").read_text()
    list(checked_laws(NAMES[:1], run, out=tmp_path))
    assert (tmp_path / "records.jsonl").read_text() != old


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"fingerprint": 3}', "null"])
def test_a_damaged_file_is_measured_anew(tmp_path, damage):
    list(checked_laws(NAMES[:1], out=tmp_path))
    file = tmp_path / "records.jsonl"
    whole = file.read_text()
    file.write_text(damage)
    assert next(checked_laws(NAMES[:1], out=tmp_path)).verdict.holds
    assert file.read_text() == whole


def test_a_change_in_a_measuring_module_is_seen_and_one_elsewhere_is_not(tmp_path):
    """In a copy of the package every measured preactivation is doubled; the stored verdict must not outlive that."""
    package, out = tmp_path / "theodolite", tmp_path / "out"
    shutil.copytree(catalogue.ROOT, package)  # with what is compiled: each change below is also one of size
    command = [sys.executable, "-m", "theodolite", "check", NAMES[0], "--out", str(out)]
    here = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def outcome():
        done = subprocess.run(command, env=here, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, (out / "records.jsonl").read_text()

    first = outcome()
    assert first[0] == 0
    for elsewhere in ("report/text.py", "verbs/surveys.py"):  # rooms that no law can reach
        assert (package / elsewhere).exists()
        with (package / elsewhere).open("a") as file:
            file.write("\n# another word\n")
    assert outcome() == first
    ensembles = package / "measure" / "experiments" / "ensembles.py"
    whole = ensembles.read_text()
    assert whole.count("found.append(z)") == 1
    ensembles.write_text(whole.replace("found.append(z)", "found.append(2 * z)"))
    assert outcome()[0] == 1


def test_broken_assumptions_are_reported_and_kept(tmp_path):
    run = CheckSettings(break_assumptions=True)
    (fresh,) = checked_laws(NAMES[:1], run, out=tmp_path)
    (kept,) = checked_laws(NAMES[:1], run, out=tmp_path)
    assert fresh.breaks
    assert all(fresh.breaks.values())
    assert kept.breaks == fresh.breaks
    record = json.loads((tmp_path / "records.jsonl").read_text())
    assert record["key"] == f"verdict {NAMES[0]}"
    assert record["value"]["holds"] is True


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    names = [name for name in catalogue.law_names() if name.startswith(("deep-", "relu-", "fan-"))]  # quick ones
    command = [sys.executable, "-m", "theodolite", "check", *names, "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    file, deadline = tmp_path / "records.jsonl", time.monotonic() + 300
    while not file.exists() or file.read_text().count("\n") < 3:
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline, "no verdict was written in five minutes"
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    whole, _, _ = file.read_text().rpartition("\n")
    done = whole.splitlines()
    assert 0 < len(done) < len(names)
    assert not (tmp_path / "atlas.html").exists()
    assert cli.main(command[3:]) == 0
    lines = file.read_text().splitlines()
    assert lines[: len(done)] == done
    assert {json.loads(line)["key"] for line in lines} == {f"verdict {name}" for name in names}
    assert len(lines) == len(names)
    page = (tmp_path / "atlas.html").read_text()
    assert all(f'id="{name}"' in page for name in names)


def test_an_atlas_is_shown_in_every_form(tmp_path):
    atlas = Atlas(tuple(checked_laws(NAMES, CheckSettings(break_assumptions=True))))
    assert atlas.good
    assert [record["law"] for record in json.loads(atlas.json(tmp_path / "atlas.json"))] == list(NAMES)
    assert list(atlas.frame()["law"]) == [row["law"] for row in atlas.rows()]
    assert atlas.csv(tmp_path / "atlas.csv").read_text().startswith("law,topic,holds,quantity")
    assert all(name in str(atlas) and name in atlas.html() and name in atlas._repr_html_() for name in NAMES)
