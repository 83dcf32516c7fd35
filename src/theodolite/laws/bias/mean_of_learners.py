r"""The mean answer of m learners with random starts loses $(1-k/d)/m$ more than their average over all starts.

A lower bound on deterministic learners is one on randomized learners too where the loss is convex: by Jensen's inequality
their average answer loses no more. For gradient descent on a linear neuron with the squared loss the difference is known: what
examples do not fix keeps the variance of the start.
"""

import torch
from torch import Tensor

from theodolite.construct.bias import sparse_problems
from theodolite.core.law import Law

FEATURES, PROBLEMS, TEAMS, STEPS = 32, 8, 16, 30


def measure(
    examples: int, learners: int, *, generator: torch.Generator, starts: str = "own", power: float = 2.0
) -> list[float]:
    """The loss of the mean of the learners' answers, less that of the average answer, which a start at 0 gives."""
    x, y = sparse_problems("flipped", FEATURES, PROBLEMS, generator=generator)
    shape = (PROBLEMS, TEAMS, learners if starts == "own" else 1, FEATURES)
    drawn = torch.randn(shape, generator=generator, dtype=x.dtype).expand(-1, -1, learners, -1) / FEATURES**0.5
    drawn = torch.cat([drawn, -drawn], 1)  # teams and their mirror images: what is odd in the start cancels
    mean = _answers(x, y, drawn, examples).mean(2)
    average = _answers(x, y, torch.zeros_like(drawn[:, :, :1]), examples)[:, :, 0]
    losses = [(answers - y[:, None]).abs().pow(power).mean((1, 2)) for answers in (mean, average)]
    return (losses[0] - losses[1]).tolist()


def _answers(x: Tensor, y: Tensor, start: Tensor, examples: int) -> Tensor:
    """What linear neurons answer to all rows after gradient descent on the first: (problems, teams, learners, rows)."""
    seen, labels = x[:, :examples], y[:, None, :examples]
    w = start.flatten(1, 2)
    for _ in range(STEPS):  # rows are orthogonal, of squared norm d: each step halves what is left
        w = w - (w @ seen.mT - labels) @ seen / (2 * FEATURES)
    answers: Tensor = w @ x.mT
    return answers.reshape(*start.shape[:3], -1)


law = Law(
    claim="With a convex loss the average answer of a randomized learner loses no more than the learner; of gradient descent "
    "from random starts the mean of m runs loses (1 - k/d)/m more than that average, after k of d examples.",
    formula=r"E\,L\Big(\frac1m\sum_{j\le m}\hat y_j\Big)-L(E\hat y)=\frac1m\Big(1-\frac kd\Big)\ge0",
    assumes={
        "learners that draw their own start": {"starts": "one"},
        "the squared loss, for the number": {"power": 1.8},
    },
    source="krogh1995; warmuth2021",
    predict=lambda examples, learners: (1 - examples / FEATURES) / learners,
    measure=measure,
    cases=(
        {"examples": 8, "learners": 1},
        {"examples": 24, "learners": 1},
        {"examples": 16, "learners": 2},
        {"examples": 16, "learners": 8},
    ),
    tolerance=0.1,  # 8 x 8 x 16 teams and their mirror images know the difference to 1.1 %
    quantity="excess loss of the mean of the learners",
)
