"""The bounds against brute force."""

import math

import pytest
import torch
from scipy.optimize import minimize_scalar

from theodolite.theory.bias import rotation_bounds as invariance

LOSSES = {
    "square": lambda y, p: (y - p) ** 2,
    "logistic": lambda y, p: math.log1p(math.exp(-y * p)),
    "hinge": lambda y, p: max(0.0, 1 - y * p),
    "squared hinge": lambda y, p: max(0.0, 1 - y * p) ** 2,
    "exponential": lambda y, p: math.exp(-y * p),
    "absolute": lambda y, p: abs(y - p),
}


@pytest.mark.parametrize("name", sorted(invariance.MARGIN_LOSSES))
def test_the_loss_of_the_best_guess_at_a_coin(name):
    loss = LOSSES[name]
    best = minimize_scalar(
        lambda p: (loss(1, p) + loss(-1, p)) / 2, bounds=(-3, 3), method="bounded", options={"xatol": 1e-9}
    )
    assert invariance.hadamard_lower_bound(0, 8, loss=name) == pytest.approx(best.fun, abs=1e-6)


def test_the_safe_rate_is_safe_to_all_orders():
    """The change of D is at most -z^2/(rate X^2) + |w|(e^z - 1 - z): negative for all z the rate allows."""
    for dimension in (2, 3, 10, 128, 10_000, 10**8):
        top = invariance.largest_norm(dimension)
        rate = invariance.multiplicative_safe_lr(1.0, 1.0, dimension)
        z = torch.linspace(1e-4, rate * (top + 1), 1000, dtype=torch.float64)
        assert (top * (torch.expm1(z) - z) - z**2 / rate).max() < 0


def test_worst_examples_at_the_safe_rate():
    """Signs of any sort, chosen to raise the norm, do not raise the relative entropy to the target."""
    generator = torch.Generator().manual_seed(0)
    d = 64
    rate = invariance.multiplicative_safe_lr(1.0, 1.0, d)
    w, worst = torch.full((d,), 1 / d, dtype=torch.float64), -1.0
    for _ in range(400):
        rows = 2.0 * torch.randint(0, 2, (200, d), generator=generator).double() - 1
        x = rows[int(((rows @ w - rows[:, 0]).abs()).argmax())]  # the most surprising of many
        before = float(w.sum() - w[0].log())
        w = w * torch.exp(-rate * (x @ w - x[0]) * x)
        worst = max(worst, float(w.sum() - w[0].log()) - before)
    assert worst <= 1e-12


def test_wrong_input_is_named():
    with pytest.raises(ValueError, match="expected a loss"):
        invariance.hadamard_lower_bound(1, 2, loss="odd")
    with pytest.raises(ValueError, match="expected seen to be a whole number of at least 0"):
        invariance.unseen_share(-1, 4)
    with pytest.raises(ValueError, match="expected dimension to be a whole number of at least 2"):
        invariance.largest_norm(1)
