"""Full-batch Adam finds its own edge: the preconditioned sharpness settles at (2 + 2 b1) / ((1 - b1) lr), the plain one does not.

Three networks learn a Chebyshev polynomial under torch's Adam, watched. Prints both curvatures over Adam's edge late in
training, and writes adam_edge.svg, the first network's over the steps, into the folder named on the command line (the present one
unless told).
"""

import math
import sys
from pathlib import Path

import torch
from torch import Tensor

import theodolite as th
from theodolite.construct.propagation import network
from theodolite.measure.curvature import top_hessian_eigenvalues
from theodolite.report.figures import series_figure
from theodolite.report.rendering import picture_file

SEEN = "largest preconditioned Hessian eigenvalue"
STEPS, EVERY, LATE, LR, BETAS = 900, 20, 600, 0.006, (0.9, 0.99)
torch.set_num_threads(1)


def half_square(z: Tensor, t: Tensor) -> Tensor:
    return (z - t).square().mean() / 2


def curvatures(widths: tuple[int, ...], activation: str) -> tuple[th.Watch, list[float]]:
    """A watched run, and the plain sharpness at its looks."""
    x = torch.linspace(-1, 1, 20, dtype=torch.float64)[:, None]
    y = 8 * x**4 - 8 * x**2 + 1
    spec = th.Mlp(widths=widths, activation=activation, weight_variance=1.5, bias_variance=0.1)
    model = network(spec, 1, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    optimizer = torch.optim.Adam(model.parameters(), lr=LR, betas=BETAS)
    watch = th.Watch(model, optimizer=optimizer, probe=(x, y), loss=half_square, every=EVERY, budget=math.inf)
    plain = []
    for step in range(STEPS + 1):
        if watch(step) is not None:
            plain.append(top_hessian_eigenvalues(model, half_square, (x, y), count=1).values[0])
        optimizer.zero_grad()
        half_square(model(x), y).backward()
        optimizer.step()
    return watch, plain


def main(folder: Path) -> None:
    edge = (2 + 2 * BETAS[0]) / ((1 - BETAS[0]) * LR)
    print(f"Adam, lr {LR}: edge {edge:.0f}, 2/lr {2 / LR:.0f}")
    print("network            preconditioned / edge   plain / edge   plain / (2/lr)   phase")
    first = None
    for widths, activation in (((16, 16, 16), "tanh"), ((24, 24), "tanh"), ((32, 32), "gelu")):
        watch, plain = curvatures(widths, activation)
        first = first or (watch, plain)
        late = [n for n, record in enumerate(watch.records) if record.step >= LATE]
        seen = sum(watch.records[n].value(SEEN) or 0.0 for n in late) / len(late)
        flat = sum(plain[n] for n in late) / len(late)
        name = f"{activation} {'x'.join(map(str, widths))}"
        print(f"{name:<18} {seen / edge:<23.3f} {flat / edge:<14.4f} {flat * LR / 2:<16.3f} {watch.phase.name}")
    assert first is not None
    watch, plain = first
    told = [(r.step, r.value(SEEN), p) for r, p in zip(watch.records, plain, strict=True) if r.value(SEEN)]
    series = th.Series(
        x=tuple(float(step) for step, _, _ in told),
        measured=tuple(value / edge for _, value, _ in told),
        low=tuple(0.9 for _ in told),
        high=tuple(1.1 for _ in told),
        x_label="step",
        y_label="preconditioned sharpness over Adam's edge",
        line=tuple(p * LR / 2 for _, _, p in told),
        line_label="plain sharpness over 2/lr",
    )
    (folder / "adam_edge.svg").write_text(picture_file(series_figure(series)))
    print("written:", folder / "adam_edge.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
