"""Is the gradient clipped after the step that it was meant for?

Exact: the gradient of parameters was clipped after their optimizer's step and before the next backward pass, at most steps, so
that the clip changed nothing.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Is the gradient clipped before the step?",
    fact="clipped late",
    severity="critical",
    says="At {0} steps the gradient was clipped after optimizer.step(), where clipping changes nothing.",
    remedy="torch.nn.utils.clip_grad_norm_(...) between loss.backward() and optimizer.step()",
    suggested={"clip": "before the step"},
)
