"""Is the gradient cleared after the backward pass and before the step?

Exact: gradients were computed after the last step, and they are gone when the next step is made; or they were computed in several
backward passes, each on its own inputs and with the same weights, and the step uses the gradient of the last pass alone; or there
was no backward pass for most of the batches that the network was called on in training mode.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Does the step see the gradient?",
    fact="gradient cleared",
    severity="critical",
    says="{0} of {1} steps {2}.",
    suggested={"zero_grad": "before backward"},
)
