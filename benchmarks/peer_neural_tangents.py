"""neural-tangents 0.6.5 under a current JAX: the names that it misses put back, and a worker that times its kernels.

Install (light, without TensorFlow): `pip install frozendict jax==0.10.2 jaxlib==0.10.2` and then
`pip install --no-deps neural-tangents==0.6.5`. Import this module before `neural_tangents`; its infinite kernels, batching
and prediction then work. Run as a script with one JSON argument it times one case and prints one JSON line.
"""

import json
import resource
import sys
import time
import types

START = time.perf_counter()


def put_back_removed_names():
    """Give JAX the names that neural-tangents imports, and an empty module for its TensorFlow experiments."""
    import jax.core
    from jax._src import ad_util, core, linear_util, util
    from jax.interpreters import ad

    sys.modules.setdefault("neural_tangents.experimental", types.ModuleType("neural_tangents.experimental"))
    for name in (
        "Jaxpr",
        "JaxprEqn",
        "Literal",
        "Primitive",
        "ShapedArray",
        "Value",
        "Var",
        "AbstractValue",
        "eval_context",
    ):
        if not hasattr(jax.core, name):
            setattr(jax.core, name, getattr(core, name))
    for name in ("zeros_like_p", "add_jaxvals_p", "Zero"):
        if not hasattr(ad, name):
            setattr(ad, name, getattr(ad_util, name))
    for name, module in (("jax.util", util), ("jax.extend.linear_util", linear_util)):
        try:
            __import__(name)
        except ImportError:
            sys.modules[name] = module
            parent, _, child = name.rpartition(".")
            setattr(sys.modules.get(parent) or __import__(parent, fromlist=["_"]), child, module)


def network(stax, activation, weights, biases):
    """The kernel function of a multilayer perceptron with these variances, layer by layer."""
    import jax.numpy as jnp

    makers = {
        "relu": stax.Relu,
        "erf": stax.Erf,
        "gelu": stax.Gelu,
        "tanh": lambda: stax.ElementwiseNumerical(jnp.tanh, deg=25),
    }
    layers = []
    for position, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        if position:
            layers.append(makers[activation]())
        layers.append(stax.Dense(1, W_std=weight**0.5, b_std=bias**0.5))
    return stax.serial(*layers)[2]


def main():
    """One case: {activation, weights, biases, n, d, dtype, repeats, save}."""
    case = json.loads(sys.argv[1])
    import jax

    jax.config.update("jax_enable_x64", case["dtype"] == "float64")
    put_back_removed_names()
    import numpy as np
    from neural_tangents import stax

    imported = time.perf_counter() - START
    kernel = jax.jit(network(stax, case["activation"], case["weights"], case["biases"]), static_argnums=(1, 2))
    x = np.random.default_rng(0).normal(size=(case["n"], case["d"])).astype(case["dtype"])
    x = jax.device_put(x)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    walls, cpus = [], []
    for _ in range(case["repeats"] + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        found = kernel(x, None, ("nngp", "ntk"))
        found.ntk.block_until_ready()
        found.nngp.block_until_ready()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        if case.get("save"):
            np.savez(case["save"], nngp=np.asarray(found.nngp), ntk=np.asarray(found.ntk))
        del found
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        json.dumps(
            {
                "first": walls[0],
                "wall": min(walls[1:] or walls),
                "cpu": min(cpus[1:] or cpus),
                "imported": imported,
                "peak": peak / 1024,
                "above": (peak - base) / 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
