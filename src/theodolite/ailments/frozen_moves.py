"""Are there frozen parameters that the optimizer changes all the same?

Exact: a parameter that asks for no gradient is in a group and is another after a step: an old gradient is still there, and decay
and momentum go on. Frozen ones that no group holds (averages, momentum encoders) are moved on purpose.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Do frozen parameters stay?",
    fact="frozen moves",
    severity="warning",
    says="Frozen parameters (requires_grad=False) are changed by the optimizer: {all}.",
    remedy="p.grad = None for those that are frozen, or make the optimizer of [p for p in model.parameters() if p.requires_grad]",
)
