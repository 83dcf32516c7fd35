"""Does training see the same batch again in the next step?

Exact: the inputs of consecutive steps are identical bit for bit, again and again, although the data has other batches. A loop
that uses all the data in every step is not reported. Or every row of every batch is the same sample, or all processes train on
the same batches, or the model is called twice in each step on copies of one batch, or a `DistributedSampler` never learns of a
new epoch and draws the same order again.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Does every step get a new batch?", fact="batch repeated", severity="warning", says="{0}."
)
