"""Ailments of training: data and network are in order, what is done with them is not."""

from collections.abc import Callable
from dataclasses import replace

import torch

from .case import Case, grades, sick, worse_on_held_out
from .data import Data
from .edits import all_but, frozen_statistics, only, some_parameters_have_no_optimizer, statistics_momentum
from .networks import cnn, mlp
from .recipe import Setup
from .run import score
from .sick_data import unrelated
from .sites import SITES

SGD = {"optimizer": "sgd", "momentum": 0.9}


def _steps() -> list[Case]:
    cases = []
    for site, mild, severe in (
        ("cnn/mnist", 20, 200),
        ("lstm/tones", 40, 400),
        ("regression/friedman", 60, 1000),
        ("mlp-tanh/fashion", 60, 1000),
        ("cnn-bn/digits", 150, 3000),
        ("autoencoder/mnist-itself", 20, 400),
    ):
        lr = SITES[site].lr
        cases += grades(
            "step-too-large",
            site,
            mild={"lr": lr * mild},
            severe={"lr": lr * severe},
            also=("units-dead", "units-saturated", "gradient-explodes", "batch-noise"),
        )
    for site in ("mlp/digits", "mlp-tanh/mnist"):  # learning rates as they are copied from elsewhere
        base = replace(SITES[site], **SGD, lr=0.02)
        cases += grades(
            "step-too-large",
            base,
            kind="sgd",
            mild={"lr": 0.7},
            severe={"lr": 3.0},
            also=("units-dead", "units-saturated", "gradient-explodes", "batch-noise"),
        )
    for site in (
        "mlp/digits",
        "cnn/digits",
        "regression/housing",
        "cnn-bn/digits",
        "mlp-tanh/clusters",
        "autoencoder/mnist-itself",
        "mlp/clusters",
        "autoencoder-narrow/digits-itself",
    ):
        lr = SITES[site].lr
        cases += grades(
            "step-too-small",
            site,
            mild={"lr": lr / 25},
            severe={"lr": lr / 1000},
            also=("trained-too-short", "loss-stalls"),
        )
    return cases


FORGOTTEN = {  # site: what a mild and a severe script leaves out of its optimizer
    "mlp/mnist": (all_but("1."), only("5.")),
    "cnn/digits": (all_but("0."), only("7.")),
    "vit/digits": (all_but("blocks.0"), only("head")),
    "cnn-bn/digits": (all_but("0."), only("9.")),
    "autoencoder/mnist-itself": (all_but("1."), only("7.")),
}


def _optimizer() -> list[Case]:
    cases = []
    for site, (mild, severe) in FORGOTTEN.items():
        cases += grades(
            "not-in-optimizer",
            site,
            mild={"parameters": mild},
            severe={"parameters": severe},
            fact="parameters that ask for a gradient are in no group of the optimizer",
            holds=some_parameters_have_no_optimizer,
            also=("layer-untrained",),
        )
    for site, lr in (
        ("mlp/fashion", 0.05),
        ("regression/friedman", 0.02),
        ("mlp-tanh/mnist", 0.05),
        ("cnn-bn/digits", 0.05),
        ("autoencoder/mnist-itself", 0.2),
    ):
        cases += grades(
            "gradient-accumulates",
            replace(SITES[site], **SGD, lr=lr),
            mild={"zero_every": SITES[site].steps // 5},
            severe={"zero_every": 0},
            also=("step-too-large", "gradient-explodes", "units-dead", "units-saturated"),
        )
    for site in ("lstm/tones", "gru/tones"):
        cases += grades(
            "gradient-accumulates", site, kind="adam", mild={}, severe={"zero_every": 0}, also=("step-too-large",)
        )
    return cases


def in_order(data: Data) -> Data:
    """The training set sorted by class."""
    order = data.y.argsort(stable=True)
    return replace(data, x=data.x[order], y=data.y[order])


def _noise() -> list[Case]:
    cases = []
    for site, lr in (
        ("mlp/fashion", 0.03),
        ("cnn/digits", 0.03),
        ("regression/friedman", 0.02),
        ("mlp-tanh/fashion", 0.05),
        ("autoencoder/mnist-itself", 0.1),
        ("gru/tones", 0.1),
        ("lstm/tones", 0.1),
        ("autoencoder-narrow/digits-itself", 0.1),
    ):
        cases += grades(
            "batch-noise",
            replace(SITES[site], **SGD, lr=lr, steps=900),
            mild={"batch": 2},
            severe={"batch": 1, "lr": 2 * lr},
            also=("step-too-large", "units-dead", "units-saturated"),
        )
    for site in ("mlp/mnist", "cnn-bn/mnist"):
        base = SITES[site]
        changed = replace(base, edit_data=(in_order,), shuffle=False)
        cases.append(
            sick("batch-noise", "severe", changed, base, kind="sorted", also=("statistics-differ", "step-too-large"))
        )
    return cases


def _ends() -> list[Case]:
    cases = []
    for site in ("mlp/mnist", "cnn/digits", "lstm/tones", "mlp-tanh/clusters", "autoencoder/mnist-itself"):
        cases += grades(
            "schedule-ended",
            site,
            mild={"decay": "exponential:0.97"},
            severe={"decay": "exponential:0.8"},
            also=("loss-stalls", "step-too-small", "trained-too-short"),
        )
    for site in (
        "mlp/mnist",
        "regression/friedman",
        "resnet/digits",
        "cnn-bn/mnist",
        "gru/tones",
        "autoencoder/mnist-itself",
    ):
        steps = SITES[site].steps
        cases += grades(
            "trained-too-short",
            replace(SITES[site], decay=""),
            mild={"steps": steps // 10},
            severe={"steps": max(steps // 60, 4)},
            also=("step-too-small",),
        )
    return cases


def overfitted(setup: Setup) -> bool:
    """Whether the training score is a tenth above the held-out one."""
    return worse_on_held_out(setup, 0.1)


def memorized(setup: Setup) -> bool:
    """Whether nine tenths of the (noisy) training labels are known by heart and a quarter fewer of those held out."""
    return score(setup, setup.loader.x, setup.loader.y) >= 0.9 and worse_on_held_out(setup, 0.25)


def _fitting() -> list[Case]:
    cases = []
    overfitting = {
        "mlp/fashion": (mlp(256, 256), 400, 100),
        "cnn/cifar": (cnn(16, 32, 32), 600, 150),
        "regression/friedman": (mlp(256, 256), 150, 60),
        "mlp-tanh/fashion": (mlp(256, 256, activation="tanh"), 300, 100),
        "cnn-bn/cifar": (cnn(16, 32, 32, norm=True), 600, 150),
    }
    for site, (network, many, few) in overfitting.items():
        changed = {"network": network, "steps": 500, "decay": ""}
        cases += grades(
            "overfits",
            site,
            mild=changed | {"samples": many},
            severe=changed | {"samples": few},
            fact="its training score is at least 0.1 above its held-out score, which is below its twin's",
            holds=overfitted,
            also=("memorises-noise",),
        )
    memorizing = {
        "mlp/digits": mlp(256, 256),
        "cnn/digits": cnn(24, 48),
        "mlp-tanh/fashion": mlp(256, 256, activation="tanh"),
        "cnn-bn/mnist": cnn(16, 32, norm=True),
    }
    for site, network in memorizing.items():
        changed = {"network": network, "steps": 700, "lr": 2e-3, "samples": 500}
        cases += grades(
            "memorises-noise",
            site,
            mild=changed | {"edit_data": (unrelated(0.5),)},
            severe=changed | {"edit_data": (unrelated(1.0),)},
            fact="nine tenths of the training labels are known, though many are drawn at random",
            holds=memorized,
            also=("overfits", "labels-unrelated", "labels-conflict"),
        )
    return cases


def _precision() -> list[Case]:
    cases = []
    for site in ("mlp/digits", "regression/friedman", "mlp-tanh/fashion", "autoencoder/mnist-itself"):
        base = replace(SITES[site], lr=SITES[site].lr / 10, steps=1000)
        cases += grades(
            "precision-too-low",
            base,
            mild={"dtype": torch.bfloat16},
            severe={"dtype": torch.bfloat16, "lr": base.lr / 4},
            also=("step-too-small", "loss-stalls", "trained-too-short"),
        )
    for site in ("mlp/mnist", "mlp-tanh/clusters"):  # half precision throughout, as model.half() has it
        cases += grades(
            "precision-too-low",
            site,
            kind="half",
            mild={},
            severe={"dtype": torch.float16},
            also=("weights-not-finite",),
        )
    return cases


def _statistics() -> list[Case]:
    cases = []
    for site in ("mlp-bn/mnist", "mlp-bn/digits", "resnet/digits", "cnn-bn/mnist", "cnn-bn/digits"):
        cases += grades(
            "statistics-differ",
            site,
            mild={"edit_model": (statistics_momentum(2e-4),)},
            severe={"edit_model": (frozen_statistics(1.5, 0.05),)},
        )
    return cases


def _regularized() -> list[Case]:
    cases = []
    for site in ("mlp/mnist", "cnn/digits", "regression/friedman", "cnn-bn/digits", "autoencoder/mnist-itself"):
        cases += grades(
            "regularised-too-hard",
            site,
            mild={"weight_decay": 0.05},
            severe={"weight_decay": 1.0},
            also=("signal-vanishes", "rank-lost", "units-dead", "loss-stalls", "inputs-merge"),
        )

    def tanh(rate: float) -> Callable:
        return mlp(96, 96, activation="tanh", dropout=rate)

    for site, mild, severe in (
        ("mlp/fashion", mlp(96, 96, dropout=0.9), mlp(96, 96, dropout=0.97)),
        ("mlp/mnist", mlp(96, 96, dropout=0.9), mlp(96, 96, dropout=0.97)),
        ("mlp-tanh/mnist", tanh(0.9), tanh(0.97)),
    ):
        cases += grades(
            "regularised-too-hard",
            site,
            kind="dropout",
            mild={"network": mild},
            severe={"network": severe},
            also=("loss-stalls", "statistics-differ"),
        )
    return cases


def cases() -> list[Case]:
    """All cases whose training is at fault."""
    return [*_steps(), *_optimizer(), *_noise(), *_ends(), *_fitting(), *_precision(), *_statistics(), *_regularized()]
