"""How much of a recurrent layer sits in the flat ends of its gates."""

import math

import torch
from torch import Tensor, nn

SAMPLES = 64
FLAT = 0.05
"""The slope of a gate, beside its steepest, under which it is saturated."""


@torch.no_grad()
def recurrent_saturation(module: nn.RNNBase, inputs: Tensor, outputs: Tensor) -> float | None:
    """The share of gate, sample and place with a slope below 5 % of the steepest; None for layers whose gates cannot be told.

    What a gate is given is $W_x x_t+W_h h_{t-1}$ with its biases, and $h_{t-1}$ is the output at the place before, so that a
    single layer in one direction needs no second run. A GRU's third gate multiplies its own past by the first, and is left out.
    NaN where an input is.

    >>> cell = nn.LSTM(3, 4, batch_first=True)
    >>> x = torch.randn(5, 6, 3)
    >>> recurrent_saturation(cell, x, cell(x)[0]) < 0.01
    True
    """
    if module.num_layers != 1 or module.bidirectional or inputs.ndim != 3 or module.proj_size:
        return None
    if not module.batch_first:
        inputs, outputs = inputs.transpose(0, 1), outputs.transpose(0, 1)
    x, h = inputs[:SAMPLES], outputs[:SAMPLES]
    before = torch.cat([torch.zeros_like(h[:, :1]), h[:, :-1]], 1)
    own = dict(module.named_parameters())
    given = x @ own["weight_ih_l0"].mT + before @ own["weight_hh_l0"].mT
    if module.bias:
        given = given + own["bias_ih_l0"] + own["bias_hh_l0"]
    gates = given.float().chunk({"LSTM": 4, "GRU": 3}.get(module.mode, 1), -1)
    slopes = []
    for place, z in enumerate(gates):
        if module.mode == "GRU" and place == 2:
            continue
        if module.mode == "RNN_RELU":
            return None
        flat = module.mode == "RNN_TANH" or (module.mode == "LSTM" and place == 2)
        slopes.append(1 - z.tanh().square() if flat else 4 * z.sigmoid() * (1 - z.sigmoid()))
    found = torch.cat(slopes, -1)
    return math.nan if bool(found.isnan().any()) else float((found < FLAT).double().mean())
