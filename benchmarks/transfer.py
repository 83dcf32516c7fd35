"""Does the best step size of a small network stay the best of a large one? Multilayer perceptrons and CNNs on digits and bytes.

`python -m benchmarks.transfer sweep|check|clinic|repeats --out FILE` each write a part of benchmarks/transfer.json; `page` draws
the figures and the tables of docs/transfer.md from it and from benchmarks/gpu_transfer.json (`benchmarks.gpu_transfer`). `mup`
1.0.0 is measured where it is installed. The sweep is two minutes on a GPU and an hour on one core; check and clinic are half
an hour. `repeats` makes the grids again at other seeds where find_lr and a grid disagree.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from benchmarks.gpu_transfer import VOCABULARY, best_step, text
from torch import Tensor, nn
from torch.func import functional_call, grad, replace_all_batch_norm_modules_, vmap
from torch.nn import functional as F

import theodolite as th

HERE = Path(__file__).parent
WIDTHS = {
    "mlp": (64, 128, 256, 512, 1024),
    "cnn": (16, 32, 64, 128),
    "byte_mlp": (64, 128, 256, 512, 1024),
    "byte_cnn": (32, 64, 128, 256),
}
SEEDS, BATCH = 12, {"mlp": 64, "cnn": 64, "byte_mlp": 256, "byte_cnn": 256}
STEPS = {"mlp": (80, 320), "cnn": (60, 240), "byte_mlp": (300,), "byte_cnn": (300,)}
MIDDLE = {("mlp", "adam"): -6, ("mlp", "sgd"): -3, ("cnn", "adam"): -3, ("cnn", "sgd"): -1}
MIDDLE |= {("byte_mlp", "adam"): -6, ("byte_mlp", "sgd"): -2, ("byte_cnn", "adam"): -6, ("byte_cnn", "sgd"): -3}
CONTEXT, HELD_OUT = 16, 4096


def digits() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    found = load_digits()
    x = torch.tensor(found.data, dtype=torch.float32)
    return (x - x.mean()) / x.std(), torch.tensor(found.target)


def samples(name: str) -> tuple[Tensor, Tensor, slice, slice]:
    """Inputs and targets, which of them are trained on, and which the loss is taken of at the end."""
    if not name.startswith("byte"):
        return *digits(), slice(None), slice(None)
    rows = text(CONTEXT)
    return rows[:, :-1], rows[:, -1], slice(-HELD_OUT), slice(-HELD_OUT, None)


def mlp(width: int, head: type[nn.Module] = nn.Linear) -> nn.Module:
    layers = [nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, head(width, 10))


def cnn(width: int, head: type[nn.Module] = nn.Linear) -> nn.Module:
    first = [nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    second = [nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU()]
    return nn.Sequential(*first, *second, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head(2 * width, 10))


class OneHot(nn.Module):
    """Bytes as channels (B, 128, T), of mean square one."""

    def forward(self, x: Tensor) -> Tensor:
        return VOCABULARY**0.5 * (x[..., None] == torch.arange(VOCABULARY, device=x.device)).float().mT


def byte_mlp(width: int, head: type[nn.Module] = nn.Linear) -> nn.Module:
    first = [OneHot(), nn.Flatten(), nn.Linear(CONTEXT * VOCABULARY, width), nn.ReLU()]
    hidden = [layer for _ in range(2) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*first, *hidden, head(width, VOCABULARY))


def byte_cnn(width: int, head: type[nn.Module] = nn.Linear) -> nn.Module:
    first = [OneHot(), nn.Conv1d(VOCABULARY, width, 3), nn.BatchNorm1d(width), nn.ReLU()]
    second = [nn.Conv1d(width, 2 * width, 3), nn.BatchNorm1d(2 * width), nn.ReLU()]
    third = [nn.Conv1d(2 * width, 2 * width, 3, stride=3), nn.BatchNorm1d(2 * width), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*first, *second, *third, head(8 * width, VOCABULARY))


BUILDS: dict[str, Callable[..., nn.Module]] = {"mlp": mlp, "cnn": cnn, "byte_mlp": byte_mlp, "byte_cnn": byte_cnn}


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


def trained(name: str, width: int, way: str, rule: str, steps: int, lrs: list[float], seeds: int) -> list[list[float]]:
    """The loss after the steps, by seed and step size; all networks are trained as one stack."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, y, seen, judged = samples(name)
    x, y = x.to(device), y.to(device)
    numbers = torch.arange(len(x), device=device)
    nets = [network(name, width, way, rule, 1.0, seed) for seed in range(seeds)]
    plain = replace_all_batch_norm_modules_(BUILDS[name](width).to(device))
    p = {
        key: torch.stack([dict(model.named_parameters())[key].detach() for model, _ in nets for _ in lrs]).to(device)
        for key, _ in plain.named_parameters()
    }
    names = {id(own): key for key, own in nets[0][0].named_parameters()}
    groups = {names[id(own)]: group for group in nets[0][1].param_groups for own in group["params"]}
    share = 1.0
    if way == "mup":  # the readout divides what it gets by the growth of the width
        share = 1 / nets[0][0][-1].width_mult()
        plain[-1].register_forward_pre_hook(lambda module, args: (share * args[0],))
    rates = torch.tensor([lr for _ in nets for lr in lrs], device=device)
    orders = [torch.Generator().manual_seed(1000 + seed) for seed in range(seeds)]
    moments = {key: (torch.zeros_like(w), torch.zeros_like(w)) for key, w in p.items()}

    def loss(p: dict[str, Tensor], rows: Tensor) -> Tensor:
        return F.cross_entropy(functional_call(plain, p, (x[rows],)), y[rows])

    gradients = vmap(grad(loss))
    for step in range(steps):
        rows = torch.stack([torch.randint(len(x[seen]), (BATCH[name],), generator=order) for order in orders])
        found = gradients(p, rows.repeat_interleave(len(lrs), 0).to(device))
        warm = min(1.0, (step + 1) / (0.1 * steps)) * (1 - step / steps)
        for key, w in p.items():
            lr = (rates * warm * groups[key]["lr"]).view(-1, *(1,) * (w.ndim - 1))
            m, v = moments[key]
            if rule == "sgd":
                w.sub_(lr * m.mul_(0.9).add_(found[key]))
                continue
            m.lerp_(found[key], 0.1)
            v.lerp_(found[key].square(), 0.001)
            w.mul_(1 - lr * groups[key]["weight_decay"])
            w.sub_(lr / (1 - 0.9 ** (step + 1)) * m / ((v / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8))
    with torch.no_grad():
        values = vmap(loss, in_dims=(0, None), chunk_size=16)(p, numbers[judged]).nan_to_num(math.inf, math.inf).cpu()
    return values.view(seeds, len(lrs)).tolist()


def sweep() -> list[dict[str, Any]]:
    """Loss against step size for every network, width, optimizer, way and length of training."""
    cases = [(*key, way, steps) for key in MIDDLE for way in ("transferred", "standard") for steps in STEPS[key[0]]]
    if importlib.util.find_spec("mup"):
        cases += [(*key, "mup", STEPS[key[0]][0]) for key in MIDDLE if not key[0].startswith("byte")]
    found = []
    for name, rule, way, steps in cases:
        for width in WIDTHS[name] if way != "mup" else WIDTHS[name][::2]:
            low, high = (-6, 3) if way == "standard" else (-3, 4)
            lrs = [2.0 ** (MIDDLE[name, rule] + k) for k in range(low, high + 1)]
            row = {"network": name, "rule": rule, "way": way, "width": width, "steps": steps, "lrs": lrs}
            row["losses"] = trained(name, width, way, rule, steps, lrs, SEEDS if way != "mup" else 3)
            found.append(row)
            print({key: row[key] for key in row if key != "losses"}, best_step(lrs, row["losses"]), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("sweep", "check", "clinic", "repeats", "page"))
    parser.add_argument("--out", type=Path, default=HERE / "transfer.json")
    options = parser.parse_args()
    if options.part == "page":
        from benchmarks.transfer_page import write

        write(options.out)
        return
    from benchmarks import transfer_checks

    known = json.loads(options.out.read_text()) if options.out.exists() else {}
    if options.part == "clinic":
        found: Any = transfer_checks.clinic(known.get("clinic", ()))
    elif options.part == "repeats":
        found = transfer_checks.repeats(known["clinic"], known.get("repeats", ()))
    else:
        found = [sweep() if options.part == "sweep" else transfer_checks.check()]
    for result in found:  # written as it is found: a run that is ended goes on from there
        options.out.write_text(json.dumps(known | {options.part: result}) + "\n")


if __name__ == "__main__":
    main()
