"""Are steps made without a new gradient?

Exact: no gradient arrived between two steps, and the old one was used again; or the gradients of two steps are the same bit for
bit although the weights moved in between.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Does every step have a new gradient?",
    fact="gradient stale",
    severity="warning",
    says="{0} of {1} steps used the gradient of the step before again: no backward pass came between them.",
    remedy="one optimizer.step() after each loss.backward(), with the loss computed anew",
)
