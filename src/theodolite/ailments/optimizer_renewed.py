"""Is the optimizer made anew in every step?

Exact: steps of one set of parameters came from a new optimizer each, whose momentum and averages of squares began at zero.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Does the optimizer keep its state?",
    fact="optimizer renewed",
    severity="warning",
    says="{0} of {1} steps were the first step of a new optimizer: momentum and averages of the gradient begin anew each time.",
    remedy="create the optimizer once, before the loop",
)
