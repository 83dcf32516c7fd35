"""Is a parameter in two optimizers, or twice in one?

Exact: both optimizers have made steps recently. Using one after the other, such as Adam and then LBFGS, is not an error.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Is each parameter in one optimizer only?",
    fact="held twice",
    severity="warning",
    says="Two optimizers update the same parameters: {all}.",
    remedy="put each parameter into only one optimizer",
)
