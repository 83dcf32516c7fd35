"""The empirical tangent kernel of all pairs of outputs by NNGeometry: one JSON argument {model, repeats, n, save}, one line."""

import json
import resource
import sys
import time

import numpy as np
from empirical_ntk import model_of
from nngeometry.gram import GramMatrix
from torch.utils.data import DataLoader, TensorDataset


def main():
    case = json.loads(sys.argv[1])
    model, x = model_of(case["model"], case.get("n"))
    loader = DataLoader(TensorDataset(x), batch_size=len(x))

    def kernel():
        return GramMatrix(model=model, loader=loader, function=lambda *batch: model(batch[0])).data

    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    walls, cpus = [], []
    for _ in range(case["repeats"] + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        found = kernel()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    np.save(case["save"], found.detach().permute(1, 3, 0, 2).numpy())  # (outputs, n, outputs, n) there
    print(json.dumps({"first": walls[0], "wall": min(walls), "cpu": min(cpus), "above": (peak - base) / 1024}))


if __name__ == "__main__":
    main()
