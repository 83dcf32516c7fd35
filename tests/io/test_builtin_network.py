import torch
from safetensors.torch import load_file

from theodolite.io.builtin_network import FOLDER, builtin, trained
from theodolite.io.datasets import digits


def test_the_data_are_centered_and_scaled():
    x, y = digits()
    assert x.shape == (1797, 64)
    assert abs(x.mean()) < 1e-5
    assert abs(x.var() - 1) < 1e-3
    assert set(y.tolist()) == set(range(10))


def test_the_network_has_learnt_and_knows_where_it_started():
    subject = builtin()
    x, y = digits()
    with torch.no_grad():
        accuracy = (subject.model(x).argmax(1) == y).float()
    assert accuracy[:1437].mean() > 0.99
    assert accuracy[1437:].mean() > 0.9
    assert set(subject.origin) == set(subject.weights)
    assert all(subject.has(need) for need in ("weights", "model", "data", "loss", "lr", "origin"))


def test_the_shipped_weights_are_those_of_the_script():
    """To rounding: normal draws have other last bits on another instruction set, and training carries them on."""
    start, end = trained()
    shipped_start, shipped_end = (load_file(FOLDER / f"digits_{which}.safetensors") for which in ("start", "end"))
    for name, tensor in shipped_start.items():
        assert torch.allclose(start[name], tensor, rtol=0.0, atol=1e-6)  # of entries up to 0.7 in single precision
    for name, tensor in shipped_end.items():
        assert (end[name] - tensor).norm() < 0.01 * (tensor - shipped_start[name]).norm()
