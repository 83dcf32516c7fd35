"""Do some parameters have a gradient and never move, although the optimizer holds them?

Exact: they are the same bit for bit before and after every step that was compared, while others move.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Do all parameters move that have a gradient?",
    fact="parameters stuck",
    severity="warning",
    says="Parameters with a gradient, held by the optimizer, never move: {all}.",
    remedy="look for what takes their step away: a group with lr=0, a copy that is loaded again, a mask",
)
