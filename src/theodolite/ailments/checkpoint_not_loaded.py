"""Did load_state_dict leave out what it was given?

Exact: with strict=False, none of the names in the file is a name in the model, or half of its numbers have the shapes of tensors
that are missing and their names but for the first part, so the model keeps the weights it had.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Did the checkpoint load?",
    fact="checkpoint not loaded",
    severity="critical",
    says="load_state_dict(strict=False) left {0} tensors out of {1}: the file calls them {2}, the model {3}.",
    remedy='rename them before loading: {name.removeprefix("module."): value for name, value in state.items()}',
)
