"""neural-tangents' empirical kernel by structured derivatives under a current JAX: a worker that times one case.

Run with one JSON argument {model, n, outputs, dtype, repeats, weights}; `weights` is an .npz of the same network.
"""

import json
import resource
import sys
import time
import types

from peer_neural_tangents import put_back_removed_names


def repair(empirical):
    """Replace what JAX removed from under it: linearization as it was, and the form of the cost analysis."""
    import jax
    from jax._src.interpreters import ad
    from jax.tree_util import tree_flatten, tree_unflatten

    def primals_out_and_pullback(fn, mode, j_rules, s_rules, fwd, *primals_in):
        flat, tree = tree_flatten(primals_in)
        shape = []

        def fn_flat(*arguments):
            found, out_tree = tree_flatten(fn(*tree_unflatten(tree, arguments)))
            shape.append(out_tree)
            return found

        with jax.disable_jit():
            primals_out, linear = jax.linearize(fn_flat, *flat)
            closed = jax.make_jaxpr(linear)(*flat)

        def pullback(*cotangents):
            given, _ = tree_flatten(cotangents)
            blanks = [ad.UndefinedPrimal(v.aval) for v in closed.jaxpr.invars]
            rules = {"_j_rules": j_rules, "_s_rules": s_rules, "_fwd": fwd}
            found = empirical._backward_pass(
                closed.jaxpr, mode=mode, consts=closed.consts, primals_in=blanks, cotangents_in=tuple(given), **rules
            )
            return tree_unflatten(tree, found)

        return tree_unflatten(shape[-1], primals_out), pullback

    def flops(function, optimize, *arguments, **keywords):
        lowered = jax.jit(function).lower(*arguments, **keywords)
        analysis = (lowered.compile() if optimize else lowered).cost_analysis()
        return (analysis[0] if isinstance(analysis, list | tuple) else analysis)["flops"]

    empirical._get_primals_out_and_pullback = primals_out_and_pullback
    empirical._get_flops = flops
    ad.config.jax_enable_checks = False
    if not hasattr(empirical.core.Primitive, "map_primitive"):
        empirical.core.Primitive.map_primitive = False
    empirical.ad = empirical.rules.ad = ad  # the whole module, of which the public one now shows but a part
    if not hasattr(empirical.core, "DShapedArray"):
        empirical.core.DShapedArray = types.new_class("DShapedArray")


def networks(stax):
    """The networks of the benchmark, in the standard parametrization."""

    def dense(width):
        return stax.Dense(width, b_std=1.0, parameterization="standard")

    def conv(channels, stride):
        return stax.Conv(channels, (3, 3), (stride, stride), padding="SAME", b_std=1.0, parameterization="standard")

    return {
        "mlp": stax.serial(dense(512), stax.Relu(), dense(512), stax.Relu(), dense(10)),
        "cnn": stax.serial(
            conv(16, 1), stax.Relu(), conv(32, 1), stax.Relu(), stax.AvgPool((2, 2), (2, 2)), stax.Flatten(), dense(10)
        ),
    }


def main():
    case = json.loads(sys.argv[1])
    import jax

    jax.config.update("jax_enable_x64", case["dtype"] == "float64")
    put_back_removed_names()
    import neural_tangents as nt
    import numpy as np
    from neural_tangents import stax
    from neural_tangents._src import empirical

    repair(empirical)
    given = np.load(case["weights"])
    x = jax.device_put(given["x"])
    init, apply, _ = networks(stax)[case["model"]]
    _, parameters = init(jax.random.PRNGKey(0), x.shape)
    own = [given[f"p{i}"] for i in range(len(given.files) - 1)]
    leaves, tree = jax.tree_util.tree_flatten(parameters)
    parameters = jax.tree_util.tree_unflatten(tree, [o.reshape(p.shape) for o, p in zip(own, leaves, strict=True)])
    kernel = jax.jit(
        nt.empirical_ntk_fn(
            apply,
            trace_axes=(-1,) if case["outputs"] == "trace" else (),
            vmap_axes=0,
            implementation=nt.NtkImplementation.STRUCTURED_DERIVATIVES,
        )
    )
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    walls, cpus = [], []
    for _ in range(case["repeats"] + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        found = kernel(x, None, parameters)
        found.block_until_ready()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if case.get("save"):
        np.save(case["save"], np.asarray(found))
    print(json.dumps({"first": walls[0], "wall": min(walls[1:]), "cpu": min(cpus[1:]), "above": (peak - base) / 1024}))


if __name__ == "__main__":
    main()
