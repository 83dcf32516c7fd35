r"""Has a layer stayed as it was drawn while the others learnt?

Where the weights before training are known it is a fact: a matrix that wants a gradient lies within rounding of its start
while others have left theirs. Where they are not, the start is known by its law: the entries of a layer drawn uniformly from
$\pm1/\sqrt{\text{fan-in}}$ (or He's, Glorot's, LeCun's bound) reach that very bound within $\log(1000)/n$, none exceeds it,
and they are uniform below it (Kolmogorov's distance at a chance of 0.001); with fewer than 1000 entries only the first of
these bounds counts, since one of the others is always near. A step of relative size $\delta$ takes about $n\delta/4$ entries
over the bound, so that a trained layer passes by chance with $e^{-n\delta/4}$: of 300 layers after a few small steps several
do. Where the others have hardly left their bounds, entries that PyTorch's draw cannot give acquit a layer. A model must have
been trained, too: steps were made, a singular value of another matrix stands above the Marchenko-Pastur edge, or its loss is
well below a constant answer's; a checkpoint with two others is taken to be. The last matrix alone, before any step, is a new
head. Where this is not so it is a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.weight_facts import LEAST_ENTRIES, WeightFacts, is_table
from theodolite.core.ailment import Ailment, Finding
from theodolite.core.lazy_torch import torch
from theodolite.io.weights import owners_of

if TYPE_CHECKING:
    from torch import Tensor

LEARNT = 0.8
"""A loss below this share of a constant answer's says that a network was trained."""

TELLING = 1000
"""Entries from which bounds other than PyTorch's own are looked for. The six of them, each with its slack, cover 4 % of a scale
then; with 160 entries they cover a quarter, and so few do not show by their shape that they were trained."""

STILL, WENT = 1e-6, 1e-3
"""Relative distances from the start: within rounding of float32, and clearly gone."""


def judge(chart: Chart) -> Iterator[Finding]:
    own = {} if chart.model is None else dict(chart.model.named_parameters())
    wanted = [
        f for f in chart.weight_facts.values() if len(f.shape) > 1 and (f.name not in own or own[f.name].requires_grad)
    ]
    if chart.model is None:  # formats order their keys each in its own way
        wanted.sort(key=lambda facts: facts.name)
    if any(facts.moved is not None for facts in wanted):
        yield from _beside_the_start(chart, wanted)
    else:
        yield from _beside_the_law(chart, wanted)


def _beside_the_start(chart: Chart, wanted: list[WeightFacts]) -> Iterator[Finding]:
    still = [facts for facts in wanted if facts.moved is not None and facts.moved <= STILL]
    went = [facts for facts in wanted if facts.moved is not None and facts.moved >= WENT]
    if not still or not went:
        return
    held = _held(chart)
    left_out = [facts for facts in still if held is not None and facts.name not in held]
    inside = [facts for facts in still if facts not in left_out]
    names = _names(inside or still)
    typical = sorted(facts.moved or 0.0 for facts in went)[len(went) // 2]
    yield Finding(
        severity="warning" if inside else "note",
        where=(inside or still)[0].name,
        says=f"{names} moved by less than {STILL:g} of its norm in training, while {len(went)} other matrices moved by "
        f"{typical:.2g} (median). "
        + ("It wants a gradient and none arrived." if inside else "No group of the optimizer holds it."),
        remedy="see that its output reaches the loss (no detach, no torch.no_grad) and that its group has lr > 0"
        if inside
        else "optimizer.add_param_group({'params': [...]}) with it, or requires_grad_(False) if it is meant to stay",
        suggested={} if inside else {"add_to_optimizer": [facts.name for facts in left_out]},
        evidence=tuple(
            seen("relative distance from the start", facts.moved or 0.0, where=facts.name) for facts in still[:20]
        ),
    )


def _beside_the_law(chart: Chart, wanted: list[WeightFacts]) -> Iterator[Finding]:
    owners = owners_of(chart.model)
    judged = [
        f for f in wanted if f.entries >= LEAST_ENTRIES and f.values > 2 and not is_table(f.name, owners.get(f.name))
    ]
    others = [facts for facts in judged if not _is_drawn(facts)]
    still = [facts for facts in judged if _is_drawn(facts)]
    if still:  # others are read again only then
        doubtful = _have_hardly_left(chart, others)
        still = [facts for facts in still if not _was_moved(chart, facts.name, doubtful=doubtful)]
    if not still or len(still) > len(others):
        return
    stepped = bool(chart.history) or bool(chart.optimizer is not None and chart.optimizer.state)
    last = still[0] is judged[-1]
    if chart.model is None:  # what is last a file does not tell: a head's outputs are no other matrix's inputs
        last = all(facts.shape[1] != still[0].shape[0] for facts in others)
    head = len(still) == 1 and last  # a new head on a trained body, about to be trained
    trained = stepped or (not head and _have_learnt(chart, others))
    first = still[0]
    yield Finding(
        severity="warning" if trained else "note",
        where=first.name,
        says=f"{_names(still)} still {_have(still)} the entries of the first draw: all {first.entries} of {first.name} lie "
        f"within the bound of {first.start}'s initialization, reach it and are uniform below it, while {len(others)} other "
        "matrices have left every such bound.",
        remedy="see that it is trained (in the optimizer, reached by the loss) and that the checkpoint was loaded whole: "
        "load_state_dict(..., strict=True)",
        evidence=tuple(seen("entries as drawn", facts.entries, where=facts.name) for facts in still[:20]),
    )


def _is_drawn(facts: WeightFacts) -> bool:
    return bool(facts.start) and (facts.start == "PyTorch" or facts.entries >= TELLING)


CLEARLY, SOME = 12, 9
"""Of matrices with so many entries over the bound one in 160,000 that moved as far has none; so many others are looked at."""


def _have_hardly_left(chart: Chart, others: list[WeightFacts]) -> bool:
    """Whether so few entries of the others are over PyTorch's bound that some moved matrix may have none there."""
    from theodolite.ailments._common.past import entries_over

    some = others[:: -(-len(others) // SOME) or 1]
    over = sorted(entries_over(_entries(chart, facts.name)) for facts in some)
    return bool(over) and over[len(over) // 2] < CLEARLY


def _entries(chart: Chart, name: str) -> Tensor:
    return torch.as_tensor(chart.weights[name].values())


def _was_moved(chart: Chart, name: str, *, doubtful: bool) -> bool:
    """Whether the optimizer keeps a gradient of it, or where in doubt its entries were not drawn: then it was trained."""
    from theodolite.ailments._common.past import has_left

    if doubtful and has_left(_entries(chart, name)):
        return True
    own = {} if chart.model is None else dict(chart.model.named_parameters())
    if chart.optimizer is None or name not in own:
        return False
    state = chart.optimizer.state.get(own[name], {})
    return any(isinstance(value, torch.Tensor) and value.ndim > 0 and bool(value.any()) for value in state.values())


def _have_learnt(chart: Chart, others: list[WeightFacts]) -> bool:
    """Whether the others were trained, not drawn by another law: a checkpoint is, a model shows it by its spectra or its loss."""
    if any(facts.learnt for facts in others) or (chart.model is None and len(others) > 1):
        return True
    return chart.has("loss") and chart.fit is not None and chart.fit.training.loss < LEARNT * chart.chance


def _names(found: list[WeightFacts]) -> str:
    return found[0].name + (f" and {len(found) - 1} more" if len(found) > 1 else "")


def _have(found: list[WeightFacts]) -> str:
    return "has" if len(found) == 1 else "have"


def _held(chart: Chart) -> set[str] | None:
    """The names of the parameters that some group of the optimizer holds; None where there is no optimizer."""
    if chart.optimizer is None or chart.model is None:
        return None
    held = {id(p) for group in chart.optimizer.param_groups for p in group["params"]}
    return {name for name, p in chart.model.named_parameters() if id(p) in held}


def _case(seed: int, *, cut: bool, frozen: bool = False, known: bool = True) -> dict[str, object]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(20, 32),
        torch.nn.ReLU(),
        torch.nn.Linear(32, 32),
        torch.nn.ReLU(),
        torch.nn.Linear(32, 32),
        torch.nn.Linear(32, 1),
    )
    origin = {name: value.clone() for name, value in model.state_dict().items()}
    if frozen:
        model[0].requires_grad_(False)
    x = torch.randn(256, 20)
    y = x[:, :1] * x[:, 1:2]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(120):
        optimizer.zero_grad()
        first = model[:2](x)
        answer = model[2:](first.detach() if cut else first)
        (answer - y).square().mean().backward()
        optimizer.step()
    return {"model": model, "optimizer": optimizer, **({"origin": origin} if known else {})}


def cut_by_detach(seed: int) -> dict[str, object]:
    return _case(seed, cut=True)


def loaded_in_part(seed: int) -> dict[str, object]:
    case = _case(seed, cut=False, known=False)
    case["model"][2].reset_parameters()  # type: ignore[index]
    return {"model": case["model"], "optimizer": torch.optim.Adam(case["model"].parameters())}  # type: ignore[attr-defined]


def trained_whole(seed: int) -> dict[str, object]:
    return _case(seed, cut=False)


def trained_whole_start_unknown(seed: int) -> dict[str, object]:
    return _case(seed, cut=False, known=False)


def frozen_on_purpose(seed: int) -> dict[str, object]:
    return _case(seed, cut=False, frozen=True)


def new_head(seed: int) -> dict[str, object]:
    case = _case(seed, cut=False, known=False)
    case["model"][-1] = torch.nn.Linear(32, 4)  # type: ignore[index]
    return {"model": case["model"]}


def few_entries_near_a_bound(seed: int) -> dict[str, object]:
    case = _case(seed, cut=False, known=False)
    few = torch.rand(6, 32, generator=torch.Generator().manual_seed(seed)) * 2 - 1  # as training may leave so few
    case["model"][2] = torch.nn.Linear(32, 6)  # type: ignore[index]
    case["model"][2].weight.data = few / few.abs().max() * 0.99 * (3 / 32) ** 0.5  # type: ignore[index]
    case["model"][4] = torch.nn.Linear(6, 32)  # type: ignore[index]
    case["model"][4].weight.data.mul_(1.2)  # type: ignore[index]
    return {"model": case["model"], "optimizer": case["optimizer"]}


def deep_and_hardly_trained(seed: int) -> dict[str, object]:
    torch.manual_seed(seed)
    first, last = torch.nn.Linear(20, 32), torch.nn.Linear(32, 4)
    blocks = [torch.nn.Linear(32, 32) for _ in range(80)]
    x = torch.randn(128, 20)
    model = torch.nn.ModuleList([first, *blocks, last])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(12):
        z = first(x)
        for block in blocks:
            z = z + 0.1 * torch.relu(block(z))
        loss = torch.nn.functional.cross_entropy(last(z), x[:, :4].argmax(1))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.05), "steps": 12}


def fresh(seed: int) -> dict[str, object]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
    )
    torch.nn.init.orthogonal_(model.get_parameter("2.weight"))
    return {"model": model}


ailment = Ailment(
    question="Has every layer learnt?",
    needs={"weights"},
    signs=("weight_facts",),
    judge=judge,
    examples={
        "sick": (cut_by_detach, loaded_in_part),
        "healthy": (
            trained_whole,
            trained_whole_start_unknown,
            frozen_on_purpose,
            new_head,
            few_entries_near_a_bound,
            fresh,
            deep_and_hardly_trained,
        ),
    },
    laws=("marchenko-pastur",),
)
