"""The verb, the command line and the page of dimension."""

import json

import numpy as np
import pandas
import pytest
import torch
from sklearn.datasets import load_digits

import theodolite as th
from theodolite.cli import main
from theodolite.construct.dimension import manifold
from theodolite.io.datasets import table
from theodolite.verbs.dimensions.panel import DimensionMethod


@pytest.fixture(scope="module")
def digits():
    bunch = load_digits()
    return th.dimension(bunch.data[:500], labels=bunch.target[:500], name="digits")


def test_all_estimators_stand_side_by_side(digits):
    names = {row["estimator"] for row in digits.rows()}
    assert {
        "TwoNN",
        "MLE, k = 10 to 20",
        "correlation dimension",
        "TwoNN, calibrated",
        "PCA 95 %",
        "parallel analysis",
        "participation ratio",
        "local PCA 95 %",
        "Gaussian mixture",
        "Isomap",
        "LLE",
        "ESS",
        "DANCo",
    } <= names
    alone = th.dimension(load_digits().data[:500], method="twonn")
    assert digits.estimate("TwoNN") == th.Estimate(alone.value, alone.stderr)
    assert len(digits.curve) == 7
    assert any("Hessian" in skip.instrument for skip in digits.skipped)
    assert any("straight directions" in sentence for sentence in digits.words)
    assert any("Biased low" in sentence for sentence in digits.words)
    with pytest.raises(ValueError, match="expected an estimator"):
        digits.estimate("FisherS")


def test_text_json_and_page(digits, tmp_path):
    assert "TwoNN" in digits.text()
    assert json.loads(digits.json())["best"]["value"] == digits.best.value
    page = digits.html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page
    assert page.count('<svg class="th-figure') >= 5
    assert "In words" in page
    assert digits.plane.name in page
    assert "<script" not in page
    assert "Dimension of digits" in digits._repr_html_()


@pytest.mark.parametrize("method", DimensionMethod.__args__)
def test_one_method_gives_an_estimate(method):
    x = manifold("arc and cube", 300, 2, generator=torch.Generator().manual_seed(0))
    found = th.dimension(x, method=method)
    assert isinstance(found, th.Estimate)
    loose = {"lle", "participation", "pca", "parallel", "marchenko-pastur", "correlation", "mixture"}
    assert found.value == pytest.approx(2, abs=2.0 if method in loose else 0.4)


@pytest.mark.parametrize("rows", [4, 5, 10, 12, 13])
@pytest.mark.parametrize("method", DimensionMethod.__args__)
def test_few_rows_are_answered_or_refused_in_one_line(rows, method):
    x = np.random.default_rng(rows).normal(size=(rows, 3))
    try:
        said, found = "", th.dimension(x, method=method)
    except ValueError as error:
        said, found = str(error), None
    assert np.isfinite(found.value) if found else said.startswith("expected") and "\n" not in said


def run(capsys, *arguments):
    status = main(["dimension", *map(str, arguments)])
    return status, capsys.readouterr()


def test_the_command_line_reads_every_format(tmp_path, capsys):
    x = manifold("arc and cube", 120, 2, generator=torch.Generator().manual_seed(0)).numpy()
    np.save(tmp_path / "a.npy", x.astype(np.float32))
    np.savez(tmp_path / "a.npz", x=x, y=np.arange(120) % 3)
    np.savetxt(tmp_path / "a.csv", x, delimiter=",", header="a,b,c", comments="")
    assert table(str(tmp_path / "a.npz"))[1] is not None
    values = []
    for name in ("a.npy", "a.npz", "a.csv"):
        status, said = run(capsys, tmp_path / name, "--method", "mle", "--json")
        assert status == 0
        values.append(json.loads(said.out)["value"])
    assert values[0] == pytest.approx(values[1], rel=1e-4)
    assert values[1] == pytest.approx(values[2], rel=1e-12)
    status, said = run(capsys, tmp_path / "a.npz", "--out", tmp_path / "out")
    assert status == 0
    assert "TwoNN, calibrated" in said.out
    assert (tmp_path / "out" / "dimension.html").exists()
    status, said = run(capsys, tmp_path / "a.npz", "--json")
    assert {row["family"] for row in json.loads(said.out)["estimates"]} == {
        "nearest neighbors",
        "scales",
        "variance",
        "manifold",
    }


def test_parquet_goes_through_pandas(tmp_path, monkeypatch):
    frame = pandas.DataFrame({"a": [1.0, 2.0], "name": ["x", "y"]})
    monkeypatch.setattr(pandas, "read_parquet", lambda path: frame)
    (tmp_path / "a.parquet").write_bytes(b"")
    assert table(str(tmp_path / "a.parquet"))[0].tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.ones((100, 3)), "expected at least 40 distinct rows, got 1 of 100"),
        (np.random.default_rng(0).normal(size=(20, 3)), "expected at least 40 distinct rows"),
        (np.where(np.eye(60) > 0, np.nan, 1.0), "got NaN or infinity in rows 0, 1, 2, 3, 4 ... (60 of 60)"),
        (np.zeros((0, 3)), "expected numbers"),
        (np.zeros(30), "expected rows of at least one column"),
    ],
)
def test_bad_data_is_one_line_and_status_2(array, said, tmp_path, capsys):
    np.save(tmp_path / "bad.npy", array)
    status, out = run(capsys, tmp_path / "bad.npy")
    assert status == 2
    assert said in out.err
    assert out.err.count("\n") == 1


def test_bad_files_are_one_line(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("a,b\n1,x\n")
    (tmp_path / "a.npy").write_text("nothing")
    np.savez(tmp_path / "a.npz", a=np.ones(3), b=np.ones(3))
    for name in ("a.csv", "a.npy", "a.npz", "none.npy"):
        status, out = run(capsys, tmp_path / name)
        assert status == 2
        assert out.err.startswith("theodolite: expected")
    assert run(capsys, "digits", "--method", "fishers")[0] == 2
