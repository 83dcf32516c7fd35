"""Are there frozen parameters that the optimizer changes all the same?

Exact: a parameter that asks for no gradient is in a group and is another after a step: an old gradient is still there, and decay
and momentum go on. Frozen ones that no group holds (averages, momentum encoders) are moved on purpose.
"""

from __future__ import annotations

from theodolite.core.ailment import Ailment, SilentError

error = SilentError(
    fact="frozen moves",
    severity="warning",
    says="Frozen parameters (requires_grad=False) are changed by the optimizer: {all}.",
    remedy="p.grad = None for those that are frozen, or make the optimizer of [p for p in model.parameters() if p.requires_grad]",
)

ailment = Ailment(
    question="Do frozen parameters stay?", needs={"run"}, judge=error.judge, while_training=error.while_training
)
