r"""Do different inputs become the same on their way to the last layer?

In the ordered phase the cosine of any two inputs tends to 1 with a depth scale $\xi=-1/\ln\chi$; at a critical point it still
does, as $1/L^2$ for ReLU. The symptom is the part of the signal by which samples differ at the input of the last layer,
relative to that of the network's input: below a fifth over six layers or more; below 1e-6 rounding hides it (float32
leaves 1e-14, and a weight must separate differences a thousandth of the signal apart). A trial on a copy with critical
initialization or skip connections then decides. Differences lost in rounding, in a network that has learned nothing, are
reported without a trial. Batch normalization and skip connections are part of what is measured.
"""

from collections.abc import Iterator

from theodolite.core.ailment import Finding, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.depth_remedies import depth_ailment, remedy_for
from theodolite.evidence.layer_signals import activation_in, signals, signals_at_start, unlike_ratio
from theodolite.evidence.thresholds import DEPTH, PART, STILL, WORTH
from theodolite.evidence.trial import present_skill
from theodolite.measure.propagation.one_pass import VitalSigns


def _told(subject: Subject, signs: VitalSigns) -> tuple[str, str]:
    if len(signs.layers) < DEPTH or not unlike_ratio(signs) < PART:
        return "", ""
    first, last = signs.layers[0], signs.layers[-1]
    cosines = f"the cosine of two inputs goes from {1 - first.input_unlike:.2g} to {1 - last.input_unlike:.7f}"
    return f"After {len(signs.layers) - 1} layers all inputs look the same: {cosines}.", last.name


def judge(subject: Subject) -> Iterator[Finding]:
    signs = signals(subject)
    says, where = ("", "") if signs is None else _told(subject, signs)
    if signs is None or not says or unlike_ratio(signs) > STILL or present_skill(subject) > WORTH:
        return
    before = signals_at_start(subject)
    text, suggested = remedy_for(activation_in(signs))
    if before is not None and unlike_ratio(before) > STILL:  # training made it so: another beginning would not help
        last = before.layers[-1].input_unlike
        yield Finding(
            severity="note",
            where=where,
            says=f"{says} Before training it was {1 - last:.2g}.",
            remedy="first find out why training made it so; the usual cause is a learning rate that is too large",
        )
        return
    yield Finding(
        severity="critical",
        where=where,
        says=says,
        remedy=f"{text}; or a skip connection around every few layers: x + layer(x)",
        suggested=suggested,
        evidence=(
            evidence("share by which samples differ at the last layer, relative to the input", unlike_ratio(signs)),
        ),
    )


ailment = depth_ailment(
    _told,
    question="Do different inputs become the same inside the network?",
    rank=18,
    paths=True,
    judge=judge,
    laws=("relu-critical",),
)
