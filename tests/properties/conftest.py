"""Inputs at and beyond the edges of their domains, made from the public surface: one strategy for each name or type.

Every public function of theory and measure is called with sound arguments of which at most one is replaced by an edge: 0,
negative, NaN, infinite, empty, whole numbers, NumPy, float32, huge and tiny. It answers with finite numbers (or infinities and
NaN that its docstring speaks of, or that come of NaN or of numbers beyond 1e100), or refuses with an InputError of one line that
begins "expected". A number outside of its domain is always refused so; what has the wrong type or shape may be left to Python
and torch, which say it well. A needed number that is NaN never becomes a number.
"""

import ast
import dataclasses
import functools
import importlib.util
import inspect
import math
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from theodolite.core.checks import InputError
from theodolite.core.lazy_exports import public_names
from theodolite.theory import Mlp

ROOTS = ("theory", "measure")
EXAMPLES = 5
NUMBERS = (0.5, 0.25, 0.9)
EDGE_NUMBERS = (0.0, -1.0, 1.0, math.nan, math.inf, 1e-200, 1e200, 3, np.float32(0.3), np.int64(1), "no number", None)
COUNTS = (2, 3, 4)
EDGE_COUNTS = (0, -1, 1, 2.5, math.nan, np.int64(3), np.float64(2.0), 7, "no number")
SEQUENCES = ((3, 4), (2, 2, 5))
EDGE_SEQUENCES = ((), (0,), (-1, 3), (1,), (2.5, 3), 4, np.array([3, 4]), "no numbers")
SHAPES = {"matrix": (4, 5), "square": (4, 4), "vector": (4,)}
SOUND = {
    "density_exponent": (2.5,),
    "rows": (16,),
    "columns": (12,),
    "lr_times_curvature": (3.0,),
    "sites": (8,),
    "factor": (3.0,),
}
"""Of names whose domain lies elsewhere, what is sound."""
SQUARE = frozenset(
    [
        "kernel",
        "hessian",
        "noise_covariance",
        "covariance",
        "affinities",
        "prior",
        "cross",
        "before",
        "after",
        "distances",
        "factor",
    ]
)
VECTORS = frozenset(
    [
        "y",
        "labels",
        "diagonal",
        "gradient",
        "spectrum",
        "squares",
        "eigenvalues",
        "weight",
        "start",
        "end",
        "lrs",
        "t",
        "frequency",
        "phase",
        "weights",
        "targets",
        "bias",
        "exposure",
        "values",
        "trace_gradient",
        "log_tau2",
        "center",
        "second_derivative",
        "readouts_y",
        "first",
        "second",
        "third",
        "point",
    ]
)
WORDS = {
    "norm": "euclidean",
    "loss": "mse",
    "sampler": "with replacement",
    "likelihood": "categorical",
    "statistic": "alpha",
    "rival": "exponential",
    "projection": "dense",
}


OPTIMIZERS = frozenset(["frozen_adam", "frozen_rmsprop"])
"""Functions that hand their numbers on to an optimizer of torch, which refuses in its own words."""
UNKNOWN = frozenset(["alpha", "bulk_distance", "excess"])
"""Numbers that are NaN where a fit found nothing."""


def _array(name, kind):
    random = np.random.default_rng(0)
    shape = SHAPES["square" if name in SQUARE else "vector" if name in VECTORS else "matrix"]
    values = random.standard_normal(shape)
    if name in SQUARE:
        values = values @ values.T + np.eye(len(values))
    if name in ("spectrum", "squares", "eigenvalues", "start", "affinities"):
        values = np.abs(values)
    if name == "labels":
        values = np.array([0, 1, 0, 1])
    return torch.from_numpy(values) if kind == "Tensor" else values


def _array_edges(name, kind):
    sound = _array(name, "Array")
    edges = [sound * 0, sound * 1e-160, sound * 1e160, sound[:0], np.rint(sound).astype(int), sound.astype(np.float32)]
    edges += [np.where(sound == sound.flat[0], bad, sound) for bad in (math.nan, math.inf)]
    edges += [sound[:1], sound.tolist(), np.float64(1.0), "no numbers"]
    as_tensors = [torch.from_numpy(np.asarray(e)) for e in edges[:9]]
    return [*edges, *as_tensors] if kind == "Tensor" else edges


def _network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2)).double()


@functools.cache
def _others():
    """What stands for types that are neither numbers nor arrays: sound values, and edges."""
    from theodolite.theory import Activation
    from theodolite.theory.bayes import LinearNet
    from theodolite.theory.capacity import gaussian
    from theodolite.theory.kernels import Kernels

    kernels = Kernels(_array("kernel", "Tensor"), _array("kernel", "Tensor"))
    specs = [Mlp(2, "relu", 2.0), Mlp(1, "tanh", 1.5, 0.1)]
    x = _array("x", "Tensor")
    return {
        "Mlp": (specs, [Mlp(0, "relu", 1.0), Mlp(2, "relu", 0.0), "no specification", None]),
        "Mlp | Layers": (specs, [Mlp(0, "relu", 1.0), (), "no specification"]),
        "Source": (["relu", "tanh", "gelu"], ["no such", np.tanh, torch.sign, lambda z: z.sum(), 3, Activation("erf")]),
        "Covariance": (
            [(1.0, 1.0, 0.5)],
            [(0.0, 0.0, 0.0), (1.0, 1.0, 2.0), (math.nan, 1.0, 0.0), (1.0,), (-1.0, 1.0, 0.0)],
        ),
        "LinearNet": ([LinearNet(inputs=8, widths=(16,), prior_variance=1.0)], ["no network"]),
        "RadialFunction": ([gaussian(2)], ["no function"]),
        "Kernels": ([kernels], [Kernels(torch.zeros(0, 0), torch.zeros(0, 0)), "no kernels"]),
        "nn.Module": ([_network()], [nn.Identity(), "no network"]),
        "Inputs": ([x], [x[:0], x.numpy(), x.long(), x * math.nan, x * 1e200, x[0], "no inputs"]),
        "Matrix": ([_array("kernel", "Tensor")], [torch.zeros(4, 4), "no matrix"]),
        "torch.Generator": ([torch.Generator()], []),
        "torch.dtype": ([torch.float64], []),
        "bool": ([False, True], []),
        "str": (["relu"], ["no such", 3]),
        "Sequence[float]": ([(0.5, 0.25, 0.125)], [(), (math.nan, 1.0), (-1.0, 0.0), 3.0, "no numbers"]),
        "Iterable[float]": ([(0.5, 0.25, 0.125)], [(), (math.nan, 1.0), (-1.0, 0.0), 3.0, "no numbers"]),
        "Sequence[float] | Array": ([tuple(range(1, 41))], [(), (math.nan,) * 40, "no numbers"]),
        "tuple[int, int]": ([(2, 3)], [(0, 0), (3, 2), (-1, 1), 3, "no numbers"]),
        "tuple[float, float]": ([(0.5, 1.0)], [(1.0, 0.5), (math.nan, 1.0), 3.0]),
        "Array | float": ([1.0], [0.0, -1.0, math.nan, "no number"]),
        "NDArray[np.float64]": ([np.array([3.0, 2.0, 1.0])], [np.zeros(3), np.zeros(0), np.full(3, math.nan)]),
        "Floats": ([np.array([3.0, 2.0, 1.0])], [np.zeros(3), np.zeros(0), np.full(3, math.nan)]),
        "MemorizingActivation": (["relu", "hardtanh"], ["no such"]),
        "Any": ([_array("x", "Array")], _array_edges("x", "Array")),
        "object": ([[1.0, 2.0]], [[], [math.nan, 1.0], "no numbers", [1.0]]),
        **_made(),
    }


def _made():
    """Objects that only the package makes: sound ones, what is at their edges, and what they can never be."""
    from theodolite.measure.collapse import ClassMoments
    from theodolite.measure.curvature import hessian
    from theodolite.measure.dimension import nearest_neighbors
    from theodolite.measure.dimension.prepared_rows import distinct_rows
    from theodolite.measure.experiments import Ensemble, LineEnsemble, Problem
    from theodolite.measure.regions import cell_at
    from theodolite.measure.spectra import power_law
    from theodolite.theory.bias import widest_margin
    from theodolite.theory.dynamics import Moment, QuadraticProblem

    random = np.random.default_rng(1)
    cloud = torch.from_numpy(random.standard_normal((40, 5)))
    x, labels = _array("x", "Tensor"), torch.tensor([0, 1, 0, 1])
    separable = np.array([[2.0, 0.3], [1.5, -0.2], [-1.8, 0.1], [-2.2, 0.4]])
    bends = random.standard_normal((2, 5, 5))
    problem = QuadraticProblem(random.standard_normal((5, 2)), bends + bends.transpose(0, 2, 1), np.array([1.0, -1.0]))
    still = QuadraticProblem(problem.features, 0 * problem.second_derivatives, problem.targets)
    small = Ensemble(activation=torch.relu, widths=(4,), weight_variance=2.0)
    lines = LineEnsemble(widths=(4,))
    run = [Moment(step, 1.0 / (1 + step), 5.0, lr=0.1) for step in range(8)]
    matrix = hessian(_network(), torch.nn.functional.cross_entropy, (x, labels))
    return {
        "Margin": ([widest_margin(separable, np.array([1.0, 1.0, -1.0, -1.0]))], ["no margin"]),
        "ClassMoments": (
            [ClassMoments.of(x, labels, classes=2)],
            [ClassMoments.of(x, labels, classes=3), ClassMoments.of(0 * x, labels, classes=2), "no moments"],
        ),
        "Neighbors": ([nearest_neighbors(cloud, 8)], ["no graph"]),
        "Rows": ([distinct_rows(cloud)], ["no rows"]),
        "QuadraticProblem": ([problem], [still, "no problem"]),
        "Sequence[Moment]": ([run, run[:2]], [[], run[:1]]),
        "Ensemble": ([small], [dataclasses.replace(small, weight_variance=0.0), "no ensemble"]),
        "LineEnsemble": ([lines], [dataclasses.replace(lines, bias_variance=0.0), "no ensemble"]),
        "Problem": ([Problem(sizes=(3, 4, 1), samples=2, norm2=1.0)], ["no problem"]),
        "PowerLaw": ([power_law(random.pareto(2.0, 200) + 1)], ["no fit"]),
        "Cell": ([cell_at(_network(), x[0])], ["no cell"]),
        "Symmetric": ([matrix], ["no matrix"]),
        "Entries": (["gauss", "sign"], ["no such"]),
        "_Slope": ([lambda z: 0.5 * z], []),
        "_Elementwise": ([torch.tanh], []),
        "tuple[int, ...]": ([(3, 4), (2, 3, 3)], [(), (0, 2), 3]),
        "Callable[[int], Tensor]": ([lambda i: _array("kernel", "Tensor")[:, i]], []),
        "NDArray[np.int64]": ([np.arange(8).reshape(4, 2) % 4], [np.zeros((4, 0), dtype=np.int64)]),
        "Tensor | FeatureCovariance": ([cloud], [cloud[:1], 0 * cloud, cloud * math.nan]),
        "Weight | Tensor": ([x], [x[:0], x[0]]),
    }


@functools.cache
def _by_function():
    place = importlib.util.spec_from_file_location("arguments", Path(__file__).with_name("arguments.py"))
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module.by_function()


@functools.cache
def _spelled(function):
    """The annotations of a function's parameters as its source spells them: aliases keep their names there."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0].args
    every = [*tree.posonlyargs, *tree.args, *tree.kwonlyargs]
    return {one.arg: ast.unparse(one.annotation) for one in every if one.annotation}


def _values(function, name):
    """Sound values and edges of a function's parameter, or None where neither it nor its type is known here."""
    if name in _by_function().get(function.__name__, ()):
        return _by_function()[function.__name__][name]
    bare = _spelled(function).get(name, "").removesuffix(" | None")
    if name in WORDS and bare not in ("Tensor", "Array"):
        return [WORDS[name]], ["no such word", 3]
    if bare == "float":
        return list(SOUND.get(name, NUMBERS)), list(EDGE_NUMBERS)
    if bare in ("int", "int | Tensor"):
        return list(SOUND.get(name, COUNTS)), list(EDGE_COUNTS)
    if bare == "Sequence[int]":
        return list(SEQUENCES), list(EDGE_SEQUENCES)
    if bare in ("Tensor", "Array"):
        return [_array(name, bare)], _array_edges(name, bare)
    return _others().get(bare)


def functions_of(topic):
    """The public functions of a topic, in theory and in measure, and those whose every parameter has values here."""
    found, able = [], []
    for root in ROOTS:
        try:
            package = importlib.import_module(f"theodolite.{root}.{topic}")
        except ModuleNotFoundError:
            continue
        for name in sorted(public_names(Path(package.__file__).with_suffix(".pyi"))):
            function = getattr(package, name)
            if inspect.isfunction(function):
                found.append(function)
                wanted = inspect.signature(function).parameters.values()
                if any(p.kind is p.VAR_POSITIONAL for p in wanted):  # handed on to a model, which refuses by itself
                    continue
                if all(p.default is not p.empty or _values(function, p.name) for p in wanted if p.kind not in (2, 4)):
                    able.append(function)
    return found, able


def pytest_generate_tests(metafunc):
    if "public_function" in metafunc.fixturenames:
        able = [
            f for f in functions_of(metafunc.module.TOPIC)[1] if f.__name__ not in getattr(metafunc.module, "SLOW", ())
        ]
        metafunc.parametrize("public_function", able, ids=lambda f: f"{f.__module__.split('.')[1]}-{f.__name__}")


@st.composite
def calls(draw, function):
    """Keyword arguments of which at most one is an edge, and its name."""
    chosen, edges = {}, {}
    for name, parameter in inspect.signature(function).parameters.items():
        values = _values(function, name)
        if values is None or parameter.kind in (2, 4):
            continue
        if parameter.default is parameter.empty:
            chosen[name] = draw(st.sampled_from(values[0]))
        edges[name] = values[1]
    names = [name for name in sorted(edges) if edges[name]]
    name = ""
    if names and draw(st.integers(0, 7)):
        name = draw(st.sampled_from(names))
        chosen[name] = draw(st.sampled_from(edges[name]))
    return chosen, name


def numbers_in(answer):
    """Every number in an answer, however it is nested."""
    if isinstance(answer, bool | str | None.__class__):
        return
    if isinstance(answer, int | float | np.number):
        yield float(answer) if not isinstance(answer, int) else 0.0
    elif isinstance(answer, torch.Tensor):
        if answer.is_floating_point():
            yield from answer.detach().flatten().tolist()
    elif isinstance(answer, np.ndarray):
        if answer.dtype.kind == "f":
            yield from answer.ravel().tolist()
    elif dataclasses.is_dataclass(answer):
        for field in dataclasses.fields(answer):
            yield from numbers_in(getattr(answer, field.name))
    elif isinstance(answer, dict):
        for value in answer.values():
            yield from numbers_in(value)
    elif isinstance(answer, list | tuple):
        for value in answer:
            yield from numbers_in(value)


def _extreme(arguments):
    """Whether a number is NaN, which is handed on, or so large or small that a double may not hold the answer."""
    sizes = [abs(v) for v in numbers_in(list(arguments.values()))]
    return any(v > 1e100 or 0 < v < 1e-100 or math.isnan(v) for v in sizes)


def check(function):
    """Ask the function many times; what it answers is finite, and what lies outside of a domain is refused in one line."""

    @settings(
        max_examples=EXAMPLES, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(calls(function))
    def asked(call):
        arguments, edge = call
        parameter = inspect.signature(function).parameters.get(edge)
        given_number = (
            parameter is not None
            and _spelled(function)[edge].removesuffix(" | None") in ("int", "float")
            and isinstance(arguments[edge], int | float | np.number)
            and edge != "seed"  # torch knows what a seed is
            and function.__name__ not in OPTIMIZERS
        )
        refusal = None
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                answer = function(**arguments)
            except Exception as error:
                refusal = error
        if isinstance(refusal, InputError):
            assert str(refusal).startswith("expected") and "\n" not in str(refusal)
        elif refusal is not None:
            assert not given_number or isinstance(refusal, TypeError) or _extreme(arguments), repr(refusal)
        if refusal is not None:
            return
        words, excused = (function.__doc__ or "").lower(), _extreme(arguments)
        numbers = list(numbers_in(answer))
        for value in numbers:
            assert not math.isnan(value) or "nan" in words or excused, f"NaN in {answer}"
            assert not math.isinf(value) or "infin" in words or excused, f"infinity in {answer}"
        if (
            given_number
            and parameter.default is parameter.empty
            and math.isnan(arguments[edge])
            and numbers
            and edge not in UNKNOWN
        ):
            assert any(map(math.isnan, numbers)), f"{answer} of {edge}=NaN"

    asked()


@pytest.fixture(name="check")
def _check():
    return check
