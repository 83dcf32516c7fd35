"""What functions take that look at somebody's network or optimizer: sound arguments and edges of each, by the function's name.

One network and its batches serve all: the edges are what people have by accident, an empty batch, NaN in it, weights that are
zero, a layer that never runs, a state of another network.
"""

import math

import numpy as np
import torch
from torch import nn

from theodolite.io.batches import Batch
from theodolite.measure.dynamics import Sgd
from theodolite.measure.experiments import frozen_rmsprop

ARRAYS = ("entry_kurtosis", "entry_tail", "top_singular_value", "mean_square", "weight_matrices", "sums_inputs")
"""Functions of one tensor or array of weights, whatever that is called."""


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2)).double()


def arrays():
    """Weights as files hold them, and what is hardly a weight."""
    w = torch.randn(6, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    odd = [w * 0, w[:0], w[:1, :1], w[0], w[0, 0], torch.where(w == w[0, 0], math.nan, w)]
    odd += [torch.where(w == w[0, 0], math.inf, w), w * 1e160, w * 1e-160, w.to(torch.bfloat16), w.long()]
    return [w, w.numpy()], [*odd, *(o.numpy() for o in odd[:9])]


def by_function():
    """{function: {parameter: (sound, edges)}}."""
    model, other = network(), nn.Sequential(nn.Linear(3, 2)).double()
    x = torch.randn(8, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    labels = torch.tensor([0, 1] * 4)
    pair = (x, labels)
    pairs = [[pair, pair], [(x[:4], labels[:4])]]
    odd_pairs = [[], [(x * 0, labels)], [(x[:1], labels[:1])]]
    batches, odd_batches = ([[Batch(p[:1], {}, p[1]) for p in some] for some in kind] for kind in (pairs, odd_pairs))
    layer = ([model[0], model[2]], [other[0]])
    names = ([{"first": model[0], "last": model[2]}], [{}, {"never": other[0]}])
    run = ([lambda: model(x)], [lambda: model(x * 0), lambda: model(x[:1])])
    ran = ([lambda given: model(given[0] if isinstance(given, tuple) else given)], [])
    state = ([dict(model.state_dict())], [{}, dict(other.state_dict())])
    still = {"params": [{"params": list(model.parameters()), "lr": 0.0}]}["params"]
    optimizer = (
        [torch.optim.SGD(model.parameters(), 0.1), torch.optim.Adam(model.parameters(), 1e-3)],
        [torch.optim.SGD(still, 0.0), torch.optim.SGD(other.parameters(), 0.1)],
    )
    directions = ([torch.eye(4, dtype=torch.float64)[:2]], [torch.zeros(1, 4, dtype=torch.float64), torch.eye(3)])
    steered = {"run": run, "layer": ([model[0]], [other[0]]), "directions": directions}
    loss = ([nn.functional.cross_entropy], [])
    made = torch.Generator().manual_seed(2)
    many = [torch.randn(2, *shape, generator=made, dtype=torch.float64) for shape in ((5, 3), (1, 3), (3, 1), (1, 1))]
    cloud = ([torch.ones(2, 4, 5, dtype=torch.float64)], [])
    stepper = ([lambda own: torch.optim.SGD(own, lr=0.1)], [lambda own: torch.optim.SGD(own, lr=0.0)])
    tangent = {
        "forward": ([lambda own: (own[0] * x[0]).sum(-1)[:, None] + own[1]], []),
        "parameters": ([[many[1].new_ones(2, 5), many[3][:, 0]]], [[many[1].new_zeros(2, 5), many[3][:, 0]]]),
        "targets": ([torch.ones(2, 1, dtype=torch.float64)], []),
        "rates": ([(0.1, 0.1)], [(0.0, 0.0), ()]),
        "steps": ([2], [0, -1]),
    }
    lstm = nn.LSTM(5, 3, batch_first=True).double()
    seen = lstm(x[:, None])[0].detach()
    own = nn.Parameter(torch.zeros(4, 5, dtype=torch.float64))
    gains = (
        [torch.ones(4, 1, dtype=torch.float64)],
        [torch.zeros(4, 1, dtype=torch.float64), torch.full((4, 1), math.nan)],
    )
    scales = ([torch.ones(5, dtype=torch.float64)], [torch.zeros(5, dtype=torch.float64)])
    frozen = {"own": ([own], []), "gains": gains, "scales": scales}
    wires = [torch.randn(3, 4, 2, dtype=torch.float64), torch.randn(3, 1, 4, dtype=torch.float64)]
    shifts = [torch.randn(3, 4, dtype=torch.float64), torch.zeros(3, 1, dtype=torch.float64)]
    found = {
        "readout": {"run": run, "x": ([x], [x * 0])},
        "log_loss_times_time": {"weight": ([np.ones(5)], [np.zeros(5), np.full(5, math.nan), np.ones(3)])},
        "layer_collapse": {
            "run": ran,
            "batches": ([lambda: pairs[0]], [list, lambda: odd_pairs[1], lambda: odd_pairs[2]]),
            "layer": layer,
            "classes": ([2], [0, 1, 3, -1]),
        },
        "batch_of": {
            "batch": (batches[0], []),
            "chosen": ([torch.tensor([0, 2])], [torch.tensor([], dtype=torch.long)]),
        },
        "label_errors": {"run": run, "layer": layer},
        "sign_floor": {"curvatures": ([(0.5, 1.0)], [(), (0.0,), (-1.0, 1.0), (math.nan,), 3.0, "no numbers"])},
        "at_state": {"state": state},
        "weight_travel": {"origin": state},
        "copied_training": {"optimizer": (optimizer[0], optimizer[1][:1])},
        "parameters_left_out": {"optimizer": optimizer},
        "update_rule": {"optimizer": optimizer, "model": ([model], [other])},
        "group_moments": {"loss": loss, "batches": (batches, odd_batches)},
        "update_effect": {"loss": loss, "batches": (batches, odd_batches), "before": state},
        "network_outputs": {"own": ([many], [[]]), "x": cloud, "activation": (["relu"], ["no such"])},
        "trained_networks": {
            "start": ([many], [[p * 0 for p in many]]),
            "x": cloud,
            "y": ([torch.ones(2, 4, dtype=torch.float64)], []),
            "activation": (["relu"], ["no such"]),
            "optimizer": stepper,
        },
        "descent_weights": {"optimizer": stepper, "x": ([x[None]], [x[None] * 0]), "y": ([x[None, :, 0]], [])},
        **dict.fromkeys(("batch_kernels", "descended", "linearly_descended"), tangent),
        "largest_stable_gain": {
            "make": ([lambda own, gains: frozen_rmsprop(own, gains, scales=torch.ones(2).double(), momentum=0.0)], []),
            "hessian": (
                [torch.eye(2, dtype=torch.float64)],
                [torch.zeros(2, 2, dtype=torch.float64), -torch.eye(2).double()],
            ),
            "start": ([torch.ones(2, dtype=torch.float64)], [torch.zeros(2, dtype=torch.float64)]),
            "bracket": ([(0.5, 8.0)], [(0.0, 1.0), (2.0, 1.0), (-1.0, 1.0), (1.0, 1.0), (math.nan, 1.0)]),
            "steps": ([8], [0, 1, -1]),
        },
        "feature_drift": {
            "second_derivative": ([np.eye(5)], [np.zeros((5, 5)), np.full((5, 5), math.nan)]),
            "start": ([np.ones(5)], [np.zeros(5), np.full(5, math.nan)]),
        },
        "taylor_sum": {
            "function": ([lambda at: at["a"].sin()], []),
            "start": ([{"a": x[0]}], [{"a": x[0] * 0}]),
            "change": ([{"a": x[1]}], [{"a": x[1] * 0}]),
            "order": ([1, 2], [0, -1]),
        },
        "sgd_run": {
            "loss": loss,
            "data": ([pair], [(x * 0, labels)]),
            "sgd": (
                [Sgd(0.1, batch_size=4)],
                [Sgd(0.0, batch_size=4), Sgd(0.1, batch_size=99), Sgd(-1.0), Sgd(0.1, 2.0, 4)],
            ),
            "steps": ([(1, 3)], [(0, 0), (0, 1), (-1, 2)]),
        },
        "objective_dimension": {
            "train": ([lambda dimension, seed: dimension], []),
            "evaluate": (
                [lambda d: 1.0 if d is None else d / (d + 10)],
                [lambda d: 0.0, lambda d: math.nan, lambda d: 1.0],
            ),
            "out": ([None], []),
            "jobs": ([1], [0]),
        },
        "path_sum": {
            "weights": ([[w[0] for w in wires]], [[w[0] * 0 for w in wires]]),
            "gates": ([[torch.ones(4, dtype=torch.float64)]], []),
            "x": ([torch.ones(2, dtype=torch.float64)], [torch.zeros(2, dtype=torch.float64)]),
        },
        "network_line_counts": {
            "weights": ([wires], [[w * 0 for w in wires]]),
            "biases": ([shifts, [None, None]], []),
            "start": ([torch.zeros(2, dtype=torch.float64)], [torch.full((2,), math.nan)]),
            "end": ([torch.ones(2, dtype=torch.float64)], [torch.zeros(2, dtype=torch.float64)]),
        },
        "attention_sights": {"inputs": ([(x,)], [(x * math.nan,)]), "keywords": ([{}], [])},
        "redrawn_gradients": {"inputs": ([(x,)], [(x * math.nan,)]), "keywords": ([{}], []), "draws": ([2], [0, 1])},
        "feature_covariances": {"run": ran, "batches": ([[x, x]], [[], [x * math.nan], [x[:1]]]), "layers": names},
        "layer_inputs": {"run": run, "layers": names},
        "recurrent_saturation": {
            "module": ([lstm], []),
            "inputs": ([x[:, None]], [x[:, None] * math.nan]),
            "outputs": ([seen], [seen * 0]),
        },
        "vital_signs": {
            "loss_of": (
                [lambda: (nn.functional.cross_entropy(model(x), labels), model(x))],
                [lambda: (model(x * 0).mean(), model(x * 0)), lambda: (model(x[:1]).mean(), model(x[:1]))],
            )
        },
        "bootstrap_p_value": {
            "eigenvalues": ([np.arange(1.0, 201.0)], [[], [math.nan] * 9, [-1.0, 2.0]]),
            "refits": ([3], [0, -1]),
            "generator": ([torch.Generator(), np.random.default_rng(0)], []),
        },
        "frozen_adam": frozen,
        "frozen_rmsprop": frozen,
        "full_adagrad": frozen,
        **dict.fromkeys(("steering_gains", "steering_changes", "path_gains"), steered),
    }
    for name in found:
        found[name].setdefault("model", ([model], []))
    weights = arrays()
    return found | {
        name: {"tensor": weights, "matrix": weights, "weight": weights, "name": (["layer.weight"], ["", "norm.weight"])}
        for name in ARRAYS
    }
