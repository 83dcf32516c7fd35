"""Ailments of the data and of weights alone: the sick are named, those that look alike are left alone, nothing is touched."""

import copy
import importlib
import math
import random

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.ailments._common.chart import Chart
from theodolite.ailments._common.relation import relation_of
from theodolite.ailments._common.samples import Sample, classes_in, is_random_order
from theodolite.io.weights import weights_of
from theodolite.measure.propagation.input_sizes import input_scales
from theodolite.measure.spectra.entry_tails import entry_tail
from theodolite.theory.spectra.entry_nulls import gap_probability

NAMES = (
    "inputs_not_scaled",
    "inputs_not_finite",
    "labels_unrelated",
    "labels_conflict",
    "classes_unbalanced",
    "targets_not_scaled",
    "weights_not_finite",
    "layer_untrained",
    "entries_outlying",
    "layers_identical",
)
ALL = {name: importlib.import_module(f"theodolite.ailments.{name}").ailment for name in NAMES}
CASES = [
    pytest.param(name, kind, example, id=f"{name}-{kind}-{example.__name__}")
    for name, ailment in ALL.items()
    for kind, examples in ailment.examples.items()
    for example in examples
]


def findings(name, chart):
    ailment = ALL[name]
    assert all(chart.has(need) for need in ailment.needs)
    return list(ailment.judge(chart))


def alarms(found):
    return [finding for finding in found if finding.severity != "note"]


def state(case):
    model, optimizer = case["model"], case.get("optimizer")
    return copy.deepcopy(
        (
            model.state_dict(),
            [p.requires_grad for p in model.parameters()],
            [m.training for m in model.modules()],
            None if optimizer is None else optimizer.state_dict(),
            (torch.get_rng_state(), random.getstate(), np.random.get_state()),
        )
    )


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a.nan_to_num(), b.nan_to_num()) and torch.equal(a.isnan(), b.isnan())
    if isinstance(a, np.ndarray):
        return bool((a == b).all())
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


@pytest.mark.parametrize(("name", "kind", "example"), CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_sick_are_found_and_look_alikes_left_alone(name, kind, example, seed):
    case = example(seed)
    before = state(case)
    found = findings(name, Chart(**case))
    assert same(before, state(case))
    assert bool(alarms(found)) == (kind == "sick")
    assert all(finding.says and finding.remedy and finding.evidence for finding in found)


@pytest.mark.parametrize("name", [name for name, ailment in ALL.items() if ailment.needs == {"weights"}])
def test_checkpoints_without_a_model_are_judged_too(name):
    ailment = ALL[name]
    for kind, examples in ailment.examples.items():
        for example in examples:
            case = example(0)
            if "origin" in case or example.__name__ == "after_a_blow_up":  # not to be seen in the parameters alone
                continue
            weights = weights_of(dict(case["model"].state_dict()))
            found = alarms(findings(name, Chart(weights=weights)))
            if name != "entries_outlying" or "data" not in case:
                assert bool(found) == (kind == "sick"), example.__name__


def test_tied_weights_and_integers_are_no_copies():
    embed, head = nn.Embedding(40, 8), nn.Linear(8, 40, bias=False)
    head.weight = embed.weight
    model = nn.Sequential(embed, head)
    assert not findings("layers_identical", Chart(weights=weights_of(model.state_dict())))


def test_integer_inputs_are_not_called_unscaled():
    torch.manual_seed(0)
    x, y = torch.randint(0, 5000, (256, 6)), torch.randint(0, 3, (256,))
    model = nn.Sequential(nn.Embedding(5000, 8), nn.Flatten(), nn.Linear(48, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    chart = Chart(model=model, data=(x, y), loss=nn.functional.cross_entropy, optimizer=optimizer)
    assert not findings("inputs_not_scaled", chart)


def test_a_network_drawn_anew_when_its_start_is_not_known():
    """Weights that have blown up say nothing of the start; the arms draw their own."""
    case = ALL["inputs_not_scaled"].examples["sick"][0](0)
    with torch.no_grad():
        for parameter in case["model"].parameters():
            parameter.fill_(math.nan)
    assert [finding.suggested for finding in findings("inputs_not_scaled", Chart(**case))] == [
        {"standardize": "inputs"}
    ]


def test_a_relation_is_seen_in_order_and_not_when_permuted():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(400, 6, generator=generator)
    y = (x[:, 0] * x[:, 1] > 0).long()
    right = relation_of(Sample((x,), y))
    wrong = relation_of(Sample((x,), y[torch.randperm(400, generator=generator)]))
    assert right.correlation > 0.4 and right.p_value == 0.01
    assert wrong.correlation < wrong.visible and wrong.p_value > 0.01


def test_permuted_targets_give_uniform_p_values():
    """Of 60 draws without a relation, about one in twenty has a p-value of at most 0.05."""
    low = 0
    for seed in range(60):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(120, 4, generator=generator)
        low += relation_of(Sample((x,), torch.randn(120, 1, generator=generator))).p_value <= 0.05
    assert low <= 10  # the chance of more is 4e-4


def test_heavy_tails_are_no_outliers_and_a_turned_bit_is():
    generator = torch.Generator().manual_seed(0)
    normal = torch.randn(4, 96, 96, generator=generator)
    heavy = normal[0] / normal[1:].square().mean(0).sqrt()
    tail = entry_tail(heavy)
    assert gap_probability(tail.ratio, rank=tail.count, exponent=tail.exponent) > 1e-4
    heavy[5, 7] *= 1e5
    tail = entry_tail(heavy)
    assert tail.places == (5 * 96 + 7,) or tail.count > 1
    assert tail.row_share > 0.5


def test_half_precision_weights_are_read():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 32), nn.Linear(32, 32)).to(torch.bfloat16)
    facts = Chart(model=model).weight_facts
    assert [fact.start for fact in facts.values() if len(fact.shape) == 2] == ["PyTorch", "PyTorch"]


def test_scales_by_column_only_where_columns_differ():
    generator = torch.Generator().manual_seed(0)
    pixels = torch.rand(50, 3, 8, 8, generator=generator) * 255
    assert input_scales(pixels).center.shape == (3, 1, 1)
    assert input_scales(torch.rand(50, 20, generator=generator) * 255).center.ndim == 0
    table = torch.rand(50, 4, generator=generator) * torch.tensor([1.0, 10.0, 1e3, 1e5])
    scaled = input_scales(table).standardized(table)
    assert torch.allclose(scaled.mean(0), torch.zeros(4), atol=1e-4) and float(scaled.std()) == pytest.approx(
        1, rel=0.05
    )


def test_classes_are_told_from_numbers():
    assert classes_in(torch.tensor([[0.0, 1.0], [1.0, 0.0]])).tolist() == [1, 0]
    assert classes_in(torch.tensor([0.0, 1.0, 1.0])).tolist() == [0, 1, 1]
    assert classes_in(torch.tensor([0.5, 1.0])) is None
    assert classes_in(torch.tensor([[1, 2], [3, 4]])) is None


def test_sorted_labels_are_no_fair_sample():
    classes = torch.arange(4).repeat_interleave(100)
    assert not is_random_order(classes)
    assert is_random_order(classes[torch.randperm(400, generator=torch.Generator().manual_seed(0))])
