"""Does the optimizer step on gradients that still carry the scale of a GradScaler?

Exact: the loss was multiplied by the scale before backward(), and the optimizer stepped without `unscale_`, which `scaler.step`
calls.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Is the gradient unscaled before the step?",
    fact="step scaled",
    severity="critical",
    says="{0} steps used a gradient that was still {1} times too large: the scale of the loss was never removed.",
    remedy="scaler.step(optimizer) in place of optimizer.step()",
    suggested={"step": "scaler.step(optimizer)"},
)
