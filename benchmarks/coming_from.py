"""How long the two snippets of each page in docs/from take, ours and the peer's, and what each prints.

The snippets are read from the pages, so that what is timed is what stands there. Each runs in fresh processes, in a folder of
its own; a peer that does not run as published is tried again with what it lacks put back, and both are said. "Again" is all but
the imports once more in the same process, where nothing is loaded or compiled for the first time. The table goes to
docs/from/times.json, which the pages print. Threads are what a user gets. `make bench` makes the environment of the peers;
`--python PAGE=INTERPRETER` names another for one page.
"""

import argparse
import ast
import contextlib
import hashlib
import io
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGES = ROOT / "docs" / "from"
OUT = PAGES / "times.json"
RESULT = "RESULT "
PACKAGES = {  # page: what its tool is, as pip knows it; the first is the tool itself
    "weightwatcher": ("weightwatcher", "torch"),
    "neural-tangents": ("neural-tangents", "jax"),
    "pyhessian": ("PyHessian", "torch"),
    "scikit-dimension": ("scikit-dimension", "numpy"),
    "cockpit": ("cockpit-for-pytorch", "backpack-for-pytorch", "torch"),
    "tensorboard": ("tensorboard", "torch"),
}
OWN = ("theodolite", "torch")
BARE = {  # page: what is put in place of a part that needs more than the tool; the tool without it is what is tried first
    "neural-tangents": "import sys, types\n"
    "sys.modules['neural_tangents.experimental'] = types.ModuleType('neural_tangents.experimental')"
}
LACKS = {  # page: what is done to make it run today, and the code that does it
    "neural-tangents": (
        "its TensorFlow part left out and the names put back that JAX has dropped",
        "from peer_neural_tangents import put_back_removed_names\nput_back_removed_names()",
    ),
    "cockpit": (
        "the pkg_resources put back that setuptools has dropped",
        "import sys, types\n"
        "shim = types.ModuleType('pkg_resources')\n"
        "shim.DistributionNotFound = LookupError\n"
        "shim.get_distribution = lambda name: types.SimpleNamespace(version='1.0.2')\n"
        "sys.modules['pkg_resources'] = shim",
    ),
}


def snippets(page):
    """The first block of the peer and of ours, which are timed, and the second of the peer, which is only tried."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?ms)^```python( peer)?\n(.*?)^```", text)
    peer, *more = (code for mark, code in blocks if mark)
    return {"peer": peer, "more": "".join(more), "own": next(code for mark, code in blocks if not mark)}


def digest(code):
    """Changes with either snippet: times of other code are then seen to be old."""
    return hashlib.sha256("".join(code.values()).encode()).hexdigest()[:16]


def inner(case):
    """Run one snippet, and where it is asked for all but its imports three times again; print one JSON line."""
    import warnings

    warnings.simplefilter("ignore")
    sys.path.insert(0, str(HERE))
    names, printed, error = {"__name__": "__main__"}, io.StringIO(), ""
    tree = ast.parse(case["code"])
    loads = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    rest = [node for node in tree.body if node not in loads]
    seconds = []
    try:
        with contextlib.redirect_stdout(printed):
            exec(case["before"], {})
            run(loads, names)
            run(rest, names)
        if case["again"]:
            with contextlib.redirect_stdout(io.StringIO()):
                seconds = [run(rest, names) for _ in range(3)]
    except Exception as problem:
        words = (str(problem).strip().splitlines() or [""])[0]
        error = f"{type(problem).__name__}: {re.sub(r' [(]/.*[)]$', '', words)}"  # no folders of this machine
    found = {"error": error, "printed": printed.getvalue()[-400:], "versions": versions(case["packages"])}
    found |= {"again": statistics.median(seconds)} if seconds else {}
    print(RESULT + json.dumps({**found, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def run(nodes, names):
    """Execute a part of a snippet: the seconds that it took."""
    started = time.perf_counter()
    exec(compile(ast.Module(nodes, []), "snippet", "exec"), names)
    return time.perf_counter() - started


def versions(packages):
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in packages:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name).partition("+")[0]
    return found


def once(python, case):
    """One fresh process: what it says, with the seconds of the whole."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        done = subprocess.run(
            [python, str(Path(__file__).resolve()), "--inner"],
            input=json.dumps(case),
            capture_output=True,
            text=True,
            cwd=folder,
            env=os.environ,
            check=False,
        )
        whole = time.perf_counter() - started
    line = next((line for line in done.stdout.splitlines() if line.startswith(RESULT)), None)
    if line is None:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return {**json.loads(line.removeprefix(RESULT)), "whole": whole}


def measured(python, case, repeats):
    """The medians over fresh processes, and one process more for the snippet again; of one that fails its error alone."""
    runs = [once(python, {**case, "again": False})]
    if runs[0]["error"]:
        return {key: runs[0][key] for key in ("error", "versions") if key in runs[0]}
    runs += [once(python, {**case, "again": False}) for _ in range(repeats - 1)]
    middle = {key: round(statistics.median(one[key] for one in runs), 3) for key in ("whole", "peak")}
    again = once(python, {**case, "again": True})
    return {**runs[0], **middle, "again": round(again["again"], 4)}


def peer_row(page, python, code, repeats):
    """The peer as published or, where that fails, with what it lacks; and what its second block ends in."""
    case = {"code": code["peer"], "before": BARE.get(page, ""), "packages": PACKAGES[page]}
    found = measured(python, case, repeats)
    if found["error"] and page in LACKS:
        words, case["before"] = LACKS[page]
        found = measured(python, case, repeats) | {"as_published": found["error"], "put_back": words}
    if code["more"]:
        whole = once(python, {**case, "code": code["peer"] + code["more"], "again": False})
        found["more_ends_in"] = whole["error"]
    return found


def machine():
    """The processor and the number of its cores that are ours."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{model}, {len(os.sched_getaffinity(0))} cores"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", help="these alone; the others stay as they were")
    parser.add_argument("--python", action="append", default=[], metavar="PAGE=INTERPRETER")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--inner", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inner:
        inner(json.load(sys.stdin))
        return
    peers = dict.fromkeys(PACKAGES, str(ROOT / ".venv-peers" / "bin" / "python"))
    peers |= dict(pair.split("=", 1) for pair in options.python)
    table = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else {}
    for page in options.pages or PACKAGES:
        code = snippets(page)
        own = {"code": code["own"], "before": "", "packages": OWN}
        table[page] = {
            "date": date.today().isoformat(),
            "machine": machine(),
            "python": platform.python_version(),
            "repeats": options.repeats,
            "digest": digest(code),
            "peer": peer_row(page, peers[page], code, options.repeats),
            "own": measured(sys.executable, own, options.repeats),
        }
        for side in ("peer", "own"):
            print(page, side, {key: value for key, value in table[page][side].items() if key != "versions"})
        OUT.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
