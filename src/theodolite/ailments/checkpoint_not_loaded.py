"""Did load_state_dict skip the weights it was given?

Exact: with strict=False, no name in the file is a name in the model; or half of the weights in the file match missing tensors
in shape, and in name except for the first part. Either way the model keeps the weights it had.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Did the checkpoint load?",
    fact="checkpoint not loaded",
    severity="critical",
    says="load_state_dict(strict=False) did not load {0} tensors into {1}: the file calls them {2}, the model {3}.",
    remedy='rename them before loading: {name.removeprefix("module."): value for name, value in state.items()}',
)
