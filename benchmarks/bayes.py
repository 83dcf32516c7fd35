"""The evidence of deep linear networks: time and stated error for widths up to 2,000 and 20 layers, and agreement with sampling.

Beside the contour integral stand mpmath's Meijer function (sizes it can do) and the tilted-Gamma importance sampler with its
effective sample size. One thread; times are processor seconds.
"""

import json
import math
import time

import mpmath
import numpy as np
import torch

from theodolite.measure.experiments import Problem, tilted_draws
from theodolite.theory.bayes import LinearNet, log_evidence, posterior_ratio
from theodolite.theory.bayes._meijer import log_meijer


def timed(work, repeats=1):
    started = time.process_time()
    for _ in range(repeats):
        found = work()
    return found, (time.process_time() - started) / repeats


def sizes():
    rows = []
    for width in (20, 200, 2000):
        for layers in (1, 5, 20):
            net, seen = LinearNet(width, (width,) * layers), {"samples": width // 2, "norm2": 2.0}
            found, seconds = timed(lambda net=net, seen=seen: log_evidence(net, **seen), repeats=20)
            z = posterior_ratio(net, **seen)
            problem = Problem(sizes=(net.inputs, *net.widths), prior_variance=net.prior_variance, **seen)
            generator = torch.Generator().manual_seed(0)
            drawn, sampling = timed(
                lambda p=problem, z=z, g=generator: tilted_draws(p, scale_ratio=z, draws=20_000, generator=g)
            )
            sampled = drawn.log_evidence()
            rows.append(
                {
                    "width": width,
                    "layers": layers,
                    "log_evidence": found.value,
                    "stated_error": found.stderr,
                    "ms": 1e3 * seconds,
                    "sampled": sampled.value,
                    "sampled_stderr": sampled.stderr,
                    "effective_share": drawn.effective / 20_000,
                    "sampling_ms": 1e3 * sampling,
                }
            )
    return rows


def beside_mpmath():
    rows = []
    for x, b in ((2.0, [1.0, 1.5, 2.5]), (0.3, [0.5] * 4), (20.0, [3.0, 4.0, 7.0, 9.0])):
        with mpmath.workdps(30):
            truth, slow = timed(lambda b=b, x=x: mpmath.log(mpmath.meijerg([[], []], [b, []], x)))
        found, fast = timed(lambda b=b, x=x: log_meijer(math.log(x), b), repeats=20)
        rows.append(
            {
                "x": x,
                "b": b,
                "error": abs(found.value - float(truth)),
                "stated_error": found.stderr,
                "times_faster": slow / fast,
            }
        )
    return rows


def agreement(count=20, draws=20_000):
    """The deviations of sampling from the closed form, in standard errors, on random settings."""
    random = np.random.default_rng(11)
    found = []
    for _ in range(count):
        inputs = int(random.integers(2, 200))
        widths = tuple(int(n) for n in random.integers(2, 400, size=int(random.integers(1, 8))))
        net = LinearNet(inputs, widths, float(random.uniform(0.5, 2)))
        seen = {"samples": int(random.integers(1, inputs + 1)), "norm2": float(random.uniform(0.2, 3))}
        problem = Problem(sizes=(inputs, *widths), prior_variance=net.prior_variance, **seen)
        drawn = tilted_draws(
            problem, scale_ratio=posterior_ratio(net, **seen), draws=draws, generator=torch.Generator().manual_seed(1)
        )
        sampled = drawn.log_evidence()
        found.append((sampled.value - log_evidence(net, **seen).value) / sampled.stderr)
    return {"settings": count, "largest": max(map(abs, found)), "rms": float(np.sqrt(np.mean(np.square(found))))}


if __name__ == "__main__":
    torch.set_num_threads(1)
    log_meijer(0.0, [1.0])  # imports
    print(json.dumps({"sizes": sizes(), "mpmath": beside_mpmath(), "agreement": agreement()}, indent=1))
