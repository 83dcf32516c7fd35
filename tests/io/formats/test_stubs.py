"""What stands for the objects of a pickle keeps what they held, and runs nothing."""

import numpy as np
import pytest

from theodolite.io.formats._stubs import ArrayStub, DtypeStub, Husk, Kind, Stub, leaves

TENSOR = Stub(None, Kind("float32", 4))


def test_leaves_are_named_by_their_path_and_modules_parts_are_put_together():
    layer = Husk()
    layer["_parameters"] = {"weight": TENSOR}
    layer["_buffers"] = {"mean": TENSOR}
    model = Husk("ignored")
    model["_modules"] = {"0": layer}
    model["list"] = [1, TENSOR, (TENSOR,)]
    assert [name for name, _ in leaves(model)] == ["0.weight", "0.mean", "list.1", "list.2.0"]


def test_a_container_that_holds_itself_ends():
    loop = {"a": TENSOR}
    loop["self"] = loop
    assert [name for name, _ in leaves(loop)] == ["a"]


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("order", ["<", ">"])
def test_an_array_is_that_of_its_bytes(order, by_columns):
    values = np.arange(6, dtype=f"{order}f4").reshape(2, 3)
    kind = DtypeStub("f4")
    kind.take((3, order, None))
    stub = ArrayStub()
    stub.take((1, (2, 3), kind, by_columns, values.tobytes("F" if by_columns else "C")))
    assert np.array_equal(stub.array, values) and stub.array.dtype == np.float32
    wrong = ArrayStub()
    wrong.take((1, (2, 4), kind, False, values.tobytes()))
    assert wrong.array is None and wrong.fault
