"""What one case of the field is: a run as somebody had it, and the same run with the accepted answer applied."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Pair = tuple[Tensor, Tensor]


@dataclass
class Run:
    """Everything a training script holds just before its first step."""

    model: nn.Module
    train: Pair
    validation: Pair
    loss: Callable[..., Tensor]
    optimizer: torch.optim.Optimizer
    batch: int = 32
    steps: int = 300
    step: Callable[["Run", Tensor, Tensor], None] | None = None  # where the loop itself is what was asked about
    schedule: Callable[[int], float] | None = None  # the factor on the step size, by step
    shuffle: bool = True
    score: Callable[["Run"], float] | None = None  # as its owner uses it; None: by the kind of the targets
    chance: float | None = None  # that score of the best constant answer; None: by the kind of the targets
    seed: int = 0
    notes: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A question that was asked, and its answer. Without `accept` the answer was that nothing is wrong."""

    name: str
    kind: str
    accept: tuple[str, ...]
    source: str
    build_both: Callable[[bool], Run]
    costs_nothing: str = ""  # why the fault has no price yet, where that is so
    asked: str = ""

    def build(self, seed: int = 0, *, fixed: bool = False) -> Run:
        """The run as it was asked about, or with the accepted answer applied."""
        torch.manual_seed(seed)
        run = self.build_both(fixed)
        run.seed = seed
        return run


CASES: dict[str, Case] = {}


def case(*accept: str, source: str, costs_nothing: str = "") -> Callable:
    """Put a function of `fixed` among the cases; its name is the case's, its file the kind, its docstring the question."""

    def put(build: Callable[[bool], Run]) -> Callable[[bool], Run]:
        name = build.__name__.replace("_", "-")
        if name in CASES:
            raise ValueError(f"expected a new name, got {name!r} twice: rename one of them")
        kind = build.__module__.rpartition(".")[2]
        CASES[name] = Case(name, kind, accept, source, build, costs_nothing, (build.__doc__ or "").strip())
        return build

    return put


def plain_step(run: Run, x: Tensor, y: Tensor) -> None:
    """One step as it should be."""
    run.model.train()
    run.optimizer.zero_grad()
    run.loss(run.model(x), y).backward()
    run.optimizer.step()


def batches(run: Run) -> Iterator[Pair]:
    """The training set in batches, for ever; the last, smaller batch of a pass is left out."""
    generator = torch.Generator().manual_seed(run.seed)
    x, y = run.train
    size = min(run.batch, len(x))
    while True:
        order = torch.randperm(len(x), generator=generator) if run.shuffle else torch.arange(len(x))
        for start in range(0, len(x) - size + 1, size):
            rows = order[start : start + size]
            yield x[rows], y[rows]


def train(run: Run, *, watch: Callable[[int], object] | None = None, steps: int | None = None) -> Run:
    """The run after its steps; watch(step) is called after each."""
    bases = [group["lr"] for group in run.optimizer.param_groups]
    step = run.step or plain_step
    for i, (x, y) in zip(range(run.steps if steps is None else steps), batches(run), strict=False):
        if run.schedule is not None:
            for group, base in zip(run.optimizer.param_groups, bases, strict=True):
                group["lr"] = base * run.schedule(i)
        step(run, x, y)
        if watch is not None:
            watch(i)
    return run


@torch.no_grad()
def outputs(run: Run, x: Tensor | None = None) -> Tensor:
    """What the network says of held-out data, in evaluation mode."""
    mode = run.model.training
    run.model.eval()
    said = run.model(run.validation[0] if x is None else x)
    run.model.train(mode)
    said = said[0] if isinstance(said, tuple) else said
    return torch.nan_to_num(said.float(), nan=0.0, posinf=1e9, neginf=-1e9)


def accuracy(run: Run) -> float:
    """The share of places that count whose class is right."""
    said, y = outputs(run), run.validation[1]
    counts = y >= 0
    return float((said.argmax(-1) == y)[counts].float().mean())


def balanced_accuracy(run: Run) -> float:
    """The mean over classes of the share that is right."""
    right, y = outputs(run).argmax(-1) == run.validation[1], run.validation[1]
    return float(torch.stack([right[y == c].float().mean() for c in y.unique()]).mean())


def sign_accuracy(run: Run) -> float:
    """The share of single outputs on the right side of 0."""
    return float(((outputs(run) > 0) == (run.validation[1] > 0.5)).float().mean())


def explained(run: Run) -> float:
    """The share of the targets' variance that is explained, at least -1."""
    said, y = outputs(run), run.validation[1].float()
    share = 1 - F.mse_loss(said.reshape(y.shape), y) / F.mse_loss(y.mean(0).expand_as(y), y)
    return max(float(share), -1.0)


def score_of(run: Run) -> float:
    """How well the run does on held-out data."""
    if run.score is not None:
        return run.score(run)
    return explained(run) if run.validation[1].is_floating_point() else accuracy(run)


def chance_of(run: Run) -> float:
    """The score of the best answer that ignores its input."""
    y = run.validation[1]
    if run.chance is not None:
        return run.chance
    if run.score is balanced_accuracy:
        return 1 / len(y.unique())
    if run.score is sign_accuracy:
        share = float((y > 0.5).float().mean())
        return max(share, 1 - share)
    if y.is_floating_point():
        return 0.0
    counts = torch.bincount(y[y >= 0].flatten())
    return float(counts.max() / counts.sum())


def skill_of(run: Run) -> float:
    """The score, 0 at the best constant answer and 1 at perfect."""
    base = chance_of(run)
    return (score_of(run) - base) / (1 - base)


@torch.no_grad()
def held_out_loss(run: Run) -> float:
    """The script's own loss on held-out data."""
    x, y = run.validation
    mode = run.model.training
    run.model.eval()
    value = float(run.loss(run.model(x), y))
    run.model.train(mode)
    return value
