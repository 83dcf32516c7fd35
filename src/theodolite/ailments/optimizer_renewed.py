"""Is the optimizer created again in every step?

Exact: each step of the same parameters came from a new optimizer, whose momentum and averages started at zero.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Does the optimizer keep its state?",
    fact="optimizer renewed",
    severity="warning",
    says="{0} of {1} steps were the first step of a new optimizer: momentum and averages start from zero each time.",
    remedy="create the optimizer once, before the loop",
)
