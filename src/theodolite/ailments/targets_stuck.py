"""Do the targets stay the same while the inputs change?

Exact: several consecutive steps had different inputs and identical targets, which are not all one number.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Do targets change with their inputs?",
    fact="targets stuck",
    severity="critical",
    says="The targets were the same in {0} steps in a row while the inputs changed.",
    remedy="read the targets of each batch inside the loop: x, y = batch",
)
