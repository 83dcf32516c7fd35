r"""Do identical inputs have different targets?

Exact: rows are compared after rounding to a millionth of their size. Any network gives identical inputs the same output, so
groups of identical inputs with counts $n_{gc}$ of class c leave an error of at least $\sum_g(n_g-\max_cn_{gc})/n$ and a
cross-entropy of at least their mean entropy; for numeric targets the variance within groups stays unexplained. Inputs that
repeat by nature (few distinct rows) have such a floor without a fault: that is a note, and so is a share below one in twenty.
If one and the same input makes up more than half of what training draws and nothing was learned, that is why.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from theodolite.core.ailment import Ailment, Finding, Severity, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.batches import MOST_BYTES, Sample, batches, sample_of, samples, whole_columns
from theodolite.evidence.kernel_machine import classes_in
from theodolite.evidence.start import was_trained
from theodolite.evidence.thresholds import A_FEW, CRITICAL, FEWEST, NEARLY_ALL, NOTHING, PARTS, RARELY, STILL, SURE
from theodolite.evidence.trial import present_score, present_skill


def judge(subject: Subject) -> Iterator[Finding]:
    alone = _one_input(subject)
    if alone is not None:
        yield alone
        return
    sample = _sample(subject)
    if sample is None or sample.target is None or len(sample) < FEWEST:
        return
    if not all(bool(torch.isfinite(x).all()) for x in sample.inputs):
        return
    groups = _groups(sample.inputs)
    distinct = int(groups.max()) + 1
    if distinct == len(groups) or distinct == 1:
        return
    classes = classes_in(sample.target)
    if classes is None and (not sample.target.is_floating_point() or not bool(torch.isfinite(sample.target).all())):
        return
    rows = sample.target.reshape(len(groups), -1).double()
    inside, floor = _numbers(groups, distinct, rows) if classes is None else _classes(groups, distinct, classes)
    share = float(inside.double().mean())
    if share == 0.0:
        return
    usual = distinct < CRITICAL * len(groups) or _come_up_again(sample.inputs)
    found = share >= RARELY and floor >= NOTHING and not usual
    severity: Severity = "warning" if found else "note"
    least = (
        f"gets at least {floor:.1%} of the samples wrong"
        if classes is not None
        else f"leaves at least {floor:.1%} of the variance unexplained"
    )
    nature = "" if not usual else f" Only {distinct} of the inputs are distinct, which may be normal for your data."
    where = int(inside.nonzero()[0])
    yield Finding(
        severity=severity,
        where=f"sample {where}",
        says=f"{share:.1%} of {len(groups)} samples have an input that also occurs with another target: any network "
        f"{least}.{nature}",
        remedy="_, group = torch.unique(x.flatten(1), dim=0, return_inverse=True) finds the copies: keep one target each (the "
        "most frequent, or the mean), or add an input in which they differ",
        evidence=(
            evidence("share of samples in conflict", share),
            evidence("floor under the error", floor),
            evidence("share of distinct inputs", distinct / len(groups)),
        ),
    )


def _one_input(subject: Subject) -> Finding | None:
    """One input makes up most samples as training draws them, with several targets, and nothing was learned."""
    score = present_score(subject) if was_trained(subject) and subject.has("loss") else None
    unsure = 0.0 if score is None or score.accuracy != score.accuracy else SURE * score.accuracy_error
    if score is None or present_skill(subject) > NOTHING + unsure:
        return None
    drawn = sample_of(batches(subject))
    if drawn is None or drawn.target is None or not all(bool(torch.isfinite(x).all()) for x in drawn.inputs):
        return None
    sizes = (groups := _groups(drawn.inputs)).bincount()
    alike = groups == sizes.argmax()
    share, targets = float(alike.double().mean()), drawn.target[alike.to(drawn.target.device)]
    if share <= CRITICAL or len(sizes) < FEWEST or bool((targets == targets[:1]).all()):
        return None
    where = int(alike.nonzero()[0])
    shown = ", ".join(f"{float(v):.3g}" for v in drawn.inputs[0][where].flatten()[:A_FEW])
    return Finding(
        severity="critical",
        where=f"sample {where}",
        says=f"{share:.0%} of the samples in training have the same input ({shown}, ...) but different targets: no network can "
        "tell them apart, and nothing was learned.",
        remedy="look at how inputs are read: files that are missing, words that the vocabulary does not have, or a column "
        "that was overwritten all become one value",
        evidence=(evidence("share of samples with the most frequent input", share),),
    )


def _sample(subject: Subject) -> Sample | None:
    """All data where it lies in memory and is not too large, else what was read."""
    whole = whole_columns(subject.data)
    if whole is not None and len(whole) > 1 and sum(column.numel() for column in whole) <= MOST_BYTES:
        return Sample(whole[:-1], whole[-1])
    return samples(subject)


def _come_up_again(inputs: tuple[Tensor, ...]) -> bool:
    """Whether inputs of a few columns come up again by chance: of users and items, say, with each column dealt out anew."""
    columns = [column for x in inputs for column in x.detach().reshape(len(x), -1).unbind(1)]
    if len(columns) > PARTS:
        return False
    generator = torch.Generator().manual_seed(0)
    dealt = [column[torch.randperm(len(column), generator=generator).to(column.device)] for column in columns]
    groups = _groups(tuple(dealt))
    return int(groups.max()) + 1 < NEARLY_ALL * len(groups)


def _groups(inputs: tuple[Tensor, ...]) -> Tensor:
    """The number of the group of equal rows that each row belongs to, told by two random projections."""
    generator = torch.Generator().manual_seed(0)
    marks = []
    for x in inputs:
        rows = x.detach().reshape(len(x), -1)
        scale = (
            rows.abs().amax().double().clamp(min=1e-300)
            if rows.is_floating_point()
            else torch.ones((), dtype=torch.float64)
        )
        draw = torch.randn(rows.shape[1], 2, generator=generator, dtype=torch.float64).to(rows.device)
        # in pieces, so that no copy in double precision of all the data is made
        marks.append(
            torch.cat(
                [torch.round(part.double() / scale.to(rows.device) * 1e6) @ draw for part in torch.split(rows, 4096)]
            )
        )
    exact = torch.cat(marks, 1)
    return torch.unique(torch.round(exact * 1e3), dim=0, return_inverse=True)[1]


def _classes(groups: Tensor, distinct: int, classes: Tensor) -> tuple[Tensor, float]:
    """Which samples are in a group of several classes, and the least share of wrong answers."""
    classes = classes.to(groups.device)
    counts = torch.zeros(distinct, int(classes.max()) + 1, dtype=torch.float32, device=groups.device)
    counts.index_put_((groups, classes), torch.ones(len(groups), device=groups.device), accumulate=True)
    mixed = (counts > 0).sum(1) > 1
    return mixed[groups], 1.0 - float(counts.amax(1).sum()) / len(groups)


def _numbers(groups: Tensor, distinct: int, rows: Tensor) -> tuple[Tensor, float]:
    """Which samples are in a group whose targets differ, and the share of the variance that lies within groups."""
    sizes = torch.bincount(groups, minlength=distinct).double()
    means = torch.zeros(distinct, rows.shape[1], dtype=torch.float64, device=rows.device).index_add_(0, groups, rows)
    rest = rows - (means / sizes[:, None])[groups]
    total = float((rows - rows.mean(0)).square().sum())
    apart = rest.abs().amax(1) > STILL * float(rows.abs().max())
    mixed = torch.zeros(distinct, dtype=torch.bool, device=rows.device).index_fill_(0, groups[apart], value=True)
    return mixed[groups], float(rest.square().sum()) / total if total > 0 else 0.0


ailment = Ailment(question="Do identical inputs have different targets?", needs={"data"}, judge=judge)
