r"""Do different inputs become the same on their way to the last layer?

In the ordered phase the cosine of any two inputs tends to 1 with a depth scale $\xi=-1/\ln\chi$; at a critical point it still
does, as $1/L^2$ for ReLU. The symptom is the part of the signal by which samples differ at the input of the last layer,
relative to that of the network's input: below a fifth over six layers or more; below 1e-6 rounding hides it (float32
leaves 1e-14, and a weight must separate differences a thousandth of the signal apart). A trial on a copy with critical
initialization or skip connections then decides. Differences lost in rounding, in a network that has learned nothing, are
reported without a trial. Batch normalization and skip connections are part of what is measured.
"""

from collections.abc import Iterator

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.depth_remedies import depth_interventions, remedy_for
from theodolite.evidence.experiment import Intervention
from theodolite.evidence.layer_signals import activation_in, signals, signals_at_start, unlike_ratio
from theodolite.evidence.thresholds import CRITICAL, DEPTH, PART, STILL, WORTH
from theodolite.evidence.trial import present_skill
from theodolite.measure.propagation.one_pass import VitalSigns


def _merges(signs: VitalSigns | None) -> bool:
    if signs is None or len(signs.layers) < DEPTH:
        return False
    return unlike_ratio(signs) < PART


def _slope_is_small(signs: VitalSigns) -> bool:
    """Whether the activation's own slope is so small that gradients vanish first: then that is the name for it."""
    slopes = [layer.steepest for layer in signs.layers[:-1] if layer.activation]
    return bool(slopes) and max(slopes) < CRITICAL


def sign(subject: Subject) -> bool:
    """Whether samples have become the same at the last layer."""
    return _merges(signals(subject))


def judge(subject: Subject) -> Iterator[Finding]:
    signs = signals(subject)
    if signs is None or not _merges(signs) or unlike_ratio(signs) > STILL or present_skill(subject) > WORTH:
        return
    text, suggested = remedy_for(activation_in(signs))
    if not _merges(signals_at_start(subject)):  # training made it so: another beginning would not help
        yield Finding(
            severity="note",
            where=signs.layers[-1].name,
            says=f"{_says(signs)} They did not before training.",
            remedy="look at what stopped the training first: most often a learning rate that is too large",
        )
        return
    yield Finding(
        severity="critical",
        where=signs.layers[-1].name,
        says=_says(signs),
        remedy=f"{text}; or a skip connection around every few layers: x + layer(x)",
        suggested=suggested,
        evidence=(
            evidence("share by which samples differ at the last layer, relative to the input", unlike_ratio(signs)),
        ),
    )


def _says(signs: VitalSigns) -> str:
    first, last = signs.layers[0].input_unlike, signs.layers[-1].input_unlike
    return (
        f"After {len(signs.layers) - 1} layers all inputs look the same: the cosine of two inputs goes from {1 - first:.2g} to "
        f"{1 - last:.7f}."
    )


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The critical initialization, or paths around layers."""
    signs = signals_at_start(subject)
    if signs is None or not _merges(signs):
        return
    rank = 23 if _slope_is_small(signs) else 18
    yield from depth_interventions(subject, _says(signs), rank=rank, where=signs.layers[-1].name, paths=True)


ailment = Ailment(
    question="Do different inputs become the same inside the network?",
    needs={"model", "data", "loss"},
    judge=judge,
    interventions=interventions,
    sign=sign,
    laws=("relu-critical",),
)
