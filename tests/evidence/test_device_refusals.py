"""What a GPU would die of is raised before it is asked; tried on a CPU, where nothing but the check can raise first."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from theodolite.evidence.device_refusals import RefusedAsOnCpu


@pytest.mark.parametrize(
    ("loss", "answer", "target", "refused"),
    [
        (F.cross_entropy, torch.zeros(4, 3), torch.tensor([0, 1, 2, 3]), True),
        (nn.CrossEntropyLoss(), torch.zeros(4, 3), torch.tensor([0, 1, 2, -100]), False),
        (nn.CrossEntropyLoss(ignore_index=3), torch.zeros(4, 3), torch.tensor([0, 1, 2, 3]), False),
        (nn.CrossEntropyLoss(), torch.zeros(4, 3), torch.full((4, 3), 1 / 3), False),
        (nn.NLLLoss(), torch.zeros(2, 3, 5), torch.full((2, 5), -1), True),
        (nn.BCELoss(), torch.tensor([0.5, 1.5]), torch.tensor([0.0, 1.0]), True),
        (nn.BCELoss(), torch.tensor([0.5, torch.nan]), torch.tensor([0.0, 1.0]), True),
        (nn.BCELoss(), torch.tensor([0.5, 1.0]), torch.tensor([0.0, 1.0]), False),
        (nn.BCEWithLogitsLoss(), torch.tensor([0.5, 4.0]), torch.tensor([0.0, 1.0]), False),
    ],
)
def test_what_a_kernel_would_assert_is_raised_before(loss, answer, target, refused):
    with RefusedAsOnCpu(devices=("cpu",)):
        if refused:
            with pytest.raises((IndexError, RuntimeError), match="^expected "):
                loss(answer, target)
        else:
            assert torch.isfinite(loss(answer, target))
