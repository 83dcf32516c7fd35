"""What watching costs: th.Watch on a convolutional network of the size of a ResNet-18, beside cockpit's economy.

A ResNet-18 with its shortcuts and batch normalization, and a small LSTM, are watched under AdamW besides.

11 million parameters, 32 x 32 inputs, batches of 8, single precision, one thread, each tool in a process of its own; times are
processor seconds, so that other work on the machine does not count; with `--threads 2` they are those of the clock. The network
has a ResNet-18's convolutions without its shortcuts and batch normalization, which cockpit's gradients of single samples do not
know. A run of 201 steps with a look every 100 is timed whole, watched beside bare steps of the same process. `make bench` makes
both environments.

Of each level two prices are told: that of a whole look, and the share of a run that looks take as a user gets them. With
`--trades FOLDER` the runs of `trades.py` in that folder are watched besides, each as a user would: CPU seconds of looks beside
those of the same training alone, the first looks counted in.
"""

import argparse
import resource
import statistics
import sys
import time
import types
from pathlib import Path

import torch
from peer_process import print_result, result_of
from torch import nn
from torch.nn.functional import cross_entropy

try:
    import theodolite as th
except ImportError:  # cockpit's environment has none
    th = None

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".venv-peers"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
BATCH, EVERY, LR = 8, 100, 1e-3
OFTEN, LONGEST = 20, 30.0
"""Steps between two looks whose share is measured, and seconds of such a run."""


def network():
    torch.manual_seed(0)
    layers, inputs = [], 3
    for width, count, stride in ((64, 5, 1), (128, 4, 2), (256, 4, 2), (512, 4, 2)):
        for place in range(count):
            layers += [nn.Conv2d(inputs, width, 3, stride if place == 0 else 1, padding=1), nn.ReLU()]
            inputs = width
    model = nn.Sequential(*layers, nn.AvgPool2d(4), nn.Flatten(), nn.Linear(512, 10))
    for module in model:
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            nn.init.zeros_(module.bias)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(BATCH, 3, 32, 32, generator=generator)
    return model, x, torch.randint(0, 10, (BATCH,), generator=generator)


def clocked(action):
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    started = clock()
    action()
    return clock() - started


def most_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def bare_step(model, x, y, optimizer):
    def step():
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def run_theodolite(steps):
    model, x, y = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    step = bare_step(model, x, y, optimizer)
    step()
    bare = statistics.median(clocked(step) for _ in range(10))
    found = {"parameters": sum(p.numel() for p in model.parameters()), "step": bare}
    watch = th.Watch(model, probe=(x, y), every=EVERY, level="cheap")
    watched = clocked(lambda: [(watch(n, lr=LR), step()) for n in range(steps)])
    found |= {"run": watched, "run_steps": steps, "wall": watch.overhead, "looks": len(watch.records)}
    for level in ("cheap", "standard"):
        other = th.Watch(model, probe=(x, y), every=EVERY, level=level)
        other.look(0, lr=LR)  # the first look finds the eigenvector; later ones begin from it
        found[level] = statistics.median(clocked(lambda n=n: other.look(n, lr=LR)) for n in range(1, 4))  # noqa: B023
    found["idle"] = clocked(lambda: [watch(steps, lr=LR) for _ in range(10_000)]) / 10_000
    thinned = th.Watch(model, probe=(x, y), every=OFTEN, level="cheap")
    found["thinned cheap"] = share_taken(thinned, step, longest=LONGEST / 2)
    return found


class Shortcut(nn.Module):
    """Two convolutions with batch normalization, and a way around them."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
        )
        same = stride == 1 and inputs == width
        self.around = (
            nn.Identity() if same else nn.Sequential(nn.Conv2d(inputs, width, 1, stride), nn.BatchNorm2d(width))
        )

    def forward(self, x):
        return torch.relu(self.body(x) + self.around(x))


class Tagger(nn.Module):
    """A small LSTM that names the next of 64 tokens."""

    def __init__(self):
        super().__init__()
        self.token, self.lstm, self.head = nn.Embedding(64, 64), nn.LSTM(64, 128, batch_first=True), nn.Linear(128, 64)

    def forward(self, x):
        return self.head(self.lstm(self.token(x))[0]).transpose(1, 2)


def resnet18():
    layers, inputs = [nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()], 64
    for width, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Shortcut(inputs, width, stride))
        inputs = width
    x = torch.randn(BATCH, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    return (
        nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)),
        x,
        torch.arange(BATCH) % 10,
    )


def lstm():
    whole = torch.randint(0, 64, (16, 33), generator=torch.Generator().manual_seed(1))
    return Tagger(), whole[:, :-1], whole[:, 1:]


def run_model(make, steps):
    """A look of each level of a model under AdamW, in steps; the first of a level apart."""
    torch.manual_seed(0)
    model, x, y = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR)
    step = bare_step(model, x, y, optimizer)
    step()
    found = {"parameters": sum(p.numel() for p in model.parameters())}
    found["step"] = statistics.median(clocked(step) for _ in range(10))
    found["bare rss"] = most_memory()
    probe = (x[: len(x) // 2], y[: len(x) // 2])
    for level in ("cheap", "standard"):
        watch = th.Watch(model, optimizer=optimizer, probe=probe, every=1, level=level)
        seconds = []
        for n in range(4):
            step()
            seconds.append(clocked(lambda n=n: watch.look(n)))  # noqa: B023
        found |= {level: statistics.median(seconds[1:]), f"first {level}": seconds[0], f"{level} rss": most_memory()}
        watch.close()
    for level in ("cheap", "standard"):
        watch = th.Watch(model, optimizer=optimizer, probe=probe, every=OFTEN, level=level)
        found[f"thinned {level}"] = share_taken(watch, step)
        watch.close()
    return found


def share_taken(watch, step, longest=LONGEST):
    """The share of a run that its looks take, how many were whole, of how many."""
    number, started = 0, time.perf_counter()
    while time.perf_counter() - started < longest:
        watch(number)
        step()
        number += 1
    whole = sum("thinned" not in record.facts for record in watch.records)
    return watch.overhead, whole, len(watch.records)


def watch_trades(folder):
    """Each run of a folder's ``trades.py`` bare and watched: CPU seconds of training, of looks, and of hooks on the steps."""
    sys.path.insert(0, str(folder))
    import harness
    import trades

    def trained(name, watched):
        run = trades.CASES[name][0]()
        x, y = run.train
        told = {"loss": run.loss, "optimizer": run.opt, "validation": run.val}
        began = time.process_time()
        watch = th.Watch(run.model, probe=(x[:256], y[:256]), every=25, **told) if watched else None
        looks = time.process_time() - began
        for number, batch in zip(range(run.steps), harness.batches(run), strict=False):
            (run.step or harness.normal_step)(run, *batch)
            if watch is not None:
                before = time.process_time()
                watch(number)
                looks += time.process_time() - before
        return time.process_time() - began, looks, 0 if watch is None else len(watch.records)

    names = list(trades.CASES)
    trained(names[-1], True)  # what has to be loaded once is no part of a look
    rows = []
    for name in names:
        bare, _, _ = trained(name, False)
        whole, looks, count = trained(name, True)
        rows.append((bare, looks, whole - looks - bare))
        print(
            f"{name}: training {bare:.2f} s, {count} looks {100 * looks / bare:.1f} %, hooks {100 * rows[-1][2] / bare:.1f} %"
        )
    shares = sorted(looks / bare for bare, looks, _ in rows)
    print(
        f"looks of {len(rows)} runs: {100 * statistics.median(shares):.1f} % of training in the middle, {100 * shares[-1]:.1f} % "
        f"at most, {100 * sum(r[1] for r in rows) / sum(r[0] for r in rows):.1f} % of all; hooks on the steps "
        f"{100 * statistics.median(r[2] / r[0] for r in rows):.1f} % in the middle"
    )


def run_cockpit(steps):
    if "pkg_resources" not in sys.modules:  # cockpit asks it for a version; newer setuptools does not have it
        shim = types.ModuleType("pkg_resources")
        shim.DistributionNotFound, shim.get_distribution = (
            LookupError,
            lambda name: types.SimpleNamespace(version="1.0.2"),
        )
        sys.modules["pkg_resources"] = shim
    from backpack import extend
    from cockpit import Cockpit
    from cockpit.utils.configuration import configuration
    from cockpit.utils.schedules import linear

    model, x, y = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    plain = bare_step(model, x, y, optimizer)
    plain()
    bare = statistics.median(clocked(plain) for _ in range(10))
    model = extend(model)
    loss_fn, single = extend(nn.CrossEntropyLoss()), nn.CrossEntropyLoss(reduction="none")
    cockpit = Cockpit(model.parameters(), quantities=configuration("economy", track_schedule=linear(interval=EVERY)))

    def step(number):
        optimizer.zero_grad()
        outputs = model(x)
        loss = loss_fn(outputs, y)
        info = {"batch_size": BATCH, "individual_losses": single(outputs, y), "loss": loss, "optimizer": optimizer}
        with cockpit(number, info=info):
            loss.backward(create_graph=cockpit.create_graph(number))
        optimizer.step()

    times = [clocked(lambda n=n: step(n)) for n in range(steps)]
    tracked = [seconds for n, seconds in enumerate(times) if n % EVERY in (0, 1) and n > 1]  # alpha needs two steps
    between = statistics.median(seconds for n, seconds in enumerate(times) if n % EVERY > 1)
    return {"step": bare, "run": sum(times), "run_steps": steps, "between": between, "tracked": sum(tracked)}


RUNS = {
    "theodolite": run_theodolite,
    "resnet-18": lambda steps: run_model(resnet18, steps),
    "lstm": lambda steps: run_model(lstm, steps),
    "cockpit": run_cockpit,
}


def process(python, tool, options):
    told = ("--steps", options.steps, "--threads", options.threads)
    return result_of(python, __file__, tool, told, threads=dict.fromkeys(THREADS, str(options.threads)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=Path, default=PEERS)
    parser.add_argument("--steps", type=int, default=201)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--trades", type=Path, help="the folder of a set of runs, which alone are watched then")
    parser.add_argument("--only", choices=RUNS, help="this tool alone")
    parser.add_argument("--tool", choices=RUNS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trades:
        torch.set_num_threads(1)
        watch_trades(options.trades)
        return
    if options.tool:
        import warnings

        warnings.simplefilter("ignore")
        torch.set_num_threads(options.threads)
        start = most_memory()
        print_result({**RUNS[options.tool](options.steps), "rss": most_memory(), "start rss": start})
        return
    if options.only in (None, "theodolite"):
        told(process(sys.executable, "theodolite", options))
    for name in ("resnet-18", "lstm"):
        if options.only in (None, name):
            told_of(name, process(sys.executable, name, options))
    if options.only in (None, "cockpit"):
        row = process(options.peers / "bin/python", "cockpit", options)
        if row:
            share = row["run"] / row["run_steps"] / row["step"] - 1
            print(
                f"cockpit, economy, every {EVERY}: step {1e3 * row['step']:.0f} ms bare, {1e3 * row['between']:.0f} ms between "
                f"looks; a run of {row['run_steps']} steps {100 * share:+.1f} %; peak {row['rss']:.0f} MB"
            )


def told_of(name, row):
    if row is None:
        return
    print(
        f"{name}, {row['parameters']:,} parameters, AdamW: a step takes {1e3 * row['step']:.0f} ms; the probe is half a batch"
    )
    for level in ("cheap", "standard"):
        share = row[level] / (EVERY * row["step"])
        mean, whole, looks = row[f"thinned {level}"]
        times = (row[f"{level} rss"] - row["start rss"]) / (row["bare rss"] - row["start rss"])
        print(
            f"th.Watch, {level}: a whole look takes {1e3 * row[level]:.0f} ms (the first {1e3 * row[f'first {level}']:.0f}), "
            f"every {EVERY} steps that is {100 * share:.2f} %; as users get it, {whole} of {looks} looks whole: "
            f"{100 * mean:.2f} %; peak {row[f'{level} rss']:.0f} MB, of training alone {row['bare rss']:.0f} MB, of "
            f"Python with torch {row['start rss']:.0f} MB: {times:.2f} times training"
        )


def told(row):
    if row is None:
        return
    print(f"network of {row['parameters']:,} parameters, batches of {BATCH}: a step takes {1e3 * row['step']:.0f} ms")
    for level in ("cheap", "standard"):
        share = row[level] / (EVERY * row["step"])
        print(
            f"th.Watch, {level}: a look takes {1e3 * row[level]:.0f} ms, every {EVERY} steps that is {100 * share:.2f} %"
        )
    mean, read, looks = row["thinned cheap"]
    print(f"th.Watch, cheap, as users get it, {read} of {looks} looks whole: {100 * mean:.2f} %")
    whole = row["run"] / row["run_steps"] / row["step"] - 1
    print(
        f"th.Watch, cheap, a run of {row['run_steps']} steps with {row['looks']} looks: {100 * whole:+.1f} % by processor time "
        f"against bare steps, {100 * row['wall']:.2f} % by its own clock; a call that is not due takes {1e6 * row['idle']:.2f} "
        f"µs; peak {row['rss']:.0f} MB"
    )


if __name__ == "__main__":
    main()
