"""Are layers copies of each other that should not be?

Exact: two matrices that were initialized or trained separately never agree in every bit, so their digests are compared. Not
reported: one tensor under two names (tied), embeddings and heads whose tie was saved as two tensors, constants, masks, frozen
tensors, and copies kept on purpose (target, teacher and averaged networks), and grids of coordinates, which go on in even
steps. `nn.TransformerEncoder` starts all its layers as copies, which training separates: if the entries are still at their
initialization, or nothing has moved, it is a note.
"""

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from theodolite.core.ailment import Ailment, Finding, evidence, few_of
from theodolite.core.lazy_torch import array_of
from theodolite.core.subject import Subject
from theodolite.evidence.thresholds import FEWEST, STILL
from theodolite.evidence.weights import WeightFacts, weight_facts

TIED = re.compile(r"embed|wte|wpe|lm_head|shared|position|pos_|mask|inv_freq", re.IGNORECASE)
ON_PURPOSE = re.compile(
    r"(^|[._])(target|teacher|ema|momentum_encoder|encoder_k|key_encoder|old|shadow|avg|reference)", re.IGNORECASE
)


def judge(subject: Subject) -> Iterator[Finding]:
    own = {} if subject.model is None else dict(subject.model.named_parameters())
    groups: dict[tuple[str, tuple[int, ...]], list[WeightFacts]] = {}
    for facts in weight_facts(subject).values():
        frozen = facts.name in own and not own[facts.name].requires_grad
        if facts.digest and facts.values > 2 and facts.entries >= FEWEST and not frozen and not _is_meant(facts.name):
            groups.setdefault((facts.digest, facts.shape), []).append(facts)
    copies = [
        group for group in groups.values() if len(_apart(subject, group)) > 1 and not _is_grid(subject, group[0].name)
    ]
    if not copies:
        yield from _repeated(subject)
        return
    harmful = [group for group in copies if not _is_a_start(subject, group[0])]
    shown = harmful or copies
    largest = max(shown, key=lambda group: group[0].entries)
    names = few_of([facts.name for facts in largest])
    others = "" if len(shown) == 1 else f" (and {len(shown) - 1} more such groups)"
    meaning = (
        "Layers trained separately never agree in every bit: one was copied over the other, or loaded twice."
        if harmful
        else "They have not been trained yet; training will separate them if they see different inputs."
    )
    yield Finding(
        severity="warning" if harmful else "note",
        where=largest[1].name,
        says=f"{len(largest)} tensors of shape {largest[0].shape} hold the same {largest[0].entries} values: {names}{others}. "
        + meaning,
        remedy=f"load {largest[1].name} from its own checkpoint, or initialize it again and train it; if it is meant to be "
        "shared, "
        "use one module twice",
        evidence=tuple(evidence("tensors with equal values", len(group), where=group[0].name) for group in shown[:20]),
    )


def _repeated(subject: Subject) -> Iterator[Finding]:
    """One module at several places of one container: ``[block] * n`` in place of n blocks, unless sharing is meant."""
    for name, module in () if subject.model is None else subject.model.named_modules():
        held = Counter(id(m) for m in module._modules.values() if m is not None and any(True for _ in m.parameters()))
        most = max(held.values(), default=1)
        if most > 1:
            yield Finding(
                severity="note",
                where=name or type(module).__name__,
                says=f"One layer is used {most} times in {name or type(module).__name__}: its weights are shared, so there are "
                f"{most - 1} layers fewer than it seems.",
                remedy="[Block() for _ in range(n)] in place of [Block()] * n, unless sharing is meant",
                evidence=(evidence("uses of one layer", most),),
            )
            return


def _is_meant(name: str) -> bool:
    return bool(TIED.search(name) or ON_PURPOSE.search(name))


def _apart(subject: Subject, group: list[WeightFacts]) -> set[int]:
    """The places in memory: tensors that share one are tied."""
    # held: no address is used twice
    held = [subject.weights[facts.name].read() for facts in group] if len(group) > 1 else []
    return {tensor.data_ptr() for tensor in held}


def _is_grid(subject: Subject, name: str) -> bool:
    """Whether the values go on in even steps along every axis, as coordinates do that some layers are given."""
    values = array_of(subject.weights[name].values()).astype(float)
    long = [axis for axis, size in enumerate(values.shape) if size > 2]
    rounding = 1e-5 * np.abs(values).max()
    return bool(long) and all(np.abs(np.diff(values, n=2, axis=axis)).max() <= rounding for axis in long)


def _is_a_start(subject: Subject, facts: WeightFacts) -> bool:
    if facts.moved is not None:
        return facts.moved <= STILL
    if facts.start:
        return True
    if (
        subject.model is None
        or (subject.run is not None and subject.run.moments)
        or (subject.optimizer is not None and subject.optimizer.state)
    ):
        return False
    # a model of which no more is known: Gaussian noise, in a network of which nothing seems learned, may be a start too
    return facts.normal and not any(other.learned for other in weight_facts(subject).values())


ailment = Ailment(question="Are layers copies of each other?", needs={"weights"}, judge=judge)
