r"""Are regression targets so large or so far from zero that the outputs cannot reach them in the steps there are?

A network starts with outputs of about unit size. Targets of mean m and standard deviation s leave a loss of $m^2+s^2$, of
which only $s^2$ is to be learnt: a bounded step (Adam's) needs about $m/\mathrm{lr}$ steps to arrive, and a plain one sees
gradients that are s times as large. Targets with mean and standard deviation within a factor of 5 of unit size are not looked
at further. Beyond, a remedy decides, compared by the share of the loss of a constant answer that is left, which has no units:
the same steps on standardized targets must explain a fifth more of it, and three standard errors. What other step sizes would
do is measured and said. A network that has come to explain 70 % of its targets is left alone. Three standard errors are
exceeded by chance once in 20 with three held-out batches, once in 700 with many; the share rules out what is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from theodolite.ailments._common.arms import STEPS, arm, gain
from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.fit import constant_loss
from theodolite.ailments._common.samples import classes_in, sample_of, unscaled_inputs
from theodolite.ailments._common.trials import LONG, steps_made
from theodolite.core.ailment import Ailment, Finding, Severity

LARGE, SMALL = 5.0, 0.02
GAIN = 0.2
"""The share of what is to be explained that standardizing must add."""

LEARNT = 0.3
"""A network that leaves less than this share unexplained has reached its targets."""

LADDER = (10.0, 100.0, 0.1, 0.01)


def judge(chart: Chart) -> Iterator[Finding]:
    sample = sample_of(chart.batches)
    y = None if sample is None else sample.target
    if y is None or not y.is_floating_point() or classes_in(y) is not None or not bool(torch.isfinite(y).all()):
        return
    y = y.double()
    mean, std = y.mean(0), y.std(0, correction=0)
    size, offset = float(std.mean()), float(mean.abs().max())
    if SMALL <= size <= LARGE and offset <= LARGE * max(1.0, size):
        return
    if size == 0 or not chart.chance > 0 or (chart.fit is not None and chart.fit.training.loss < LEARNT * chart.chance):
        return
    width = torch.where(std > 0, std, torch.ones_like(std))

    def standardized(target: Tensor) -> Tensor:
        return ((target.double() - mean) / width).to(target.dtype)

    yield from _compared(chart, standardized, (float(mean.mean()), size))


def _inputs(chart: Chart) -> tuple[Callable[[Tensor], Tensor] | None, ...]:
    """Inputs as they are and, where those are not scaled, standardized ones."""
    scales = unscaled_inputs(chart)
    return (None,) if scales is None else (None, scales.standardized)


def _compared(chart: Chart, standardized: Callable[[Tensor], Tensor], scale: tuple[float, float]) -> Iterator[Finding]:
    assert chart.model is not None
    steps = max(STEPS, min(steps_made(chart), LONG))
    scaled = [replace(batch, target=standardized(batch.target)) for batch in chart.batches]
    constant = constant_loss(chart.model, chart.answer, chart.loss, scaled)
    if not constant > 0:
        return
    for inputs in _inputs(chart):  # where inputs are not scaled either, neither remedy helps without the other
        plain = arm(chart, inputs=inputs, steps=steps)
        changed = arm(chart, inputs=inputs, targets=standardized, steps=steps)
        if plain is None or changed is None:
            return
        better, error = gain(changed.left(constant), plain.left(chart.chance))
        if better >= GAIN and better > 3 * error:
            break
    else:
        return
    diverged = not plain.after <= plain.before
    ladder = [factor for factor in LADDER if (factor < 1) == diverged]
    rungs = [plain, *(rung for factor in ladder if (rung := arm(chart, factor=factor)) is not None)]
    shares = [run.left(chart.chance) for run in (plain, min(rungs, key=lambda run: run.after))]
    explained = [1 - sum(share) / len(share) for share in (*shares, changed.left(constant))]
    found = _finding(scale, explained, changed.steps)
    yield (
        found
        if inputs is None
        else replace(
            found,
            says=found.says.replace("when targets", "when inputs and targets"),
            remedy=found.remedy + "; x = (x - x_train.mean(0)) / x_train.std(0) too",
        )
    )


def _finding(scale: tuple[float, float], explained: list[float], steps: int) -> Finding:
    mean, std = scale
    plain, best, new = explained
    severity: Severity = "critical" if plain <= 0.02 else "warning"
    other = f" ({best:.0%} at the best of other step sizes)" if best > plain + 0.01 else ""
    return Finding(
        severity=severity,
        where="targets",
        says=f"Targets have mean {mean:.3g} and standard deviation {std:.3g}: {steps} steps on a copy explain "
        f"{plain:.0%} of them{other}, and {new:.0%} when targets are standardized.",
        remedy=f"y = (y - {mean:.4g}) / {std:.4g} for training, and answer * {std:.4g} + {mean:.4g} in use",
        suggested={"standardize": "targets"},
        evidence=(
            seen("mean of targets", mean),
            seen("standard deviation of targets", std),
            seen("share explained, as it is", plain),
            seen("share explained, best other step", best),
            seen("share explained, targets standardized", new),
        ),
    )


def _case(seed: int, scale: float, offset: float, *, adam: bool) -> dict[str, object]:
    generator = torch.Generator().manual_seed(11)
    x = torch.randn(768, 10, generator=generator)
    y = x[:, :1] + torch.sin(x[:, 1:2]) + 0.1 * torch.randn(768, 1, generator=generator)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 1))
    kind = torch.optim.Adam(model.parameters(), lr=5e-3) if adam else torch.optim.SGD(model.parameters(), lr=0.05)
    return {"model": model, "data": (x, y * scale + offset), "loss": nn.functional.mse_loss, "optimizer": kind}


def house_prices(seed: int) -> dict[str, object]:
    return _case(seed, 8e4, 2e5, adam=True)


def gradients_too_large(seed: int) -> dict[str, object]:
    return _case(seed, 300.0, 1000.0, adam=False)


def unit_size(seed: int) -> dict[str, object]:
    return _case(seed, 1.0, 0.0, adam=True)


def degrees(seed: int) -> dict[str, object]:
    """Targets of standard deviation 3 about 2: reached without help."""
    return _case(seed, 3.0, 2.0, adam=True)


ailment = Ailment(
    question="Are targets scaled?",
    needs={"model", "data", "loss", "optimizer"},
    signs=("batches", "chance", "fit"),
    judge=judge,
    examples={"sick": (house_prices, gradients_too_large), "healthy": (unit_size, degrees)},
    explains=(
        "step-too-small",
        "step-too-large",
        "gradient-explodes",
        "trained-too-short",
        "loss-stalls",
        "units-dead",
        "signal-explodes",
        "weights-not-finite",
        "units-saturated",
        "inputs-merge",
        "rank-lost",
        "batch-noise",
    ),
    laws=("edge-of-stability",),
)
