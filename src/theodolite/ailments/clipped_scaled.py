"""Is the gradient clipped while it is still multiplied by the scale of a GradScaler?

Exact: the gradient was clipped, and divided by its scale only afterwards, before the same step: the clip then bounds a number
thousands of times too large, and every step is as good as none, or of one length.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Is the gradient unscaled before it is clipped?",
    fact="clipped scaled",
    severity="critical",
    says="The gradient was clipped before it was unscaled, at {0} steps: what was clipped is {1} times too large.",
    remedy="scaler.unscale_(optimizer) before torch.nn.utils.clip_grad_norm_(...)",
    suggested={"unscale": "before clipping"},
)
