"""Does every term of the loss have a gradient?

Exact: a number is added to the loss that changes from step to step, as weights do, and carries no gradient: a penalty of
``p.data``, of ``.item()``, or of a slope without ``create_graph=True``. It is in the value, and nothing minimizes it. A term that
is independent from step to step may belong to the batches alone, and is not reported.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Does every term of the loss have a gradient?",
    fact="term without gradient",
    severity="warning",
    says="A term of the loss has no gradient: it went from {0} to {1} in the first {2} steps, and nothing minimizes it.",
    remedy="compute it from the parameters themselves, without .data, .item() and detach(); a slope with create_graph=True",
)
