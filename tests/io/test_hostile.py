"""Files that lie, bombs and traps: each one line of at most 400 letters, soon, and in little memory."""

import io
import json
import os
import pickle
import resource
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import theodolite as th
from theodolite.cli import main
from theodolite.io.checkpoints import checkpoint
from theodolite.io.datasets import dataset, table
from theodolite.io.files import said
from theodolite.io.weights import readable

HEADER = {"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}


def safetensors(header, data=b"\0" * 16, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def zipped(members, **how):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **how) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


def torch_zip(raw_pickle):
    return zipped({"x/data.pkl": raw_pickle, "x/version": b"3"})


def npy(header, data=b""):
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data


def changed(data, place, value):
    return data[:place] + value + data[place + len(value) :]


def encrypted():
    """The flag of encryption set in both headers."""
    data = zipped({"a.npy": b"0" * 64})
    central = data.index(b"PK\1\2")
    return changed(changed(data, 6, b"\1\0"), central + 8, b"\1\0")


def strangely_packed():
    data = zipped({"a.npy": b"0" * 64})
    central = data.index(b"PK\1\2")
    return changed(changed(data, 8, b"\x63\0"), central + 10, b"\x63\0")


def tensor_pickle(shape, stride, count=4):
    """A tensor of storage 0 with this shape and stride."""

    class Storage:
        pass

    class Tensor:
        def __reduce__(self):
            return torch._utils._rebuild_tensor_v2, (Storage(), 0, shape, stride, False, {})

    class Pickler(pickle.Pickler):
        def persistent_id(self, thing):
            return ("storage", torch.FloatStorage, "0", "cpu", count) if isinstance(thing, Storage) else None

    buffer = io.BytesIO()
    Pickler(buffer, 2).dump({"a": Tensor()})
    return zipped({"x/data.pkl": buffer.getvalue(), "x/data/0": b"\0" * 16})


GGUF_OF_ONE_FACT = b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"a"

FILES = {
    "header longer than the file": safetensors(HEADER, length=1 << 40),
    "header of no object": safetensors(b"[1, 2]"),
    "nested 5,000 deep": safetensors(b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"),
    "a name twice": safetensors(b'{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},' * 1 + b'"a":{}}'),
    "a shape that lies": safetensors({"a": {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 16]}}),
    "a negative shape": safetensors({"a": {"dtype": "F32", "shape": [-2, -2], "data_offsets": [0, 16]}}),
    "places that overlap": safetensors(dict.fromkeys("ab", HEADER["a"])),
    "a place beyond": safetensors({"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [1 << 50, (1 << 50) + 16]}}),
    "a type of a million letters": safetensors({"a": {"dtype": "F" * 10**6, "shape": [2, 2], "data_offsets": [0, 16]}}),
    "a hundred axes": safetensors({"a": {"dtype": "F32", "shape": [1] * 98 + [2, 2], "data_offsets": [0, 16]}}),
    "no facts": safetensors({"a": None}),
    "escapes in a name": safetensors(
        {"\x1b[2J\r\n\u202e\ud800": {"dtype": "F99", "shape": [2, 2], "data_offsets": [0, 16]}}
    ),
    "an encrypted zip": encrypted(),
    "an unknown compression": strangely_packed(),
    "a zip that claims 4 GB": changed(d := zipped({"a.npy": b"0" * 64}), d.index(b"PK\1\2") + 24, b"\xff\xff\xff\xf0"),
    "an array that claims more": zipped(
        {"a.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999,), }")}
    ),
    "an array of objects": zipped(
        {"a.npy": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"12345678")}
    ),
    "an array of records": zipped(
        {"a.npy": npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", b"1234")}
    ),
    "a header that is code": zipped({"a.npy": npy("__import__('os').system('true')")}),
    "a header of brackets": zipped({"a.npy": b"\x93NUMPY\2\0" + struct.pack("<I", 60_000) + b"(" * 60_000}),
    "a list within itself": torch_zip(b"\x80\x02]q\0h\0a."),
    "lists 100,000 deep": torch_zip(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."),
    "a key 100,000 deep": torch_zip(b"\x80\x02}" + b")" + b"\x85" * 100_000 + b"K\1s."),
    "a memo of 2^31": torch_zip(b"\x80\x02]r\xff\xff\xff\x7f."),
    "bytes of 2^62": torch_zip(b"\x80\x05\x96" + struct.pack("<Q", 1 << 62) + b"."),
    "an endless pickle": torch_zip(b"\x80\x02" + b"]" * 1000),
    "a storage that is not there": torch_zip(pickle.dumps(1, 2)[:-1] + b"Q."),
    "a tensor beyond its storage": tensor_pickle((1 << 20, 1 << 20), (1 << 20, 1)),
    "a view without end": tensor_pickle((1 << 20, 1 << 20), (0, 0)),
    "a negative stride": tensor_pickle((2, 2), (-1, 1)),
    "gguf of 2^60 tensors": b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1 << 60),
    "gguf of a list of 2^60": GGUF_OF_ONE_FACT + struct.pack("<IIQ", 9, 8, 1 << 60),
    "onnx without an end": b"\x08\x07\x3a\xff\xff\xff\xff\x0f",
    "msgpack of 2^32 members": b"\xdf\xff\xff\xff\xff\xa1a\x01",
    "msgpack 5,000 deep": b"\x81\xa1a" * 5000 + b"\1",
    "hdf5 of nothing": b"\x89HDF\r\n\x1a\n" + bytes(64),
    "nothing": b"",
    "one byte": b"P",
    "words": b"hello",
}


def outcome(path):
    """The line that is said, or the faults; nothing where all of it was read."""
    try:
        weights = checkpoint(path)
    except ValueError as error:
        return [str(error)]
    faults = {}
    for _ in readable(weights, faults):
        pass
    return list(faults.values())


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_gets_one_line(name, tmp_path):
    (tmp_path / "m").write_bytes(FILES[name])
    lines = outcome(tmp_path / "m")
    assert lines
    for line in lines:
        assert line.startswith("expected")
        assert said(ValueError(line)).isprintable()
        assert len(line) <= 400 + len(str(tmp_path))


def test_the_command_says_it_in_one_line(tmp_path, capsys):
    for name in ("escapes in a name", "a type of a million letters", "nothing"):
        (tmp_path / "m").write_bytes(FILES[name])
        assert main(["survey", str(tmp_path / "m"), "--json"]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.count("\n") == 1
        assert told.err.rstrip("\n").isprintable()
        assert len(told.err) <= 401


def test_a_zip_bomb_is_not_unpacked(tmp_path):
    """A gigabyte of zeros in a megabyte, in a process that may not take one."""
    header = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (16384, 16384), }")
    packed = {"compression": zipfile.ZIP_DEFLATED, "compresslevel": 1}
    with (
        zipfile.ZipFile(tmp_path / "m.npz", "w", **packed) as file,
        file.open("a.npy", "w", force_zip64=True) as member,
    ):
        member.write(header)
        for _ in range(64):
            member.write(bytes(1 << 24))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (line,) = outcome(tmp_path / "m.npz")
    assert "unpack to" in line
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_what_is_no_plain_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path / "fifo", tmp_path / "loop", "/dev/zero", tmp_path / ("a" * 5000), "a\0b"):
        with pytest.raises(ValueError, match="^expected"):
            checkpoint(path)
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="^expected"):
        th.survey(tmp_path)


def test_an_index_does_not_lead_out_of_its_folder(tmp_path):
    (tmp_path / "inside").mkdir()
    save_file({"secret": torch.ones(2, 2)}, tmp_path / "secret.safetensors")
    for shard in ("../secret.safetensors", str(tmp_path / "secret.safetensors"), "", "..", "a\0b"):
        (tmp_path / "inside" / "m.safetensors.index.json").write_text(json.dumps({"weight_map": {"secret": shard}}))
        assert outcome(tmp_path / "inside")[0].startswith("expected")


def test_other_byte_orders_and_types_are_read_or_named(tmp_path):
    arrays = {
        "big": np.arange(6, dtype=">f4").reshape(2, 3),
        "long": np.arange(6, dtype=np.longdouble).reshape(2, 3),
        "complex": np.ones((2, 3), np.complex64),
        "words": np.array(["a", "b"]),
    }
    np.savez(tmp_path / "m.npz", **arrays)
    faults = {}
    found = {weight.name: tensor for weight, tensor in readable(checkpoint(tmp_path / "m.npz"), faults)}
    assert set(faults) == {"words"}
    assert found["big"].tolist() == found["long"].tolist() == [[0, 1, 2], [3, 4, 5]]
    result = th.survey(tmp_path / "m.npz")
    assert "words" in result.faults
    assert any(row["where"] == "complex" and "complex" in row["meaning"] for row in result.rows())


@pytest.mark.filterwarnings("ignore")
def test_sparse_and_jagged_tensors_are_named(tmp_path):
    tensors = {
        "sparse": torch.eye(3).to_sparse(),
        "jagged": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "quantized": torch.quantize_per_tensor(torch.ones(2, 2), 0.1, 0, torch.qint8),
        "plain": torch.ones(2, 2),
    }
    torch.save(tensors, tmp_path / "m.pt")
    faults = {}
    assert [weight.name for weight, _ in readable(checkpoint(tmp_path / "m.pt"), faults)] == ["plain"]
    assert set(faults) == {"sparse", "jagged", "quantized"}


def test_a_file_cut_short_after_it_was_listed_is_named(tmp_path):
    save_file({"a": torch.ones(64, 64), "b": torch.ones(64, 64)}, tmp_path / "m.safetensors")
    weights = checkpoint(tmp_path / "m.safetensors")
    with open(tmp_path / "m.safetensors", "r+b") as file:
        file.truncate(20_000)
    faults = {}
    assert [weight.name for weight, _ in readable(weights, faults)] == ["a"]
    assert "its end" in faults["b"]


def test_a_million_arrays_are_refused_at_once(tmp_path):
    (tmp_path / "m.safetensors").write_bytes(
        safetensors({str(k): {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for k in range(250_000)}, b"")
    )
    assert "at most" in outcome(tmp_path / "m.safetensors")[0]


def test_names_that_would_be_markup(tmp_path):
    names = [
        "[/red].weight",
        "[bold]",
        "{{ 7 * 7 }}.weight",
        "<script>alert(1)</script>.weight",
        "a\u202eb.weight",
        "x" * 5000,
    ]
    save_file({name: torch.randn(9, 9) for name in names}, tmp_path / "m.safetensors")
    result = th.survey(tmp_path / "m.safetensors")
    assert not result.faults
    assert "<script>alert" not in result.html()
    assert "\u202e" not in result.text() + result.html()
    assert "[/red].weight" in result.text(width=400)


def test_out_that_cannot_be_written_loses_no_reading(tmp_path, capsys):
    save_file({"a.weight": torch.randn(12, 12, generator=torch.Generator().manual_seed(0))}, tmp_path / "m.safetensors")
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "inside", "/dev/full", "/proc/nowhere"):
        assert main(["survey", str(tmp_path / "m.safetensors"), "--out", str(out), "--json"]) == 2
        told = capsys.readouterr()
        assert json.loads(told.out)["readings"]
        assert told.err.startswith("theodolite: expected a folder that can be written")
        assert told.err.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files as a full disk would")
def test_a_full_disk_loses_no_reading(tmp_path):
    tensors = {f"{k}.weight": torch.randn(64, 64, generator=torch.Generator().manual_seed(k)) for k in range(4)}
    save_file(tensors, tmp_path / "m.safetensors")
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "sys.dont_write_bytecode = True; "  # what Python compiles would be cut short, too, and left for others to import
        "resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700)); "
        "from theodolite.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "survey", str(tmp_path / "m.safetensors"), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True)  # to pipes, which have no such limit
    assert done.returncode == 2
    assert "stable rank" in done.stdout
    assert done.stderr.startswith("theodolite: expected a folder that can be written")
    assert done.stderr.count("\n") == 1


def test_a_short_part_of_the_fuzz():
    """60 damaged files of each reader; `make fuzz` runs 20,000."""
    import importlib.util
    from pathlib import Path

    spec = importlib.util.spec_from_file_location("fuzz", Path(__file__).parents[2] / "benchmarks" / "fuzz.py")
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)
    known = [name for name in fuzz.READERS if name != "hdf5" or importlib.util.find_spec("h5py")]
    assert {name: found for name in known if (found := fuzz.fuzzed(name, 60, surveys=30))} == {}


BAD_HEADERS = {
    "a brace never closed": "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 5),",
    "a word never closed": "{'descr': '<f8",
    "three quotes": "'''",
    "a line that goes on": "\\",
    "brackets": "((((((",
    "a type that is none": "{'descr': ',f8', 'fortran_order': False, 'shape': (4,), }",
    "records": "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (20,), }",
}


@pytest.mark.parametrize("words", BAD_HEADERS)
@pytest.mark.parametrize("command", ["dimension", "memorize", "survey"])
def test_headers_of_numpy_that_do_not_tokenize_are_refused_in_one_line(tmp_path, capsys, words, command):
    raw = npy(BAD_HEADERS[words], b"\0" * 160)
    (tmp_path / "a.npy").write_bytes(raw)
    (tmp_path / "a.npz").write_bytes(zipped({"x.npy": raw, "y.npy": raw}))
    more = ["--out", str(tmp_path / "m.safetensors")] if command == "memorize" else []
    for name in ["a.npz", "a.npy"] if command == "dimension" else ["a.npz"]:
        assert main([command, str(tmp_path / name), *more]) == 2
        said_there = capsys.readouterr().err
        assert said_there.startswith("theodolite: expected") and said_there.count("\n") == 1


NOT_NUMBERS = {
    "records": np.zeros(50, dtype=[("a", "f8")]),
    "words": np.array(["a"] * 50),
    "bytes": np.zeros(50, "V8"),
    "dates": np.zeros(50, "M8[s]"),
    "complex": np.ones(50, complex),
}


@pytest.mark.parametrize("kind", NOT_NUMBERS)
def test_data_that_are_not_real_numbers_are_refused_in_one_line(tmp_path, kind):
    np.save(tmp_path / "a.npy", NOT_NUMBERS[kind])
    np.savez(tmp_path / "a.npz", x=NOT_NUMBERS[kind])
    for read in (dataset, table):
        for name in ("a.npy", "a.npz"):
            with pytest.raises(ValueError, match="^expected numbers in"):
                read(str(tmp_path / name))


def test_members_of_an_npz_that_are_no_arrays_are_refused_in_one_line(tmp_path):
    (tmp_path / "a.npz").write_bytes(zipped({"x": b"hello", "y.npy": b"no"}))
    for read in (dataset, table):
        with pytest.raises(ValueError, match="^expected numbers in x of .*got bytes"):
            read(str(tmp_path / "a.npz"))


@pytest.mark.parametrize("name", ["model.safetensors.index.json", "model.safetensors", "m.index", ".metadata"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match="^expected"):
        [weight.read() for weight in checkpoint(tmp_path).values()]


@pytest.mark.parametrize("name", ["a.npz", "a.npy", "a.csv", "a.pt"])
def test_a_pipe_is_not_taken_for_data(tmp_path, name):
    os.mkfifo(tmp_path / name)
    for read in (dataset, table, checkpoint):
        with pytest.raises(ValueError, match="^expected"):
            read(str(tmp_path / name))


def test_names_that_the_system_cannot_have_are_refused_in_one_line(tmp_path, capsys):
    save_file({"a": torch.ones(2, 2)}, tmp_path / "ok.safetensors")
    index = {"weight_map": {"a": "y" * 400, "b": "..", "c": ""}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    ok = str(tmp_path / "ok.safetensors")
    for arguments in (
        ["survey", "x" * 300],
        ["survey", "x" * 300 + ":f"],
        ["survey", "a\0b"],
        ["dimension", "x" * 300 + ".npy"],
        ["survey", ok, "--against", "x" * 300],
        ["survey", ok, "--out", str(tmp_path / "a\0b")],
        ["survey", str(tmp_path)],
    ):
        assert main(arguments) == 2
        said_there = capsys.readouterr().err
        assert said_there.startswith("theodolite: expected") and said_there.count("\n") == 1


@pytest.mark.parametrize(
    "raw", [b"\xff\xfe", b"\x1b[31mred", "a\u202eb".encode(), b"a\rb"], ids=["bytes", "escape", "bidi", "cr"]
)
def test_names_of_files_and_folders_are_safe_to_print(tmp_path, capsys, raw):
    own = tmp_path / os.fsdecode(raw)
    own.mkdir()
    save_file({"a.weight": torch.randn(20, 30, generator=torch.Generator().manual_seed(0))}, tmp_path / "m")
    (own / "m.safetensors").write_bytes((tmp_path / "m").read_bytes())
    np.save(own / "x.npy", np.random.default_rng(0).standard_normal((60, 2)))
    for arguments in (
        ["survey", str(own / "m.safetensors"), "--out", str(own / "out")],
        ["survey", str(own)],
        ["dimension", str(own / "x.npy"), "--method", "twonn"],
    ):
        assert main([*arguments, *(["--out", str(own / "o")] if arguments[-1] == str(own) else [])]) == 0
        text = "".join(capsys.readouterr())
        assert not set(text) & {"\x1b", "\r", "\u202e"}
        text.encode("utf-8")


@pytest.mark.parametrize("told", [5, {"a": 1}, ["b"]])
def test_metadata_that_the_library_refuses_is_said_to_be_tolerated(tmp_path, told):
    (tmp_path / "m.safetensors").write_bytes(safetensors({"__metadata__": told, **HEADER}))
    (why,) = checkpoint(tmp_path / "m.safetensors").left_out
    assert why.startswith("tolerated: metadata")


@pytest.mark.parametrize("second", [[8, 24], [24, 40]], ids=["overlap", "gap"])
def test_ranges_that_overlap_or_leave_a_gap_are_refused(tmp_path, second):
    header = {**HEADER, "b": {"dtype": "F32", "shape": [2, 2], "data_offsets": second}}
    (tmp_path / "m.safetensors").write_bytes(safetensors(header, b"\0" * second[1]))
    with pytest.raises(ValueError, match="^expected a whole safetensors file"):
        checkpoint(tmp_path / "m.safetensors")


@pytest.mark.parametrize("zipped_too", [True, False])
def test_classes_of_a_pickle_that_were_not_run_are_named(tmp_path, zipped_too):
    torch.save(torch.nn.Linear(3, 2), tmp_path / "m.pt", _use_new_zipfile_serialization=zipped_too)
    found = checkpoint(tmp_path / "m.pt")
    assert {"weight", "bias"} <= set(found)
    (why,) = (why for why in found.left_out if "not run" in why)
    assert "torch.nn.modules.linear.Linear" in found.left_out[why]
    torch.save({"weight": torch.ones(2, 2)}, tmp_path / "s.pt", _use_new_zipfile_serialization=zipped_too)
    assert not checkpoint(tmp_path / "s.pt").left_out


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e300])
def test_a_checkpoint_with_what_is_not_finite_is_judged(tmp_path, bad):
    weight = torch.randn(60, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weight[3, 4] = bad
    save_file({"a.weight": weight, "b.weight": weight * 1e200}, tmp_path / "m.safetensors")
    found = th.diagnose(str(tmp_path / "m.safetensors"))
    assert (found.headline != "") and not any("Error" in why for why in found.unchecked.values())
