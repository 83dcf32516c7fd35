"""Do weights or buffers become NaN or infinite during training?

Exact: NaN or infinite entries at a look, also in running statistics, which the loss in training mode does not show.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Are weights and buffers finite?",
    fact="values not finite",
    severity="critical",
    says="Weights or buffers are not finite: {all}.",
    remedy="go back to the last finite checkpoint; use a smaller lr, or clip gradients to norm 1",
)
