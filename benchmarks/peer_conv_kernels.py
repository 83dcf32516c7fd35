"""neural-tangents' kernels of convolutional networks: one JSON argument {network, n, size, repeats, save}, one JSON line."""

import json
import resource
import sys
import time

from peer_neural_tangents import put_back_removed_names


def network(stax, name):
    def convolution():
        return stax.Conv(1, (3, 3), padding="SAME", W_std=2.0**0.5, b_std=0.1)

    end = stax.Flatten() if "flatten" in name else stax.GlobalAvgPool()
    block = stax.serial(
        stax.FanOut(2), stax.parallel(stax.serial(stax.Relu(), convolution()), stax.Identity()), stax.FanInSum()
    )
    middle = [block] if "residual" in name else []
    layers = [convolution(), *middle, stax.Relu(), convolution(), stax.Relu(), end]
    return stax.serial(*layers, stax.Dense(1, W_std=1.0, b_std=0.1))


def main():
    case = json.loads(sys.argv[1])
    import jax

    jax.config.update("jax_enable_x64", True)
    put_back_removed_names()
    import numpy as np
    from neural_tangents import stax

    kernel = jax.jit(network(stax, case["network"])[2], static_argnums=(1, 2))
    x = np.random.default_rng(0).normal(size=(case["n"], 3, case["size"], case["size"]))
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(case["repeats"] + 1):
        start, cpu = time.perf_counter(), time.process_time()
        found = kernel(jax.numpy.moveaxis(x, 1, -1), None, ("nngp", "ntk"))
        found.ntk.block_until_ready()
        times.append((time.perf_counter() - start, time.process_time() - cpu))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    np.savez(case["save"], nngp=np.asarray(found.nngp), ntk=np.asarray(found.ntk))
    wall, cpu = (min(t[i] for t in times[1:]) for i in (0, 1))
    print(json.dumps({"wall": wall, "cpu": cpu, "first": times[0][0], "above": (peak - base) / 1024}))


if __name__ == "__main__":
    main()
