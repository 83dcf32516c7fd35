"""Does training see the same batch again in the next step?

Exact: the inputs of consecutive steps are identical bit for bit, again and again, although the data has other batches. A loop
that uses all the data in every step is not reported.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Does every step get a new batch?",
    fact="batch repeated",
    severity="warning",
    says="{0} of {1} steps used the same batch as the step before: the loop never reaches the next batch.",
    remedy="take the next batch in every step: for x, y in loader, not next(iter(loader))",
)
