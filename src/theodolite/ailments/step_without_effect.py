"""Does a step with a gradient change no weight?

Exact: the weights before and after a step of the optimizer are the same bit for bit, at every step that was compared, although
its step size and its gradients are not zero.
"""

from __future__ import annotations

from theodolite.core.ailment import Ailment, SilentError

error = SilentError(
    fact="step without effect",
    severity="critical",
    says="Steps change nothing: at {0} steps that were compared no bit of the weights changed, although there were gradients.",
    remedy="make the optimizer of the model that is trained, after its last change: optimizer = ...(model.parameters())",
    suggested={"optimizer": "model.parameters()"},
)

ailment = Ailment(
    question="Do steps change the weights?", needs={"run"}, judge=error.judge, while_training=error.while_training
)
