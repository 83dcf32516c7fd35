r"""Are inputs so large, so far from zero or so unlike in scale that training suffers?

The first layer's part of the tangent kernel is $x\cdot x'/n_0$: its top eigenvalue, and with it the curvature that bounds
the step by $2/\lambda$, grows with the mean square of the inputs (offset included), and its condition number with the square
of the ratio of column scales. A mean square from 0.05 to 10 and column ranges within a factor of 10 are not looked at
further (pixels in [0, 1] have about 0.1 to 0.3). Beyond, a remedy decides: the same steps with standardized inputs must take
off a fifth of the loss more (of a constant answer's where the training as it is learns nothing), and three standard errors;
where few steps do not show it, as many are tried as the run had. By chance three standard errors are exceeded
once in 20 with three held-out batches, once in 700 with many; the fifth rules out what is small.
A network that scales by itself gains nothing and is left alone; so are integer inputs. What a smaller step would do is
measured too and said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from theodolite.ailments._common.arms import STEPS, Arm, arm, gain
from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.samples import SPREAD, unscaled_inputs
from theodolite.ailments._common.trials import LONG, does_well, has_won, steps_made
from theodolite.core.ailment import Ailment, Finding, Severity
from theodolite.measure.propagation.input_sizes import InputScales

GAIN, LEAST = 0.2, 0.05
"""The share that standardizing must take off what the same steps leave, and of a constant answer's loss at the least."""

LADDER = (0.1, 0.01)


def judge(chart: Chart) -> Iterator[Finding]:
    scales = unscaled_inputs(chart)
    if scales is None:
        return
    made, steps, tried = steps_made(chart), STEPS, _arms(chart, scales, STEPS)
    if tried is None:
        return
    clear, learns = _is_clear(chart, *tried), tried[0].after < 0.98 * chart.chance
    # a slow optimizer shows it later; and what is soon made up for is none, where the run is still to be made
    if (not made and clear == learns) or (made > STEPS and not clear and not has_won(chart)):
        steps = min(made or LONG, LONG)
        tried = _arms(chart, scales, steps)
        clear = tried is not None and _is_clear(chart, *tried) and not _has_done_better(chart, tried[1])
    if tried is None or not clear:
        return
    plain, changed = tried
    ladder = LADDER if chart.left > 0.5 * chart.budget else ()
    rungs = [rung for factor in ladder if (rung := arm(chart, factor=factor, steps=steps)) is not None]
    yield _finding(chart, scales, plain, changed, min([plain, *rungs], key=lambda run: run.after))


def _arms(chart: Chart, scales: InputScales, steps: int) -> tuple[Arm, Arm] | None:
    """So many steps as it is and with standardized inputs; None where they cannot be made."""
    plain, changed = arm(chart, steps=steps), arm(chart, inputs=scales.standardized, steps=steps)
    return (plain, changed) if plain is not None and changed is not None and chart.chance > 0 else None


def _is_clear(chart: Chart, plain: Arm, changed: Arm) -> bool:
    """Whether standardized inputs leave clearly less of the loss."""
    left = plain.left(chart.chance)
    better, error = gain(changed.left(chart.chance), left)
    return better >= max(LEAST, GAIN * sum(left) / len(left)) and better > 3 * error


def _has_done_better(chart: Chart, changed: Arm) -> bool:
    """Whether the run did well, and as well as so many steps with standardized inputs would."""
    return does_well(chart) and chart.fit is not None and chart.fit.training.loss * (1 - GAIN) < changed.after


def _finding(chart: Chart, scales: InputScales, plain: Arm, changed: Arm, best: Arm) -> Finding:
    fails = not plain.after < 0.98 * chart.chance
    severity: Severity = "critical" if fails else "warning"
    size = (
        f"Inputs have mean {scales.offset:.3g} and deviation {scales.scale:.3g} (mean square {scales.mean_square:.3g})"
    )
    if scales.spread > SPREAD:
        size += f", and ranges of columns that differ {scales.spread:.3g} times"
    told = "not a number" if math.isinf(plain.after) else f"{plain.after:.3g}"
    smaller = "" if best is plain else f" ({best.after:.3g} with a smaller step)"
    scalar = scales.center.numel() == 1
    how = (
        f"x = (x - {float(scales.center):.4g}) / {float(scales.width):.4g}"
        if scalar
        else "x = (x - x_train.mean(0)) / x_train.std(0), by column or channel"
    )
    return Finding(
        severity=severity,
        where="inputs",
        says=f"{size}: {changed.steps} steps on a copy end at a loss of {told}{smaller}, and at {changed.after:.3g} when inputs "
        f"are standardized; an answer that ignores its input has {chart.chance:.3g}.",
        remedy=how + ", with statistics of the training data, in training and in use",
        suggested={"standardize": "inputs"},
        evidence=(
            seen("mean square of inputs", scales.mean_square),
            seen("ratio of column ranges", scales.spread),
            seen("loss after trial steps, as it is", plain.after),
            seen("loss after trial steps, best smaller step", best.after),
            seen("loss after trial steps, inputs standardized", changed.after),
        ),
    )


def _digits(scale: float, offset: float) -> tuple[Tensor, Tensor]:
    """Ten noisy patterns of 64 pixels in [0, 1], in other units."""
    generator = torch.Generator().manual_seed(5)
    patterns = (torch.rand(10, 64, generator=generator) > 0.6).float()
    y = torch.randint(0, 10, (768,), generator=generator)
    x = (patterns[y] + 0.35 * torch.randn(768, 64, generator=generator)).clamp(0, 1)
    return x * scale + offset, y


def _case(seed: int, x: Tensor, y: Tensor, *, norm: bool = False) -> dict[str, object]:
    torch.manual_seed(seed)
    first = [nn.BatchNorm1d(x.shape[1])] if norm else []
    model = nn.Sequential(*first, nn.Linear(x.shape[1], 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    return {"model": model, "data": (x, y), "loss": nn.functional.cross_entropy, "optimizer": optimizer}


def raw_pixels(seed: int) -> dict[str, object]:
    return _case(seed, *_digits(255.0, 0.0))


def columns_in_units(seed: int) -> dict[str, object]:
    x, y = _digits(1.0, 0.0)
    return _case(seed, x * torch.logspace(0, 4, 64), y)


def pixels_in_the_unit_interval(seed: int) -> dict[str, object]:
    return _case(seed, *_digits(1.0, 0.0))


def normalized_first(seed: int) -> dict[str, object]:
    return _case(seed, *_digits(255.0, 0.0), norm=True)


ailment = Ailment(
    question="Are inputs scaled?",
    needs={"model", "data", "loss", "optimizer"},
    signs=("batches", "chance"),
    judge=judge,
    examples={"sick": (raw_pixels, columns_in_units), "healthy": (pixels_in_the_unit_interval, normalized_first)},
    explains=(
        "step-too-large",
        "step-too-small",
        "signal-explodes",
        "signal-vanishes",
        "gradient-explodes",
        "gradient-vanishes",
        "units-dead",
        "units-saturated",
        "inputs-merge",
        "loss-stalls",
        "trained-too-short",
        "weights-not-finite",
        "rank-lost",
        "batch-noise",
        "outputs-squashed",
        "targets-not-scaled",
        "overfits",
    ),
    laws=("edge-of-stability",),
)
