"""Does the step size still rise at the end of the run?

Exact: at the last step it is the largest so far, and it rose at every look: the warm-up is longer than the run.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Has the warm-up ended?",
    live=False,
    fact="lr still rising",
    severity="note",
    says="The step size still rises at the end: it went from {0} to {1} in {2} steps, and its warm-up is not over.",
    remedy="a warm-up that is a small part of the run: give the schedule the number of steps that are made",
)
