"""A network written down for a file of points."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from theodolite.construct.capacity import load
from theodolite.core.checks import InputError
from theodolite.verbs.memorizing import memorize_file


def options(**given):
    return SimpleNamespace(**{"widths": "", "activation": "relu", "seed": 0, "float32": False, "json": False, **given})


@pytest.fixture
def points(tmp_path):
    generator = np.random.default_rng(0)
    x, y = generator.standard_normal((30, 3)), generator.uniform(-5, 5, 30)
    np.savez(tmp_path / "data.npz", x=x, y=y)
    return tmp_path / "data.npz", x, y


def test_the_file_answers_the_points_and_the_words_say_so(points, tmp_path):
    data, x, y = points
    out = tmp_path / "net.safetensors"
    said = memorize_file(str(data), out, options())
    assert said.endswith(f"The network: {out}")
    assert np.abs(load(out)(torch.from_numpy(x)).detach().numpy()[:, 0] - y).max() < 1e-8


def test_widths_and_precision_are_those_asked_for(points, tmp_path):
    data, x, y = points
    out = tmp_path / "net.safetensors"
    found = json.loads(memorize_file(str(data), out, options(widths="16,16", float32=True, json=True)))
    net = load(out)
    assert (found["file"], found["dtype"], found["points"]) == (str(out), "torch.float32", 30)
    assert net[0].weight.shape == (16, 3) and net[0].weight.dtype == torch.float32
    assert np.abs(net(torch.from_numpy(x).float()).detach().numpy()[:, 0] - y).max() < 1e-2


def test_points_without_targets_are_one_line(tmp_path):
    np.savez(tmp_path / "data.npz", x=np.eye(3))
    with pytest.raises(InputError, match=r"^expected an .npz with x and y, got .* without targets"):
        memorize_file(str(tmp_path / "data.npz"), tmp_path / "net.safetensors", options())
    assert not (tmp_path / "net.safetensors").exists()
