"""Is the gradient clipped while it still carries the scale of a GradScaler?

Exact: the gradient was clipped first and unscaled afterwards, before the same step. The clip then limits a number thousands of
times too large, so every step is close to zero, or all steps have the same length.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Is the gradient unscaled before it is clipped?",
    fact="clipped scaled",
    severity="critical",
    says="The gradient was clipped before it was unscaled at {0} steps: it was still {1} times too large.",
    remedy="scaler.unscale_(optimizer) before torch.nn.utils.clip_grad_norm_(...)",
    suggested={"unscale": "before clipping"},
)
