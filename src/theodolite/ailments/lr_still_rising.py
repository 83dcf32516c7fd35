"""Is the learning rate still rising at the end of the run?

Exact: it is largest at the last step and rose at every measurement, so the warm-up is longer than the run.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Has the warm-up ended?",
    live=False,
    fact="lr still rising",
    severity="note",
    says="The learning rate is still rising at the end: it went from {0} to {1} in {2} steps, so the warm-up never finished.",
    remedy="a shorter warm-up: give the schedule the number of steps that the run makes",
)
