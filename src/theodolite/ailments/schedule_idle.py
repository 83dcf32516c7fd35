"""Does the learning rate follow its schedule?

Exact: at the end of a script a scheduler has never been stepped although its optimizer was, and no other one of that optimizer
was either; or it was stepped, and its optimizer makes no steps while another one trains the same parameters; or the script sets
``optimizer.lr``, which torch does not read, while the learning rate of the groups stays as it was.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Does the learning rate follow its schedule?",
    fact="schedule idle",
    severity="warning",
    says="{0}.",
    suggested={"schedule": "stepped"},
)
