"""Is the gradient clipped only after the step that uses it?

Exact: at most steps the gradient was clipped after optimizer.step() and before the next backward pass, or the list of parameters
was empty, as ``model.parameters()`` is once a loop has gone through it. Clipping changed nothing.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Is the gradient clipped before the step?",
    fact="clipped late",
    severity="critical",
    says="The gradient was clipped too late at {0} steps: {1}, where clipping changes nothing.",
    remedy="torch.nn.utils.clip_grad_norm_(model.parameters(), ...) between loss.backward() and optimizer.step()",
    suggested={"clip": "before the step"},
)
