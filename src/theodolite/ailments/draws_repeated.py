"""Does every step draw the same random numbers?

Exact: the loop sets the same seed in every step, or consecutive steps of a model with dropout began with the same random state:
samples that are drawn, noise and dropout are the same every time. Or a loader drew its order from the random state of the epoch
before: every epoch has the same batches in the same order.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Does every step draw new random numbers?",
    fact="draws repeated",
    severity="warning",
    says="{0} of {1} {2} began with the random state of the one before: {3}.",
    remedy="call torch.manual_seed(...) once, before the loop",
)
