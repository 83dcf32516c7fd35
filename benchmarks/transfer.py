"""Does the best step size of a small network stay the best of a large one? Multilayer perceptrons and a CNN on digits.

`python -m benchmarks.transfer sweep|check|clinic --out FILE` each write a part of benchmarks/transfer.json; `page` draws the
figures and the tables of docs/transfer.md from it and from benchmarks/gpu_transfer.json (`benchmarks.gpu_transfer`). `mup` 1.0.0
is measured where it is installed. One core, about half an hour in all.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from benchmarks.gpu_transfer import best_step
from torch import Tensor, nn
from torch.nn import functional as F

import theodolite as th

HERE = Path(__file__).parent
WIDTHS = {"mlp": (64, 128, 256, 512, 1024), "cnn": (16, 32, 64, 128)}
SEEDS, BATCH, STEPS = 3, 64, {"mlp": 80, "cnn": 60}
MIDDLE = {("mlp", "adam"): -6, ("mlp", "sgd"): -3, ("cnn", "adam"): -3, ("cnn", "sgd"): -1}


def digits() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    found = load_digits()
    x = torch.tensor(found.data, dtype=torch.float32)
    return (x - x.mean()) / x.std(), torch.tensor(found.target)


def mlp(width: int, head: type[nn.Module] = nn.Linear) -> nn.Module:
    layers = [nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, head(width, 10))


def cnn(width: int, head: type[nn.Module] = nn.Linear) -> nn.Module:
    first = [nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    second = [nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU()]
    return nn.Sequential(*first, *second, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head(2 * width, 10))


BUILDS: dict[str, Callable[..., nn.Module]] = {"mlp": mlp, "cnn": cnn}


def network(name: str, width: int, way: str, rule: str, lr: float, seed: int) -> tuple[nn.Module, Any]:
    """A network and its optimizer, in the standard way, by th.transfer, or by mup."""
    build = BUILDS[name]
    torch.manual_seed(seed)
    if way == "mup":
        import mup

        model, base, more = (build(n, mup.MuReadout) for n in (width, WIDTHS[name][0], 2 * WIDTHS[name][0]))
        mup.set_base_shapes(model, base, delta=more)
        for parameter in model.parameters():
            if parameter.ndim > 1:
                mup.init.kaiming_uniform_(parameter, a=math.sqrt(5))
        kind = mup.MuAdamW if rule == "adam" else mup.MuSGD
        return model, kind(model.parameters(), lr=lr, **_settings(rule))
    model = build(width)
    groups: Any = model.parameters()
    if way == "transferred":
        torch.manual_seed(100)
        plan = th.transfer(model, build(WIDTHS[name][0]))
        plan.initialize_(torch.Generator().manual_seed(seed))
        groups = [
            {key: value for key, value in group.items() if key != "rule"}
            for group in plan.groups(lr, rule=rule, weight_decay=_settings(rule)["weight_decay"])
        ]
    kind = torch.optim.AdamW if rule == "adam" else torch.optim.SGD
    return model, kind(groups, lr=lr, **_settings(rule))


def _settings(rule: str) -> dict[str, Any]:
    return {"weight_decay": 0.01} if rule == "adam" else {"momentum": 0.9, "weight_decay": 0.0}


def trained(name: str, width: int, way: str, rule: str, lr: float, seed: int, data: tuple[Tensor, Tensor]) -> float:
    """The loss on all training samples after the steps, with warmup and linear decay."""
    x, y = data
    model, optimizer = network(name, width, way, rule, lr, seed)
    order = torch.Generator().manual_seed(1000 + seed)
    steps = STEPS[name]
    base = [group["lr"] for group in optimizer.param_groups]
    for step in range(steps):
        for group, own in zip(optimizer.param_groups, base, strict=True):
            group["lr"] = own * min(1.0, (step + 1) / (0.1 * steps)) * (1 - step / steps)
        rows = torch.randint(len(x), (BATCH,), generator=order)
        loss = F.cross_entropy(model(x[rows]), y[rows])
        if not math.isfinite(float(loss.detach())):
            return math.inf
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        value = float(F.cross_entropy(model(x), y))
    return value if math.isfinite(value) else math.inf


def sweep() -> list[dict[str, Any]]:
    """Loss against step size for every network, width, optimizer and way."""
    data, found = digits(), []
    try:
        import mup  # noqa: F401

        ways = ("transferred", "standard", "mup")
    except ImportError:
        ways = ("transferred", "standard")
    for (name, rule), middle in MIDDLE.items():
        for way in ways:
            for width in WIDTHS[name] if way != "mup" else WIDTHS[name][::2]:
                low, high = (-6, 3) if way == "standard" else (-3, 4)
                lrs = [2.0 ** (middle + k) for k in range(low, high + 1)]
                began = time.perf_counter()
                losses = [[trained(name, width, way, rule, lr, seed, data) for lr in lrs] for seed in range(SEEDS)]
                row = {"network": name, "rule": rule, "way": way, "width": width, "lrs": lrs, "losses": losses}
                row |= best_step(lrs, losses) | {"seconds": time.perf_counter() - began}
                found.append(row)
                print({key: value for key, value in row.items() if key not in ("lrs", "losses")}, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("sweep", "check", "clinic", "page"))
    parser.add_argument("--out", type=Path, default=HERE / "transfer.json")
    options = parser.parse_args()
    if options.part == "page":
        from benchmarks.transfer_page import write

        write(options.out)
        return
    if options.part == "sweep":
        result: Any = sweep()
    else:
        from benchmarks import transfer_checks

        result = getattr(transfer_checks, options.part)()
    known = json.loads(options.out.read_text()) if options.out.exists() else {}
    options.out.write_text(json.dumps(known | {options.part: result}) + "\n")


if __name__ == "__main__":
    main()
