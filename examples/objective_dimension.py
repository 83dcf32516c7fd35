"""How many dimensions does a task need? Accuracy against the dimension of a random subspace, for three projections.

    python examples/objective_dimension.py [--data ../shared/data/mnist] [--out objective]

trains a 64-100-10 network on scikit-learn's digits, and a small convolutional network on MNIST where its four files are
(on digits otherwise), in subspaces that grow until 90 % of the full accuracy is reached. A run that is stopped goes on
where it was. Writes objective_dimension.html.
"""

import argparse
import gzip
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th
from theodolite.io.datasets import digits
from theodolite.report.drawing.charts import Figure, Points, Polyline
from theodolite.report.drawing.scales import Scale, scale_of
from theodolite.report.rendering import document_page

PROJECTIONS = ("fastfood", "sparse", "dense", "tied")


def digits_task():
    x, y = digits()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    x, y = x[order], y[order]
    return x[:1437], y[:1437], x[1437:], y[1437:]


def mnist_task(folder, count):
    def read(name, skip):
        with gzip.open(folder / name) as file:
            return torch.frombuffer(bytearray(file.read()[skip:]), dtype=torch.uint8)

    def part(prefix):
        x = read(f"{prefix}-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28).float() / 255
        return (x - 0.1307) / 0.3081, read(f"{prefix}-labels-idx1-ubyte.gz", 8).long()

    (x, y), (xt, yt) = part("train"), part("t10k")
    return x[:count], y[:count], xt[:2000], yt[:2000]


def mlp():
    return nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 10))


def conv_net(side):
    inner = (side // 4) ** 2 * 16
    return nn.Sequential(
        nn.Unflatten(1, (1, side)) if side == 8 else nn.Identity(),
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(inner, 10),
    )


class Study:
    """train(dimension, seed) and evaluate(model) for one task, network and projection; picklable, so jobs may share it."""

    def __init__(self, task, network, projection, *, steps, batch, lr):
        self.task, self.network, self.projection = task, network, projection
        self.steps, self.batch, self.lr = steps, batch, lr

    def train(self, dimension, seed):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)  # the layers draw their weights from torch's own generator
            model = self.network()
        if dimension is not None:
            model = th.subspace(model, dimension, projection=self.projection, seed=seed)
        own = [p for p in model.parameters() if p.requires_grad]
        lr = self.lr if dimension is None else 10 * self.lr
        optimizer = torch.optim.Adam(own, lr=lr)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.steps)
        generator = torch.Generator().manual_seed(seed)
        x, y, *_ = self.task
        for _ in range(self.steps):
            rows = torch.randint(len(x), (self.batch,), generator=generator)
            optimizer.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
            schedule.step()
        return model

    @torch.no_grad()
    def evaluate(self, model):
        model.eval()
        *_, x, y = self.task
        return (model(x).argmax(1) == y).float().mean().item()


def drawn(results, path):
    """A page with a figure for each study: accuracy against the dimension of the subspace, and what training alone gives."""
    parts = ["<h1>Dimension of objectives</h1>"]
    for title, found in results.items():
        points = []
        for group, (projection, result) in enumerate(found.items()):
            rows = result.rows()
            label = f"{projection}: d90 = {result.value:.0f} ± {result.stderr:.0f}"
            columns = [[row[name] for row in rows] for name in ("dimension", "score", "stderr")]
            points.append(Points(*columns, group, label))
        x = scale_of([value for some in points for value in some.x], log=True)
        ends = [x.low, x.high]
        lines = [
            Polyline(ends, [result.full.value] * 2, "ink", label="full training"),
            Polyline(ends, [result.target] * 2, "ink", "dashed", "90 % of it"),
        ]
        marks = [*lines, *(Polyline(some.x, some.y, f"c{some.group}") for some in points), *points]
        labels = {"x_label": "dimension of the subspace", "y_label": "test accuracy", "spoken": title}
        parts.append(f"<h2>{title}</h2>{Figure(x, Scale(0, 1.06), marks, [*points, *lines], **labels).svg()}")
    path.write_text(document_page("Dimension of objectives", "".join(parts)), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=Path("../shared/data/mnist"), help="folder of MNIST's four idx files"
    )
    parser.add_argument("--out", type=Path, default=Path("objective"), help="scores so far, and the figure")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--projections", nargs="+", default=PROJECTIONS, choices=PROJECTIONS)
    given = parser.parse_args()
    small = digits_task()
    studies = {"digits, 64-100-10": {"task": small, "network": mlp, "steps": 300, "batch": 1437, "lr": 1e-2}}
    if (given.data / "train-images-idx3-ubyte.gz").exists():
        task = mnist_task(given.data, 10_000)
        studies["MNIST, small conv net"] = {"task": task, "network": mnist_net, "steps": 300, "batch": 64, "lr": 1e-2}
    else:
        studies["digits, small conv net"] = {
            "task": small,
            "network": digits_net,
            "steps": 300,
            "batch": 128,
            "lr": 1e-2,
        }
    results = {}
    for title, setting in studies.items():
        count = sum(p.numel() for p in setting["network"]().parameters())
        title = f"{title} ({count:,} parameters)"
        results[title] = {}
        for projection in given.projections:
            study = Study(projection=projection, **setting)
            folder = given.out / title.split(" (")[0].replace(",", "").replace(" ", "-") / projection
            found = th.objective_dimension(
                study.train, study.evaluate, repeats=given.repeats, largest=4000, out=folder, jobs=given.jobs
            )
            results[title][projection] = found
            print(f"{title}, {projection}: {found}\n", flush=True)
    drawn(results, given.out / "objective_dimension.html")
    print("written:", given.out / "objective_dimension.html")


def mnist_net():
    return conv_net(28)


def digits_net():
    return conv_net(8)


if __name__ == "__main__":
    main()
