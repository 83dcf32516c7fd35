"""The noise of a step's gradient, from the micro-batches that it was accumulated from."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fixtures.watched import Watch
from theodolite.measure.dynamics import accumulated_noise, gradient_moments
from theodolite.verbs.watching.training_hooks.gradient_noise import RankNoise

SHARE = "share of noise in the squared gradient of a step"
SCALE = "simple noise scale in samples"


def task():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(256, 6, generator=generator)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 2))
    return model, x, (x[:, 0] > 0).long()


def trained(micro, *, steps, lr=0.1, size=8, watching=True, clear=True, **options):
    model, x, y = task()
    optimizer = torch.optim.SGD(model.parameters(), lr)
    watch = None
    if watching:
        watch = Watch(
            model, optimizer=optimizer, probe=(x[:32], y[:32]), level="cheap", batch_size=micro * size, **options
        )
    order = torch.Generator().manual_seed(2)
    for step in range(steps):
        if watch is not None:
            watch(step)
        if clear:
            optimizer.zero_grad()
        for _ in range(micro):
            rows = torch.randint(0, 256, (size,), generator=order)
            (cross_entropy(model(x[rows]), y[rows]) / micro).backward()
        optimizer.step()
    return model, watch


def test_it_is_the_noise_of_single_samples():
    """At weights that stand still: the trace of the covariance over the samples of a step, beside the mean's square."""
    model, x, y = task()
    moments = gradient_moments(model, cross_entropy, (x, y))
    spread = moments.scatter.value * 255 / 256  # batches are drawn from these samples, with replacement
    signal = moments.squared_mean.value + moments.scatter.value / 256
    truth = spread / signal  # the simple noise scale, in samples
    _, watch = trained(16, steps=60, lr=1e-20, every=1)
    told = [[q for name, q in r.readings if name == "accumulated-noise"] for r in watch.records]
    shares = [readings[0] for readings in told if readings]
    assert len(shares) == 58 and all(r.quantity == SHARE and r.where == "16 micro-batches" for r in shares)
    expected = truth / (truth + 128)
    assert sum(abs(r.measured - expected) <= 3 * r.stderr for r in shares) >= 56
    mean = torch.tensor([r.measured for r in shares])
    assert abs(mean.mean() - expected) < 4 * mean.std() / 58**0.5 + 0.02  # a ratio: its mean is not its value
    scales = [r for readings in told for r in readings[1:]]
    assert scales and all(r.quantity == SCALE and abs(r.measured - truth) <= 3 * r.stderr for r in scales)


def test_the_variance_of_the_gradient_is_told_without_bias():
    generator = torch.Generator().manual_seed(1)
    found = []
    for _ in range(400):
        rows = 0.5 + torch.randn(4, 30, generator=generator)
        total = float(rows.sum(0).square().sum())
        found.append(accumulated_noise(rows.square().sum(1).tolist(), total, rows).share.value * total)
    values = torch.tensor(found)
    assert abs(values.mean() - 4 * 30) < 3 * values.std() / 20
    with pytest.raises(ValueError, match="expected 3 micro-batches or more"):
        accumulated_noise([1.0, 1.0], 2.0, torch.eye(2))


def test_a_factor_on_the_loss_does_not_matter():
    rows = torch.randn(5, 40, generator=torch.Generator().manual_seed(3)) + 1
    one, other = (
        accumulated_noise((c * rows).square().sum(1).tolist(), float((c * rows).sum(0).square().sum()), c * rows)
        for c in (1.0, 65536.0)
    )
    assert one.share.value == pytest.approx(other.share.value) and one.scale.stderr == pytest.approx(other.scale.stderr)


def test_training_is_the_same_and_no_hook_is_left():
    (plain, _), (watched, watch) = (trained(4, steps=9, every=3, watching=w) for w in (False, True))
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), watched.parameters(), strict=True))
    assert [r.value(SHARE) is not None for r in watch.records] == [False, True, True]
    watch.close()
    assert not any(p._backward_hooks or p._post_accumulate_grad_hooks for p in watched.parameters())


def test_hooks_are_there_only_before_a_look():
    model, x, y = task()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    watch = Watch(model, optimizer=optimizer, probe=(x[:32], y[:32]), level="cheap", every=4)
    listening = []
    for step in range(9):
        watch(step)
        optimizer.zero_grad()
        listening.append(len(model[0].weight._backward_hooks or {}))
        for part in range(3):
            cross_entropy(model(x[part::3]), y[part::3]).backward()
        optimizer.step()
    assert listening == [0, 0, 0, 1, 0, 0, 0, 1, 0]


@pytest.mark.parametrize(
    ("micro", "clear"), [(1, True), (2, True), (3, False)], ids=["one pass", "two passes", "not cleared"]
)
def test_nothing_is_said_where_it_cannot_be_told(micro, clear):
    _, watch = trained(micro, steps=7, every=2, clear=clear)
    assert all(record.value(SHARE) is None for record in watch.records)
    assert not any(note.startswith("accumulated-noise") for record in watch.records for note in record.notes)


def test_scaled_gradients_that_are_unscaled_and_clipped_before_the_step():
    """As with GradScaler: what is added up is scaled, what the step sees is not."""
    model, x, y = task()
    optimizer = torch.optim.SGD(model.parameters(), 1e-20)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    watch = Watch(model, optimizer=optimizer, probe=(x[:32], y[:32]), level="cheap", every=1)
    order = torch.Generator().manual_seed(2)
    for step in range(4):
        watch(step)
        optimizer.zero_grad()
        for _ in range(4):
            rows = torch.randint(0, 256, (8,), generator=order)
            scaler.scale(cross_entropy(model(x[rows]), y[rows]) / 4).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        scaler.step(optimizer)
        scaler.update()
    _, plain = trained(4, steps=4, lr=1e-20, every=1)
    seen, alone = ([r.value(SHARE) for r in run.records[2:]] for run in (watch, plain))
    assert seen == pytest.approx(alone, rel=1e-5) and len(seen) == 2


class SharedStore(dict):
    """What the processes of a group leave for each other, in one process."""

    set, delete_key = dict.__setitem__, dict.pop

    def check(self, keys):
        return all(key in self for key in keys)

    def get(self, key):
        return self[key]


def test_ranks_of_ddp_tell_their_noise_by_what_they_left_in_the_store(monkeypatch):
    store, here = SharedStore(), [0]
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: here[0])
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    torch.manual_seed(0)
    models = [nn.Linear(20, 10) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    optimizers = [torch.optim.SGD(model.parameters(), lr=1e-3) for model in models]
    ranks = [RankNoise(*pair, store) for pair in zip(models, optimizers, strict=True)]
    for _ in range(80):
        for model in models:
            model.zero_grad()
            x = torch.randn(16, 20)
            (model(x) - x[:, :10] - torch.randn(16, 10)).square().mean().backward()
        for one, other in zip(*(model.parameters() for model in models), strict=True):
            one.grad.add_(other.grad).div_(2)  # as DDP averages
            other.grad.copy_(one.grad)
        for here[0] in (1, 0):
            optimizers[here[0]].step()
    found = ranks[0].noise()
    assert found.ranks and 0.1 < found.share.value < 0.9
    assert not store  # what was read is taken away
