"""What comes through a door: what arguments caused in one line, and defects of the package as they are."""

import numpy as np
import pytest
import torch
from torch import Tensor

from theodolite.core.doors import guarded
from theodolite.theory.kernels import mlp_kernels
from theodolite.theory.propagation import variance_trajectory


def _raising(error):
    def inner(x: "float") -> float:
        raise error

    return guarded(inner, "theodolite.theory.nowhere")


@pytest.mark.parametrize(
    "defect", [KeyError("missing"), IndexError("past the end"), AttributeError("no such"), AssertionError("impossible")]
)
def test_a_defect_comes_through_as_it_is(defect):
    with pytest.raises(type(defect)) as seen:
        _raising(defect)(1.0)
    assert seen.value is defect


@pytest.mark.parametrize(
    "raw",
    [
        RuntimeError("mat1 and mat2 shapes cannot be multiplied\n(2x3 and 2x3)"),
        OverflowError("math range error"),
        ZeroDivisionError("float division by zero"),
        ValueError("operands could not be broadcast together"),
        TypeError("unsupported operand"),
        np.linalg.LinAlgError("Singular matrix"),
        torch.linalg.LinAlgError("not positive definite"),
    ],
)
def test_what_arguments_cause_is_said_in_one_line(raw):
    with pytest.raises(ValueError, match="^expected arguments within the domain of inner, got ") as seen:
        _raising(raw)(1.0)
    assert "\n" not in str(seen.value)
    assert seen.value.__cause__ is raw


def test_our_own_words_are_kept():
    with pytest.raises(ValueError, match="^expected one thing, got another$"):
        _raising(ValueError("expected one thing, got another"))(1.0)
    with pytest.raises(TypeError, match="^expected a kind, got another$"):
        _raising(TypeError("expected a kind, got another"))(1.0)


def test_a_word_or_a_number_is_no_object():
    with pytest.raises(TypeError, match="^expected spec to be of type Mlp, got 'relu'$"):
        variance_trajectory("relu", 1.0)
    with pytest.raises(TypeError, match="^expected spec to be of type Mlp"):
        mlp_kernels(3, torch.ones(1, 2))


def test_what_is_checked_by_name_is_handed_on_as_a_tensor():
    def mean(x: "Tensor") -> Tensor:
        return x.mean()

    assert guarded(mean, "theodolite.theory.nowhere")([1.0, 3.0]).item() == 2.0
