"""The empirical tangent kernel by torch.func: all derivatives of all samples, then their products; one JSON argument.

As in PyTorch's own tutorial: `jacrev` under `vmap`, one product for each parameter. Networks and data are those of
empirical_ntk.py; {model, outputs, repeats, n, save}, one JSON line.
"""

import json
import resource
import sys
import time

import numpy as np
import torch
from empirical_ntk import model_of
from torch.func import functional_call, jacrev, vmap

SUMS = {"trace": "naf,maf->nm", "full": "naf,mbf->nmab"}


def kernel(model, x, outputs):
    """Over samples: the mean over outputs, or one for each pair of outputs."""
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def one(own, sample):
        return functional_call(model, own, (sample[None],))[0]

    jacobians = vmap(jacrev(one), (None, 0))(parameters, x)
    found = sum(torch.einsum(SUMS[outputs], j.flatten(2), j.flatten(2)) for j in jacobians.values())
    return found / one(parameters, x[0]).numel() if outputs == "trace" else found


def main():
    case = json.loads(sys.argv[1])
    model, x = model_of(case["model"], case.get("n"))
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    walls, cpus = [], []
    for _ in range(case["repeats"] + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        found = kernel(model, x, case["outputs"])
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    np.save(case["save"], found.numpy())
    print(json.dumps({"first": walls[0], "wall": min(walls), "cpu": min(cpus), "above": (peak - base) / 1024}))


if __name__ == "__main__":
    main()
