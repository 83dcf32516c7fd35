"""Many features, few that matter: multiplicative updates beside SGD, Adam and the lasso, on made and on real data.

Made: 10,000 features, 50 of them relevant, 500 examples. Real: scikit-learn's breast cancer data, 30 measured features
among 3,000 probes (the same columns with their rows shuffled, which say nothing), 150 examples. Every method's settings
(learning rate, stopping time, size of the start, or penalty) are chosen on a fifth of the training set held out. The smaller
multiplicative updates start, the nearer they come to the solution of least absolute sum.
"""

import argparse
import itertools
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from theodolite.nn import Spindly
from theodolite.optim import EGUpm
from theodolite.report.drawing.charts import Bars, Figure
from theodolite.report.drawing.scales import named_scale, scale_of
from theodolite.report.progress import tracked
from theodolite.report.rendering import document_page

EVERY = 25


def made(generator):
    """Labels are a sum of 50 features of random signs, plus a little noise."""
    x = torch.randn(1500, 10_000, generator=generator)
    weight = torch.zeros(10_000)
    chosen = torch.randperm(10_000, generator=generator)[:50]
    weight[chosen] = 2.0 * torch.randint(0, 2, (50,), generator=generator) - 1
    y = x @ weight / 50**0.5 + 0.1 * torch.randn(1500, generator=generator)
    return x[:500], y[:500], x[500:], y[500:]


def breast_cancer(generator):
    """Benign or malignant as signs; the probes have the law of the features, column by column, and no relation to labels."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    real = torch.as_tensor(bunch.data, dtype=torch.float32)
    real = (real - real.mean(0)) / real.std(0)
    probes = [real[torch.randperm(len(real), generator=generator), i % 30] for i in range(3000)]
    x, y = torch.cat([real, torch.stack(probes, 1)], 1), 2.0 * torch.as_tensor(bunch.target, dtype=torch.float32) - 1
    order = torch.randperm(len(x), generator=generator)
    x, y = x[order], y[order]
    return x[:150], y[:150], x[150:], y[150:]


def zero_linear(d, start):
    layer = nn.Linear(d, 1)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def spindly(d, start):
    return Spindly(d, 1, scale=(start / 2) ** 0.5)  # as EGUpm with beta = 2 scale^2


STEPS, NONE, STARTS = 400, (0.0,), (1e-4, 1e-9, 1e-14)
METHODS = {
    "SGD": (zero_linear, lambda p, lr, start: torch.optim.SGD(p, lr=lr), (1e-2, 3e-3, 1e-3), NONE),
    "Adam": (zero_linear, lambda p, lr, start: torch.optim.Adam(p, lr=lr), (1e-2, 3e-3, 1e-3), NONE),
    "EGUpm": (zero_linear, lambda p, lr, start: EGUpm(p, lr=lr, beta=start), (4.0, 1.0, 0.3), STARTS),
    "Spindly + SGD": (spindly, lambda p, lr, start: torch.optim.SGD(p, lr=lr), (1.0, 0.25, 0.08), STARTS),
}


def trained(method, x, y, setting, steps, watch=None):
    """Full-batch training; with ``watch`` (inputs, labels) the error there at every look, and the step of the best."""
    build, optimizer, _, _ = METHODS[method]
    lr, start = setting
    layer = build(x.shape[1], start)
    stepping = optimizer(layer.parameters(), lr, start)
    seen = []
    for step in range(1, steps + 1):
        stepping.zero_grad()
        (0.5 * (layer(x)[:, 0] - y).square().mean()).backward()
        stepping.step()
        if watch is not None and step % EVERY == 0:
            with torch.no_grad():
                seen.append((float((layer(watch[0])[:, 0] - watch[1]).square().mean()), step))
    return layer, seen


def chosen_and_trained(method, x, y):
    """The best rate, start and stopping time on a fifth held out, then training on everything."""
    cut = len(x) * 4 // 5
    found = []
    for setting in itertools.product(*METHODS[method][2:]):
        _, seen = trained(method, x[:cut], y[:cut], setting, STEPS, watch=(x[cut:], y[cut:]))
        found += [(error, setting, step) for error, step in seen if np.isfinite(error)]
    _, setting, steps = min(found)
    layer, _ = trained(method, x, y, setting, steps)
    with torch.no_grad():
        weight = layer.weight.detach()[0].clone()
        return weight, lambda test: layer(test)[:, 0].detach()


def lasso(x, y):
    from sklearn.linear_model import Lasso

    cut = len(x) * 4 // 5
    rows, labels = x.numpy().astype(np.float64), y.numpy().astype(np.float64)
    top = np.abs(rows.T @ (labels - labels.mean())).max() / len(rows)

    def fitted(rows, labels, alpha):
        return Lasso(alpha=alpha, max_iter=3000, tol=1e-3).fit(rows, labels)

    alphas = [top * f for f in (0.5, 0.3, 0.2, 0.1, 0.05)]
    errors = [np.mean((fitted(rows[:cut], labels[:cut], a).predict(rows[cut:]) - labels[cut:]) ** 2) for a in alphas]
    model = fitted(rows, labels, alphas[int(np.argmin(errors))])
    return torch.as_tensor(model.coef_), lambda test: torch.as_tensor(model.predict(test.numpy().astype(np.float64)))


def table(title, data, classes):
    x, y, test, labels = data
    result, score = [], "wrong" if classes else "error"
    work = [*METHODS, "lasso"]
    for name in tracked(work, total=len(work), label=title):
        start = time.perf_counter()
        weight, predict = lasso(x, y) if name == "lasso" else chosen_and_trained(name, x, y)
        seconds = time.perf_counter() - start
        guess = predict(test)
        error = float(
            ((guess > 0) != (labels > 0)).double().mean()
            if classes
            else (guess - labels).square().mean() / labels.square().mean()
        )
        large = weight.abs() > 0.1 * weight.abs().max()
        result.append((name, error, int(large.sum()), seconds))
    print(f"{title}\n{'':16}{'test ' + score:>12}{'large weights':>15}{'seconds':>9}")
    for name, error, large, seconds in result:
        print(f"{name:16}{error:12.3f}{large:15d}{seconds:9.1f}")
    return result


def figure(results, path):
    """A page with the test error of each learner, for both problems."""
    parts = []
    for (title, rows), score in zip(
        results.items(), ("test error, in variances", "share classified wrongly"), strict=True
    ):
        names, errors = [row[0] for row in rows], [row[1] for row in rows]
        usual = [place for place, name in enumerate(names) if name in ("SGD", "Adam")]
        rest = [place for place in range(len(names)) if place not in usual]
        bars = [Bars(places, [errors[k] for k in places], color) for places, color in ((usual, "c5"), (rest, "c0"))]
        chart = Figure(named_scale(names), scale_of([0.0, *errors], margin=0.0), bars, y_label=score, spoken=title)
        parts.append(f"<h2>{title}</h2>{chart.svg()}")
    path.write_text(document_page("Sparse targets", "".join(["<h1>Sparse targets</h1>", *parts])), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="sparse.html", help="where the figures go")
    path = Path(parser.parse_args().out)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    made_title, real_title = (
        "10,000 features, 50 relevant, 500 examples",
        "breast cancer, 30 features among 3,000 probes",
    )
    results = {made_title: table(made_title, made(generator), False)}
    results[real_title] = table(real_title, breast_cancer(generator), True)
    figure(results, path)
    print(f"figures in {path}")


if __name__ == "__main__":
    main()
