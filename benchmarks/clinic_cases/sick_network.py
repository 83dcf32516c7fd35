"""Ailments of the network: data and training are in order."""

from dataclasses import replace
from typing import Any

from torch import nn

from .case import Case, grades, sick
from .edits import (
    constant,
    copies,
    detached,
    ending,
    gain,
    low_bias,
    low_rank,
    normal,
    recurrent_times,
    some_parameters_get_no_gradient,
)
from .networks import Network, autoencoder, cnn, conv_stack, decoder, encoder, mlp, recurrent, stack, vit
from .recipe import Recipe, Setup
from .sites import SITES

DEEP = ("digits", "friedman")
DEEP_IMAGES = ("digits", "mnist")


def _deep(data: str, depth: int, **options: Any) -> Recipe:
    """A plain deep network at its critical variance: the twin of those that are not."""
    steps = 400 if data == "friedman" else 350
    return Recipe("stack", data, stack(depth, **{"gain": 2.0, **options}), steps=steps)


def _deep_images(data: str, depth: int, **options: Any) -> Recipe:
    return Recipe("conv-stack", data, conv_stack(depth, **{"gain": 2.0, **options}), steps=350)


def _sites(depth: int, conv_depth: int, **options: Any) -> list[Recipe]:
    return [_deep(data, depth, **options) for data in DEEP] + [
        _deep_images(data, conv_depth, **options) for data in DEEP_IMAGES
    ]


def _signals() -> list[Case]:
    cases = []
    for base in _sites(10, 10):
        base = replace(base, optimizer="sgd", lr=0.02, momentum=0.9, clip=1.0)
        cases += grades(
            "signal-vanishes",
            base,
            mild={"edit_model": (gain(1 / 3),)},
            severe={"edit_model": (normal(0.01),)},
            also=("gradient-vanishes", "inputs-merge", "loss-stalls", "step-too-small"),
        )
    for base in [*_sites(10, 10), SITES["mlp/mnist"], SITES["autoencoder/mnist-itself"]]:
        deep = "stack" in base.architecture
        cases += grades(
            "signal-explodes",
            base,
            mild={"edit_model": (gain(12.0 if deep else 60.0),)},
            severe={"edit_model": (normal(1.0),)} if base.architecture != "mlp" else {},
            also=("gradient-explodes", "step-too-large", "units-dead"),
        )
    return cases


def _swapped(base: Recipe, depth: int, **options: Any) -> dict[str, Network]:
    """The site with another network of its family."""
    return {"network": (conv_stack if base.architecture == "conv-stack" else stack)(depth, **options)}


def _gradients() -> list[Case]:
    cases = []
    for base in _sites(5, 5):
        cases += grades(
            "gradient-vanishes",
            replace(base, optimizer="sgd", lr=0.05, momentum=0.9, clip=1.0),
            kind="sigmoid",
            mild=_swapped(base, 5, activation="sigmoid", gain=1.0),
            severe=_swapped(base, 12, activation="sigmoid", gain=1.0),
            also=("signal-vanishes", "inputs-merge", "loss-stalls", "units-saturated"),
        )
    for base in _sites(12, 12, activation="tanh", gain=1.1):
        cases += grades(
            "gradient-explodes",
            base,
            kind="chaos",
            mild=_swapped(base, 12, activation="tanh", gain=9.0),
            severe=_swapped(base, 20, activation="tanh", gain=25.0),
            also=("units-saturated", "step-too-large"),
        )
    cases += grades(
        "gradient-explodes",
        replace(SITES["mlp-bn/digits"], network=stack(3, norm="batch")),
        kind="deep-norm",
        mild={"network": stack(25, norm="batch")},
        severe={"network": stack(60, norm="batch")},
        also=("inputs-merge", "rank-lost"),
    )
    return cases


def _merging() -> list[Case]:
    cases = []
    depths = {"relu": (45, 0), "gelu": (25, 45), "sigmoid": (0, 45)}  # mild, severe; 0: none
    for name, data in (("relu", "digits"), ("gelu", "fashion"), ("sigmoid", "digits")):
        variance = 1.0 if name == "sigmoid" else 2.0
        mild, severe = (
            {"network": stack(depth, activation=name, gain=variance)} if depth else {} for depth in depths[name]
        )
        cases += grades(
            "inputs-merge",
            _deep(data, 4),
            kind=name,
            mild=mild,
            severe=severe,
            also=("gradient-vanishes", "signal-vanishes", "rank-lost", "loss-stalls"),
        )
    for base, name in ((_deep_images("digits", 4), "relu"), (_deep_images("mnist", 4), "gelu")):
        cases += grades(
            "inputs-merge",
            base,
            kind=name,
            mild={"network": conv_stack(25, activation=name, gain=2.0)},
            severe={"network": conv_stack(45, activation=name, gain=2.0)},
            also=("gradient-vanishes", "signal-vanishes", "rank-lost", "loss-stalls"),
        )
    return cases


def _units() -> list[Case]:
    cases = []
    for site in ("mlp/digits", "cnn/digits", "mlp-tanh/mnist", "autoencoder/mnist-itself", "regression/friedman"):
        cases += grades(
            "units-alike",
            site,
            mild={"edit_model": (copies(3),)},
            severe={"edit_model": (constant(0.01),)},
            also=("rank-lost", "too-narrow"),
        )
    for site in ("mlp/mnist", "lstm/tones", "gru/tones"):
        cases += grades(
            "units-alike",
            site,
            kind="zeros",
            mild={},
            severe={"edit_model": (constant(0.0),)},
            also=("gradient-vanishes", "signal-vanishes", "rank-lost"),
        )
    dead = ("mlp/digits", "cnn/digits", "regression/friedman", "autoencoder/mnist-itself")
    for base in [*(SITES[site] for site in dead), _deep_images("digits", 3)]:
        cases += grades(
            "units-dead",
            base,
            mild={"edit_model": (low_bias(-30.0, 0.95),)},
            severe={"edit_model": (low_bias(-30.0, 1.0),)},
            also=("gradient-vanishes", "signal-vanishes", "too-narrow", "inputs-merge"),
        )
    for base in (_deep("digits", 3, activation="tanh", gain=1.0), SITES["mlp-tanh/digits"], SITES["mlp-tanh/fashion"]):
        cases += grades(
            "units-saturated",
            base,
            mild={"edit_model": (normal(1.0),)},
            severe={"edit_model": (normal(6.0),)},
            also=("signal-explodes", "gradient-explodes", "gradient-vanishes"),
        )
    for site in ("lstm/tones", "gru/tones"):
        cases += grades(
            "units-saturated",
            site,
            mild={"edit_model": (recurrent_times(40.0),)},
            severe={"edit_model": (recurrent_times(400.0),)},
            also=("gradient-explodes", "gradient-vanishes", "signal-explodes"),
        )
    return cases


def _outputs() -> list[Case]:
    cases = []
    softmax = ending(nn.Softmax, dim=-1)
    for site in ("mlp/fashion", "cnn/mnist", "cnn-bn/digits", "mlp-tanh/clusters"):
        severe = ending(nn.ReLU) if site.startswith(("mlp/", "cnn/")) else ending(nn.Sigmoid)
        cases += grades(
            "outputs-squashed",
            site,
            mild={"edit_model": (softmax,)},
            severe={"edit_model": (severe,)},
            fact="the outputs cannot reach the range the loss asks for",
            holds=outputs_are_bounded,
            also=("loss-mismatched", "units-dead"),
        )
    for site in ("regression/friedman", "regression-norm/housing", "autoencoder/mnist-itself"):
        cases += grades(
            "outputs-squashed",
            site,
            mild={"edit_model": (ending(nn.Tanh),)},
            severe={"edit_model": (ending(nn.Sigmoid),)},
            also=("units-saturated",),
        )
    return cases


def outputs_are_bounded(setup: Setup) -> bool:
    """Whether the last module squashes."""
    return isinstance(setup.model, nn.Sequential) and isinstance(setup.model[-1], nn.Softmax | nn.Sigmoid | nn.ReLU)


def has_foreign_loss(setup: Setup) -> bool:
    """Whether the loss is one that classes do not ask for."""
    return setup.loss.__name__ not in ("cross_entropy", "mean_squares")


def _losses() -> list[Case]:
    cases = []
    for site in ("mlp/fashion", "cnn/digits", "cnn-bn/mnist", "mlp-tanh/clusters"):
        mild = "binary_cross_entropy" if site.startswith(("mlp/", "cnn-bn")) else "softmax_mean_squares"
        cases += grades(
            "loss-mismatched",
            site,
            mild={"loss": mild},
            severe={"loss": "class_number_squares"},
            fact="the loss is not one for classes that exclude each other",
            holds=has_foreign_loss,
        )
    for site in ("regression/friedman", "regression/diabetes", "regression-norm/housing"):
        base = SITES[site]
        cases.append(sick("loss-mismatched", "severe", replace(base, loss="broadcast_squares"), base, kind="broadcast"))
    return cases


CUTS = {  # site: where a mild and a severe cut lie
    "mlp/mnist": ("1", "3"),
    "cnn/digits": ("0", "3"),
    "vit/digits": ("embed", "blocks"),
    "autoencoder/mnist-itself": ("1", "3"),
}


def _cut_off() -> list[Case]:
    cases = []
    for site, (mild, severe) in CUTS.items():
        cases += grades(
            "layer-cut-off",
            site,
            mild={"edit_model": (detached(mild),)},
            severe={"edit_model": (detached(severe),)},
            fact="parameters that ask for a gradient get none",
            holds=some_parameters_get_no_gradient,
            also=("layer-untrained",),
        )
    return cases


def _narrow() -> list[Case]:
    narrow: dict[str, tuple[Network, Network]] = {
        "mlp/digits": (mlp(96, 2, 96), mlp(96, 1, 96)),
        "cnn/digits": (cnn(2, 1), cnn(1, 1)),
        "autoencoder-narrow/digits-itself": (autoencoder(64, 2), autoencoder(64, 1)),
        "mlp-tanh/mnist": (mlp(96, 2, 96, activation="tanh"), mlp(96, 1, 96, activation="tanh")),
        "autoencoder/mnist-itself": (autoencoder(128, 3), autoencoder(128, 1)),
        "decoder/copy": (decoder(8, 2), decoder(4, 2)),
        "encoder/cola-direction": (encoder(8, 2), encoder(4, 2)),
        "lstm/tones": (recurrent("lstm", 3), recurrent("lstm", 1)),
    }
    cases = []
    for site, (mild, severe) in narrow.items():
        cases += grades(
            "too-narrow", site, mild={"network": mild}, severe={"network": severe}, also=("rank-lost", "units-dead")
        )
    return cases


_NARROW = SITES["autoencoder-narrow/digits-itself"]


def _rank() -> list[Case]:
    families = {"encoder/cola-direction": encoder, "vit/digits": vit}
    cases = []
    for site, family in families.items():
        cases += grades(
            "rank-lost",
            site,
            kind="no-skips",
            mild={"network": family(32, 3, skip=False), "steps": 200},
            severe={"network": family(32, 6, skip=False), "steps": 200},
            also=("inputs-merge", "gradient-vanishes", "loss-stalls", "signal-vanishes"),
        )
    for base in (SITES["mlp/digits"], SITES["mlp-tanh/mnist"], SITES["autoencoder/mnist-itself"], _NARROW):
        cases += grades(
            "rank-lost",
            replace(base, optimizer="sgd", lr=0.05, momentum=0.9),
            mild={"edit_model": (low_rank(2),)},
            severe={"edit_model": (low_rank(1),)},
            also=("too-narrow", "units-alike"),
        )
    return cases


def cases() -> list[Case]:
    """All cases whose network is at fault."""
    return [
        *_signals(),
        *_gradients(),
        *_merging(),
        *_units(),
        *_outputs(),
        *_losses(),
        *_cut_off(),
        *_narrow(),
        *_rank(),
    ]
