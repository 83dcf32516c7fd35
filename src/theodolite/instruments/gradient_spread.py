"""How much do gradients differ from one random initialization to the next?

A copy of the model is initialized again many times, and each time the gradient of an output with respect to the input is
measured. For plain ReLU networks of linear layers theory gives the variance of its logarithm: five times the sum of one over
the widths.
"""

import math
from collections.abc import Iterator
from itertools import pairwise

from torch import nn

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading
from theodolite.core.subject import Subject
from theodolite.instruments._common.data_visit import afforded, passes_afforded
from theodolite.measure.propagation import log_spread, redrawn_gradients
from theodolite.theory.propagation import log_gradient_variance, spread_factor, spread_words

DRAWS, FEWEST, INPUTS = 200, 10, 16
UNIFORM = 1.8  # the kurtosis of torch's default weights


def read(subject: Subject) -> Iterator[Reading]:
    """The variance between draws of the log of the squared gradient, beside that of a random ReLU network of these widths."""
    limited = not subject.allowance.is_endless
    rows = afforded(subject, "forward", passes=4.0 * DRAWS, share=0.9, fewest=min(2, len(subject.data.first())))
    whole = next(subject.batches())
    batch = whole.picked(slice(min(INPUTS, rows) if limited else INPUTS))
    draws = int(max(FEWEST, min(DRAWS, passes_afforded(subject, "forward", len(batch), share=0.9) / 4)))
    found = redrawn_gradients(subject.model, batch.inputs, batch.keywords, draws=draws)
    measured, error = log_spread(found.squares)
    draws, inputs_seen = found.squares.shape
    if inputs_seen < INPUTS and inputs_seen > 1:  # fewer inputs: what one says, another need not
        each = found.squares[(found.squares > 0).all(1)].log().var(0)
        error = math.hypot(error, float(each.std()) / math.sqrt(inputs_seen))
    sizes = _relu_sizes(subject.model)
    band, meaning = None, ""
    if sizes is None:
        meaning = (
            f"Between initializations the size of a gradient varies by a factor of {spread_factor(measured):.3g} (5th to 95th "
            "percentile). Theory covers only plain ReLU networks of linear layers. If the factor is large, the largest stable "
            "learning rate differs from seed to seed; make the network wider, or use normalization or skip connections."
        )
    else:
        inputs, *widths = sizes
        # A quarter: torch's weights are uniform, for which the log variance is scaled, and inputs share draws
        band = Band.around(log_gradient_variance(inputs, widths, kurtosis=UNIFORM), rel=0.25)
        narrow = len(widths) / sum(1 / n for n in widths) if widths else float(inputs)
        meaning = spread_words(len(widths), narrow, measured)
    if found.kept:
        some = ", ".join(found.kept[:4]) + (" and others" if len(found.kept) > 4 else "")
        meaning += f" Not initialized again, because they have no reset_parameters: {some}."
    yield Reading(
        quantity="variance of the log squared gradient between initializations",
        measured=measured,
        stderr=error,
        where=f"{draws} initializations",
        expected=band,
        meaning=meaning,
    )


def _relu_sizes(model: nn.Module) -> tuple[int, ...] | None:
    """Inputs and hidden widths of a plain chain of linear layers and ReLUs that torch initializes; else None."""
    parts = [
        m
        for m in model.modules()
        if not list(m.children()) and not isinstance(m, nn.Flatten | nn.Identity | nn.Dropout)
    ]
    chain = isinstance(model, nn.Sequential) and all(
        type(part) is (nn.ReLU if i % 2 else nn.Linear) for i, part in enumerate(parts)
    )
    linear = [part for part in parts if isinstance(part, nn.Linear)]
    if not chain or len(parts) % 2 == 0 or any(a.out_features != b.in_features for a, b in pairwise(linear)):
        return None
    return tuple(layer.in_features for layer in linear)


instrument = Instrument(
    question="How much do gradients differ between random initializations?",
    read=read,
    needs={"model", "data"},
    cost="backward",
    sees={"gradient": 24},
    laws=("jacobian-log-normal", "jacobian-fourth-moment", "gates-bernoulli"),
)
