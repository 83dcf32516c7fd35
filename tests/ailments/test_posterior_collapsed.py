"""Has the posterior of a variational autoencoder collapsed onto the prior?"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fixtures.judging import alarms


class Vae(nn.Module):
    """Sixteen numbers through a code of four."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(16, 8), nn.Linear(4, 16)

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, -1)
        noise = torch.randn_like(mean) * (log_variance / 2).exp() if self.training else 0.0
        return self.decoder(mean + noise), mean, log_variance


def given(weight):
    torch.manual_seed(0)
    x = torch.randn(512, 3) @ torch.randn(3, 16)

    def loss(answer, target):
        out, mean, log_variance = answer
        return F.mse_loss(out, target) + weight * 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1).mean()

    model = Vae()
    optimizer = torch.optim.Adam(model.parameters(), 2e-2)
    for _ in range(300):
        optimizer.zero_grad()
        loss(model(x), x).backward()
        optimizer.step()
    return {"model": model, "data": (x, x), "loss": loss, "optimizer": optimizer}


SICK = (lambda seed: given(30.0),)


def test_an_idle_code_is_named_and_a_used_one_is_not():
    (found,) = alarms("posterior-collapsed", given(30.0))
    assert "none of the 4 units" in found.says
    assert not alarms("posterior-collapsed", given(0.01))


@pytest.mark.parametrize("more", ["input", "drawn"])
def test_what_is_handed_on_or_drawn_is_no_part_of_the_code(more):
    class Wordy(Vae):
        def forward(self, x):
            mean, log_variance = self.encoder(x).chunk(2, -1)
            z = mean + torch.randn_like(mean) * (log_variance / 2).exp()
            return [self.decoder(z), x if more == "input" else z, mean, log_variance]

    for weight, told in ((30.0, True), (0.01, False)):
        known = given(weight)
        model, own = Wordy(), known["loss"]
        model.load_state_dict(known["model"].state_dict())
        optimizer = torch.optim.Adam(model.parameters(), 2e-2)
        optimizer.load_state_dict(known["optimizer"].state_dict())
        found = alarms(
            "posterior-collapsed",
            {**known, "model": model, "optimizer": optimizer, "loss": lambda o, y, own=own: own((o[0], o[2], o[3]), y)},
        )
        assert bool(found) == told
