"""Do parameters in the optimizer have a gradient and never move?

Exact: they are identical bit for bit before and after every step that was compared, while others move.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Do all parameters with a gradient move?",
    fact="parameters stuck",
    severity="warning",
    says="Parameters have a gradient and are in the optimizer, but never move: {all}.",
    remedy="look for a group with lr=0, weights that are loaded again after each step, or a mask",
)
