"""Runs without an ailment: every site as it is, and the ways in which people train well."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from torch import Tensor, nn

from .case import Case, healthy
from .networks import autoencoder, cnn, conv_stack, decoder, encoder, mlp, recurrent, resnet, stack, vit
from .recipe import Recipe, setup_of
from .run import run
from .sites import SITES

# Scores on held-out data that a healthy run reaches: between what the weakest architecture here gets with ease and chance,
# much nearer to the first. Accuracy; the share of variance explained for numbers (diabetes and the sets "itself" too).
THRESHOLDS = {
    "digits": 0.92,
    "mnist": 0.88,
    "fashion": 0.77,
    "cifar": 0.40,
    "cola-letters": 0.38,
    "cola-direction": 0.80,
    "copy": 0.55,
    "tones": 0.93,
    "clusters": 0.86,
    "wine": 0.92,
    "breast-cancer": 0.94,
    "diabetes": 0.42,
    "friedman": 0.88,
    "housing": 0.85,
    "digits-itself": 0.68,
    "mnist-itself": 0.72,
    "fashion-itself": 0.83,
}

SGD = {"optimizer": "sgd", "momentum": 0.9}
ADAMW = {"optimizer": "adamw", "weight_decay": 0.01}
WARM = {"warmup": 40, "decay": "cosine"}


@cache
def _pretrained(site: str) -> dict[str, Tensor]:
    setup = setup_of(SITES[site], 7)
    run(setup)
    return setup.model.state_dict()


def fine_tuned(site: str, *frozen: str, head: str) -> Callable[[nn.Module], None]:
    """Weights of a run at another site, these parts frozen on purpose, the head its own."""

    def edit(model: nn.Module) -> None:
        state = {name: value for name, value in _pretrained(site).items() if not name.startswith(head)}
        model.load_state_dict(state, strict=False)
        for name, parameter in model.named_parameters():
            if name.startswith(frozen):
                parameter.requires_grad_(False)

    return edit


def _variants() -> list[tuple[str, str, dict[str, Any]]]:
    """Name, site, and what is done otherwise there."""
    return [
        ("sgd", "mlp/digits", SGD | {"lr": 0.03}),
        ("sgd", "mlp/mnist", SGD | {"lr": 0.03}),
        ("sgd", "mlp-tanh/fashion", SGD | {"lr": 0.03}),
        ("sgd", "cnn/mnist", SGD | {"lr": 0.03}),
        ("sgd", "cnn/fashion", SGD | {"lr": 0.03}),
        ("sgd", "cnn-bn/mnist", SGD | {"lr": 0.03}),
        ("sgd-cosine", "cnn-bn/cifar", SGD | {"lr": 0.03}),
        ("sgd-warm", "resnet/fashion", SGD | WARM | {"lr": 0.1, "weight_decay": 5e-4}),
        ("sgd-warm", "resnet/mnist", SGD | WARM | {"lr": 0.1, "weight_decay": 5e-4}),
        ("sgd", "regression/friedman", SGD | {"lr": 0.02}),
        ("sgd", "autoencoder/mnist-itself", SGD | {"lr": 0.3}),
        ("plain-sgd", "mlp/clusters", {"optimizer": "sgd", "lr": 0.2}),
        ("plain-sgd", "mlp-tanh/breast-cancer", {"optimizer": "sgd", "lr": 0.1}),
        ("rmsprop", "lstm/tones", {"optimizer": "rmsprop", "lr": 3e-3}),
        ("rmsprop", "mlp/fashion", {"optimizer": "rmsprop"}),
        ("adamw", "mlp-norm/fashion", ADAMW),
        ("adamw-warm", "vit/digits", ADAMW | WARM),
        ("adamw-warm", "vit/mnist", ADAMW | WARM | {"clip": 1.0}),
        ("adamw-warm", "encoder/cola-direction", ADAMW | WARM),
        ("adamw-warm", "decoder/cola-letters", ADAMW | WARM | {"clip": 1.0}),
        ("adamw-warm", "decoder/copy", ADAMW | WARM),
        ("adamw-cosine", "regression-norm/housing", ADAMW | {"decay": "cosine"}),
        ("adamw-warm", "lstm/cola-direction", ADAMW | WARM),
        ("adamw-warm", "gru/cola-direction", ADAMW | WARM),
        ("accumulated", "mlp/mnist", {"batch": 16, "accumulate": 4, "steps": 2400}),
        ("accumulated", "cnn/fashion", {"batch": 16, "accumulate": 4, "steps": 2000}),
        ("accumulated", "mlp-tanh/mnist", {"batch": 16, "accumulate": 4, "steps": 2400}),
        ("accumulated", "decoder/copy", {"batch": 16, "accumulate": 4, "steps": 1400}),
        ("dropout", "mlp/mnist", {"network": mlp(128, 128, dropout=0.3), "steps": 900}),
        ("dropout", "mlp-tanh/digits", {"network": mlp(128, activation="tanh", dropout=0.2), "steps": 500}),
        ("dropout", "cnn/cifar", {"network": cnn(16, 32, 32, dropout=0.3)}),
        ("dropout", "cnn-bn/fashion", {"network": cnn(16, 32, norm=True, dropout=0.3)}),
        ("dropout", "vit/fashion", {"network": vit(dropout=0.1), **WARM}),
        ("dropout", "encoder/cola-direction", {"network": encoder(dropout=0.1), "steps": 550}),
        ("weight-decay", "mlp/breast-cancer", {"weight_decay": 1e-3}),
        ("weight-decay", "regression/diabetes", {"weight_decay": 1e-3}),
        ("small-batch", "mlp/digits", {"batch": 8, "lr": 5e-4, "steps": 1500}),
        ("small-batch", "regression/housing", {"batch": 8, "lr": 3e-4, "steps": 2000}),
        ("large-batch", "mlp-tanh/mnist", {"batch": 500, "lr": 4e-3, "steps": 150}),
        ("large-batch", "cnn-bn/digits", {"batch": 300, "lr": 6e-3, "steps": 80}),
        ("he", "mlp/fashion", {"drawn": (2.0, 0.0)}),
        ("he", "cnn/mnist", {"drawn": (2.0, 0.0)}),
        ("deeper", "resnet/digits", {"network": resnet(10, 5)}),
        ("two-layers", "gru/tones", {"network": recurrent("gru", 24, 2)}),
        ("tanh", "autoencoder/fashion-itself", {"network": autoencoder(128, 24, activation="tanh")}),
        ("one-layer", "decoder/copy", {"network": decoder(32, 1), "steps": 600}),
        ("frozen", "cnn/fashion", {"edit_model": (fine_tuned("cnn/mnist", "0.", head="7."),)}),
        ("frozen", "resnet/fashion", {"edit_model": (fine_tuned("resnet/mnist", "0.", "1.", head="9."),)}),
        ("frozen", "vit/fashion", {"edit_model": (fine_tuned("vit/mnist", "embed", "places", head="head"),)}),
        ("frozen", "cnn-bn/mnist", {"edit_model": (fine_tuned("cnn-bn/fashion", "0.", head="9."),)}),
        ("frozen", "mlp-tanh/mnist", {"edit_model": (fine_tuned("mlp-tanh/fashion", "1.", head="5."),)}),
    ]


def _deep() -> list[Recipe]:
    """Plain deep networks at their critical variance: the healthy relatives of those that vanish, explode or merge."""
    return [
        Recipe("stack", "digits", stack(6, gain=2.0), steps=250),
        Recipe("stack", "clusters", stack(8, activation="tanh", gain=1.1), steps=350),
        Recipe("conv-stack", "mnist", conv_stack(6, gain=2.0), steps=350),
        Recipe("conv-stack", "digits", conv_stack(6, activation="tanh", gain=1.1), steps=300),
    ]


def cases() -> list[Case]:
    """All healthy runs."""
    plain = [healthy("plain", recipe) for recipe in SITES.values()]
    varied = [healthy(name, replace(SITES[site], **changes)) for name, site, changes in _variants()]
    return [*plain, *varied, *(healthy("deep", recipe) for recipe in _deep())]
