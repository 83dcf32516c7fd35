"""The Hadamard transform on a GPU, float32: error against float64 on the CPU, and time beside a copy and butterflies.

Run where a CUDA device is; needs torch and triton only.
"""

import itertools

import torch

from theodolite.theory.dimension import hadamard, hadamard_transform, hadamard_transform_
from theodolite.theory.dimension.hadamard import _butterflies

SIZES = (12, 13, 14, 16, 18, 20, 22, 24, 26)
REPEATS = 20


def milliseconds(function):
    """The least of several runs, by the device's own clock."""
    for _ in range(3):
        function()
    found = []
    for _ in range(REPEATS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        function()
        end.record()
        torch.cuda.synchronize()
        found.append(start.elapsed_time(end))
    return min(found)


def errors():
    """Relative error (in norm, and the largest entry over the root mean square) for many shapes."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(1 << k,) for k in (1, 4, 7, *range(8, 25))] + [(7, 256), (3, 1 << 13), (5, 1 << 15), (2, 3, 1 << 17)]
    print(f"{'shape':>20} {'norm':>9} {'largest':>9}")
    for shape in shapes:
        x = torch.randn(shape, generator=generator)
        truth = hadamard_transform(x.double())
        found = hadamard_transform(x.cuda()).double().cpu()
        gap, size = found - truth, truth.square().mean().sqrt()
        norm, largest = (gap.norm() / truth.norm()).item(), (gap.abs().max() / size).item()
        print(f"{shape!s:>20} {norm:9.1e} {largest:9.1e}{'' if norm < 1e-6 else '  WRONG'}")
    x = torch.randn(4, 1 << 14, generator=generator).cuda().requires_grad_()
    weight = torch.randn(4, 1 << 14, generator=generator).cuda()
    (hadamard_transform(x, scale=2**-7) * weight).sum().backward()
    gap = x.grad - hadamard_transform(weight, scale=2**-7)
    print(f"gradient against the transform of its weights: {gap.abs().max().item():.1e}")
    half = torch.randn(3, 1 << 13, generator=generator).cuda().half()
    truth = hadamard_transform(half.double().cpu(), scale=2**-6.5)
    found = hadamard_transform(half, scale=2**-6.5)
    print(f"float16: {((found.double().cpu() - truth).norm() / truth.norm()).item():.1e} (rounding is 3e-4)")


def times(module):
    print(f"{'levels':>6} {'copy':>8} {'ours':>8} {'butterflies':>12}   ms; ours in copies")
    for levels in SIZES:
        x = torch.randn(1 << levels, device="cuda")
        y = torch.empty_like(x)
        scale = x.numel() ** -0.5  # orthogonal: repeated runs do not grow
        copy = milliseconds(lambda x=x, y=y: y.copy_(x))
        ours = milliseconds(lambda x=x, s=scale: hadamard_transform_(x, scale=s))
        plain = milliseconds(lambda x=x, s=scale: _butterflies(x, s))
        print(f"{levels:6d} {copy:8.3f} {ours:8.3f} {plain:12.3f}   {ours / copy:.1f}")
        del x, y
    if module is None:
        return
    print("other settings at 2^26: TILES, WARPS, NEAR -> ms")
    x = torch.randn(1 << 26, device="cuda")
    before = module.TILES, module.WARPS, module.NEAR, module.TILE
    for tiles, warps, near in itertools.product((1, 2, 4, 8), (4, 8), (12, 13)):
        module.TILES, module.WARPS, module.NEAR = tiles, warps, near
        module.TILE = 1 << near
        try:
            print(f"{tiles} {warps} {near}: {milliseconds(lambda: hadamard_transform_(x, scale=2**-13)):.3f}")
        except Exception as error:
            print(f"{tiles} {warps} {near}: {type(error).__name__}: {str(error)[:200]}")
    module.TILES, module.WARPS, module.NEAR, module.TILE = before


def main():
    if not torch.cuda.is_available():
        raise SystemExit("expected a CUDA device, got none; run this on a machine with a GPU")
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    module = hadamard._gpu_programs()
    print("GPU programs:", "Triton" if module is not None else "none, plain torch")
    errors()
    times(module)


if __name__ == "__main__":
    main()
