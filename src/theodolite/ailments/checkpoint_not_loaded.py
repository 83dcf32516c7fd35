"""Did load_state_dict load nothing?

Exact: with strict=False, none of the names in the file is a name in the model, so the model keeps the weights it had.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Did the checkpoint load?",
    fact="checkpoint not loaded",
    severity="critical",
    says="load_state_dict(strict=False) loaded none of {0} tensors into {1}: the file calls them {2}, the model {3}.",
    remedy='rename them before loading: {name.removeprefix("module."): value for name, value in state.items()}',
)
