"""Does a step with a gradient change no weight?

Exact: the weights before and after a step are identical bit for bit, at every step that was compared, although the learning
rate and the gradients are not zero. Or there are backward passes, but optimizer.step() is never called, or not that of
one optimizer while others step.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Do steps change the weights?",
    fact="step without effect",
    severity="critical",
    says="{0}.",
    suggested={"optimizer": "model.parameters()"},
)
