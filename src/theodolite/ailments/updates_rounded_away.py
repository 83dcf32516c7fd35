"""Are updates lost to rounding because the weights have few bits?

Exact: most entries of 16-bit weights that have a gradient are identical before and after each step that was compared: the
update is smaller than half the distance to the next number.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Are updates lost by rounding?",
    fact="updates rounded away",
    severity="warning",
    says="{0} of the entries of the {1} weights that have a gradient do not change in a step: the updates are rounded away.",
    remedy="keep the weights in float32 and train under torch.autocast, which rounds only inside the passes",
    suggested={"dtype": "float32"},
)
