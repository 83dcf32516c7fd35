"""NNGP and NTK on a GPU, float32, ReLU, d = 784, three hidden layers: time beside neural-tangents, and the errors of both.

Run where a CUDA device is; jax and neural_tangents are used if they import. Errors are relative to the largest entry, of a
float64 computation on the CPU for 1,000 of the points, near-duplicates among them.
"""

import time

import torch

from theodolite.theory import Mlp
from theodolite.theory.kernels import mlp_kernels
from theodolite.theory.kernels._tiled_pairs import plan_of

SPEC = Mlp(3, "relu", 2.0)


def points(n):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 784, generator=generator)
    x[1], x[3] = x[0], x[2] + 1e-3 * x[4]
    x[6], x[8] = -x[5], 2 * x[7] + 1e-5 * x[9]
    return x


def best(function, repeats=10):
    function()
    torch.cuda.synchronize()
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
        del result
    return min(found)


def peer(x, precision):
    try:
        import jax
        import peer_neural_tangents

        peer_neural_tangents.put_back_removed_names()
        from neural_tangents import stax
    except Exception as error:  # jax missing, or too new for it
        print(f"neural-tangents: not run ({type(error).__name__}: {error})")
        return None
    kernel = jax.jit(peer_neural_tangents.network(stax, "relu", [2.0] * 4, [0.0] * 4), static_argnums=(1, 2))
    inputs = jax.device_put(x.numpy())

    def run():
        found = kernel(inputs, None, ("nngp", "ntk"))
        found.ntk.block_until_ready()
        found.nngp.block_until_ready()
        return found

    with jax.default_matmul_precision(precision):  # by default its products are of ten bits (TF32)
        run()
        times = []
        for _ in range(10):
            start = time.perf_counter()
            found = run()
            times.append(time.perf_counter() - start)
    few = torch.tensor(jax.device_get(found.ntk[:1000, :1000]).copy())
    return min(times), few


def error(found, truth):
    return ((found.double().cpu() - truth).abs().max() / truth.abs().max()).item()


def main():
    if not torch.cuda.is_available():
        raise SystemExit("expected a CUDA device, got none; run this on a machine with a GPU")
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for n in (20_000, 40_000):
        x = points(n)
        truth = mlp_kernels(SPEC, x[:1000].double())
        on_device = x.cuda()
        start = time.perf_counter()
        kernels = mlp_kernels(SPEC, on_device)
        torch.cuda.synchronize()
        first = time.perf_counter() - start
        nngp, ntk = (error(k[:1000, :1000], t) for k, t in ((kernels.nngp, truth.nngp), (kernels.ntk, truth.ntk)))
        symmetric = bool((kernels.ntk[:2000, :2000] == kernels.ntk[:2000, :2000].T).all())
        del kernels
        seconds = best(lambda x=on_device: mlp_kernels(SPEC, x))
        plan = best(lambda x=on_device: plan_of(program(), x))
        print(
            f"n={n}: {1e3 * seconds:.2f} ms (of which plan {1e3 * plan:.2f} ms), first call {first:.2f} s, "
            f"error NNGP {nngp:.1e}, NTK {ntk:.1e}, symmetric {symmetric}"
        )
        quick = mlp_kernels(SPEC, on_device, precision="fast")
        apart = error(
            quick.ntk[10:1000, 10:1000], truth.ntk[10:, 10:]
        )  # the planted near-parallel pairs are the first ten
        worst = error(quick.ntk[:1000, :1000], truth.ntk)
        del quick
        fast = best(lambda x=on_device: mlp_kernels(SPEC, x, precision="fast"))
        print_parts(on_device)
        print(
            f"n={n}: fast {1e3 * fast:.2f} ms, error NTK {apart:.1e}, with near-parallel pairs {worst:.1e}; "
            f"written bytes alone {8e3 * n * n / 4.8e12:.2f} ms"
        )
        torch.cuda.empty_cache()
        for precision in ("default", "highest"):
            other = peer(x, precision)
            if other is not None:
                ours = fast if precision == "default" else seconds
                print(
                    f"n={n}: neural-tangents, {precision} precision, {1e3 * other[0]:.2f} ms, "
                    f"error NTK {error(other[1], truth.ntk):.1e}, ratio {other[0] / ours:.2f}"
                )


def print_parts(x):
    """The library's product and the program of tiles apart, for one product a pair, with what each must read and write."""
    from theodolite.theory.kernels._gpu import tiles

    n, d = x.shape
    units, out = (x / x.norm(dim=1, keepdim=True)).half(), torch.empty(n, n, device=x.device)
    product = best(lambda: tiles._products(units, units, out))
    floor = n * n * d / 989e12
    print(
        f"n={n}: products alone {1e3 * product:.2f} ms (operations of one half at 989 TFLOP/s {1e3 * floor:.2f} ms), "
        f"tiles read once and written twice {1e3 * 10 * n * n / 4.8e12:.2f} ms"
    )


def program():
    from theodolite.theory.kernels._map_sequences import program_of

    return program_of(SPEC)


if __name__ == "__main__":
    main()
