"""Does a learner treat all directions of input space alike, and what must that cost it on a sparse target?"""

from dataclasses import dataclass
from typing import Any

from theodolite.measure.bias import RotationGap, rotation_gap
from theodolite.measure.bias.rotations import InvarianceVerdict
from theodolite.theory.bias import gaussian_lower_bound, hadamard_lower_bound, multiplicative_loss


@dataclass(frozen=True)
class RotationInvariance:
    """The verdict, the measured gap, and the least loss of any invariant learner with so many examples and features."""

    seen: int
    dimension: int
    measured: RotationGap

    @property
    def verdict(self) -> InvarianceVerdict:
        """One of invariant, not invariant, cannot tell, invalid."""
        return self.measured.verdict

    @property
    def hadamard_bound(self) -> float:
        """The least mean loss of an invariant learner on one feature of sign-flipped Hadamard rows, 1 - k/d."""
        return hadamard_lower_bound(self.seen, self.dimension)

    @property
    def gaussian_bound(self) -> float:
        """The same for Gaussian inputs, over d examples of which k were seen, (1 - k/d)^2."""
        return gaussian_lower_bound(self.seen, self.dimension)

    def text(self) -> str:
        """What was seen, what it means and what to try, in a few lines."""
        m = self.measured
        if m.fault:
            return f"rotation invariance: invalid\n  {m.fault}"
        lines = [
            f"rotation invariance: {self.verdict}",
            f"  gap {m.gap.value:.3g} ± {m.gap.stderr:.2g}, " + _gap_words(m),
        ]
        cost = (
            f"  An invariant learner with k = {self.seen} examples of d = {self.dimension} features loses on a target of one "
            f"feature at least 1 - k/d = {self.hadamard_bound:.3g} (Hadamard), (1 - k/d)^2 = {self.gaussian_bound:.3g} "
            "(Gaussian)"
        )
        if self.verdict == "invariant":
            order = min(1.0, multiplicative_loss(self.seen, self.dimension))
            return "\n".join(
                [*lines, cost + f"; multiplicative updates are of the order {order:.2g}: try EGUpm or Spindly."]
            )
        if self.verdict == "not invariant":
            return "\n".join([*lines, cost + ". That bound does not bind this learner."])
        more = "more repeats" if m.shift is not None else "float64, or fewer steps"
        return "\n".join(
            [*lines, f"  The difference is neither clear of chance and rounding nor within them: try {more}."]
        )

    __str__ = text

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.text())}</pre>"


def rotation_invariance(
    learner: Any, x: Any, y: Any, test: Any, *, repeats: int = 8, seed: int = 0, tolerance: float = 1e-4
) -> RotationInvariance:
    r"""Train on $XU^\top$, predict at Ux: a learner is rotation invariant if the predictions are those of X at x.

    ``learner(x, y, test)`` returns predictions (one row for each test point), or is a scikit-learn estimator. It may take
    ``seed``, ``generator`` or ``rotation``: see `theodolite.measure.bias.rotations.rotation_gap`, which also says how random
    learners are judged. Inputs and test points are rows, arrays or tensors, passed on in kind, precision and device.
    ``tolerance`` is the gap, relative to the predictions, below which a learner without randomness counts as invariant.
    Source: warmuth2021; ng2004.

    >>> import numpy as np
    >>> x, y, test = np.eye(6)[:4], np.arange(4.0), np.ones((2, 6))
    >>> rotation_invariance(lambda x, y, test: test @ (np.linalg.pinv(x) @ y), x, y, test).verdict
    'invariant'
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    found = rotation_gap(learner, x, y, test, repeats=repeats, generator=generator, tolerance=tolerance)
    return RotationInvariance(len(x), int(x.shape[1]), found)


def _gap_words(m: RotationGap) -> str:
    if m.shift is None:
        return f"against {m.rounding:.2g} by rounding alone (largest difference over the predictions' root mean square)"
    return (
        f"for random starts; the mean prediction moves by {m.shift.value:.2g} (chance {m.chance:.2g}), against {m.seeds:.2g} "
        "between two seeds"
    )
