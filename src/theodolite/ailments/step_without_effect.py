"""Does a step with a gradient change no weight?

Exact: the weights before and after a step are identical bit for bit, at every step that was compared, although the learning
rate and the gradients are not zero.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Do steps change the weights?",
    fact="step without effect",
    severity="critical",
    says="Steps change nothing: not one bit of the weights changed at {0} compared steps, although there were gradients.",
    remedy="create the optimizer from the model that is trained, after its last change: optimizer = ...(model.parameters())",
    suggested={"optimizer": "model.parameters()"},
)
