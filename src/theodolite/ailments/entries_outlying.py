r"""Do single entries stand apart from all others of their layer, so that they alone speak?

Trained weights may have heavy tails, and then a large maximum is nothing strange. What no tail gives is a gap: if
$P(|w|>t)\propto t^{-\alpha}$, the k largest lie a factor r above the next with probability $r^{-\alpha k}$ (Renyi), with
$\alpha$ by Hill's estimate on the ranks below the gap, two of its errors towards the heavy side. The chance is taken for
the eight gaps tried in each of the layers; below 1e-4 for all together the entries are detached. They must also lie three
times above the Gaussian maximum $\sqrt{2\log n}$. With a model and data the harm is measured: the entries are cut back to
the next largest and the loss is taken again; entries that the network uses are a note. Else it is a warning where one entry
makes up most of its row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from theodolite.ailments._common.chart import Chart, at_weights, seen
from theodolite.ailments._common.weight_facts import WeightFacts, is_table
from theodolite.core.ailment import Ailment, Finding, Severity
from theodolite.core.lazy_torch import torch
from theodolite.core.state import untouched
from theodolite.io.weights import owners_of
from theodolite.measure.spectra.entry_tails import BODY, MOST_DETACHED, EntryTail
from theodolite.theory.spectra.entry_nulls import gap_probability, gaussian_maximum

if TYPE_CHECKING:
    from torch import Tensor, nn

    from theodolite.ailments._common.fit import Scores

CHANCE, HIGH, MOST_OF_A_ROW = 1e-4, 3.0, 0.5
HARM, USED = 0.05, 0.01
"""Shares of the loss: taken off by cutting the entries back, they do harm; added by it, the network uses them."""


def judge(chart: Chart) -> Iterator[Finding]:
    owners = owners_of(chart.model)
    facts_of = chart.weight_facts.values()
    judged = [
        facts for facts in facts_of if facts.tail is not None and not is_table(facts.name, owners.get(facts.name))
    ]
    tests = MOST_DETACHED * max(1, len(judged))
    found = [facts for facts in judged if _chance(facts) * tests < CHANCE and _is_high(facts)]
    if not found:
        return
    found.sort(key=lambda facts: -_tail(facts).row_share)
    worst = found[0]
    tail = _tail(worst)
    dominates = tail.row_share >= MOST_OF_A_ROW
    before, after = _cut_back(chart, found)
    least = "it lies" if tail.count == 1 else "the least of them lies"
    says = (
        f"{tail.count} of {tail.entries} entries of {worst.name} stand apart: the largest is {tail.height:.3g} times its layer's "
        f"standard deviation (Gaussian maximum: {gaussian_maximum(tail.entries):.2g}), {least} {tail.ratio:.3g} times above the "
        f"next entry, and one makes up {tail.row_share:.0%} of its row."
    )
    severity: Severity = "warning" if dominates else "note"
    evidence = [seen("largest entry in standard deviations", _tail(f).height, where=f.name) for f in found[:20]]
    if before is not None and after is not None:
        severity = _severity(before.loss, after.loss, dominates=dominates)
        says += f" Cut back to the next largest, the loss goes from {before.loss:.3g} to {after.loss:.3g}."
        evidence.append(seen("loss with the entries cut back", after.loss, stderr=after.stderr, where=worst.name))
    yield Finding(
        severity=severity,
        where=worst.name,
        says=says,
        remedy="compare with an earlier checkpoint"
        + (
            f"; model.get_parameter({worst.name!r}).data.clamp_(-{tail.body:.3g}, {tail.body:.3g})"
            if chart.model
            else ""
        ),
        evidence=tuple(evidence),
    )


def _severity(before: float, after: float, *, dominates: bool) -> Severity:
    """By what cutting the entries back does to the loss: a network that uses them is left alone."""
    if not before - after <= HARM * abs(before):
        return "critical" if dominates else "warning"
    return "warning" if dominates and after <= before * (1 + USED) else "note"


def _tail(facts: WeightFacts) -> EntryTail:
    assert facts.tail is not None
    return facts.tail


def _chance(facts: WeightFacts) -> float:
    tail = _tail(facts)
    heavy = tail.exponent * max(0.3, 1 - 2 / min(BODY, tail.entries // 10) ** 0.5)
    return gap_probability(max(1.0, tail.ratio), rank=tail.count, exponent=heavy)


def _is_high(facts: WeightFacts) -> bool:
    return bool(_tail(facts).height >= HIGH * gaussian_maximum(_tail(facts).entries))


def _cut_back(chart: Chart, found: list[WeightFacts]) -> tuple[Scores | None, Scores | None]:
    """Scores as it is and with the entries cut back to the next largest; nothing where there is no loss."""
    if chart.model is None or chart.fit is None:
        return None, None
    from theodolite.ailments._common.fit import fit_of

    changed: dict[str, Tensor] = {}
    for facts in found:
        tail = _tail(facts)
        flat = chart.weights[facts.name].read().detach().clone()
        flat.view(-1)[list(tail.places)] = flat.view(-1)[list(tail.places)].clamp(-tail.body, tail.body)
        changed[facts.name] = flat
    with at_weights(chart.model, changed), untouched(chart.model), torch.no_grad():
        after = fit_of(chart.model, chart.answer, chart.loss, chart.batches, ()).training
    return chart.fit.training, after


def _data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(256, 20, generator=generator)
    return x, x[:, :1] + x[:, 1:2] * x[:, 2:3]


def _trained(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
    )
    x, y = _data()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(120):
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
    return model


def one_bit_turned(seed: int) -> dict[str, object]:
    model = _trained(seed)
    with torch.no_grad():
        model.get_parameter("2.weight")[seed % 32, 5] = 400.0
    return {"model": model, "data": _data(), "loss": torch.nn.functional.mse_loss}


def one_bit_turned_no_data(seed: int) -> dict[str, object]:
    model = _trained(seed)
    with torch.no_grad():
        model.get_parameter("2.weight")[seed % 32, 5] = -90.0
    return {"model": model}


def as_trained(seed: int) -> dict[str, object]:
    return {"model": _trained(seed), "data": _data(), "loss": torch.nn.functional.mse_loss}


def heavy_tailed(seed: int) -> dict[str, object]:
    """Student's t with three degrees of freedom, as some trained layers have."""
    generator = torch.Generator().manual_seed(seed)
    model = torch.nn.Sequential(*(torch.nn.Linear(128, 128) for _ in range(4)))
    with torch.no_grad():
        for layer in model:
            normal, other = torch.randn(128, 128, generator=generator), torch.randn(3, 128, 128, generator=generator)
            layer.get_parameter("weight").copy_(normal / other.square().mean(0).sqrt() / 20)
    return {"model": model}


ailment = Ailment(
    question="Do single weights stand apart?",
    needs={"weights"},
    signs=("weight_facts", "fit"),
    judge=judge,
    examples={"sick": (one_bit_turned, one_bit_turned_no_data), "healthy": (as_trained, heavy_tailed)},
    explains=("signal-explodes", "gradient-explodes"),
)
