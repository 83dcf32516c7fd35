r"""Are classes so unlike in number that the rare ones are lost?

The counts are exact; an interval (Wilson's, three standard errors) says what they tell of the source. That some classes are
rare is no fault: it is one where the network gives them up. So with at least seven of the commonest class to one of the
rarest, and a network that has learnt its classes' shares (a loss no worse than that of the best constant answer), the share
of samples answered rightly is taken for the commonest class and for those of less than a fifth of its size, on held-out data
where there are any. A warning where the rare ones are behind by 0.15, and by three standard errors (chance
exceeds them once in 700); else a note.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.samples import all_targets, answered_classes, classes_in, is_random_order, sample_of
from theodolite.core.ailment import Ailment, Finding
from theodolite.core.state import untouched
from theodolite.io.batches import Batch

UNBALANCED, RARE = 7.0, 0.2
BEHIND = 0.15
"""How far the rare classes' share of right answers must lie behind that of the commonest."""


def judge(chart: Chart) -> Iterator[Finding]:
    classes = classes_in(all_targets(chart))
    if classes is None or len(classes) < 50:
        return
    counts = torch.bincount(classes.cpu())
    present = counts[counts > 0]
    if len(present) < 2 or not float(present.max()) >= UNBALANCED * float(present.min()):
        return
    read = sample_of(chart.batches)
    whole = read is None or read.target is None or len(classes) > len(read)
    if not whole and not is_random_order(classes):
        return
    common = int(counts.argmax())
    share, error = _wilson(int(counts[common]), len(classes))
    rarest = int(torch.where(counts > 0, counts, counts.max() + 1).argmin())
    said = (
        f"Class {common} has {share:.1%} ± {error:.1%} of {len(classes)} samples, class {rarest} has {int(counts[rarest])} "
        f"({float(counts[common]) / float(counts[rarest]):.0f} to 1)."
    )
    lost = _recalls(chart, counts, common)
    evidence = [
        seen("share of the commonest class", share, stderr=error / 3),
        seen("samples of the rarest class", int(counts[rarest])),
    ]
    if lost is not None:
        commonest, rare, uncertain, balanced, part = lost
        said += f" On {part} data {commonest:.0%} of class {common} are answered rightly and {rare:.0%} of the rare classes."
        evidence += [
            seen("right answers among rare classes", rare, stderr=uncertain),
            seen("balanced accuracy", balanced),
        ]
    harmed = lost is not None and lost[0] - lost[1] >= max(BEHIND, 3 * lost[2])
    yield Finding(
        severity="warning" if harmed else "note",
        where=f"class {rarest}",
        says=said + (" The rare ones are given up." if harmed else ""),
        remedy="loss weights: weight = len(y) / (classes * torch.bincount(y)); or "
        "torch.utils.data.WeightedRandomSampler(weight[y], len(y)); judge by balanced accuracy",
        evidence=tuple(evidence),
    )


def _wilson(count: int, total: int) -> tuple[float, float]:
    """The middle and the half-width of Wilson's interval of three standard errors."""
    z = 3.0
    share, scale = count / total, 1 + z * z / total
    half = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total)) / scale
    return (share + z * z / (2 * total)) / scale, half


def _recalls(chart: Chart, counts: Tensor, common: int) -> tuple[float, float, float, float, str] | None:
    """Right answers of the commonest class and of rare ones, the error of these, their mean over classes, and on which data."""
    if chart.model is None or chart.fit is None or not chart.fit.training.loss <= 1.02 * chart.chance:
        return None
    batches, part = (chart.held_out, "held-out") if chart.held_out else (chart.batches, "training")
    with untouched(chart.model), torch.no_grad():
        right = _right(chart, batches)
    if right is None:
        return None
    classes, hits = right
    rare = [
        c for c in torch.unique(classes).tolist() if c >= len(counts) or float(counts[c]) < RARE * float(counts[common])
    ]
    of_rare, of_common = torch.isin(classes, torch.tensor(rare)), classes == common
    if not bool(of_rare.any()) or not bool(of_common.any()):
        return None
    few = hits[of_rare].double()
    share = float(few.mean())
    error = math.sqrt(max(share * (1 - share), 1 / (4 * len(few))) / len(few))
    balanced = float(torch.stack([hits[classes == c].double().mean() for c in torch.unique(classes)]).mean())
    return float(hits[of_common].double().mean()), share, error, balanced, part


def _right(chart: Chart, batches: Sequence[Batch]) -> tuple[Tensor, Tensor] | None:
    assert chart.model is not None
    answers = [chart.answer(chart.model, batch) for batch in batches]
    sample = sample_of(batches)
    classes = None if sample is None else classes_in(sample.target)
    if classes is None or not all(isinstance(answer, Tensor) and answer.ndim <= 2 for answer in answers):
        return None
    told = answered_classes(torch.cat(answers))
    return (classes.cpu(), (told == classes).cpu()) if told is not None and len(told) == len(classes) else None


def _case(seed: int, rare: float, *, separable: bool, steps: int = 80) -> dict[str, object]:
    torch.manual_seed(seed)

    def draw(n: int) -> tuple[Tensor, Tensor]:
        y = (torch.rand(n) < rare).long()
        x = torch.randn(n, 6)
        x[:, 0] += y * (6.0 if separable else 0.7)
        return x, y

    data, validation = draw(1200), draw(1200)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data[0]), data[1]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return {
        "model": model,
        "data": data,
        "validation": validation,
        "loss": nn.functional.cross_entropy,
        "optimizer": optimizer,
    }


def rare_class_given_up(seed: int) -> dict[str, object]:
    return _case(seed, 0.04, separable=False)


def rare_class_learnt(seed: int) -> dict[str, object]:
    return _case(seed, 0.05, separable=True, steps=200)


def balanced(seed: int) -> dict[str, object]:
    return _case(seed, 0.5, separable=False)


def not_yet_trained(seed: int) -> dict[str, object]:
    return _case(seed, 0.05, separable=False, steps=0)


ailment = Ailment(
    question="Are rare classes lost?",
    needs={"model", "data", "loss"},
    signs=("batches", "held_out", "fit", "chance"),
    judge=judge,
    examples={"sick": (rare_class_given_up,), "healthy": (rare_class_learnt, balanced, not_yet_trained)},
    explains=("loss-stalls", "memorises-noise", "overfits"),
)
