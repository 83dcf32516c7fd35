"""The front page: what it is for in three sentences, three findings on real networks, and the doors."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from typing import Any

from generator.entries import finding_article
from generator.pages import Page

FIRST = """# in a copy of the repository
pip install .
# what is wrong, and what to type
theodolite diagnose mypackage.zoo:model --data train.npz
# every number beside the one expected
theodolite survey model.safetensors
# your script as it is, watched
theodolite run train.py
"""
DOORS = (
    ("My network does not train", "guide/my-network-does-not-train.html", "theodolite diagnose, th.diagnose"),
    ("Before training", "guide/before-training.html", "which initialization, step, width: theodolite design"),
    ("While it trains", "guide/while-it-trains.html", "step, phase, what goes wrong: th.Watch"),
    ("After training", "guide/after-training.html", "any module or checkpoint: theodolite survey"),
    ("Theorems that run", "atlas.html", "each law beside its experiment: theodolite check"),
    ("Five documents, walked through", "documents/index.html", "every statement beside what it runs as"),
    ("Errata of the literature", "errata.html", "what is wrong in print, and what holds"),
    ("Gallery", "gallery/index.html", "five whole examples with pictures"),
)
FROM = (
    ("WeightWatcher", "weightwatcher"),
    ("neural-tangents", "neural-tangents"),
    ("PyHessian", "pyhessian"),
    ("scikit-dimension", "scikit-dimension"),
    ("cockpit", "cockpit"),
    ("TensorBoard", "tensorboard"),
)


def front_page(findings: Iterable[str]) -> Page:
    """The page; ``findings`` are what `shown` made of each of `FINDINGS`."""
    doors = "".join(
        f'<li><a href="{address}"><b>{title}</b></a><br><span class="th-small">{html.escape(words)}</span></li>'
        for title, address, words in DOORS
    )
    coming = ", ".join(f'<a href="from/{file}.html">{name}</a>' for name, file in FROM)
    body = (
        "<h1>Theodolite</h1>"
        '<p class="th-lead">Theodolite says what is wrong with a neural network, how that is known, and what to type. Every '
        "number it prints stands beside the one that a theorem expects, with an error bar. It does so before, during and "
        "after training, for any PyTorch module or checkpoint.</p>"
        f'<pre tabindex="0"><code>{html.escape(FIRST)}</code></pre>'
        "<h2>Three findings</h2><p>Made when this page was made, on scikit-learn's digits.</p>"
        f'{"".join(findings)}<h2>Where to begin</h2><ul class="th-doors">{doors}</ul>'
        f'<p>Coming from {coming}.</p><p class="th-small"><a href="glossary.html">Glossary</a> · '
        '<a href="clinic.html">How often findings are right</a> · <a href="benchmarks.html">Benchmarks</a> · '
        '<a href="design/0007-diagnosis.html">Decisions</a> · '
        '<a href="search.html">Every page</a></p>'
    )
    return Page("index.html", "Theodolite", body, "What it is for, and where to begin")


def shown(title: str) -> str:
    """One of `FINDINGS`, made now."""
    diagnosis = FINDINGS[title]()
    if diagnosis.healthy:
        return f'<article class="th-finding th-v-healthy"><h3>{title}</h3><p>{html.escape(diagnosis.headline)}</p></article>'
    return finding_article(diagnosis.findings[0], title)


def _digits() -> tuple[Any, Any]:
    import torch
    from sklearn.datasets import load_digits

    digits = load_digits()
    return torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)


def _diagnosed(model: Any, *, lr: float, epochs: int, x: Any, y: Any) -> Any:
    import torch
    from torch.nn.functional import cross_entropy

    import theodolite as th

    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for epoch in range(epochs):
        for rows in torch.randperm(1400, generator=torch.Generator().manual_seed(epoch)).split(64):
            optimizer.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
    held_out = (x[1400:], y[1400:])
    return th.diagnose(
        model, data=(x[:1400], y[:1400]), loss=cross_entropy, optimizer=optimizer, validation=held_out, budget="8s"
    )


def _deep() -> Any:
    import torch
    from torch import nn

    x, y = _digits()
    torch.manual_seed(0)
    hidden = [layer for _ in range(20) for layer in (nn.Linear(64, 64), nn.Tanh())]
    return _diagnosed(nn.Sequential(*hidden, nn.Linear(64, 10)), lr=0.1, epochs=5, x=x, y=y)


def _squashed() -> Any:
    import torch
    from torch import nn

    x, y = _digits()
    torch.manual_seed(0)
    layers = (nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10), nn.Softmax(1))
    return _diagnosed(nn.Sequential(*layers), lr=0.1, epochs=8, x=x, y=y)


def _hot() -> Any:
    import torch
    from torch import nn

    x, y = _digits()
    torch.manual_seed(0)
    hidden = [layer for _ in range(3) for layer in (nn.Linear(64, 64), nn.ReLU())]
    return _diagnosed(nn.Sequential(*hidden, nn.Linear(64, 10)), lr=6.0, epochs=5, x=x, y=y)


FINDINGS: dict[str, Callable[[], Any]] = {
    "Twenty tanh layers that do not train": _deep,
    "A softmax before cross_entropy": _squashed,
    "Three ReLU layers, trained hot": _hot,
}
