"""Is the gradient cleared after the backward pass and before the step?

Exact: gradients arrived since the last step, and at the step they are gone.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Does the step see the gradient?",
    fact="gradient cleared",
    severity="critical",
    says="At {0} of {1} steps the gradient was cleared between backward and step: these steps do not use it.",
    remedy="optimizer.zero_grad() before loss.backward(), not between it and optimizer.step()",
    suggested={"zero_grad": "before backward"},
)
