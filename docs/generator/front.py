"""The front page: what it is for in two sentences, three findings on real networks, and where to begin."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from typing import Any

from generator.entries import finding_article
from generator.pages import Page

FIRST = """# in a copy of the repository
pip install .
# your training script, unchanged
theodolite run train.py
# a checkpoint alone
theodolite diagnose model.safetensors
# a model and its data
theodolite diagnose zoo:model --data x.npz
"""
STARTS = (
    ("Questions people ask first", "questions.html", "why does my loss not fall, is my learning rate too high, ..."),
    ("My network does not train", "guide/my-network-does-not-train.html", "theodolite diagnose, th.diagnose"),
    ("Before training", "guide/before-training.html", "initialization, learning rate, width: theodolite design"),
    ("While it trains", "guide/while-it-trains.html", "what goes wrong, and when: theodolite run, th.Watch"),
    ("After training", "guide/after-training.html", "any module or checkpoint: theodolite survey"),
    ("Gallery", "gallery/index.html", "whole examples with pictures"),
    ("Theorems that run", "atlas.html", "each law compared with an experiment: theodolite check"),
    ("Five documents, step by step", "documents/index.html", "every statement next to the code that runs it"),
    ("Errata of the literature", "errata.html", "what is wrong in print, and what is true"),
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
    starts = "".join(
        f'<li><a href="{address}"><b>{title}</b></a><br><span class="th-small">{html.escape(words)}</span></li>'
        for title, address, words in STARTS
    )
    coming = ", ".join(f'<a href="from/{file}.html">{name}</a>' for name, file in FROM)
    body = (
        "<h1>Theodolite</h1>"
        '<p class="th-lead">Theodolite finds what is wrong with your PyTorch model and what to change. It tries each fix '
        "on a copy before it suggests one, and shows every number with its error and the value that theory expects.</p>"
        f'<pre tabindex="0"><code>{html.escape(FIRST)}</code></pre>'
        "<h2>Three findings</h2><p>Computed when this page was built, on scikit-learn's digits.</p>"
        f'{"".join(findings)}<h2>Where to begin</h2><ul class="th-starts">{starts}</ul>'
        f'<p>Coming from {coming}?</p><p class="th-small"><a href="glossary.html">Glossary</a> · '
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
