"""Does the optimizer change frozen parameters?

Exact: a parameter that requires no gradient is in a parameter group and changes in a step, because an old gradient is still
there and weight decay and momentum still act. Frozen parameters in no group (averages, momentum encoders) move on purpose and
are not reported.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Do frozen parameters stay fixed?",
    fact="frozen moves",
    severity="warning",
    says="The optimizer changes frozen parameters (requires_grad=False): {all}.",
    remedy="set p.grad = None for them, or create the optimizer from [p for p in model.parameters() if p.requires_grad]",
)
