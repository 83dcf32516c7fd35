r"""Does the optimizer's state lose its updates to rounding because it has few bits?

Exact: a running mean of squared gradients falls by at most $1-\beta_2$ of itself in a step. If that is less than a quarter of the
spacing of its 16-bit numbers, every fall is rounded away: the mean can rise and never comes down, and the steps of these
parameters stay as short as the largest gradients made them.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Does the optimizer's state lose updates by rounding?",
    fact="state rounded away",
    severity="note",
    says="The optimizer keeps its average of squared gradients in {0}: with beta2={1} the average can rise but never fall, "
    "because every decrease is rounded away.",
    remedy="keep the optimizer's state in float32 (float32 weights under torch.autocast), or betas=(0.9, 0.95)",
)
