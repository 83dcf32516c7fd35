"""Random networks of a planned size, drawn to see how much gradients differ between seeds."""

import torch

from theodolite.core.reading import Band, Reading
from theodolite.measure.experiments import Ensemble, conditional_gradients
from theodolite.measure.propagation import log_spread
from theodolite.theory import Mlp
from theodolite.theory.propagation import log_gradient_moments, spread_words

NUMBERS, MOST, FEWEST = 10_000_000, 2000, 100
"""How many units are drawn in all, and the most and the fewest networks of them."""


def gradient_spread(spec: Mlp, width: int, *, where: str = "", seed: int = 0) -> tuple[Reading, ...]:
    """The variance between draws of the log of the squared input gradient, for networks as wide as their input.

    Theory is exact for ReLU and for linear networks, at any variances; of others it is only measured. Nothing where so
    large a network could be drawn fewer than a hundred times.
    """
    depth = spec.hidden_layers or 0
    nets = min(MOST, NUMBERS // (width * (depth + 1)))
    if nets < FEWEST:
        return ()
    C_w, C_b = spec.common_variances
    ensemble = Ensemble(spec.sigma, (width,) * depth, weight_variance=C_w, bias_variance=C_b)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(1, width, generator=generator)
    block = max(1, NUMBERS // 10 // (width * (depth + 1)))
    drawn = [
        conditional_gradients(ensemble, x, nets=min(block, nets - done), generator=generator)[0]
        .double()
        .square()
        .sum(2)
        for done in range(0, nets, block)
    ]
    squares = torch.cat(drawn)
    if not squares.isfinite().all() or (squares > 0).sum() < 8:  # explodes, or hardly one is alive: the signals say so
        return ()
    measured, error = log_spread(squares)
    on = {"relu": 0.5, "identity": 1.0}.get(spec.sigma.name)
    # Some 400 networks know a variance to 7 %, three times that and a little
    band = (
        None
        if on is None
        else Band.around(log_gradient_moments(width, (width,) * depth, on_probability=on)[1], rel=0.3)
    )
    return (
        Reading(
            quantity="variance of the log squared gradient between initializations",
            where=where,
            measured=measured,
            stderr=error,
            expected=band,
            meaning=spread_words(depth, width, measured, relu=spec.sigma.name == "relu"),
        ),
    )
