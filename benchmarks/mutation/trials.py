"""One mutant's trial: the tests that reach the changed module and the laws that run the changed line, in a forked process over a
copy of the package."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import math
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from .footprints import Footprint
from .reached_files import sources
from .sites import Mutant

REPOSITORY = Path(__file__).resolve().parents[2]
FOREIGN = ("integrations", "io")
"""Tests of these need what is not part of the package, or start processes of their own, and say nothing of theory."""
FILES = (
    14  # test files at most: those whose closures are smallest come first, and behind them stand tests of everything
)


class Trials:
    """A copy of the package and its tests, in which one file is changed at a time."""

    def __init__(self, footprints: Mapping[str, Footprint]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mutants-"))
        self.root = self.folder / "src" / "theodolite"
        for name in ("src", "tests", "benchmarks"):
            shutil.copytree(
                REPOSITORY / name, self.folder / name, ignore=shutil.ignore_patterns("__pycache__", "results")
            )
        shutil.copy(REPOSITORY / "pyproject.toml", self.folder)
        self.tree = sources(self.root)
        self.laws = {path.stem.replace("_", "-"): path for path in sorted(self.root.glob("laws/*/[!_]*.py"))}
        self.footprints = footprints
        self.unsound: set[str] = set()  # tests and laws that fail without any change
        self.sound: set[str] = set()

    def close(self) -> None:
        shutil.rmtree(self.folder)

    def relevant_tests(self, module: str) -> list[Path]:
        """The module's own doctests, the test file of the same path, its topic's, then by the size of what they reach."""
        mirror = (self.folder / "tests" / module).with_name(f"test_{Path(module).name}")
        order = sorted(
            self._reaching(module, _test_files(self.folder)),
            key=lambda path: (
                path != mirror,
                path.parent != mirror.parent,
                "theory" not in path.parts,
                self._size(path),
            ),
        )
        return [self.root / module, *order[:FILES]]

    def relevant_laws(self, mutant: Mutant) -> list[str]:
        """Those that run the changed statement: first where only the prediction does, then the quickest."""

        def cost(name: str) -> tuple[bool, float]:
            return self._in_measurement(name, mutant), self.footprints[name].seconds

        parts = ("measured", "predicted")
        found = [name for name, f in self.footprints.items() if any(self._runs(f, part, mutant) for part in parts)]
        return sorted((name for name in found if self.footprints[name].holds), key=cost)

    def _in_measurement(self, name: str, mutant: Mutant) -> bool:
        return self._runs(self.footprints[name], "measured", mutant)

    @staticmethod
    def _runs(footprint: Footprint, part: str, mutant: Mutant) -> bool:
        return footprint.runs(part, mutant.module, mutant.lines)

    def _reaching(self, module: str, files: list[Path]) -> list[Path]:
        return [path for path in files if self.root / module in _reached(self.root, path)]

    def _size(self, path: Path) -> int:
        return len(_reached(self.root, path))

    def files(self, part: str, mutant: Mutant) -> list[Path]:
        if part == "tests":
            return self.relevant_tests(mutant.module)
        return [self.laws[name] for name in self.relevant_laws(mutant)]

    def mark(self, files: list[Path]) -> str:
        """Changes when one of the files, or something that it reaches, does."""
        whole = "".join(self.tree.digest(path) for path in files)
        return hashlib.sha256(whole.encode()).hexdigest()[:16]

    def killer(self, part: str, mutant: Mutant, limit: float) -> tuple[str, str]:
        """What notices the mutant ("" where nothing does, "time" where it ran out), and the file that it stands in."""
        place = self.root / mutant.module
        whole = place.read_bytes()
        while True:
            _replace(place, mutant.applied(whole))
            found, file = self._run(part, mutant, limit)
            _replace(place, whole)
            if found in ("", "time", "crash") or found in self.sound:
                return found, file
            again, _ = self._run(part, mutant, 600, only=found)
            if again:
                self.unsound.add(found)
                print(f"fails without any change: {found}", file=sys.stderr)
            else:
                self.sound.add(found)
                return found, file

    def _run(self, part: str, mutant: Mutant, limit: float, *, only: str | None = None) -> tuple[str, str]:
        answer = self.folder / "answer.json"
        answer.unlink(missing_ok=True)
        child = os.fork()
        if not child:
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit)))
            self._child(part, mutant, only, answer)
        deadline = time.monotonic() + 10 * limit  # the limit is of processor time, which the system keeps
        try:
            while not (ended := os.waitpid(child, os.WNOHANG))[0]:
                if time.monotonic() > deadline:
                    _end(child)
                time.sleep(0.05)
        except BaseException:  # stopped by hand: the child leads a session of its own and would go on
            _end(child)
            raise
        if answer.exists():
            return tuple(json.loads(answer.read_text()))
        return ("time" if os.WIFSIGNALED(ended[1]) else "crash"), ""

    def _child(self, part: str, mutant: Mutant, only: str | None, answer: Path) -> None:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.chdir(self.folder)
        quiet = os.open(self.folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        for name in [name for name in sys.modules if name.partition(".")[0] in ("theodolite", "benchmarks")]:
            del sys.modules[name]
        sys.path.insert(0, str(self.folder / "src"))
        try:
            found = self._failing_test(mutant.module, only) if part == "tests" else self._failing_law(mutant, only)
            answer.write_text(json.dumps(found))
        except BaseException as error:
            answer.write_text(json.dumps(["crash", ""]))
            print(repr(error))
        finally:
            os._exit(0)

    def _failing_test(self, module: str, only: str | None) -> tuple[str, str]:
        import pytest

        names = [str(path.relative_to(self.folder)) for path in self.relevant_tests(module)]
        files = [name for name in names if name not in self.unsound]  # one that cannot even be loaded
        first = _First()
        common = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *(f"--deselect={t}" for t in self.unsound)]
        for some in [[only]] if only else [files[:3], files[3:]]:  # loading files takes longer than most of their tests
            if some and not first.failed:
                code = pytest.main([*common, *some], plugins=[first])
                if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and not first.failed:
                    raise RuntimeError(f"the tests could not be run: {code}")
        return (first.failed, str(first.failed).partition("::")[0]) if first.failed else ("", "")

    def _failing_law(self, mutant: Mutant, only: str | None) -> tuple[str, str]:
        from theodolite import catalogue as copied

        for name in [only] if only else self.relevant_laws(mutant):
            if name not in self.unsound and not self._holds(copied.law, name, mutant):
                return name, str(self.laws[name].relative_to(self.folder))
        return "", ""

    def _holds(self, law, name: str, mutant: Mutant) -> bool:
        """Whether a law holds and is sharp, as the battery asks. Where its measurement does not run the change, that stands."""
        from theodolite.core.reading import Estimate

        try:
            if self._in_measurement(name, mutant):
                verdict = law(name).check()
            else:
                verdict = law(name).verdict([Estimate(v, e) for v, e in self.footprints[name].estimates])
            return bool(verdict.holds and (law(name).observed or verdict.sharp))
        except Exception:  # a law that stops has noticed
            return False


class _First:
    """A pytest plugin: the first test that failed, or file that could not be read."""

    failed: str | None = None

    def pytest_runtest_logreport(self, report):
        if report.failed and self.failed is None:
            self.failed = report.nodeid

    def pytest_collectreport(self, report):
        if report.failed and self.failed is None:
            self.failed = report.nodeid


@functools.cache
def _reached(root: Path, path: Path) -> frozenset[Path]:
    return sources(root).reached(path)


def _test_files(folder: Path) -> list[Path]:
    folders = [path for path in (folder / "tests").iterdir() if path.is_dir() and path.name not in FOREIGN]
    return sorted(file for folder in folders for file in folder.rglob("test_*.py"))


def _end(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def _replace(path: Path, content: bytes) -> None:
    """Python trusts compiled files by second and size: each version gets a second of its own."""
    path.write_bytes(content)
    _replace.second = getattr(_replace, "second", 1_000_000_000) + 1
    os.utime(path, (_replace.second, _replace.second))
