"""Factors against what they are to achieve, worked out on matrices of the sizes themselves."""

import pytest
import torch

from theodolite.theory.dynamics import branch_factor, branch_step_factor, initial_factor, layer_scaling, step_factor

SHAPES = {"input": ((64, 8), (1024, 8)), "hidden": ((64, 64), (1024, 1024)), "output": ((8, 64), (8, 1024))}


def spectral(matrix):
    return float(torch.linalg.matrix_norm(matrix, ord=2))


@pytest.mark.parametrize("rule", ["sgd", "adam", "orthogonal"])
@pytest.mark.parametrize("kind", SHAPES)
def test_a_step_of_rank_one_keeps_its_effect_on_its_input(kind, rule):
    effects = []
    for out, fan_in in SHAPES[kind]:
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(fan_in, generator=generator, dtype=torch.float64)
        delta = torch.randn(out, generator=generator, dtype=torch.float64) / (out if kind != "output" else 1)
        gradient = torch.outer(delta, x)
        step = {"sgd": gradient, "adam": gradient.sign(), "orthogonal": gradient / spectral(gradient)}[rule]
        small = SHAPES[kind][0]
        factor = step_factor(out / small[0], fan_in / small[1], rule=rule)
        effects.append(float((factor * step @ x).square().mean().sqrt()))
    assert effects[1] == pytest.approx(effects[0], rel=0.35)  # sums over 8 and over 64 numbers
    assert factor != 1 or kind == "hidden" or (kind, rule) == ("input", "adam")


@pytest.mark.parametrize("kind", SHAPES)
def test_first_weights_have_the_spectral_norm_that_is_asked_for(kind):
    small, large = SHAPES[kind]
    factor = initial_factor(large[0] / small[0], large[1] / small[1])
    norms = []
    for shape, scale in ((small, 1.0), (large, factor)):
        w = scale * torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        norms.append(spectral(w) / (shape[0] / shape[1]) ** 0.5)
    assert 0.6 < norms[1] / norms[0] < 1.4  # sqrt(8) + sqrt(64) is not yet sqrt(64)


@pytest.mark.parametrize("rule", ["sgd", "adam", "orthogonal"])
def test_transferred_layers_do_not_change_with_the_width_and_standard_ones_do(rule):
    kinds = ("input", "hidden", "output", "vector", "embedding")
    assert all(layer_scaling(kind, rule=rule, parametrization="transferred").change == 0 for kind in kinds)
    assert any(layer_scaling(kind, rule=rule).change != 0 for kind in kinds)


def test_kernel_parametrization_moves_outputs_but_not_features():
    found = {kind: layer_scaling(kind, parametrization="kernel").change for kind in ("input", "hidden", "output")}
    assert found == {"input": -0.5, "hidden": -0.5, "output": 0.0}


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_branches_of_any_depth_add_up_to_the_same_change(power):
    for depth in (4, 64):
        adam = depth * branch_factor(depth, power=power) * branch_step_factor(depth, rule="adam", power=power)
        gradient = branch_factor(depth, power=power)
        sgd = depth * branch_factor(depth, power=power) * branch_step_factor(depth, rule="sgd", power=power) * gradient
        assert adam == pytest.approx(1) and sgd == pytest.approx(1)


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValueError, match="sgd, adam"):
        step_factor(2, 2, rule="newton")


def test_orthogonal_steps_in_the_kernel_parametrization():
    # A step of w of spectral norm 1, entries 1/sqrt(n), changes W = w / sqrt(n) of a hidden layer by 1/sqrt(n)
    change = {
        kind: layer_scaling(kind, rule="orthogonal", parametrization="kernel").change for kind in ("hidden", "output")
    }
    assert change == {"hidden": -0.5, "output": 0.0}
    assert layer_scaling("hidden", rule="orthogonal", parametrization="standard").change == 0.0
