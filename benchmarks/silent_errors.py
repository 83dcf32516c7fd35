"""Silent errors beside healthy twins: which are named within three looks, which twins have an alarm, and what a step pays.

`python -m benchmarks.silent_errors [--out FILE]`. Each error is one small change of a training loop that raises nothing; its twin
is the same loop without it. A case counts as named where one of its names is among the findings of the looks, or of the whole
diagnosis where the fact is there without a run.
"""

import argparse
import copy
import json
import math
import time
import warnings
from contextlib import nullcontext, suppress

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th
from theodolite.verbs.running.observing import Observer

STEPS, LOOKS = 36, 3


def network(dropout=0.0, norm=False, width=32):
    layers = [nn.Linear(12, width), nn.BatchNorm1d(width) if norm else nn.Identity(), nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*layers, nn.Linear(width, 4))


def data(samples=1024):
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(samples, 12, generator=draw)
    return x, (x @ torch.randn(12, 4, generator=draw)).argmax(1)


class Loop:
    """A plain training loop with places where it can go wrong; ``go`` watches it and answers its findings."""

    def __init__(self, **how):
        torch.manual_seed(1)
        self.how = how
        self.model = how["model"]() if "model" in how else network(how.get("dropout", 0.0), how.get("norm", False))
        self.optimizer = how.get("optimizer", lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9))(
            self.model
        )
        self.x, self.y = data()

    def batch(self, step):
        rows = torch.arange(32) + 32 * (step % 32)
        return self.x[rows], self.y[rows]

    def step(self, step):
        x, y = self.batch(step)
        self.optimizer.zero_grad()
        cross_entropy(self.model(x), y).backward()
        self.optimizer.step()

    def go(self):
        watch = th.Watch(
            self.model,
            optimizer=self.optimizer,
            probe=(self.x[:64], self.y[:64]),
            every=STEPS // LOOKS,
            level="cheap",
            budget=math.inf,
        )
        for step in range(STEPS):
            self.how.get("step", Loop.step)(self, step)
            watch(step)
        watch.look(STEPS)
        names = told(watch.findings)
        watch.close()
        return names


def cleared(loop, step):
    x, y = loop.batch(step)
    cross_entropy(loop.model(x), y).backward()
    loop.optimizer.zero_grad()
    loop.optimizer.step()


def kept(loop, step):
    x, y = loop.batch(step)
    cross_entropy(loop.model(x), y).backward()
    loop.optimizer.step()


def twice(loop, step):
    Loop.step(loop, step)
    loop.optimizer.step()


def evaluating(loop, step):
    loop.model.eval()
    Loop.step(loop, step)


def evaluation(loop, step, mode=True):
    Loop.step(loop, step)
    if step % 6 == 0:
        loop.model.train(mode)
        with torch.no_grad():
            for part in range(4):
                loop.model(loop.x[100 * part : 100 * part + 100])
        loop.model.train()


def evaluated_well(loop, step):
    evaluation(loop, step, mode=False)


def single_pass(mode, held=None):
    """All held-out data in one pass; ``held`` is a layer that stays in training mode."""

    def step(loop, number):
        Loop.step(loop, number)
        if number % 6 == 0:
            loop.model.train(mode)
            if held is not None:
                loop.model[held].train()
            with torch.no_grad():
                loop.model(loop.x[800:])
            loop.model.train()

    return step


class DropsAlways(nn.Module):
    def __init__(self, always):
        super().__init__()
        self.first, self.last, self.always = nn.Linear(12, 32), nn.Linear(32, 4), always

    def forward(self, x):
        h = torch.relu(self.first(x))
        return self.last(torch.nn.functional.dropout(h, 0.3, training=self.always or self.training))


def begun_anew(fresh):
    def script():
        model, loader = network(), torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data()), batch_size=32)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for x, y in (next(iter(loader)) for _ in range(STEPS)) if fresh else loader:
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()

    return lambda: observed(script)


def repeated(loop, step):
    Loop.step(loop, step // 2)


def full_batch(loop, step):
    loop.optimizer.zero_grad()
    cross_entropy(loop.model(loop.x), loop.y).backward()
    loop.optimizer.step()


def stuck_targets(loop, step):
    x, _ = loop.batch(step)
    y = loop.y[32:64]
    loop.optimizer.zero_grad()
    loss = cross_entropy(loop.model(x), y)
    loss.backward()
    loop.optimizer.step()


def untied(loop, step):
    if step == 4:
        loop.model.head.weight = nn.Parameter(loop.model.head.weight.detach().clone())
    Loop.step(loop, step)


def overflow(loop, step):
    if step == 4:
        loop.model[1].running_var.fill_(float("inf"))
    Loop.step(loop, step)


def frozen_left(loop, step):
    if step == 3:
        loop.model[0].weight.requires_grad_(False)  # its old gradient is still there
    x, y = loop.batch(step)
    for p in loop.model[4].parameters():
        p.grad = None
    cross_entropy(loop.model(x), y).backward()
    loop.optimizer.step()


def frozen_well(loop, step):
    if step == 3:
        loop.model[0].weight.requires_grad_(False)
        loop.model[0].weight.grad = None
    Loop.step(loop, step)


def accumulated(loop, step):
    for part in range(4):
        x, y = loop.batch(4 * step + part)
        (cross_entropy(loop.model(x), y) / 4).backward()
    loop.optimizer.step()
    loop.optimizer.zero_grad()


def restored(loop, step):
    before = {n: p.detach().clone() for n, p in loop.model.state_dict().items()}
    Loop.step(loop, step)
    loop.model.load_state_dict(before)


def held_back(loop, step):
    before = loop.model[0].weight.detach().clone()
    Loop.step(loop, step)
    with torch.no_grad():
        loop.model[0].weight.copy_(before)


class Tied(nn.Module):
    def __init__(self, tied=True):
        super().__init__()
        self.table, self.head = nn.Embedding(12, 16), nn.Linear(16, 12, bias=False)
        self.out = nn.Linear(12, 4)
        if tied:
            self.head.weight = self.table.weight

    def forward(self, x):
        return self.out(self.head(torch.tanh(x @ self.table.weight)))


def parted():
    torch.manual_seed(2)
    model = Tied()
    model.head.weight = nn.Parameter(model.table.weight.detach().clone())
    return model


def of_another(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model[4] = nn.Linear(32, 4)
    return optimizer


def two_rates(model):
    return torch.optim.SGD([{"params": model[0].parameters(), "lr": 0.0}, {"params": model[4].parameters()}], lr=0.1)


def held_by_two(loop, step):
    if step == 0:
        loop.other = torch.optim.SGD(loop.model[4].parameters(), lr=1e-3)
    Loop.step(loop, step)
    loop.other.step()


def two_phases(loop, step):
    if step == 20:
        loop.optimizer = torch.optim.Adam(loop.model.parameters(), lr=1e-3)
    Loop.step(loop, step)


def sgd(lr):
    return lambda model: torch.optim.SGD(model.parameters(), lr=lr)


class Augmented(torch.utils.data.Dataset):
    def __init__(self, own):
        import numpy as np

        self.x, self.y = data()
        if own:
            self.rng = np.random.default_rng(0)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, place):
        noise = self.rng.normal(size=12).astype("float32") if hasattr(self, "rng") else torch.randn(12).numpy()
        return self.x[place] + torch.from_numpy(noise), self.y[place]


def of_loader(own):
    loader = torch.utils.data.DataLoader(Augmented(own), batch_size=64, num_workers=2)
    model = network()
    found = th.diagnose(
        model, data=loader, loss=cross_entropy, optimizer=torch.optim.Adam(model.parameters(), lr=1e-3), budget=1
    )
    return told(found.findings)


def observed(script):
    """The findings of a loop run under an observer, as `theodolite run` does."""
    from pathlib import Path
    from tempfile import mkdtemp

    torch.manual_seed(1)
    observer = Observer(Path(mkdtemp()), every=STEPS // LOOKS, level="cheap")
    observer.install()
    try:
        script()
    finally:
        observer.remove()
    observer.finish()
    if observer.watch is None:
        return told(observer._alarms.standing.values())
    observer.watch.look(observer.steps)
    return told(observer.watch.findings)


def told(findings):
    """The names of findings, with how severe they are."""
    return {finding.name: finding.severity for finding in findings}


def loads(prefix, filtered=False):
    def script():
        model = network()
        state = {prefix + name: value.clone() for name, value in model.state_dict().items()}
        if filtered:
            own = model.state_dict()
            state = {**own, **{name: value for name, value in state.items() if name in own}}
        model.load_state_dict(state, strict=False)
        plain_loop(model)

    return lambda: observed(script)


def plain_loop(model, step=None):
    x, y = data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number in range(STEPS):
        rows = torch.arange(32) + 32 * (number % 32)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[rows]), y[rows])
        step(model, optimizer, loss) if step else (loss.backward(), optimizer.step())


def clips(first):
    def script():
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)

        def step(model, optimizer, loss):
            scaler.scale(loss).backward()
            if not first:
                scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()

        plain_loop(network(), step)

    return lambda: observed(script)


def rounded(dtype, lr):
    class Half(Loop):
        def batch(self, step):
            x, y = super().batch(step)
            return x.to(dtype), y

    def go():
        loop = Half(optimizer=sgd(lr), model=lambda: network().to(dtype))
        loop.x = loop.x.to(dtype)
        return loop.go()

    return go


def warming(length):
    def optimizer(model):
        return torch.optim.SGD(model.parameters(), lr=0.1)

    def step(loop, number):
        for group in loop.optimizer.param_groups:
            group["lr"] = 0.1 * min(1.0, (number + 1) / length)
        Loop.step(loop, number)

    class Judged(Loop):
        def go(self):
            watch = th.Watch(
                self.model,
                optimizer=self.optimizer,
                probe=(self.x[:64], self.y[:64]),
                every=6,
                level="cheap",
                budget=math.inf,
            )
            for number in range(STEPS):
                step(self, number)
                watch(number)
            found = told(watch.diagnosis.findings)
            watch.close()
            return found

    return lambda: Judged(optimizer=optimizer).go()


def adam(betas):
    return lambda model: torch.optim.AdamW(model.parameters(), lr=1e-2, betas=betas)


def in_bfloat16(loop, step):
    x, y = loop.batch(step)
    loop.optimizer.zero_grad()
    cross_entropy(loop.model(x.bfloat16()).float(), y).backward()
    loop.optimizer.step()


def trained_on(step):
    """The same loop on a network that has learned its task before the watch sees its first step."""

    def go(loop, number):
        if number == 0:
            for _ in range(300):
                loss = cross_entropy(loop.model(loop.x), loop.y)
                gradients = torch.autograd.grad(loss, list(loop.model.parameters()))
                with torch.no_grad():
                    for parameter, gradient in zip(loop.model.parameters(), gradients, strict=True):
                        parameter -= 0.5 * gradient
        step(loop, number)

    return go


def of(**how):
    return lambda: Loop(**how).go()


# parts of a model that no step reaches


class Parts(nn.Module):
    """An encoder and a head; ``how`` says what lies between them."""

    def __init__(self, how=""):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head, self.unused, self.how = nn.Linear(32, 4), nn.Linear(32, 4) if "head" in how else None, how
        if how == "frozen":
            self.encoder.requires_grad_(False)

    def forward(self, x):
        with torch.no_grad() if self.how == "no_grad" else nullcontext():
            h = self.encoder(x)
        found = self.head(h.detach() if self.how == "detach" else h)
        return found + self.unused(h) if self.how == "two heads" else found


class Odd(nn.Module):
    """Layers in a list, and a trained tensor, as a module knows them or not."""

    def __init__(self, listed=False, plain=False):
        super().__init__()
        layers, table = [nn.Linear(32, 32), nn.Linear(32, 4)], torch.randn(12, 32) * 0.3
        self.layers = layers if listed else nn.ModuleList(layers)
        self.table = table.requires_grad_() if plain else nn.Parameter(table)
        self.first = nn.Linear(32, 32)

    def forward(self, x):
        h = self.first(torch.relu(x @ self.table))
        for layer in self.layers:
            h = layer(torch.relu(h))
        return h


def two_branches():
    """A branch that is trained towards the detached answer of an averaged copy of it."""
    online, head = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16)), nn.Linear(16, 16)
    target, x = copy.deepcopy(online).requires_grad_(False), data()[0]
    optimizer = torch.optim.Adam([*online.parameters(), *head.parameters()], lr=1e-3)
    for number in range(STEPS):
        rows = x[32 * (number % 32) : 32 * (number % 32) + 32]
        answer = head(online(rows + 0.1 * torch.randn_like(rows)))
        wanted = target(rows + 0.1 * torch.randn_like(rows)).detach()
        optimizer.zero_grad()
        (2 - 2 * nn.functional.cosine_similarity(answer, wanted).mean()).backward()
        optimizer.step()
        averaged(target, online)


@torch.no_grad()
def averaged(model, other):
    for mean, parameter in zip(model.parameters(), other.parameters(), strict=True):
        mean.lerp_(parameter, 0.1)


def of_copy(model):
    return torch.optim.SGD(copy.deepcopy(model).parameters(), lr=0.1)


def of_trainable(model):
    return torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)


def with_average(loop, step):
    if step == 0:
        loop.mean = copy.deepcopy(loop.model)
    Loop.step(loop, step)
    averaged(loop.mean, loop.model)


def unfrozen(added):
    def step(loop, number):
        if number == 6:
            loop.model.encoder.requires_grad_(True)
            if added:
                loop.optimizer.add_param_group({"params": list(loop.model.encoder.parameters())})
        Loop.step(loop, number)

    return of(model=lambda: Parts("frozen"), step=step, optimizer=of_trainable)


def pretrained(missing):
    """A trained network before its first step on another task, with a new head or its own."""

    def go():
        torch.manual_seed(1)
        model, (x, y) = Parts(), data()
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        for _ in range(200):
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()
        if missing:
            model.head = nn.Linear(32, 4)
        held = model.encoder.parameters() if missing else model.parameters()
        targets = (y + 1) % 4 if missing else y
        found = th.diagnose(
            model, data=(x, targets), loss=cross_entropy, optimizer=torch.optim.Adam(held, 1e-3), budget=2
        )
        return told(found.findings)

    return go


# steps and draws


def scaled_steps(odd):
    """A scaler skips every step whose gradient is not finite: all of them, or the first few while it finds its scale."""

    def script():
        scaler = torch.amp.GradScaler("cpu", init_scale=1.0 if odd else 2.0**126)

        def step(model, optimizer, loss):
            penalty = (0 * model[0].weight).sum().sqrt() if odd else 0.0
            scaler.scale(loss + penalty).backward()
            scaler.step(optimizer)
            scaler.update()

        plain_loop(network(), step)

    return lambda: observed(script)


def reached(every):
    def script():
        model, (x, y) = network(), data()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for number, rows in enumerate(torch.arange(len(x)).split(28)):
            (cross_entropy(model(x[rows]), y[rows]) / 4).backward()
            if (number + 1) % every == 0:
                optimizer.step()
                optimizer.zero_grad()

    return lambda: observed(script)


def seeded(always):
    def step(loop, number):
        if always or number == 0:
            torch.manual_seed(7)
        Loop.step(loop, number)

    return of(step=step, dropout=0.3)


def drawn(seeds):
    """Batches that are drawn after a seed is set: which, by the number of the step."""

    def script():
        x, y = data()
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for number in range(STEPS):
            torch.manual_seed(seeds(number))
            rows = torch.randint(len(x), (32,))
            optimizer.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()

    return lambda: observed(script)


def stuck_inputs(loop, step):
    x, (_, y) = loop.x[:32], loop.batch(step)
    loop.optimizer.zero_grad()
    cross_entropy(loop.model(x), y).backward()
    loop.optimizer.step()


def scheduled(kind):
    def step(loop, number):
        if number == 0:
            loop.schedule = kind(loop.optimizer)
        Loop.step(loop, number)
        loop.schedule.step()

    return of(step=step)


def falls(optimizer):
    return torch.optim.lr_scheduler.StepLR(optimizer, 1)


def restarts(optimizer):
    return torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 6)


def renamed(wrong):
    """A checkpoint with another name for the encoder, and one without a head."""

    def script():
        model, state = Parts(), Parts().state_dict()
        if wrong:
            state = {name.replace("encoder.", "backbone."): value for name, value in state.items()}
        else:
            state = {name: value for name, value in state.items() if "head" not in name}
        model.load_state_dict(state, strict=False)
        plain_loop(model)

    return lambda: observed(script)


def clips_late(late):
    def script():
        def step(model, optimizer, loss):
            loss.backward()
            for part in (optimizer.step, None)[:: 1 if late else -1]:
                part() if part else nn.utils.clip_grad_norm_(model.parameters(), 0.1)

        plain_loop(network(), step)

    return lambda: observed(script)


def game(cleared, stepped=True, rounds=STEPS):
    """A generator against a discriminator, in which its pass leaves a gradient that is cleared before the next one."""

    def script():
        made = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 12))
        judge = nn.Sequential(nn.Linear(12, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
        first, second = (torch.optim.Adam(m.parameters(), 1e-3) for m in (made, judge))
        loss, x = nn.BCEWithLogitsLoss(), data()[0]
        for number in range(rounds):
            real, fake = x[32 * (number % 32) : 32 * (number % 32) + 32], made(torch.randn(32, 4))
            if cleared:
                second.zero_grad()
            (loss(judge(real), torch.ones(32, 1)) + loss(judge(fake.detach()), torch.zeros(32, 1))).backward()
            second.step()
            first.zero_grad()
            loss(judge(fake), torch.ones(32, 1)).backward()
            (first if stepped else second).step()

    return lambda: observed(script)


# the order of backward, clear, clip and step, and what each of them is given


def on_nothing(detached):
    def step(loop, number):
        x, y = loop.batch(number)
        loop.optimizer.zero_grad()
        output = loop.model(x)
        loss = cross_entropy(output.detach().requires_grad_() if detached else output, y)
        loss.backward()
        loop.optimizer.step()

    return of(step=step)


def wiped(always):
    """Four batches a step, of which the gradients of three are cleared again."""

    def step(loop, number):
        loop.optimizer.zero_grad()
        for part in range(4):
            x, y = loop.batch(4 * number + part)
            if always:
                loop.optimizer.zero_grad()
            (cross_entropy(loop.model(x), y) / 4).backward()
        nn.utils.clip_grad_norm_(loop.model.parameters(), 1.0)
        loop.optimizer.step()

    return of(step=step)


def adversarial(loop, number):
    """The gradient of a first pass is used for its inputs, and cleared."""
    x, y = loop.batch(number)
    x = x.clone().requires_grad_()
    cross_entropy(loop.model(x), y).backward()
    loop.optimizer.zero_grad()
    cross_entropy(loop.model((x + 0.1 * x.grad.sign()).detach()), y).backward()
    loop.optimizer.step()


def by_parts(loop, number):
    """The gradient of each part of a batch is clipped by itself, and their mean is the gradient of the step."""
    x, y = loop.batch(number)
    total = [torch.zeros_like(p) for p in loop.model.parameters()]
    for rows in torch.arange(32).split(8):
        loop.optimizer.zero_grad()
        cross_entropy(loop.model(x[rows]), y[rows]).backward()
        nn.utils.clip_grad_norm_(loop.model.parameters(), 1.0)
        for mean, p in zip(total, loop.model.parameters(), strict=True):
            mean += p.grad / 4
    for mean, p in zip(total, loop.model.parameters(), strict=True):
        p.grad.copy_(mean)
    loop.optimizer.step()


def critic(loop, number):
    """A critic whose last bias has no gradient of its own, and that of another network's pass before."""
    if number == 0:
        loop.made = nn.Linear(4, 12)
        loop.other = torch.optim.SGD(loop.made.parameters(), 0.01)
    x, _ = loop.batch(number)
    loop.optimizer.zero_grad()
    (loop.model(loop.made(torch.randn(32, 4)).detach()).mean() - loop.model(x).mean()).backward()
    loop.optimizer.step()
    loop.other.zero_grad()
    (-loop.model(loop.made(torch.randn(32, 4))).mean()).backward()
    loop.other.step()


def clipped_then(right):
    def step(loop, number):
        x, y = loop.batch(number)
        loop.optimizer.zero_grad(set_to_none=number % 2 == 0)
        cross_entropy(loop.model(x), y).backward()
        if not right:
            loop.optimizer.step()
        nn.utils.clip_grad_norm_(loop.model.parameters(), 0.05)
        if right:
            loop.optimizer.step()
            loop.optimizer.zero_grad(set_to_none=False)

    return step


def clips_what(used_up):
    def script():
        model = network()
        kept = model.parameters() if used_up else list(model.parameters())
        for _ in kept:
            pass

        def step(_, optimizer, loss):
            loss.backward()
            nn.utils.clip_grad_norm_(kept, 0.1)
            optimizer.step()

        plain_loop(model, step)

    return lambda: observed(script)


def scaler_left_out(left_out):
    def script():
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)

        def step(_, optimizer, loss):
            scaler.scale(loss).backward()
            if left_out:
                optimizer.step()
                return
            scaler.step(optimizer)
            scaler.update()

        plain_loop(network(), step)

    return lambda: observed(script)


def renewed(every):
    """Adam is made anew in every step, or once in so many."""

    def script():
        model, (x, y) = network(), data()
        for number, rows in enumerate(torch.arange(len(x)).split(24)):
            if number % every == 0:
                optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
            optimizer.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()

    return lambda: observed(script)


def without_backward(left_out):
    return lambda: observed(
        lambda: plain_loop(network(), lambda _, optimizer, loss: (left_out or loss.backward(), optimizer.step()))
    )


# what is drawn, saved and scheduled


class OneRow(torch.utils.data.Dataset):
    def __init__(self, wrong):
        self.wrong, (self.x, self.y) = wrong, data()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, place):
        return self.x[0 if self.wrong else place], self.y[place]


def from_loader(model, loader, epochs=1, before=None, after=None):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    schedule = after(optimizer) if after else None
    for epoch in range(epochs):
        if before:
            before(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()
        if schedule:
            schedule()


def of_one_row(wrong):
    return lambda: observed(lambda: from_loader(network(), torch.utils.data.DataLoader(OneRow(wrong), batch_size=32)))


def same_order(wrong):
    def script():
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data(256)), 32, shuffle=True)
        from_loader(network(), loader, 5, lambda epoch: torch.manual_seed(0 if wrong else epoch))

    return lambda: observed(script)


def sampled(wrong):
    def script():
        kept = torch.utils.data.TensorDataset(*data(512))
        sampler = torch.utils.data.DistributedSampler(kept, 2, 0)
        loader = torch.utils.data.DataLoader(kept, 32, sampler=sampler)
        from_loader(network(), loader, 5, None if wrong else sampler.set_epoch)

    return lambda: observed(script)


def best_kept(copied):
    def script():
        model = network()
        best = model.state_dict() if not copied else copy.deepcopy(model.state_dict())
        plain_loop(model)
        model.load_state_dict(best)

    return lambda: observed(script)


def schedule_stepped(wrong):
    def script():
        def after(optimizer):
            if wrong == "of another":
                optimizer = torch.optim.SGD([p for g in optimizer.param_groups for p in g["params"]], 0.05)
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
            if wrong != "never":
                optimizer._step_count = 1
            return (lambda: None) if wrong == "never" else schedule.step

        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data(1024)), 32, shuffle=True)
        from_loader(network(), loader, 4, None, after)

    return lambda: observed(script)


def with_nan(left_out):
    def step(loop, number):
        x, y = loop.batch(number)
        x = torch.where(torch.arange(32)[:, None] == 3, float("nan"), x) if number == 4 else x
        loop.optimizer.zero_grad()
        loss = cross_entropy(loop.model(x), y)
        if not left_out or torch.isfinite(loss):
            loss.backward()
            loop.optimizer.step()

    return of(step=step)


# what is set in vain


def drawn_again(model):
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()


def overwritten(wrong):
    def script():
        state, model = network().state_dict(), network()
        if not wrong:
            drawn_again(model)
        model.load_state_dict(state)
        if wrong:
            drawn_again(model)
        plain_loop(model)

    return lambda: observed(script)


def loaded_elsewhere(wrong):
    def script():
        state, model = network().state_dict(), network()
        if wrong:
            network().load_state_dict(state)
        else:
            model.load_state_dict(state)
        plain_loop(model)

    return lambda: observed(script)


def rate_set(on_optimizer):
    def script():
        def step(_, optimizer, loss):
            loss.backward()
            optimizer.step()
            if on_optimizer:
                optimizer.lr = 0.01
            else:
                optimizer.param_groups[0]["lr"] = 0.01

        plain_loop(network(), step)

    return lambda: observed(script)


def frozen_by_name(name):
    def script():
        model = network()
        setattr(model[0], name, False) if name == "requires_grad" else [
            setattr(p, name, False) for p in model[0].parameters()
        ]
        plain_loop(model)

    return lambda: observed(script)


def frozen_well_before():
    model = network()
    model[0].requires_grad_(False)
    plain_loop(model)


def zeroed(frozen):
    """The gradient of a layer is set to zero, or the layer is frozen, beside weight decay."""

    def step(loop, number):
        x, y = loop.batch(number)
        loop.optimizer.zero_grad()
        cross_entropy(loop.model(x), y).backward()
        if not frozen:
            for p in loop.model[0].parameters():
                p.grad.zero_()
        loop.optimizer.step()

    def go():
        loop = Loop(optimizer=lambda m: torch.optim.AdamW(list(m.parameters())[2 * frozen :], 1e-2, weight_decay=0.1))
        loop.model[0].requires_grad_(not frozen)
        return judged(loop, step)

    return go


def judged(loop, step):
    """The findings of the diagnosis at the end of a watched loop."""
    probe = loop.x[:64], loop.y[:64]
    watch = th.Watch(
        loop.model,
        optimizer=loop.optimizer,
        probe=probe,
        every=STEPS,
        level="cheap",
        budget=math.inf,
        loss=cross_entropy,
    )
    for number in range(STEPS):
        step(loop, number)
        watch(number)
    found = told(watch.diagnosis.findings)
    watch.close()
    return {name: severity for name, severity in found.items() if name != "frozen-by-mistake"}


def too_big(batch_size):
    return lambda: observed(
        lambda: from_loader(
            network(),
            torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data(64)), batch_size, drop_last=True),
            epochs=6,
        )
    )


def annealed(length):
    def script():
        model, kept = network(), torch.utils.data.TensorDataset(*data(512))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=length)
        for _ in range(3):
            for x, y in torch.utils.data.DataLoader(kept, 32):
                optimizer.zero_grad()
                cross_entropy(model(x), y).backward()
                optimizer.step()
                schedule.step()

    return lambda: observed(script)


def backward_after(all_batches):
    """One backward pass after each loop over batches: of the last loss, or of all of them."""

    def script():
        model, (x, y) = network(), data()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for _ in range(STEPS):
            total = torch.zeros(())
            for rows in torch.randperm(len(x)).split(256):
                loss = cross_entropy(model(x[rows]), y[rows])
                total = total + loss
            optimizer.zero_grad()
            (total / 4 if all_batches else loss).backward()
            optimizer.step()

    return lambda: observed(script)


class MadeAnew(nn.Module):
    def __init__(self, wrong):
        super().__init__()
        self.first, self.last, self.wrong = nn.Linear(12, 32), nn.Linear(32, 4), wrong
        self.middle = None if wrong else nn.Linear(32, 32)

    def forward(self, x):
        h = torch.relu(self.first(x))
        return self.last(torch.relu((nn.Linear(32, 32) if self.wrong else self.middle)(h)))


def of_made(wrong):
    return lambda: observed(lambda: plain_loop(MadeAnew(wrong)))


def penalized(wrong):
    """Beside a term of each batch alone, which needs no gradient."""

    def script():
        draw = torch.Generator().manual_seed(0)

        def step(model, optimizer, loss):
            size = sum((p.data if wrong else p).abs().sum() for p in model.parameters())
            (loss + 1e-3 * size + (0.0 if wrong else torch.rand((), generator=draw))).backward()
            optimizer.step()

        plain_loop(network(), step)

    return lambda: observed(script)


def of_two_views(wrong):
    def script():
        model, (x, _) = network(), data()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for rows in torch.arange(len(x)).split(32):
            one = x[rows] + 0.1 * torch.randn(len(rows), 12)
            other = one.clone() if wrong else x[rows] + 0.1 * torch.randn(len(rows), 12)
            model(one if wrong else other.clone())  # looked at beside the loss
            optimizer.zero_grad()
            cross_entropy(model(one) @ model(other).T, torch.arange(len(rows))).backward()
            optimizer.step()

    return lambda: observed(script)


def drawn_anew(wrong):
    """The weights are drawn again, and their optimizer goes on; as folds do, it is made again with them."""

    def script():
        model, (x, y) = network(), data()
        for number in range(200):
            if number % 40 == 0:
                drawn_again(model)
                if not (wrong and number):
                    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
            rows = torch.arange(32) + 32 * (number % 32)
            optimizer.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()

    return lambda: observed(script)


def pulled_back(wrong):
    def step(loop, number):
        if not number:
            loop.average = copy.deepcopy(loop.model)
        Loop.step(loop, number)
        with torch.no_grad():
            for own, mean in zip(loop.model.parameters(), loop.average.parameters(), strict=True):
                own.lerp_(mean, 0.99) if wrong else mean.lerp_(own, 0.01)

    return of(step=step)


UNREACHED = {"not-in-optimizer", "layer-cut-off"}

CASES = {
    "gradient cleared before the step": ({"gradient-cleared"}, of(step=cleared), of()),
    "gradient never cleared": ({"gradient-accumulates"}, of(step=kept, optimizer=sgd(0.01)), of(step=accumulated)),
    "two steps on one gradient": ({"gradient-stale"}, of(step=twice, optimizer=sgd(0.02)), of(optimizer=sgd(0.02))),
    "trained in evaluation mode, dropout": (
        {"trained-as-evaluated"},
        of(step=evaluating, dropout=0.3),
        of(dropout=0.3),
    ),
    "trained in evaluation mode, norm": ({"trained-as-evaluated"}, of(step=evaluating, norm=True), of(norm=True)),
    "evaluated in training mode, dropout": (
        {"evaluated-as-trained"},
        of(step=evaluation, dropout=0.3),
        of(step=evaluated_well, dropout=0.3),
    ),
    "evaluated in training mode, norm": (
        {"evaluated-as-trained"},
        of(step=evaluation, norm=True),
        of(step=evaluated_well, norm=True),
    ),
    "evaluated in one pass in training mode": (
        {"evaluated-as-trained"},
        of(step=single_pass(True), dropout=0.3),
        of(step=single_pass(False), dropout=0.3),
    ),
    "a norm left in training mode": (
        {"evaluated-as-trained"},
        of(step=single_pass(False, held=1), norm=True),
        of(step=single_pass(False), norm=True),
    ),
    "dropout without a mode": (
        {"evaluated-as-trained"},
        of(model=lambda: DropsAlways(True)),
        of(model=lambda: DropsAlways(False)),
    ),
    "a loader begun anew in every step": ({"batch-repeated"}, begun_anew(True), begun_anew(False)),
    "every batch twice": ({"batch-repeated"}, of(step=repeated), of(step=full_batch)),
    "targets of another batch": ({"targets-stuck"}, of(step=stuck_targets), of()),
    "step size 0": ({"step-size-zero"}, of(optimizer=sgd(0.0)), of(optimizer=sgd(1e-4))),
    "step size 0, of Adam": (
        {"step-size-zero"},
        of(optimizer=lambda m: torch.optim.Adam(m.parameters(), lr=0.0)),
        of(optimizer=lambda m: torch.optim.Adam(m.parameters(), lr=1e-3)),
    ),
    "warm-up longer than the run": ({"lr-still-rising"}, warming(1000), warming(6)),
    "tied weights parted while it runs": ({"weights-untied"}, of(model=Tied, step=untied), of(model=Tied)),
    "tied weights copied apart": ({"weights-untied"}, of(model=parted), of(model=lambda: Tied(tied=False))),
    "statistics that are not finite": ({"weights-not-finite"}, of(step=overflow, norm=True), of(norm=True)),
    "frozen weights that move": ({"frozen-moves"}, of(step=frozen_left), of(step=frozen_well)),
    "optimizer of a layer that was replaced": (
        {"optimizer-of-another", "not-in-optimizer"},
        of(optimizer=of_another),
        of(),
    ),
    "head missing from the optimizer": (
        {"not-in-optimizer"},
        of(optimizer=lambda m: torch.optim.SGD(m[0].parameters(), lr=0.1)),
        of(optimizer=two_rates),
    ),
    "two optimizers in turn": ({"held-twice"}, of(step=held_by_two), of(step=two_phases)),
    "weights put back after each step": ({"step-without-effect"}, of(step=restored), of()),
    "one layer put back after each step": ({"parameters-stuck"}, of(step=held_back), of()),
    "bfloat16 weights, small steps": (
        {"precision-too-low"},
        rounded(torch.bfloat16, 1e-4),
        rounded(torch.float32, 1e-4),
    ),
    "squared gradients averaged in bfloat16": (
        {"state-rounded-away"},
        of(model=lambda: Loop().model.bfloat16(), step=in_bfloat16, optimizer=adam((0.9, 0.999))),
        of(model=lambda: Loop().model.bfloat16(), step=in_bfloat16, optimizer=adam((0.9, 0.95))),
    ),
    "a trained network trained on": (
        {"gradient-cleared"},
        of(step=trained_on(cleared)),
        of(step=trained_on(Loop.step)),
    ),
    "workers with one generator": ({"workers-alike"}, lambda: of_loader(True), lambda: of_loader(False)),
    "checkpoint with other names": ({"checkpoint-not-loaded"}, loads("module."), loads("")),
    "clipped before unscaled": ({"clipped-scaled"}, clips(True), clips(False)),
    "encoder under no_grad": (UNREACHED, of(model=lambda: Parts("no_grad")), of(model=lambda: Parts("frozen"))),
    "detached between two parts": (UNREACHED, of(model=lambda: Parts("detach")), lambda: observed(two_branches)),
    "a head that the loss does not see": (
        UNREACHED,
        of(model=lambda: Parts("one head")),
        of(model=lambda: Parts("two heads")),
    ),
    "layers in a list": ({"not-in-optimizer"}, of(model=lambda: Odd(listed=True)), of(model=Odd)),
    "a trained tensor that is no parameter": ({"not-in-optimizer"}, of(model=lambda: Odd(plain=True)), of(model=Odd)),
    "optimizer of a copy": ({"optimizer-of-another"}, of(optimizer=of_copy), of(step=with_average)),
    "unfrozen, and in no optimizer": ({"not-in-optimizer"}, unfrozen(False), unfrozen(True)),
    "pretrained, its new head left out": ({"not-in-optimizer"}, pretrained(True), pretrained(False)),
    "every step skipped by a scaler": ({"step-without-effect"}, scaled_steps(True), scaled_steps(False)),
    "a step that is never reached": ({"step-without-effect"}, reached(1000), reached(4)),
    "a seed in every step": ({"draws-repeated"}, seeded(True), seeded(False)),
    "the same batch drawn in every step": ({"draws-repeated"}, drawn(lambda step: 42), drawn(lambda step: 42 + step)),
    "a checkpoint of which a filter leaves nothing": (
        {"checkpoint-not-loaded"},
        loads("module.", filtered=True),
        loads("", filtered=True),
    ),
    "a generator that is never stepped": (
        {"step-without-effect"},
        game(True, stepped=False, rounds=60),
        game(True, rounds=60),
    ),
    "inputs of another batch": ({"batch-repeated"}, of(step=stuck_inputs), of(step=full_batch)),
    "schedule of epochs stepped by batches": ({"schedule-ended"}, scheduled(falls), scheduled(restarts)),
    "half of a checkpoint": ({"checkpoint-not-loaded"}, renamed(True), renamed(False)),
    "clipped after the step": ({"clipped-late"}, clips_late(True), clips_late(False)),
    "discriminator never cleared": ({"gradient-accumulates"}, game(False), game(True)),
    "a loss of detached outputs": ({"step-without-effect"}, on_nothing(True), on_nothing(False)),
    "cleared after each of four batches": ({"gradient-cleared"}, wiped(True), wiped(False)),
    "cleared before the step, beside an adversary": ({"gradient-cleared"}, of(step=cleared), of(step=adversarial)),
    "cleared before the step, beside clipped parts": ({"gradient-cleared"}, of(step=cleared), of(step=by_parts)),
    "cleared before the step, beside a critic": ({"gradient-cleared"}, of(step=cleared), of(step=critic)),
    "an optimizer made anew in every step": ({"optimizer-renewed"}, renewed(1), renewed(12)),
    "backward left out": ({"step-without-effect"}, without_backward(True), without_backward(False)),
    "clipped after the step of a watched loop": (
        {"clipped-late"},
        of(step=clipped_then(False)),
        of(step=clipped_then(True)),
    ),
    "a generator that is used up is clipped": ({"clipped-late"}, clips_what(True), clips_what(False)),
    "a scaled loss, and a step without its scaler": ({"step-scaled"}, scaler_left_out(True), scaler_left_out(False)),
    "a data set that ignores its index": ({"batch-repeated"}, of_one_row(True), of_one_row(False)),
    "a seed in every epoch": ({"draws-repeated"}, same_order(True), same_order(False)),
    "a sampler that is not told of epochs": ({"batch-repeated"}, sampled(True), sampled(False)),
    "a best state that is no copy": ({"checkpoint-not-loaded"}, best_kept(False), best_kept(True)),
    "a schedule that is never stepped": ({"schedule-idle"}, schedule_stepped("never"), schedule_stepped("")),
    "a schedule of another optimizer": ({"schedule-idle"}, schedule_stepped("of another"), schedule_stepped("")),
    "a batch with nan": ({"weights-not-finite"}, with_nan(False), with_nan(True)),
    "initialized after the checkpoint was loaded": ({"checkpoint-not-loaded"}, overwritten(True), overwritten(False)),
    "loaded into another model": ({"checkpoint-not-loaded"}, loaded_elsewhere(True), loaded_elsewhere(False)),
    "a step size that nothing reads": ({"schedule-idle"}, rate_set(True), rate_set(False)),
    "frozen by an attribute of a layer": (
        {"frozen-moves"},
        frozen_by_name("requires_grad"),
        lambda: observed(frozen_well_before),
    ),
    "frozen by a name with a slip": (
        {"frozen-moves"},
        frozen_by_name("require_grad"),
        lambda: observed(frozen_well_before),
    ),
    "gradients set to zero beside weight decay": ({"frozen-moves"}, zeroed(False), zeroed(True)),
    "a batch size beyond the data": ({"step-without-effect"}, too_big(128), too_big(16)),
    "a cosine of epochs stepped by batches": ({"schedule-ended"}, annealed(3), annealed(48)),
    "backward after the loop over batches": ({"gradient-cleared"}, backward_after(False), backward_after(True)),
    "a layer made in forward": ({"not-in-optimizer"}, of_made(True), of_made(False)),
    "a penalty on detached weights": ({"penalty-idle"}, penalized(True), penalized(False)),
    "one view for both": ({"batch-repeated"}, of_two_views(True), of_two_views(False)),
    "weights drawn anew in every epoch": ({"step-without-effect"}, drawn_anew(True), drawn_anew(False)),
    "an average copied into the model": ({"step-without-effect"}, pulled_back(True), pulled_back(False)),
}
"""Each error: the names that are right, the loop with it, and its healthy twin."""

QUIET = {"step-too-small", "trained-too-short", "step-too-large", "overfits"}
"""What is true of loops of 36 steps, and is no alarm of these facts."""


def alarms_of(found):
    """What is a false alarm of a healthy loop: any note of these facts, and whatever is more than a note."""
    loud = {name for name, severity in found.items() if severity != "note"}
    return (found.keys() & ALL) | (loud - QUIET)


def cost(steps=2000):
    """Seconds of a step with the facts and without, on a small network: what they add is a constant."""
    from theodolite.verbs.watching.training_hooks.silent_errors import SilentErrors

    def seconds(watched):
        loop = Loop(dropout=0.1)
        seen = SilentErrors(loop.model, loop.optimizer) if watched else None
        if seen is not None:
            seen.listen(loop.model)
        for step in range(100):
            loop.step(step)
        began = time.process_time()
        for step in range(steps):
            loop.step(step)
        return (time.process_time() - began) / steps

    return min(seconds(True) for _ in range(3)) - min(seconds(False) for _ in range(3)), min(
        seconds(False) for _ in range(2)
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, (right, error, twin) in CASES.items():
        if options.only not in name:
            continue
        found, calm = error(), twin()
        named, alarms = bool(right & found.keys()), sorted(alarms_of(calm))
        rows.append({"error": name, "named": named, "found": sorted(found), "alarms on the twin": alarms})
        said = ", ".join(sorted(found.keys() - QUIET))
        print(f"{'named ' if named else 'MISSED'} {name}: {said}; twin: {', '.join(alarms) or 'silent'}")
    if options.only:
        return
    added, step = cost()
    hits, false = sum(row["named"] for row in rows), sum(bool(row["alarms on the twin"]) for row in rows)
    print(
        f"{hits} of {len(rows)} named, {false} twins with an alarm; {1e6 * added:.0f} us a step beside {1e6 * step:.0f}"
    )
    if options.out:
        with open(options.out, "w") as file, suppress(OSError):
            json.dump({"rows": rows, "named": hits, "alarms": false, "seconds a step": added}, file, indent=2)


ALL = {name for right, _, _ in CASES.values() for name in right} | {"replicas-differ"}

if __name__ == "__main__":
    main()
