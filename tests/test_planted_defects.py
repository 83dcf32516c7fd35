"""A defect of ours reaches the user as it is: a TypeError planted in what a public function calls is no bad input."""

import importlib
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import theodolite as th
from theodolite import cli
from theodolite.core.checks import InputError

X = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], dtype=torch.float64)
Y = torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)
MODEL = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)).double()
BATCH = (X, torch.tensor([0, 1, 0]))
THEORY, MEASURE = "theodolite.theory", "theodolite.measure"
CASES = {
    "criticality": (f"{THEORY}.propagation.critical_points._criticality", lambda: th.criticality("tanh")),
    "fixed_points": (
        f"{THEORY}.propagation.signal_phases.activation_of",
        lambda: th.theory.propagation.fixed_points("tanh", weight_variance=1.5),
    ),
    "variance_trajectory": (
        f"{THEORY}.propagation.signal_maps.next_variance",
        lambda: th.theory.propagation.variance_trajectory(th.Mlp(2, "relu", 2.0), 1.0),
    ),
    "mlp_kernels": (
        f"{THEORY}.kernels.wide_networks.whole_kernels",
        lambda: th.theory.kernels.mlp_kernels(th.Mlp(1, "relu", 2.0), X),
    ),
    "kernel_ridge": (
        f"{THEORY}.kernels.inference.cholesky_factor",
        lambda: th.theory.kernels.kernel_ridge(X @ X.T, Y, ridge=1.0),
    ),
    "sphere_gram": (f"{THEORY}.kernels.sphere._unit_rows", lambda: th.theory.kernels.sphere_gram("relu", X.numpy())),
    "hermite_coefficients": (
        f"{THEORY}.kernels.sphere.panel_nodes",
        lambda: th.theory.kernels.hermite_coefficients("relu", order=2),
    ),
    "marchenko_pastur_cdf": (
        f"{THEORY}.spectra.noise.marchenko_pastur_edges",
        lambda: th.theory.spectra.marchenko_pastur_cdf(1.0, 0.5),
    ),
    "memory": (
        f"{THEORY}.capacity.memory_bounds.certain_capacity",
        lambda: th.theory.capacity.memory("relu", 3, 16, 100),
    ),
    "stationary_regression": (
        f"{THEORY}.dynamics.batch_noise.batch_shares",
        lambda: th.theory.dynamics.stationary_regression(
            X.numpy(), Y.numpy(), lr=0.1, batch_size=1, sampler="with replacement"
        ),
    ),
    "widest_margin": (
        f"{THEORY}.bias.margins._least_distance",
        lambda: th.theory.bias.widest_margin(X.numpy()[:2], np.array([1.0, -1.0])),
    ),
    "collapse_metrics": (
        f"{MEASURE}.collapse.class_means.collapse_of",
        lambda: th.measure.collapse.collapse_metrics(X, BATCH[1]),
    ),
    "empirical_ntk": (
        f"{MEASURE}.kernels.tangent_kernel.structure_of",
        lambda: th.measure.kernels.empirical_ntk(MODEL, X),
    ),
    "kernel_alignment": (
        f"{MEASURE}.kernels.tangent_kernel.target_rows",
        lambda: th.measure.kernels.kernel_alignment(X @ X.T, Y),
    ),
    "top_hessian_eigenvalues": (
        f"{MEASURE}.curvature.hessians.extreme_eigenpairs",
        lambda: th.measure.curvature.top_hessian_eigenvalues(MODEL, nn.functional.cross_entropy, [BATCH], count=1),
    ),
    "power_law": (f"{MEASURE}.spectra.tails._clauset", lambda: th.measure.spectra.power_law(np.arange(1.0, 60.0))),
    "nearest_neighbors": (
        f"{MEASURE}.dimension.neighbor_graph.distinct_rows",
        lambda: th.measure.dimension.nearest_neighbors(np.random.default_rng(0).normal(size=(40, 3)), 5),
    ),
    "regions_on_line": (
        f"{MEASURE}.regions.on_lines.regions_on_lines",
        lambda: th.measure.regions.regions_on_line(MODEL, X[0], X[1]),
    ),
    "memorize": ("theodolite.construct.capacity.memorizing.arrangement", lambda: th.memorize(X.numpy(), Y.numpy())),
    "design": ("theodolite.verbs.designing.advice.columns_of", lambda: th.design(depth=3, width=16)),
    "survey": ("theodolite.verbs.surveying._results", lambda: th.survey(MODEL)),
}
"""What is broken, and the call that then breaks: each public function with something that it calls."""
COMMANDS = {
    "design": ("theodolite.verbs.designing.advice.columns_of", ["design", "--depth", "3", "--width", "16"]),
    "criticality": (f"{THEORY}.propagation.critical_points._criticality", ["design", "--activation", "tanh"]),
    "check": ("theodolite.core.law.pooled_estimate", ["check", "marchenko-pastur"]),
    "explain": ("theodolite.report.text.source_entries", ["explain", "marchenko-pastur"]),
    "survey": ("theodolite.verbs.surveying._results", ["survey", "--json"]),
    "dimension": ("theodolite.verbs.dimensions.panel._single", ["dimension", "digits", "--method", "twonn"]),
}


@pytest.fixture
def planted(monkeypatch):
    error = TypeError("unsupported operand type(s) for +: 'int' and 'str'")

    def broken(*args, **keywords):
        raise error

    def plant(place):
        home, _, name = place.rpartition(".")
        try:
            owner = importlib.import_module(home)
        except ModuleNotFoundError:
            module, _, of = home.rpartition(".")
            owner = getattr(importlib.import_module(module), of)
        assert callable(getattr(owner, name))
        monkeypatch.setattr(owner, name, broken)
        return error

    return plant


def test_there_are_twenty():
    assert len(CASES) >= 20


@pytest.mark.parametrize("name", CASES)
def test_a_planted_type_error_reaches_who_calls(name, planted):
    place, call = CASES[name]
    error = planted(place)
    with pytest.raises(TypeError) as seen:
        call()
    assert seen.value is error
    assert not isinstance(seen.value, InputError)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_planted_type_error_leaves_the_command_line_with_a_request_to_report_it(name, planted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place, arguments = COMMANDS[name]
    error = planted(place)
    with pytest.raises(TypeError) as seen:
        cli.main(arguments)
    assert seen.value is error
    assert error.__notes__[-1].endswith(f"Please report it: {cli.ISSUES}")


def test_the_traceback_ends_with_that_request():
    broken = (
        "import theodolite.verbs.designing.advice as advice\n"
        "from theodolite.cli import main\n"
        "advice.columns_of = lambda *args, **keywords: 1 + 'one'\n"
        "main(['design', '--depth', '3', '--width', '16'])\n"
    )
    done = subprocess.run([sys.executable, "-c", broken], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    lines = done.stderr.strip().splitlines()
    assert "Traceback (most recent call last):" in lines and lines[-2].startswith("TypeError: unsupported operand")
    assert lines[-1].endswith(cli.ISSUES)


@pytest.mark.parametrize(
    "arguments",
    [
        ["design", "--activation", "nosuch"],
        ["survey", "nosuch.safetensors"],
        ["check", "nosuch"],
        ["explain", "nosuch"],
        ["dimension", "nosuch.npy"],
    ],
)
def test_bad_input_is_one_line_and_status_two(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("theodolite: expected") and said.count("\n") == 1


def test_the_address_is_that_of_the_project():
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Issues"] == cli.ISSUES
