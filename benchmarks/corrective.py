"""Corrective networks: the literal scheme's contraction and hidden constant, what least squares does instead, and rates.

Four tables: (1) one literal group on n random points of the sphere, measured beside the exact theory and beside
n / (theta^4 N0); (2) units that least squares needs, in one solve and in blocks; (3) exponents of the representation error for
one, two and three groups; (4) polynomials of degree 2 and 3 in 5 to 30 variables by random features.
"""

import argparse
import itertools
import math
import time

import torch

from theodolite.construct.capacity import (
    CorrectiveFeatures,
    corrective,
    least_squares,
    literal_group,
    profile_units,
    representation,
)
from theodolite.core.statistics import log_slope, mean_estimate
from theodolite.theory.capacity import corrective_contraction, dual_scale, gaussian, separation

INPUTS = 20


def sphere(n, generator):
    x = torch.randn(n, INPUTS, generator=generator, dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def contraction(sizes, generator):
    print("\n1. One literal group, random points of the sphere in 20 dimensions, labels +-1, c = 1")
    print(
        f"{'n':>5} {'theta':>6} {'N0':>6} {'measured':>9} {'+-':>7} {'theory':>9} {'n/th^4N0':>9} "
        f"{'constant':>9} {'32/3 log^4 n':>12} {'N0 to contract':>14}"
    )
    measured = []
    for n in sizes:
        x = sphere(n, generator)
        y = torch.randn(n, generator=generator, dtype=torch.float64).sign()
        theta = separation(x)
        theory = corrective_contraction(x, y, scale=dual_scale(n, theta), generator=generator, draws=2000)
        for units, draws in ((1000, 40), (8000, 12)):
            left = []
            for _ in range(draws):
                group = literal_group(x, y[:, None], units=units, theta=theta, generator=generator)
                left.append(float((y - group.outputs(x)[:, 0]).square().mean()))
            got, plain = mean_estimate(left), n / theta**4 / units
            print(
                f"{n:5d} {theta:6.3f} {units:6d} {got.value:9.4g} {got.stderr:7.2g} {theory.factor(units):9.4g} {plain:9.3g} "
                f"{got.value / plain:9.0f} {32 / 3 * math.log(n) ** 4:12.0f} {theory.threshold:14.3g}",
                flush=True,
            )
            if units == 1000:
                measured.append(type(got)(got.value * theta**4, got.stderr * theta**4))
    slope = log_slope(sizes, measured)
    print(
        f"exponent of theta^4 times the factor in n: {slope.value:.2f} +- {slope.stderr:.2f} (1, and four logarithms)"
    )


def practice(sizes, generator):
    print("\n2. Least squares instead: relative squared error of 1.1 n units; total units / n of blocks of n/4 to 1e-4")
    for n in sizes:
        x = sphere(n, generator)
        y = torch.randn(n, generator=generator, dtype=torch.float64)
        started = time.process_time()
        one = corrective(x, y, method="least-squares", generator=generator).report
        middle = time.process_time()
        blocks = corrective(
            x, y, method="block", group_width=n // 4, tolerance=1e-4, groups=120, generator=generator
        ).report
        ended = time.process_time()
        factor = blocks.relative_mse ** (1 / blocks.groups)
        print(
            f"n {n:5d}: one solve {one.units:5d} units, error {one.relative_mse:.1e}, {middle - started:5.2f} s; blocks "
            f"{blocks.units / n:5.1f} n units, factor {factor:.3f} (ideal 0.75), first {blocks.contraction[0]:.3f}, "
            f"{ended - middle:5.2f} s",
            flush=True,
        )


def rates(generator):
    print(
        "\n3. exp(-|x|^2/2) by groups of N units, each correcting the last: mean squared error times N^a, and its exponent"
    )
    t = torch.linspace(-1, 1, 41, dtype=torch.float64)
    sizes = (8, 16, 32, 64, 128)
    for groups in (1, 2, 3):
        found = []
        for units in sizes:
            made, affine = profile_units(
                gaussian(1), groups=groups, units=units, box=0.5, profiles=300, generator=generator
            )
            values = sum(group.values(t) for group in made) + affine[:, :1] + affine[:, 1:] * (t + 1)
            found.append(mean_estimate((values - torch.exp(-(t**2) / 2)).square().mean(1)))
        slope = log_slope(sizes, found)
        flat = ", ".join(f"{e.value * n**groups:.3g}" for n, e in zip(sizes, found, strict=True))
        print(f"d = 1, {groups} groups: {flat}; exponent {slope.value:.2f} +- {slope.stderr:.2f}", flush=True)
    x = torch.rand(300, 2, generator=generator, dtype=torch.float64) * 1.4 - 0.7
    exact = torch.exp(-x.square().sum(1) / 2)
    sizes = (128, 256, 512, 1024, 2048)
    for groups in (1, 2, 3):
        found = []
        for units in sizes:
            nets = (representation(gaussian(2), groups=groups, units=units, generator=generator) for _ in range(24))
            found.append(mean_estimate([float((net(x) - exact).square().mean()) for net in nets]))
        slope = log_slope(sizes, found)
        ends = f"{found[0].value:.1e} at N = {sizes[0]}, {found[-1].value:.1e} at {sizes[-1]}"
        print(f"d = 2, {groups} groups: {ends}; exponent {slope.value:.2f} +- {slope.stderr:.2f}", flush=True)


def descended(phi, y, steps=3000):
    """Output weights after plain gradient descent from nothing, at the largest stable step but for a half."""
    gram, moment = phi.T @ phi, phi.T @ y
    rate = 1 / torch.linalg.matrix_norm(gram, 2)
    b = torch.zeros_like(moment)
    for _ in range(steps):
        b += rate * (moment - gram @ b)
    return b


def polynomials(units, generator):
    print(
        f"\n4. Random polynomials of up to 200 monomials, {units} random features on q coordinates each, ridge 1e-8, "
        "relative squared error on new points; descent takes 3,000 steps"
    )
    for degree, inputs in itertools.product((2, 3), (5, 10, 20, 30)):
        x = torch.rand(5 * units, inputs, generator=generator, dtype=torch.float64) * 2 - 1
        terms = [m for k in range(degree + 1) for m in itertools.combinations_with_replacement(range(inputs), k)]
        chosen = torch.randperm(len(terms), generator=generator)[:200].tolist()
        weights = torch.randn(len(chosen), generator=generator, dtype=torch.float64).tolist()
        y = sum(w * x[:, list(terms[i])].prod(1) for w, i in zip(weights, chosen, strict=True))
        train, shown = 4 * units, []
        for order in (0, 1, 2):
            phi = torch.as_tensor(
                CorrectiveFeatures(units, order=order, subset=degree, random_state=0).fit_transform(x.numpy())
            )
            extended = torch.cat([phi[:train], 1e-4 * torch.eye(units, dtype=phi.dtype)])
            b = least_squares(extended, torch.cat([y[:train], torch.zeros(units, dtype=y.dtype)])[:, None])[:, 0]
            shown.append(float((y[train:] - phi[train:] @ b).square().mean() / y[train:].var()))
            if order == 1:
                b = descended(phi[:train], y[:train])
                descent = float((y[train:] - phi[train:] @ b).square().mean() / y[train:].var())
        print(
            f"q {degree}, d {inputs:2d} ({len(terms):5d} monomials): ReLU {shown[0]:.1e}, SReLU_1 {shown[1]:.1e}, SReLU_2 "
            f"{shown[2]:.1e}; SReLU_1 by descent {descent:.1e}; gain {shown[0] / shown[1]:.2g}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=1024, help="number of points in the largest case")
    parser.add_argument("--units", type=int, default=800, help="random features for the polynomials")
    parser.add_argument("--tables", default="1234", help="which of the four tables")
    options = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    sizes = [64 * 2**k for k in range(1 + int(math.log2(options.largest / 64)))]
    started = time.process_time()
    torch.set_grad_enabled(False)
    if "1" in options.tables:
        contraction(sizes, generator)
    if "2" in options.tables:
        practice(sizes, generator)
    if "3" in options.tables:
        rates(generator)
    if "4" in options.tables:
        polynomials(options.units, generator)
    print(f"\n{time.process_time() - started:.0f} processor seconds")


if __name__ == "__main__":
    main()
