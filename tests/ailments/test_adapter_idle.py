"""Does a low-rank adapter do nothing: both factors zero, scale zero, or not attached?"""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fixtures.judging import alarms, judged
from fixtures.trained import CLASSES, FEATURES, clouds, network


class Adapted(nn.Module):
    """A frozen linear layer and what two factors add."""

    def __init__(self, base, *, rank=4, scale=1.0, zero="B", attached=True):
        super().__init__()
        self.base, self.scale, self.attached = base.requires_grad_(False), scale, attached
        self.lora_A, self.lora_B = (
            nn.Linear(i, o, bias=False) for i, o in ((base.in_features, rank), (rank, base.out_features))
        )
        for letter in zero:
            nn.init.zeros_(getattr(self, f"lora_{letter}").weight)

    def forward(self, x):
        added = self.scale * self.lora_B(self.lora_A(x))
        return self.base(x) + (added if self.attached else 0 * added.detach())


def given(**options):
    model = network(0)
    model[2] = Adapted(model[2], **options)
    return {"model": model, "data": clouds(0, 256), "loss": cross_entropy}


SICK = (lambda seed: given(zero="AB"),)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"zero": "AB"}, "both factors are zero"),
        ({"scale": 0.0}, "does not reach"),
        ({"attached": False}, "does not reach"),
    ],
)
def test_the_sick_are_found(options, why):
    (found,) = alarms("adapter-idle", given(**options))
    assert found.severity == "critical" and why in found.says and found.where == "2"


@pytest.mark.parametrize("options", [{}, {"zero": "A"}, {"zero": ""}])
def test_the_healthy_are_left_alone(options):
    assert not judged("adapter-idle", given(**options))


def test_models_without_adapters_are_not_asked():
    assert not judged("adapter-idle", {"model": network(0), "data": clouds(0, 256), "loss": cross_entropy})


def lora(**options):
    import peft

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 24), nn.ReLU(), nn.Linear(24, CLASSES))
    return peft.get_peft_model(model, peft.LoraConfig(target_modules=["0", "2"], r=4, **options))


def test_adapters_of_peft():
    x, y = clouds(0, 256)
    well = lora(lora_alpha=8)
    assert not judged("adapter-idle", {"model": well, "data": (x, y), "loss": cross_entropy})
    (found,) = alarms("adapter-idle", {"model": lora(lora_alpha=0), "data": (x, y), "loss": cross_entropy})
    assert "their scale is 0" in found.says
    well.disable_adapter_layers()
    (found,) = alarms("adapter-idle", {"model": well, "data": (x, y), "loss": cross_entropy})
    assert "switched off" in found.says or "frozen" in found.says


@pytest.mark.parametrize("idle", [True, False])
def test_adapters_are_known_by_their_shapes(idle):
    class Low(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base.requires_grad_(False)
            self.down = nn.Parameter(torch.zeros(3, base.in_features) if idle else torch.randn(3, base.in_features))
            self.up = nn.Parameter(torch.zeros(base.out_features, 3))

        def forward(self, x):
            return self.base(x) + x @ self.down.T @ self.up.T

    model = network(0)
    model[2] = Low(model[2])
    assert bool(judged("adapter-idle", {"model": model, "data": clouds(0, 256), "loss": cross_entropy})) == idle


@pytest.mark.parametrize("scale", [0, 0.5])
def test_adapters_of_convolutions_are_known_by_their_shapes(scale):
    class Low(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base.requires_grad_(False)
            self.squeeze = nn.Conv2d(base.in_channels, 3, 3, padding=1, bias=False)
            self.expand = nn.Conv2d(3, base.out_channels, 1, bias=False)
            nn.init.zeros_(self.expand.weight)

        def forward(self, x):
            return self.base(x) + scale * self.expand(self.squeeze(x))

    torch.manual_seed(0)
    model = nn.Sequential(Low(nn.Conv2d(4, 8, 3, padding=1)), nn.ReLU(), nn.Flatten(), nn.Linear(128, CLASSES))
    x, y = torch.randn(64, 4, 4, 4), torch.randint(CLASSES, (64,))
    assert bool(judged("adapter-idle", {"model": model, "data": (x, y), "loss": cross_entropy})) is not bool(scale)
