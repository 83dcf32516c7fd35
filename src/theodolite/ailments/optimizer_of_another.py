"""Does the optimizer hold parameters that are no longer the model's?

Exact: tensors of the same shapes are in the optimizer but not in the model, and in the model but not in the optimizer. Layers
were replaced, or the model was rebuilt, after the optimizer was created.
"""

from theodolite.core.ailment import silent_error
from theodolite.core.subject import Subject
from theodolite.measure.dynamics._silent_facts import parameters_replaced


def static(subject: Subject) -> tuple[str, ...]:
    """The parameters whose places in the optimizer others have."""
    return parameters_replaced(subject.model, subject.optimizer)


ailment = silent_error(
    question="Does the optimizer hold the model's own parameters?",
    needs={"model", "optimizer"},
    fact="optimizer of another",
    severity="critical",
    says="The optimizer holds tensors of another model or of an earlier one: its steps do not change {all}.",
    remedy="create the optimizer when the model is complete: after replacing layers, loading, .to(device) and peft",
    static=static,
)
