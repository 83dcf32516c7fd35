"""Are steps made without a new gradient?

Exact: no gradient arrived between two steps, and the old one was used again; or the gradients of two steps are the same bit for
bit although the weights moved in between.
"""

from __future__ import annotations

from theodolite.core.ailment import Ailment, SilentError

error = SilentError(
    fact="gradient stale",
    severity="warning",
    says="{0} of {1} steps used the gradient of the step before again: no backward pass came between them.",
    remedy="one optimizer.step() after each loss.backward(), with the loss computed anew",
)

ailment = Ailment(
    question="Does every step have a new gradient?",
    needs={"run"},
    judge=error.judge,
    while_training=error.while_training,
)
