"""Did a load_state_dict load nothing?

Exact: with strict=False none of the names in the file is a name of the model, so that it goes on with the weights that it had.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Did the checkpoint load?",
    fact="checkpoint not loaded",
    severity="critical",
    says="load_state_dict(strict=False) loaded none of {0} tensors into {1}: they are called {2}, those of the model {3}.",
    remedy='bring the names into line before loading: {name.removeprefix("module."): value for name, value in state.items()}',
)
