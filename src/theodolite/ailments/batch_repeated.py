"""Does training see the same batch again in the next step?

Exact: the inputs of two steps in a row are the same bit for bit, again and again, although there are others. A loop whose every
step sees all the data is none of this.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Does every step have a new batch?",
    fact="batch repeated",
    severity="warning",
    says="{0} of {1} steps had the very batch of the step before: the loop does not move on.",
    remedy="take the next batch in every step: for x, y in loader, not next(iter(loader))",
)
