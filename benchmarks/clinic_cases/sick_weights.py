"""Ailments of weights alone: checkpoints of networks that were trained well, then spoilt on their way to the disk."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from .case import Case
from .data import data_of
from .networks import mlp
from .recipe import Recipe, Setup, network_of, setup_of
from .run import run
from .sites import SITES, split_of

State = dict[str, Tensor]
Damage = Callable[[State, State, int], None]  # the checkpoint, one that was never trained, the seed

PLACES = {  # site: the tensors that are hit, a minor one first
    "mlp/mnist": ("3.weight", "1.weight"),
    "cnn/digits": ("3.weight", "0.weight"),
    "vit/digits": ("blocks.1.mlp.0.weight", "embed.map.weight"),
    "cnn-bn/digits": ("4.weight", "0.weight"),
    "autoencoder/mnist-itself": ("5.weight", "1.weight"),
}
TWINS = {  # site with more layers of one shape: which tensor is copied over which
    "mlp/mnist": (("3.", "5."),),
    "mlp-tanh/mnist": (("3.", "5."),),
    "resnet/digits": (("4.inner.0.", "6.inner.0."), ("4.", "6."), ("4.", "8.")),
    "vit/digits": (("blocks.0.attention.", "blocks.1.attention."), ("blocks.0.", "blocks.1.")),
    "encoder/cola-direction": (("blocks.0.attention.", "blocks.1.attention."), ("blocks.0.", "blocks.1.")),
}
DEEPER = {"mlp/mnist": {"network": mlp(96, 96, 96)}, "mlp-tanh/mnist": {"network": mlp(96, 96, 96, activation="tanh")}}


@cache
def _trained(site: str, seed: int) -> tuple[State, State]:
    """The checkpoint of a healthy run, and weights of the same network that were never trained."""
    recipe = _recipe(site)
    setup = setup_of(recipe, seed)
    run(setup)
    fresh = network_of(recipe, data_of(recipe.data), seed + 1000)
    return setup.model.state_dict(), fresh.state_dict()


def _recipe(site: str) -> Recipe:
    return replace(SITES[site], **DEEPER.get(site, {}))


def checkpoint(site: str, seed: int, damage: Damage | None = None) -> Setup:
    """A trained network as it is read back from the disk; no step is planned."""
    trained, fresh = _trained(site, seed)
    state = {name: value.clone() for name, value in trained.items()}
    if damage is not None:
        damage(state, fresh, seed)
    setup = setup_of(_recipe(site), seed)
    setup.model.load_state_dict(state)
    return replace(setup, steps=0, state_dict=state)


def not_finite(place: str, share: float) -> Damage:
    def damage(state: State, fresh: State, seed: int) -> None:
        flat = state[place].view(-1)
        g = torch.Generator().manual_seed(seed)
        flat[torch.randperm(len(flat), generator=g)[: max(int(share * len(flat)), 1)]] = float("nan")

    return damage


def untrained(*places: str) -> Damage:
    def damage(state: State, fresh: State, seed: int) -> None:
        for place in places:
            state[place] = fresh[place].clone()

    return damage


def outlying(place: str, times: float, count: int) -> Damage:
    """Some entries as large as this many standard deviations of their tensor."""

    def damage(state: State, fresh: State, seed: int) -> None:
        flat = state[place].view(-1)
        g = torch.Generator().manual_seed(seed)
        flat[torch.randperm(len(flat), generator=g)[:count]] = times * flat.std()

    return damage


def identical(*pairs: tuple[str, str]) -> Damage:
    """Tensors under the second prefix overwritten with those under the first."""

    def damage(state: State, fresh: State, seed: int) -> None:
        for source, goal in pairs:
            for name in list(state):
                twin = goal + name.removeprefix(source)
                if name.startswith(source) and twin in state:
                    state[twin] = state[name].clone()

    return damage


def has_nan(setup: Setup) -> bool:
    return not all(value.isfinite().all() for value in setup.state_dict.values())


def has_outlier(setup: Setup) -> bool:
    """Whether an entry lies twenty deviations of the others away."""
    tensors = [
        value.flatten() for value in setup.state_dict.values() if value.is_floating_point() and value.numel() > 50
    ]
    return any(float(t.abs().max()) > 20 * float(t.abs().quantile(0.9)) for t in (t[:100_000] for t in tensors))


def has_twins(setup: Setup) -> bool:
    """Whether two matrices of the checkpoint are the same."""
    tensors = [value for value in setup.state_dict.values() if value.dim() > 1]
    return any(a.shape == b.shape and torch.equal(a, b) for i, a in enumerate(tensors) for b in tensors[:i])


def has_fresh_layer(setup: Setup) -> bool:
    """Whether a matrix is not the one that training left."""
    trained, _ = _trained(setup.notes["site"], setup.notes["seed"])
    return any(not torch.equal(setup.state_dict[name], value) for name, value in trained.items() if value.dim() > 1)


def _case(ailment: str, site: str, grade: str, damage: Damage, holds: Callable[[Setup], bool], fact: str) -> Case:
    recipe = SITES[site]

    def build(seed: int) -> Setup:
        setup = checkpoint(site, seed, damage)
        setup.notes.update(site=site, seed=seed)
        return setup

    return Case(
        f"{ailment}/{site.replace('/', '-')}/{grade}",
        ailment,
        recipe.architecture,
        recipe.data,
        grade,
        split_of(recipe.architecture),
        build,
        twin=lambda seed: checkpoint(site, seed),
        fact=fact,
        holds=holds,
    )


def cases() -> list[Case]:
    """All cases whose checkpoint is at fault."""
    found = []
    for site, (minor, major) in PLACES.items():
        found += [
            _case("weights-not-finite", site, "mild", not_finite(minor, 0.0), has_nan, "an entry is not finite"),
            _case("weights-not-finite", site, "severe", not_finite(major, 1.0), has_nan, "a layer is not finite"),
        ]
        fact = "a matrix is that of another draw of the initialization; the rest is trained"
        found += [
            _case("layer-untrained", site, "mild", untrained(minor), has_fresh_layer, fact),
            _case("layer-untrained", site, "severe", untrained(major), has_fresh_layer, fact),
        ]
        fact = "an entry is more than twenty times nine tenths of its tensor's entries"
        found += [
            _case("entries-outlying", site, "mild", outlying(minor, 50.0, 1), has_outlier, fact),
            _case("entries-outlying", site, "severe", outlying(major, 1e4, 3), has_outlier, fact),
        ]
    for site, pairs in TWINS.items():
        fact = "two matrices of the checkpoint are equal, entry by entry"
        found.append(_case("layers-identical", site, "mild", identical(pairs[0]), has_twins, fact))
        if len(pairs) > 1:
            found.append(_case("layers-identical", site, "severe", identical(*pairs[1:]), has_twins, fact))
    return found
