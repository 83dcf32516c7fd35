"""Does every step draw the same random numbers?

Exact: the random state before a step was the very one before the step before, although the model has dropout that draws: a seed
is set in every step. The same units are then dropped each time.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Does every step draw new random numbers?",
    fact="draws repeated",
    severity="warning",
    says="Before {0} of {1} steps the random state was that of the step before: dropout drops the same units each time.",
    remedy="torch.manual_seed(...) once, before the loop",
)
