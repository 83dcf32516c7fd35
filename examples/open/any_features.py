"""An open question, explored: can networks on any fixed features learn all d Hadamard targets from fewer than d examples?

For predictors linear in the labels the answer is no (the law any-features-linear-in-labels). For trained networks it is a
conjecture. This script trains one network for each target on several feature maps and prints the mean loss over all
targets and rows beside 1 - k/d. A number clearly below it would refute the conjecture; none below it proves nothing.
The second part is the little that can be tested of another open cell: for instances x z^T, descent from zero stays in the
two spans, W = X^T C Z. What bound holds there for learners invariant on both sides is not known.
"""

from functools import partial

import torch

from theodolite.construct.bias import bit_patterns, products_of_bits
from theodolite.measure.experiments import gaussian_start, network_outputs, trained_networks
from theodolite.report.progress import tracked

SIDE, BITS = 32, 5
OPTIMIZERS = {
    "gradient descent": (partial(torch.optim.SGD, lr=0.1, momentum=0.9), 300),
    "Adam": (partial(torch.optim.Adam, lr=0.01), 300),
}


def feature_maps(generator):
    bits = bit_patterns(BITS)
    return {
        "bits": bits,
        "Hadamard rows": products_of_bits(bits),
        "one-hot": torch.eye(SIDE).double() * SIDE**0.5,
        "Gaussian": torch.randn(SIDE, SIDE, generator=generator, dtype=torch.float64),
        "pairs of bits": torch.stack([bits[:, i] * bits[:, j] for i in range(BITS) for j in range(i + 1)], 1),
    }


def mean_loss(features, seen, optimizer, steps, generator):
    """The loss over all rows of one network for each target, and how many targets are learnt to below 0.1."""
    targets = products_of_bits(bit_patterns(BITS)).T  # (targets, rows)
    order = torch.randperm(SIDE, generator=generator)
    x = (features / features.square().sum(1).mean().sqrt())[order].expand(SIDE, -1, -1)
    y = targets[:, order]
    start = gaussian_start(SIDE, (features.shape[1], 64, 64, 1), activation="relu", generator=generator)
    own = trained_networks(start, x[:, :seen], y[:, :seen], activation="relu", optimizer=optimizer, steps=steps)
    losses = (network_outputs(own, x, "relu") - y).square().mean(1)
    return float(losses.mean()), int((losses < 0.1).sum())


def two_sided_residual(generator):
    """The share of W off the two spans after descent on x^T W z, from zero."""
    x, z = (torch.randn(6, 16, generator=generator, dtype=torch.float64) for _ in range(2))
    y, W = torch.randn(6, generator=generator, dtype=torch.float64), torch.zeros(16, 16).double()
    for _ in range(200):
        W = W - 0.002 * torch.einsum("n,ni,nj->ij", torch.einsum("ni,ij,nj->n", x, W, z) - y, x, z)
    left, right = torch.linalg.qr(x.T)[0], torch.linalg.qr(z.T)[0]
    return float((W - left @ (left.T @ W @ right) @ right.T).norm() / W.norm())


def main():
    generator = torch.Generator().manual_seed(0)
    maps, lowest = feature_maps(generator), None
    work = [(name, how, seen) for name in maps for how in OPTIMIZERS for seen in (8, 16, 24)]
    print(f"{'features':16}{'optimizer':18}{'k':>4}{'mean loss':>11}{'1 - k/d':>9}{'learnt':>8}")
    for name, how, seen in tracked(work, total=len(work), label="networks"):
        loss, learnt = mean_loss(maps[name], seen, *OPTIMIZERS[how], generator)
        print(f"{name:16}{how:18}{seen:4d}{loss:11.3f}{1 - seen / SIDE:9.3f}{learnt:5d}/{SIDE}")
        lowest = min(filter(None, (lowest, (loss - 1 + seen / SIDE, name, how, seen))))
    print(
        f"nearest to the bound: {lowest[1]}, {lowest[2]}, k = {lowest[3]}: {lowest[0]:+.3f} from it. Nothing is claimed."
    )
    print(f"instances x z^T: share of the weights off the two spans {two_sided_residual(generator):.1e}")


if __name__ == "__main__":
    main()
