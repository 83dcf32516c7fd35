"""What holds of every public function of theory and measure at odd scales, types and sizes of its arguments, as a table.

    python benchmarks/properties.py [--write docs/properties.md] [TOPIC ...]

Nobody writes down what a function should answer: the properties are found. If an answer at moderate scale goes as a power of an
argument (a quarter to four times the argument gives the same power), that power must hold at 1e-30, 1e-12, 1e12 and 1e30 as well.
Single and half precision are held against double precision of the same rounded numbers. NaN in gives NaN or a refusal. A complex
argument is refused, or changes the answer. No rows and one row are answered or refused. What has the wrong type or shape may be
refused by Python, NumPy or torch, which say it well. Sound arguments are those of tests/properties.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import importlib.util
import inspect
import math
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
TOPICS = ("bayes", "bias", "capacity", "collapse", "curvature", "dimension")
TOPICS += ("dynamics", "experiments", "kernels", "propagation", "regions", "spectra")
EXTREMES = (2.0**-100, 2.0**-40, 2.0**40, 2.0**100)
"""About 1e-30, 1e-12, 1e12 and 1e30; powers of two, so that scaling rounds nothing."""
NEAR = (2.0, 4.0, 0.5, 0.25)
TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
COLUMNS = ("scale", *TYPES, "complex", "NaN", "empty", "one row")
HOLDS, REFUSES, NOTHING = "holds", "refuses", "-"
UNTRIED = "- not tried: no arguments that are sound together"


def sound_arguments():
    """The module that knows sound arguments of every public function."""
    place = importlib.util.spec_from_file_location("property_arguments", ROOT / "tests" / "properties" / "conftest.py")
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


def sounder():
    """Arguments of functions to which those of the tests, made for what is at the edge, are not sound together."""
    random = np.random.default_rng(2)
    cloud, labels = torch.from_numpy(random.standard_normal((60, 5))), torch.tensor([0, 1] * 30)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    flat = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2)).double()
    taught = {"model": model, "loss": nn.functional.cross_entropy, "data": (cloud, labels)}
    unit = random.standard_normal((6, 4))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    square = random.standard_normal((4, 4))
    gram = square @ square.T / 10 + 0.2 * np.eye(4)
    chances = random.random((4, 4)) + 0.1
    points = {
        name: {"x": cloud}
        for name in (
            "dimension_correlation",
            "dimension_danco",
            "dimension_ess",
            "dimension_hessian",
            "dimension_local_pca",
            "dimension_mle",
            "gaussian_mixture",
            "hessian_eigenmaps",
            "local_pca",
            "nearest_neighbors",
            "tsne_affinities",
        )
    }
    points["tsne_affinities"] = {"x": torch.from_numpy(random.standard_normal((120, 5)))}
    return (
        points
        | dict.fromkeys(
            (
                "empirical_fisher",
                "gauss_newton",
                "hessian",
                "top_hessian_eigenvalues",
                "gradient_moments",
                "probe_slope",
            ),
            taught,
        )
        | {name: {"x": unit} for name in ("sphere_gram", "sphere_gram_rank", "smallest_eigenvalue_bounds")}
        | {
            "least_divergence": {"readouts": np.abs(unit[:2]), "y": np.array([1.0, 2.0]), "start": np.ones(4)},
            "distances": {"points": cloud, "center": cloud[0]},
            "lipschitz_code": {
                "values": torch.cat([torch.zeros(6, 1), torch.from_numpy(unit)], 1).cumsum(1) / 8,
                "bits": 3,
            },
            "hessian_again": {**taught, "sample_bytes": None},
            "log_ratios": {"near": 1, "far": 2},
            "two_layer_start": {"output": 0.1},
            "perturbation_growth": {"kind": "parallel"},
            "confusion_counts": {"labels": labels, "predictions": labels.flip(0)},
            "disagreements": {"features": cloud[:4], "weight": cloud[:2]},
            "matthews_coefficient": {"counts": np.array([[5.0, 1.0], [2.0, 7.0]])},
            "class_structure": {
                "vectors": torch.from_numpy(random.standard_normal((4, 2, 5))),
                "labels": labels[:4],
                "probabilities": torch.full((4, 2), 0.5, dtype=torch.float64),
            },
            "pair_gradients": {"model": model, "data": (cloud, labels), "classes": 2},
            "pair_structure": {
                "means": torch.from_numpy(random.standard_normal((2, 2, 5))),
                "weights": torch.full((2, 2), 0.25, dtype=torch.float64),
            },
            "hadamard_transform": {"x": cloud[:4, :4].clone()},
            "hadamard_transform_": {"x": cloud[:4, :4].clone()},
            "classical_mds": {"distances": torch.cdist(cloud[:8], cloud[:8]).numpy()},
            "laplacian_eigenmaps": {"affinities": np.exp(-torch.cdist(cloud[:8], cloud[:8]).numpy())},
            "linear_flow_limit": {"features": unit[:4, :3], "targets": np.ones(3), "start": np.zeros(4)},
            "label_deformation": {"end": np.ones(5)},
            "feature_drift": {"second_derivative": np.eye(5), "start": np.ones(5)},
            "parallel_correction": {"start": np.ones(5)},
            "perpendicular_correction": {"start": np.ones(5)},
            "quadratic_covariance": {"hessian": gram, "noise_covariance": np.eye(4), "lr": 0.1},
            "stationary_regression": {"x": unit[:, :2], "y": unit[:, 2], "lr": 0.1, "batch_size": 2},
            "accumulated_noise": {"squares": (1.0, 1.1, 0.9), "total": 1.2, "entries": cloud[:3]},
            "subspace_share": {"gradient": cloud[0], "vectors": cloud[1:3]},
            "log_loss_times_time": {"signed_x": np.abs(unit), "weight": np.ones(4)},
            "multiplicative_weights": {
                "x": cloud[None, :8],
                "y": cloud[None, :8, 0].abs(),
                "update": "egu",
                "initial_weight": 0.1,
            },
            "outside_span": {"x": cloud[None, :3], "weights": cloud[:1]},
            "stationary_vector": {"transition": chances / chances.sum(1, keepdims=True)},
            "curvature_through_kernel": {
                "kernel": torch.from_numpy(gram)[:, :, None, None],
                "loss_curvatures": torch.ones(4, 1, 1).double(),
            },
            "output_curvatures": {"loss": nn.functional.mse_loss, "outputs": cloud[:4, :2], "targets": cloud[:4, 2:4]},
            "critical_decay": {"activation": "tanh"},
            "log_spread": {"squares": cloud.square()},
            "segment_breakpoints": {
                "widths": (6, 4),
                "gram": np.array([[1.0, 0.3], [0.3, 2.0]]),
                "weight_variances": (2.0, 2.0),
                "bias_variances": (0.0, 0.0),
            },
            "origin_sides": {"weights": unit[:, :2], "biases": np.ones(6)},
            "region_parts_in_polygon": {"model": flat, "corners": np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])},
            "regions_in_polygon": {"model": flat, "corners": np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])},
            "regions_on_line": {"model": model[:1], "start": cloud[0], "end": cloud[1]},
            "regions_on_lines": {"model": model[:1], "starts": cloud[:3], "ends": cloud[3:6]},
            "slice_through": {"first": cloud[0], "second": cloud[1], "third": cloud[2]},
            "gap_probability": {"ratio": 2.5},
            "likelihood_ratio": {"eigenvalues": np.random.default_rng(1).pareto(2.0, 200) + 1},
            "marchenko_pastur_bulk": {"eigenvalues": np.linspace(1.0, 30.0, 12), "rows": 16, "columns": 12},
            "normal_scores": {"matrix": cloud, "generator": torch.Generator()},
        }
    )


def leaves(answer):
    """The numbers of an answer, an array a leaf, in order; what is not a number is left out."""
    if isinstance(answer, bool | str | bytes | None.__class__ | np.bool_):
        return
    if isinstance(answer, int | float | complex | np.number):
        yield np.atleast_1d(np.asarray(answer))
    elif isinstance(answer, torch.Tensor):
        plain = answer.detach().cpu()
        wide = plain if plain.is_complex() else plain.double()
        if plain.is_floating_point() or plain.is_complex():
            yield np.atleast_1d(wide.resolve_conj().numpy()).ravel()
    elif isinstance(answer, np.ndarray):
        if answer.dtype.kind in "fc" and answer.size:
            yield np.atleast_1d(answer).ravel()
    elif dataclasses.is_dataclass(answer) and not isinstance(answer, type):
        for field in dataclasses.fields(answer):
            if "bytes" not in field.name:  # memory is of the type, as it should be
                yield from leaves(getattr(answer, field.name))
    elif isinstance(answer, dict):
        for value in answer.values():
            yield from leaves(value)
    elif isinstance(answer, list | tuple):
        for value in answer:
            yield from leaves(value)


class RefusedError(Exception):
    """The function, or what it calls, raised an error."""


def asked(function, arguments):
    """The leaves of the answer, from arguments that no call before has touched."""
    torch.manual_seed(0)
    own = {}
    for name, value in arguments.items():
        if isinstance(value, torch.Generator):
            own[name] = torch.Generator().manual_seed(0)
        elif isinstance(value, np.random.Generator):
            own[name] = np.random.default_rng(0)
        else:
            own[name] = copy.deepcopy(value)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return list(leaves(function(**own)))
        except Exception as error:
            raise RefusedError(str(error)) from error


def alike(found, wanted, tolerance, *, floor=0.0):
    """Whether all leaves agree, beside the largest of each leaf or, where that is more, the ``floor``."""
    if len(found) != len(wanted):
        return False
    for one, other in zip(found, wanted, strict=True):
        if one.shape != other.shape:
            return False
        finite = np.isfinite(other)
        if not np.array_equal(np.isfinite(one), finite):
            return False
        size = max(np.abs(other[finite]).max(initial=0.0), floor)
        if size and not np.all(np.abs(one[finite] - other[finite]) <= tolerance * size):
            return False
        if not size and np.any(one[finite]):
            return False
    return True


def degrees(function, arguments, name):
    """For each leaf the power of the argument that it goes as, by halves to four times the argument; None where not all do."""
    try:
        base, *others = (asked(function, scaled(arguments, name, by)) for by in (1.0, *NEAR))
    except RefusedError:
        return None
    if not base or any([leaf.shape for leaf in other] != [leaf.shape for leaf in base] for other in others):
        return None
    powers = []
    for one, *near in zip(base, *others, strict=True):
        if not np.isfinite(one).all():
            return None
        size, twice = np.abs(one).max(initial=0.0), np.abs(near[0]).max(initial=0.0)
        if size == 0.0 or twice == 0.0:
            if size != twice:
                return None
            powers.append(0.0)
            continue
        power = round(2 * math.log2(twice / size)) / 2
        if not alike(near, [one * by**power for by in NEAR], 1e-9):
            return None
        powers.append(power)
    return base, powers


def scaled(arguments, name, by):
    return {**arguments, name: as_before(arguments[name], arguments[name] * by)}


def as_before(value, changed):
    """A parameter stays one."""
    return nn.Parameter(changed.detach()) if isinstance(value, nn.Parameter) else changed


def scale_word(function, arguments, names):
    """Whether the powers found at moderate scale hold at extreme ones."""
    seen, worst = NOTHING, []
    for name in names:
        found = degrees(function, arguments, name)
        if found is None:
            continue
        base, powers = found
        if isinstance(arguments[name], float) and not any(powers):
            continue  # a number that changes nothing here may do so elsewhere, as a threshold does
        seen = HOLDS
        for by in EXTREMES:
            with np.errstate(all="ignore"):
                wanted = [leaf * by**power for leaf, power in zip(base, powers, strict=True)]
            sizes = [abs(v) for leaf in wanted for v in leaf.tolist() if v]
            if any(not 1e-280 < v < 1e280 for v in sizes):
                continue
            try:
                if not alike(asked(function, scaled(arguments, name, by)), wanted, 1e-6):
                    worst.append(f"{name} at {by:.0e}")
            except RefusedError:
                worst.append(f"{name} refused at {by:.0e}")
    return "; ".join(worst) or seen


def cast(value, kind):
    if isinstance(value, nn.Module):
        return copy.deepcopy(value).to(kind)
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return as_before(value, value.to(kind))
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return torch.from_numpy(value).to(kind).numpy() if kind != torch.bfloat16 else value
    return value


def type_word(function, arguments, kind):
    """Whether an answer in less precision is near that of the same numbers in double precision."""
    if any(isinstance(v, torch.Generator) for v in arguments.values()):
        return NOTHING  # other types draw other numbers
    if not any(isinstance(v, nn.Module | torch.Tensor | np.ndarray) for v in arguments.values()):
        return NOTHING
    low = {name: cast(value, kind) for name, value in arguments.items()}
    if kind == torch.bfloat16 and not any(isinstance(v, nn.Module | torch.Tensor) for v in low.values()):
        return NOTHING
    wide = {name: cast(value, torch.float64) for name, value in low.items()}
    try:
        wanted = asked(function, wide)
    except RefusedError:
        return REFUSES
    try:
        found = asked(function, low)
    except RefusedError:
        return REFUSES
    found, wanted = ([leaf for leaf in some if leaf.dtype.kind != "i"] for some in (found, wanted))  # rounds differ
    tolerance = 64 * torch.finfo(kind).eps
    sizes = [np.abs(leaf).max(initial=0.0) for leaf in (*leaves(list(wide.values())), *wanted)]
    floor = 0.1 * max(sizes, default=0.0)  # of what cancels, rounding is left
    return HOLDS if alike(found, wanted, tolerance, floor=floor) else f"off by {farthest(found, wanted):.1g}"


def farthest(found, wanted):
    """The largest difference beside the largest of a leaf; infinite where answers have other shapes."""
    if [leaf.shape for leaf in found] != [leaf.shape for leaf in wanted]:
        return math.inf
    with np.errstate(all="ignore"):
        ratios = [
            np.abs(a - b).max(initial=0.0) / np.abs(b).max(initial=1e-300) for a, b in zip(found, wanted, strict=True)
        ]
    return max((r if math.isfinite(r) else math.inf for r in ratios), default=0.0)


def complex_word(function, arguments, names):
    bad, seen = [], NOTHING
    for name in names:
        value = arguments[name]
        turned = as_before(value, value + 0.5j * abs(value) ** 0.5)
        try:
            found = asked(function, {**arguments, name: turned})
        except RefusedError:
            seen = REFUSES if seen == NOTHING else seen
            continue
        seen = HOLDS
        try:
            plain = asked(function, arguments)
        except RefusedError:
            continue
        if plain and alike(found, plain, 1e-12):
            bad.append(name)
    return f"drops the imaginary part of {', '.join(bad)}" if bad else seen


def nan_word(function, arguments, names):
    bad, seen = [], NOTHING
    for name in names:
        value = arguments[name]
        if isinstance(value, float):
            spoilt = math.nan
        else:
            spoilt = value.detach().clone() if isinstance(value, torch.Tensor) else value.copy()
            spoilt.reshape(-1)[-1] = math.nan
            spoilt = as_before(value, spoilt)
        try:
            found = asked(function, {**arguments, name: spoilt})
        except RefusedError:
            seen = REFUSES if seen == NOTHING else seen
            continue
        seen = HOLDS
        if found and not any(np.isnan(leaf).any() for leaf in found):
            bad.append(name)
    return f"loses NaN of {', '.join(bad)}" if bad else seen


def rows_word(function, arguments, names, count):
    seen = NOTHING
    for name in names:
        if arguments[name].ndim == 0:
            continue
        try:
            asked(function, {**arguments, name: as_before(arguments[name], arguments[name][:count])})
            seen = HOLDS
        except RefusedError:
            seen = REFUSES if seen == NOTHING else seen
    return seen


REASONS = {
    ("correlations", "NaN"): "those of the first two inputs; the last is spoilt",
    ("recurrent_saturation", "NaN"): "the last output is fed to no gate",
    ("random_entries", "NaN"): "takes the type alone",
    ("ridge_directions", "NaN"): "takes the type alone",
    ("tsne_loss", "NaN"): "a point's affinity with itself is not counted",
    ("structure", "NaN"): "says by NaN that a fit found nothing",
    ("ntk_plan", "NaN"): "a plan, of shapes alone",
    ("output_curvatures", "NaN"): "those of the squared error are constant",
    ("telling_kernel", "NaN"): "looks at x of a single sample only",
    ("dual_scale", "scale"): "separations end at 2, the sphere's diameter",
    ("flowed", "scale"): "keeps 1e-13 a step, whatever the start, as it says",
    ("largest_stable_gain", "float16"): "a run in half precision diverges sooner",
    ("largest_stable_step", "float16"): "a run in half precision diverges sooner",
}
"""What does not hold and need not, and why."""


def properties(function, arguments):
    """The words of a row, by column."""
    arrays = [
        name
        for name, value in arguments.items()
        if (isinstance(value, torch.Tensor) and value.is_floating_point())
        or (isinstance(value, np.ndarray) and value.dtype.kind == "f")
    ]
    numbers = [name for name, value in arguments.items() if isinstance(value, float)]
    checks = {
        "scale": lambda: scale_word(function, arguments, arrays + numbers),
        **{name: lambda own=own: type_word(function, arguments, own) for name, own in TYPES.items()},
        "complex": lambda: complex_word(function, arguments, arrays),
        "NaN": lambda: nan_word(function, arguments, arrays + numbers),
        "empty": lambda: rows_word(function, arguments, arrays, 0),
        "one row": lambda: rows_word(function, arguments, arrays, 1),
    }
    words = {}
    try:
        asked(function, arguments)
    except RefusedError:
        return dict.fromkeys(COLUMNS, UNTRIED)
    for column, check in checks.items():
        try:
            words[column] = check()
        except Exception as error:  # a traceback is what is looked for
            words[column] = f"{type(error).__name__}: {' '.join(str(error).split())[:60]}"
        if kind(words[column]) == "broken" and (function.__name__, column) in REASONS:
            words[column] = f"{NOTHING} {REASONS[function.__name__, column]}"
    return words


def table_of(topics):
    known, better = sound_arguments(), sounder()
    rows = {}
    for topic in topics:
        for function in known.functions_of(topic)[1]:
            began = time.perf_counter()
            arguments = {}
            for name, parameter in inspect.signature(function).parameters.items():
                if parameter.default is parameter.empty and parameter.kind not in (2, 4):
                    arguments[name] = known._values(function, name)[0][0]
            arguments |= better.get(function.__name__, {})
            name = f"{function.__module__.split('.')[1]}.{topic}.{function.__name__}"
            rows[name] = properties(function, arguments)
            took = time.perf_counter() - began
            if took > 5:
                print(f"{name} took {took:.0f} s", file=sys.stderr)
    return rows


def document(rows):
    counts = {column: Counter(kind(words[column]) for words in rows.values()) for column in COLUMNS}
    lines = [
        "# What holds of every public function",
        "",
        "Made by `python benchmarks/properties.py --write docs/properties.md`, which says how each property is found.",
        "",
        f"{len(rows)} functions of theory and measure.",
        "",
        "| property | holds | refuses | does not apply | does not hold |",
        "|---|---|---|---|---|",
        *(f"| {c} | {n['holds']} | {n['refuses']} | {n['-']} | {n['broken']} |" for c, n in counts.items()),
        "",
        "| function | " + " | ".join(COLUMNS) + " |",
        "|---|" + "---|" * len(COLUMNS),
        *(
            f"| {name} | " + " | ".join(words[c].replace("|", "/") for c in COLUMNS) + " |"
            for name, words in rows.items()
        ),
    ]
    return "\n".join(lines) + "\n"


def kind(word):
    """What a word of the table counts as."""
    return NOTHING if word.startswith(f"{NOTHING} ") else word if word in (HOLDS, REFUSES, NOTHING) else "broken"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("topics", nargs="*", default=TOPICS, metavar="TOPIC")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    rows = table_of(options.topics or TOPICS)
    if options.write:
        options.write.write_text(document(rows), encoding="utf-8")
    broken = 0
    for name, words in rows.items():
        for column, word in words.items():
            if kind(word) == "broken":
                broken += 1
                print(f"{name}: {column}: {word}")
    print(f"{len(rows)} functions, {broken} properties that do not hold")


if __name__ == "__main__":
    main()
