"""Does the loss ignore every target, so that there is nothing to learn?"""

import torch
import torch.nn.functional as F
from torch import nn

from fixtures.judging import alarms, judged


def given(ignored):
    y = torch.randint(0, 3, (256,), generator=torch.Generator().manual_seed(0))
    y[:ignored] = -100
    x = torch.randn(256, 4)
    data = [(x[i : i + 32], y[i : i + 32]) for i in range(0, 256, 32)]
    return {"model": nn.Linear(4, 3), "data": data, "loss": F.cross_entropy}


SICK = (lambda seed: given(256),)


def test_it_is_critical_where_no_label_counts_and_a_note_where_some_batches_have_none():
    (found,) = alarms("labels-ignored", given(256))
    assert found.severity == "critical"
    assert not judged("classes-unbalanced", given(256))  # one name for it
    (note,) = judged("labels-ignored", given(64))
    assert note.severity == "note" and "2 of 8 batches" in note.says
    assert not judged("labels-ignored", given(0))


def test_any_number_that_the_loss_ignores_is_told_and_one_that_it_does_not_is_not():
    x, void = torch.randn(64, 3, 4, 4), torch.full((64, 4, 4), 255)
    model = nn.Conv2d(3, 2, 1)
    for ignored, told in ((255, True), (1, False)):
        y = void if told else torch.zeros_like(void)
        known = {"model": model, "data": (x, y), "loss": lambda o, t, i=ignored: F.cross_entropy(o, t, ignore_index=i)}
        assert bool(alarms("labels-ignored", known)) == told
        assert bool(alarms("classes-unbalanced", known)) != told


def test_a_mask_beside_the_targets_that_leaves_all_of_them_out():
    def loss(o, y):
        return (F.cross_entropy(o, y["label"], reduction="none") * y["mask"]).sum() / y["mask"].sum().clamp(min=1)

    x, y = torch.randn(64, 4), torch.randint(0, 3, (64,))
    for mask, told in ((torch.zeros(64), True), (torch.ones(64), False)):
        known = {"model": nn.Linear(4, 3), "data": [(x, {"label": y, "mask": mask})], "loss": loss}
        assert bool(alarms("labels-ignored", known)) == told
