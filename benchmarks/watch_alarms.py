"""Does the alarm of th.Watch come in time, and only where it should? Runs whose step is far too large, right, or far too small.

SGD, momentum, Adam and AdamW on a network of two hidden layers, a convolutional one with batch normalization and a transformer,
each at several seeds. The right step of each pair is given below; hot runs take 30 to 1000 times as much, cold ones a hundredth.
An alarm is a finding of severity critical or warning. Of hot runs whose loss doubles (on the probe, as the step sees it, beside
its start) it counts whether the alarm came at or before the look that first shows it; others that are hot are told apart.
Healthy and cold runs should have none. Since the alarm is given at 1.8 times the start at the latest, what is open is how often
it comes before the loss has doubled. Looks are every 5 steps, level cheap. `python benchmarks/watch_alarms.py --seeds 5`. Looks
are whole; with `--thin` they are those that 1 % of so short a run allows.
"""

import argparse
import logging
import math
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
import theodolite as th
from theodolite.verbs.watching import watched_run

STEPS, EVERY, BATCH, CLASSES = 100, 5, 32, 4


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(12, 16), nn.Parameter(0.1 * torch.randn(10, 16))
        self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.last, self.head = nn.LayerNorm(16), nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.head(self.last(self.block(self.token(x) + self.place)).mean(1))


def mlp(generator):
    y = torch.randint(0, CLASSES, (512,), generator=generator)
    x = torch.randn(512, 12, generator=generator) + 1.5 * torch.eye(12)[y]
    return nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, CLASSES)), x, y


def convnet(generator):
    y = torch.randint(0, CLASSES, (512,), generator=generator)
    x = torch.randn(512, 1, 8, 8, generator=generator)
    x[:, 0, 2:6, 2:6] += 1.5 * torch.randn(CLASSES, 4, 4, generator=torch.Generator().manual_seed(9))[y]
    layers = [
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.BatchNorm2d(16),
    ]
    return nn.Sequential(*layers, nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, CLASSES)), x, y


def transformer(generator):
    x = torch.randint(0, 12, (512, 10), generator=generator)
    return Transformer(), x, (x < 3).sum(1).clamp(max=CLASSES - 1)


MODELS = {"MLP": mlp, "CNN, BatchNorm": convnet, "transformer": transformer}
OPTIMIZERS = {
    "SGD": lambda own, lr: torch.optim.SGD(own, lr),
    "momentum": lambda own, lr: torch.optim.SGD(own, lr, momentum=0.9),
    "Adam": lambda own, lr: torch.optim.Adam(own, lr),
    "AdamW": lambda own, lr: torch.optim.AdamW(own, lr),
}
RIGHT = {
    ("MLP", "SGD"): 0.1,
    ("MLP", "momentum"): 0.03,
    ("CNN, BatchNorm", "SGD"): 0.1,
    ("CNN, BatchNorm", "momentum"): 0.03,
    ("transformer", "SGD"): 0.1,
    ("transformer", "momentum"): 0.03,
}
"""Steps that learn each task well in 100 steps; of Adam and AdamW it is 3e-3 everywhere."""
FACTORS = {"hot": (30, 100, 300, 1000), "healthy": (0.3, 1, 2), "cold": (0.01, 0.003)}


def run(model_name, optimizer_name, factor, seed, every=EVERY, budget=math.inf):
    """First step with an alarm, first look at which the loss has doubled, loss at start and end; infinity: never."""
    torch.manual_seed(seed)
    model, x, y = MODELS[model_name](torch.Generator().manual_seed(seed))
    lr = factor * RIGHT.get((model_name, optimizer_name), 3e-3)
    optimizer = OPTIMIZERS[optimizer_name](model.parameters(), lr)
    alarms = []

    def hear(step, finding):
        if finding.severity != "note":
            alarms.append((step, finding))

    watch = th.Watch(
        model,
        optimizer=optimizer,
        probe=(x[:128], y[:128]),
        every=every,
        level="cheap",
        budget=budget,
        on_finding=hear,
        batch_size=BATCH,
    )
    order = torch.Generator().manual_seed(seed)
    for step in range(STEPS + 1):
        watch(step)
        rows = torch.randint(0, 512, (BATCH,), generator=order)
        optimizer.zero_grad()
        cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    losses = [(r.step, r.facts.get("step_loss", math.nan)) for r in watch.records]
    start = losses[0][1]
    doubled = next((step for step, loss in losses if not loss <= 2 * start), math.inf)
    return (alarms[0] if alarms else (math.inf, None)), doubled, start, losses[-1][1]


def table(seeds, every=EVERY, budget=math.inf):
    rows = []
    for kind, factors in FACTORS.items():
        for model in MODELS:
            for optimizer in OPTIMIZERS:
                for seed in seeds:
                    factor = factors[(seed + list(OPTIMIZERS).index(optimizer)) % len(factors)]
                    (first, finding), doubled, start, end = run(model, optimizer, factor, seed, every, budget)
                    rows.append((kind, model, optimizer, factor, seed, first, doubled, start, end, finding))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--every", type=int, default=EVERY, help="steps between looks")
    parser.add_argument("--thin", action="store_true", help="looks within their share of the run")
    parser.add_argument("--all", action="store_true", help="every run, not only those that went wrong")
    options = parser.parse_args()
    logging.getLogger("theodolite").setLevel(logging.CRITICAL)
    watched_run.LARGEST_TRIED = 0  # when the alarm comes is asked here, not which step it advises
    rows = table(range(options.seeds), options.every, None if options.thin else math.inf)
    for kind in FACTORS:
        own = [row for row in rows if row[0] == kind]
        for model in MODELS:
            for optimizer in OPTIMIZERS:
                part = [row for row in own if row[1:3] == (model, optimizer)]
                alarmed = sum(row[5] < math.inf for row in part)
                doubled = [row for row in part if row[6] < math.inf]
                timely = sum(row[5] <= row[6] for row in doubled)
                said = f"{timely} of {len(doubled)} in time" if kind == "hot" else f"{alarmed} of {len(part)} alarmed"
                print(f"{kind:<8} {model:<15} {optimizer:<9} {said}")
        if kind == "hot":
            doubled = [row for row in own if row[6] < math.inf]
            print(
                f"hot: alarm at or before the loss had doubled in {sum(r[5] <= r[6] for r in doubled)} of {len(doubled)} runs; "
            )
            early = sum(row[5] < row[6] for row in doubled)
            rest = [row for row in own if not row[6] < math.inf]
            print(
                f"     before in {early}; of {len(rest)} whose loss never doubled {sum(r[5] < math.inf for r in rest)} alarmed"
            )
        else:
            print(f"{kind}: no alarm in {sum(not row[5] < math.inf for row in own)} of {len(own)} runs")
    for row in rows:
        wrong = (row[0] == "hot" and row[6] < row[5]) or (row[0] != "hot" and row[5] < math.inf)
        if wrong or options.all:
            print(*row[:9], "" if row[9] is None else f"{row[9].name}: {row[9].says}")


if __name__ == "__main__":
    main()
