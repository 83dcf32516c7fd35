"""Is a parameter in two optimizers that take turns, or twice in one?

Exact: both made steps since the last look. One after the other, as Adam and then LBFGS, is no error.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Is each parameter in one optimizer only?",
    fact="held twice",
    severity="warning",
    says="Two optimizers take turns in changing the same parameters: {all}.",
    remedy="give each parameter to one optimizer",
)
