"""Are steps made without a new gradient?

Exact: no gradient arrived between two steps and the old one was used again; or the gradients of two steps are identical bit for
bit although the weights moved in between.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Does every step get a new gradient?",
    fact="gradient stale",
    severity="warning",
    says="{0} of {1} steps reused the gradient of the step before: there was no backward pass between them.",
    remedy="one optimizer.step() after each loss.backward(), with the loss computed again",
)
