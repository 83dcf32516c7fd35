"""Time of a step of the multiplicative updates beside torch's own, as ratios to Adam, on one thread.

Two problems: one linear layer of 10,000 inputs, and a network of four layers. Every round times all optimizers one after
the other, so that a machine's load falls on all alike; processor time, the median over rounds.
"""

import argparse
import statistics
import time

import torch
from torch import nn

from theodolite.nn import Spindly
from theodolite.optim import EGU, EGUpm


def linear(layer=None):
    return nn.Sequential(layer or nn.Linear(10_000, 1))


def network(first=None):
    return nn.Sequential(first or nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def positive(model):
    with torch.no_grad():
        for p in model.parameters():
            p.abs_().add_(1e-6)
    return model


def contestants(build, spindly):
    yield "SGD", build(), lambda p: torch.optim.SGD(p, lr=1e-4, foreach=True)
    yield "Adam", build(), lambda p: torch.optim.Adam(p, lr=1e-5, foreach=True)
    yield "EGU", positive(build()), lambda p: EGU(p, lr=1e-5)
    yield "EGUpm", build(), lambda p: EGUpm(p, lr=1e-5)
    yield "Spindly + SGD", build(spindly), lambda p: torch.optim.SGD(p, lr=1e-5, foreach=True)


def timed(work, calls):
    start = time.process_time()
    for _ in range(calls):
        work()
    return (time.process_time() - start) / calls


def rows(build, spindly, x, *, calls, rounds):
    made = []
    for name, model, optimizer in contestants(build, spindly):
        stepping = optimizer(list(model.parameters()))

        def whole(model=model, stepping=stepping):
            stepping.zero_grad()
            model(x).square().mean().backward()
            stepping.step()

        whole()
        made.append((name, stepping.step, whole, [], []))
    for _ in range(rounds):
        for _, step, whole, steps, wholes in made:
            steps.append(timed(step, calls))
            wholes.append(timed(whole, calls))
    return [(name, statistics.median(steps), statistics.median(wholes)) for name, _, _, steps, wholes in made]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    for title, build, spindly, x, calls in (
        (
            "10,000 inputs, 1 output, batch 500",
            linear,
            Spindly(10_000, 1),
            torch.randn(500, 10_000, generator=generator),
            3,
        ),
        ("784-512-512-10, batch 128", network, Spindly(784, 512), torch.randn(128, 784, generator=generator), 5),
    ):
        table = rows(build, spindly, x, calls=calls, rounds=rounds)
        adam = next(row for row in table if row[0] == "Adam")
        print(f"{title}\n{'':16}{'update, µs':>12}{'of Adam':>9}{'whole step, ms':>16}{'of Adam':>9}")
        for name, step, whole in table:
            print(f"{name:16}{1e6 * step:12.0f}{step / adam[1]:9.2f}{1e3 * whole:16.2f}{whole / adam[2]:9.2f}")


if __name__ == "__main__":
    main()
