r"""Do identical inputs have different targets?

Exact: rows are compared after rounding to a millionth of their size. Any network gives identical inputs the same output, so
groups of identical inputs with counts $n_{gc}$ of class c leave an error of at least $\sum_g(n_g-\max_cn_{gc})/n$ and a
cross-entropy of at least their mean entropy; for numeric targets the variance within groups stays unexplained. Inputs that
repeat by nature (few distinct rows) have such a floor without a fault: that is a note, and so is a share below one in twenty.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from theodolite.core.ailment import Ailment, Finding, Severity, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.batches import MOST_BYTES, Sample, samples, whole_columns
from theodolite.evidence.kernel_machine import classes_in
from theodolite.evidence.thresholds import CRITICAL, FEWEST, NEARLY_ALL, NOTHING, PARTS, RARELY, STILL


def judge(subject: Subject) -> Iterator[Finding]:
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
        says=f"{share:.1%} of {len(groups)} samples have an input that also occurs with another target, so any network "
        f"{least}.{nature}",
        remedy="_, group = torch.unique(x.flatten(1), dim=0, return_inverse=True) finds the copies: keep one target each (the "
        "most frequent, or the mean), or add an input in which they differ",
        evidence=(
            evidence("share of samples in conflict", share),
            evidence("floor under the error", floor),
            evidence("share of distinct inputs", distinct / len(groups)),
        ),
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
    group: Tensor = torch.unique(torch.round(exact * 1e3), dim=0, return_inverse=True)[1]
    return group


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
