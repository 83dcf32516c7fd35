"""Is the gradient cleared after the backward pass and before the step?

Exact: gradients were computed after the last step, and they are gone when the next step is made.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Does the step see the gradient?",
    fact="gradient cleared",
    severity="critical",
    says="{0} of {1} steps had no gradient: it was cleared between loss.backward() and optimizer.step().",
    remedy="optimizer.zero_grad() before loss.backward(), not between it and optimizer.step()",
    suggested={"zero_grad": "before backward"},
)
