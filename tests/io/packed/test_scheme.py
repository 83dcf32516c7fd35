"""Numbers of few bits out of words, against shifting them one by one."""

import pytest
import torch

from theodolite.io.packed._scheme import FP4, fields, is_matrix, nibbles, spread_blocks, whole_bits
from theodolite.io.weights import Weight


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("axis", [0, 1])
def test_fields_of_words(bits, axis):
    generator = torch.Generator().manual_seed(bits)
    numbers = torch.randint(0, 1 << bits, (64, 96), generator=generator)
    each = 32 // bits
    packed = torch.zeros((64 // each, 96) if axis == 0 else (64, 96 // each), dtype=torch.int64)
    for k in range(each):
        packed |= (numbers[k::each] if axis == 0 else numbers[:, k::each]) << (bits * k)
    words = torch.where(packed >= 2**31, packed - 2**32, packed).to(torch.int32)
    assert torch.equal(fields(words, bits, axis).long(), numbers)
    assert whole_bits(64 * bits // 32, 64) == bits


def test_bits_that_are_not_whole_are_none():
    assert whole_bits(3, 32) == 0 and whole_bits(1, 0) == 0 and whole_bits(1, 32) == 0


def test_two_numbers_a_byte_and_scales_over_their_blocks():
    byte = torch.tensor([0xA3], dtype=torch.uint8)
    assert nibbles(byte, high_first=True).tolist() == [[10, 3]] and nibbles(byte, high_first=False).tolist() == [
        [3, 10]
    ]
    spread = spread_blocks(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), (3, 5), (2, 3))
    assert spread.tolist() == [[1, 1, 1, 2, 2], [1, 1, 1, 2, 2], [3, 3, 3, 4, 4]]


def test_the_sixteen_numbers_of_e2m1():
    made = [2.0 ** ((k >> 1) - 1) * (1 + 0.5 * (k & 1)) if k >> 1 else 0.5 * (k & 1) for k in range(8)]
    assert (*made, *(-value for value in made)) == FP4


def test_a_matrix_has_two_axes_and_entries():
    def weight(*shape):
        return Weight("w", shape, "int32", lambda: None)

    assert is_matrix(weight(2, 3), "int32", "int8")
    assert (
        not is_matrix(weight(2, 3), "uint8")
        and not is_matrix(weight(6), "int32")
        and not is_matrix(weight(0, 3), "int32")
    )
    assert not is_matrix(None, "int32")
