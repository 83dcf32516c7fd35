"""Does the optimizer change frozen parameters?

Exact: a parameter that requires no gradient is in a parameter group and changes in a step, because an old gradient is still
there and weight decay and momentum still act. Frozen parameters in no group (averages, momentum encoders) move on purpose and
are not reported. Or layers were frozen by a name that torch does not read, ``module.requires_grad = False``, and are trained. Or
the loop sets gradients to zero, those of the loss are not, and weight decay moves the weights all the same.
"""

from theodolite.core.ailment import few_of, silent_error
from theodolite.core.subject import Subject
from theodolite.evidence.layer_signals import signals


def _zeroed(subject: Subject) -> tuple[str, ...]:
    """Parameters that moved although their gradient was zero whenever it was looked at, while that of the loss is not zero."""
    names = () if subject.run is None else subject.run.silent.get("zeroed and moved", ())
    signs = signals(subject) if names else None
    if signs is None:
        return ()
    found = [name for name in names if name not in {*signs.untouched, *signs.zero}]
    return (
        (
            f"The gradient is set to zero before every step, and the optimizer changes the weights all the same: {few_of(found)}",
            "p.requires_grad_(False), and leave them out of the optimizer: weight decay acts without a gradient",
        )
        if found
        else ()
    )


ailment = silent_error(
    question="Do frozen parameters stay fixed?", fact="frozen moves", severity="warning", says="{0}.", static=_zeroed
)
