r"""AdamW forgets at the rate $\eta\lambda$: weight decay transfers if it grows as the step size falls."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import share_left

STEPS, SIZE = 200, 5_000


def measure(lr: float, decay: float, *, generator: torch.Generator, coupled: bool = False) -> Tensor:
    return share_left(lr, decay, steps=STEPS, size=SIZE, coupled=coupled, generator=generator)


law = Law(
    claim="With decoupled weight decay the share of its first value that a weight keeps after T steps is (1 - lr x decay)^T: it "
    "depends on the product of step size and decay alone; where a step size is divided by m, the decay is multiplied by m.",
    formula=r"E[w_T\cdot w_0]/|w_0|^2=(1-\eta\lambda)^T",
    assumes={"decoupled weight decay": {"coupled": True}},
    source="wang2024",
    predict=lambda lr, decay: float((1 - lr * decay) ** STEPS),
    measure=measure,
    # the last two are the first with a step size 4 and 16 times smaller and a decay as much larger
    cases=(
        {"lr": 0.016, "decay": 0.25},
        {"lr": 0.016, "decay": 0.5},
        {"lr": 0.004, "decay": 1.0},
        {"lr": 0.001, "decay": 4.0},
    ),
    tolerance=0.06,  # noise steps of 0.016 add up to 0.2 in each weight, which 20,000 of them tell to 0.003 of 0.45
    repeats=4,
)
