"""What a kernel machine says of inputs and targets."""

import pytest
import torch

from theodolite.evidence.kernel_machine import (
    answered_classes,
    class_labels_of,
    classes_in,
    correlations,
    is_random_order,
    relation_of,
)
from theodolite.io.batches import Batch


def sample(y):
    return Batch((torch.randn(200, 6, generator=torch.Generator().manual_seed(0)),), {}, y)


def test_a_relation_stands_out_and_noise_does_not():
    x = sample(None).inputs[0]
    true = relation_of(sample(x[:, :1] + x[:, 1:2]))
    noise = relation_of(sample(torch.randn(200, 1, generator=torch.Generator().manual_seed(5))))
    assert true.correlation > 0.9 and true.correlation > true.null + 5 * true.null_error
    assert abs(noise.correlation - noise.null) < 4 * noise.null_error and noise.p_value > 0.02
    assert true.visible == 3 * true.null_error


def test_a_checkerboard_over_coordinates_is_no_noise():
    g = torch.Generator().manual_seed(0)
    x = 2 * torch.rand(1000, 2, generator=g) - 1
    board = relation_of(Batch((x,), {}, (7 * x).floor().sum(1).long() % 2))
    noise = relation_of(Batch((x,), {}, torch.randint(2, (1000,), generator=g)))
    assert board.correlation > 0.5 and board.p_value <= 0.01
    assert noise.correlation - noise.null < noise.visible


def test_of_labels_of_which_a_share_is_random_that_share_is_lost():
    x = sample(None).inputs[0]
    right, draw = (x[:, 0] > 0).long(), torch.Generator().manual_seed(1)
    half = torch.where(torch.rand(200, generator=draw) < 0.5, right, torch.randint(0, 2, (200,), generator=draw))
    both = [relation_of(sample(y)).correlation for y in (right, half)]
    assert both[1] / both[0] == pytest.approx(0.5, abs=0.2)


def test_classes_and_orders():
    sorted_ = torch.arange(100) // 50
    assert not is_random_order(sorted_) and is_random_order(torch.arange(100) % 2)
    assert classes_in(torch.eye(3)[sorted_]).tolist() == sorted_.tolist()
    assert classes_in(torch.rand(10)) is None
    assert answered_classes(torch.tensor([0.2, 0.9])).tolist() == [0, 1]
    assert answered_classes(torch.tensor([-3.0, 0.1])).tolist() == [0, 1]
    a = torch.randn(50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert float(correlations(a, -2 * a + 1)) == pytest.approx(-1.0)


def test_classes_are_read_off_numbers_rows_and_zeros_and_ones():
    y = torch.arange(96) % 3
    rows = torch.nn.functional.one_hot(y, 3)
    assert class_labels_of(rows.float()).tolist() == y.tolist() == class_labels_of(y[:, None]).tolist()
    assert class_labels_of(0.5 * rows) is None and class_labels_of(rows[None]) is None
