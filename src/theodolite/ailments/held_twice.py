"""Do two optimizers take turns on the same parameter, or is it twice in one?

Exact: both optimizers made steps since the last look. Using one after the other, such as Adam and then LBFGS, is not an error.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Is each parameter in one optimizer only?",
    fact="held twice",
    severity="warning",
    says="Two optimizers change the same parameters in turn: {all}.",
    remedy="put each parameter into one optimizer only",
)
