"""Does a step with a gradient change no weight?

Exact: the weights before and after a step of the optimizer are the same bit for bit, at every step that was compared, although
its step size and its gradients are not zero.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Do steps change the weights?",
    fact="step without effect",
    severity="critical",
    says="Steps change nothing: at {0} steps that were compared no bit of the weights changed, although there were gradients.",
    remedy="make the optimizer of the model that is trained, after its last change: optimizer = ...(model.parameters())",
    suggested={"optimizer": "model.parameters()"},
)
