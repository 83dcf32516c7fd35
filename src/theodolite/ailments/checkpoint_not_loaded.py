"""Did load_state_dict skip the weights it was given?

Exact: with strict=False, no name in the file is a name in the model; or half of the weights in the file match missing tensors
in shape, and in name except for the first part. Either way the model keeps the weights it had. Or the state is the
model's own tensors: ``state_dict()`` copies nothing, and what was read from a file did not get into it.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Did the checkpoint load?", fact="checkpoint not loaded", severity="critical", says="{0}."
)
