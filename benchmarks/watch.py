"""What watching costs: th.Watch on a convolutional network of the size of a ResNet-18, beside cockpit's economy.

11 million parameters, 32 x 32 inputs, batches of 8, single precision, one thread, each tool in a process of its own; times are
processor seconds, so that other work on the machine does not count. The network has a ResNet-18's convolutions without its
shortcuts and batch normalisation, which cockpit's gradients of single samples do not know. A run of 201 steps with a look
every 100 is timed whole, watched beside bare steps of the same process. `make bench` makes both environments.
"""

import argparse
import resource
import statistics
import sys
import time
import types
from pathlib import Path

from peer_process import print_result, result_of

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".venv-peers"
THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
BATCH, EVERY, LR = 8, 100, 1e-3


def network():
    import torch
    from torch import nn

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
    started = time.process_time()
    action()
    return time.process_time() - started


def bare_step(model, x, y, optimiser):
    from torch.nn.functional import cross_entropy

    def step():
        optimiser.zero_grad()
        cross_entropy(model(x), y).backward()
        optimiser.step()

    return step


def run_theodolite(steps):
    import torch

    import theodolite as th

    model, x, y = network()
    optimiser = torch.optim.SGD(model.parameters(), lr=LR)
    step = bare_step(model, x, y, optimiser)
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
    return found


def run_cockpit(steps):
    if "pkg_resources" not in sys.modules:  # cockpit asks it for a version; newer setuptools does not have it
        shim = types.ModuleType("pkg_resources")
        shim.DistributionNotFound, shim.get_distribution = (
            LookupError,
            lambda name: types.SimpleNamespace(version="1.0.2"),
        )
        sys.modules["pkg_resources"] = shim
    import torch
    from backpack import extend
    from cockpit import Cockpit
    from cockpit.utils.configuration import configuration
    from cockpit.utils.schedules import linear
    from torch import nn

    model, x, y = network()
    optimiser = torch.optim.SGD(model.parameters(), lr=LR)
    plain = bare_step(model, x, y, optimiser)
    plain()
    bare = statistics.median(clocked(plain) for _ in range(10))
    model = extend(model)
    loss_fn, single = extend(nn.CrossEntropyLoss()), nn.CrossEntropyLoss(reduction="none")
    cockpit = Cockpit(model.parameters(), quantities=configuration("economy", track_schedule=linear(interval=EVERY)))

    def step(number):
        optimiser.zero_grad()
        outputs = model(x)
        loss = loss_fn(outputs, y)
        info = {"batch_size": BATCH, "individual_losses": single(outputs, y), "loss": loss, "optimizer": optimiser}
        with cockpit(number, info=info):
            loss.backward(create_graph=cockpit.create_graph(number))
        optimiser.step()

    times = [clocked(lambda n=n: step(n)) for n in range(steps)]
    tracked = [seconds for n, seconds in enumerate(times) if n % EVERY in (0, 1) and n > 1]  # alpha needs two steps
    between = statistics.median(seconds for n, seconds in enumerate(times) if n % EVERY > 1)
    return {"step": bare, "run": sum(times), "run_steps": steps, "between": between, "tracked": sum(tracked)}


RUNS = {"theodolite": run_theodolite, "cockpit": run_cockpit}


def process(python, tool, steps):
    return result_of(python, __file__, tool, ("--steps", steps), threads=THREADS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=Path, default=PEERS)
    parser.add_argument("--steps", type=int, default=201)
    parser.add_argument("--only", choices=RUNS, help="this tool alone")
    parser.add_argument("--tool", choices=RUNS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tool:
        import warnings

        warnings.simplefilter("ignore")
        import torch

        torch.set_num_threads(1)
        found = RUNS[options.tool](options.steps)
        print_result({**found, "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024})
        return
    if options.only in (None, "theodolite"):
        told(process(sys.executable, "theodolite", options.steps))
    if options.only in (None, "cockpit"):
        row = process(options.peers / "bin/python", "cockpit", options.steps)
        if row:
            share = row["run"] / row["run_steps"] / row["step"] - 1
            print(
                f"cockpit, economy, every {EVERY}: step {1e3 * row['step']:.0f} ms bare, {1e3 * row['between']:.0f} ms between "
                f"looks; a run of {row['run_steps']} steps {100 * share:+.1f} %; peak {row['rss']:.0f} MB"
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
    whole = row["run"] / row["run_steps"] / row["step"] - 1
    print(
        f"th.Watch, cheap, a run of {row['run_steps']} steps with {row['looks']} looks: {100 * whole:+.1f} % by processor time "
        f"against bare steps, {100 * row['wall']:.2f} % by its own clock; a call that is not due takes {1e6 * row['idle']:.2f} "
        f"µs; peak {row['rss']:.0f} MB"
    )


if __name__ == "__main__":
    main()
