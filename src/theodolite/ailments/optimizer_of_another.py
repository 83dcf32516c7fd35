"""Does the optimizer hold parameters that are not the model's, where the model has others in their place?

Exact: tensors of the same shapes are in the optimizer and not in the model, and in the model and not in the optimizer: layers
were replaced, or the model was made anew, after the optimizer was made.
"""

from theodolite.core.ailment import silent_error
from theodolite.core.subject import Subject
from theodolite.measure.dynamics._silent_facts import parameters_replaced


def static(subject: Subject) -> tuple[str, ...]:
    """The parameters whose places in the optimizer others have."""
    assert subject.model is not None
    return parameters_replaced(subject.model, subject.optimizer)


ailment = silent_error(
    question="Does the optimizer hold the model's own parameters?",
    needs={"model", "optimizer"},
    fact="optimizer of another",
    severity="critical",
    says="The optimizer holds tensors that are not the model's any more, in place of {all}: steps change what nobody uses.",
    remedy="make the optimizer after the model is whole: after replacing layers, loading, .to(device) and peft",
    static=static,
)
