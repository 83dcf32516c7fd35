"""Before training: which initialisation, how deep a signal lives under it, and how large a step may be."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.core.instrument import Answer, Instrument
from theodolite.core.reading import Band, Estimate, Reading, Series
from theodolite.io.files import plain, write_atomically

if TYPE_CHECKING:
    from rich.console import RenderableType

    from theodolite.theory.capacity import MemoryBounds
    from theodolite.theory.kernels import KernelLearning, LearningRates
    from theodolite.theory.propagation import Criticality, Phase

NETS, SEED = 256, 0
"""How many random networks of the asked width are drawn for each initialisation, and the seed of the draws."""


@dataclass(frozen=True)
class Option:
    """One way to initialise: its variances and what theory says of signals under it."""

    name: str
    weight_variance: float
    bias_variance: float
    phase: Phase


@dataclass(frozen=True)
class Design:
    """The critical point of an activation, the usual initialisations beside it, and a test of each at this size.

    ``rates`` are the step sizes that theory allows under the first initialisation, and ``kernel`` is what the tangent kernel
    of that infinitely wide network says of learning the data, where there is any.
    """

    activation: str
    depth: int
    width: int
    criticality: Criticality
    options: tuple[Option, ...]
    answers: tuple[Answer, ...]
    rates: LearningRates
    kernel: KernelLearning | None = None
    capacity: MemoryBounds | None = None

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Random networks of this depth and width, measured beside theory."""
        return tuple(reading for answer in self.answers for reading in answer.readings)

    def table(self) -> RenderableType:
        """For the terminal."""
        from theodolite.report.overview import design_table

        return design_table(self)

    def text(self, width: int = 120) -> str:
        """The table as plain text."""
        from theodolite.report.text import as_text

        return as_text(self.table(), width=width)

    def html(self, path: str | Path | None = None) -> str:
        """The whole page; with ``path`` it is also written there."""
        from theodolite.report.html import survey_page

        page = survey_page(self.title, self.answers, (), self._facts())
        if path is not None:
            write_atomically(path, page)
        return page

    def json(self) -> str:
        """One JSON document; an infinite depth scale becomes null."""
        document = {
            "activation": self.activation,
            "depth": self.depth,
            "width": self.width,
            "criticality": asdict(self.criticality),
            "initialisations": [asdict(option) for option in self.options],
            "learning_rates": asdict(self.rates),
            "kernel": self.kernel and asdict(self.kernel),
            "capacity": self.capacity and asdict(self.capacity),
            "readings": [
                {
                    "quantity": r.quantity,
                    "where": r.where,
                    "measured": r.measured,
                    "stderr": r.stderr,
                    "expected": r.expected and [r.expected.low, r.expected.high],
                    "status": r.status,
                    "meaning": r.meaning,
                }
                for r in self.readings
            ],
        }
        return json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False)

    @property
    def title(self) -> str:
        """What was asked."""
        return f"{self.depth} hidden layers of {self.width} units, {self.activation}"

    def _facts(self) -> dict[str, str]:
        from theodolite import __version__

        return {"critical initialisation": self.criticality.reason, "made with": f"theodolite {__version__}"}

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from theodolite.report.html import survey_fragment

        return survey_fragment(self.title, self.answers, (), self._facts())


def design(
    *, activation: Any = "relu", depth: int = 10, width: int = 512, samples: int | None = None, data: Any = None
) -> Design:
    """What theory advises for a network of ``depth`` hidden layers of ``width`` units, tested on random networks.

    ``activation`` is a name as in torch.nn.functional or any elementwise torch callable. With ``data`` (inputs, or
    inputs and targets) the scale of the first layer's signal and the angle between inputs are taken from it, and the
    kernel of the infinitely wide network is asked how it would learn the targets; otherwise inputs have unit power and a
    cosine of 0.5. ``samples`` is how many examples a step of full-batch descent averages over (those of the data, or 1000).
    """
    from theodolite.construct.propagation import gradient_spread
    from theodolite.theory import Activation
    from theodolite.theory.capacity import memory
    from theodolite.theory.propagation import criticality

    for name, value in (("depth", depth), ("width", width), ("samples", samples)):
        if value is not None and value < 1:
            raise ValueError(f"expected a {name} of at least 1, got {value}; pass a positive number")
    sigma = activation if isinstance(activation, Activation) else Activation(activation)
    point = criticality(sigma)
    options = tuple(_options(sigma, point, width))
    x, y = _columns(data)
    power, cosine = _inputs(x)
    readings = [r for option in options for r in _readings(sigma, option, depth, width, (power, cosine))]
    spec = _spec(sigma, options[0], depth)
    count, inputs = samples or (1000 if x is None else len(x)), width if x is None else x[0].numel()
    rates = _rates(spec, inputs, width, (power, cosine), count)
    answers = [Answer(_SIGNALS, tuple(readings)), Answer(_STEPS, tuple(_step_reading(spec, width, (power, cosine))))]
    answers.append(Answer(_SPREAD, gradient_spread(spec, width, where=options[0].name, seed=SEED)))
    kernel = None if x is None or y is None else _kernel(spec, x, y)
    known = samples or (None if x is None else len(x))
    return Design(
        sigma.name,
        depth,
        width,
        point,
        options,
        tuple(a for a in answers if a.readings),
        rates,
        kernel,
        memory(sigma.name, depth, width, known),
    )


def _spec(sigma: Any, option: Option, depth: int) -> Any:
    from theodolite.theory import Mlp

    return Mlp(depth, sigma, option.weight_variance, option.bias_variance)


def _columns(data: Any) -> tuple[Any, Any]:
    """Inputs and targets as tensors, None where there are none."""
    import torch

    if data is None:
        return None, None
    x, y = data if isinstance(data, tuple) else (data, None)
    return torch.as_tensor(x), None if y is None else torch.as_tensor(y)


def _rates(spec: Any, inputs: int, width: int, signal: tuple[float, float], samples: int) -> LearningRates:
    from theodolite.theory.kernels import learning_rates

    return learning_rates(spec, inputs=inputs, width=width, mean_square=signal[0], cosine=signal[1], samples=samples)


def _kernel(spec: Any, x: Any, y: Any) -> KernelLearning | None:
    """What the tangent kernel on at most 512 of the inputs says of learning their targets."""
    import torch

    from theodolite.theory.kernels import kernel_learning, mlp_kernels

    rows, targets = x[:512].flatten(1).double(), y[:512]
    if not targets.is_floating_point():
        targets = torch.nn.functional.one_hot(targets.long()).double()
    centred = targets.double() - targets.double().mean(0)
    if not centred.any():  # nothing to learn
        return None
    kernels = mlp_kernels(spec, rows, weight_rate=1.0, bias_rate=1.0)
    return kernel_learning(kernels.ntk.numpy(), centred.reshape(len(rows), -1).numpy())


def _step_reading(spec: Any, width: int, signal: tuple[float, float]) -> Iterator[Reading]:
    """The largest eigenvalue of random networks' tangent kernels beside theory's, where that is quickly done."""
    import torch

    from theodolite.construct.propagation import network
    from theodolite.core.statistics import mean_estimate
    from theodolite.measure.kernels import empirical_ntk, kernel_spectrum

    points, nets, depth = 8, 24, spec.hidden_layers
    if depth * width**2 * points * nets > 4e9:
        return
    power, cosine = signal
    generator = torch.Generator().manual_seed(SEED)
    common, own = torch.randn(1, width, generator=generator), torch.randn(points, width, generator=generator)
    x = power**0.5 * (max(cosine, 0.0) ** 0.5 * common + (1 - max(cosine, 0.0)) ** 0.5 * own)
    found = []
    for _ in range(nets):
        model = network(spec, width, 1, width=width, generator=generator)
        found.append(kernel_spectrum(empirical_ntk(model, x)).values.max().item() / points)
    seen = mean_estimate(found)
    unit = x / x.norm(dim=1, keepdim=True)
    real = ((unit @ unit.T).sum().item() - points) / (points * (points - 1))
    rates = _rates(spec, width, width, (x.square().mean().item(), real), points)
    yield Reading(
        quantity="largest eigenvalue of the tangent kernel over the samples",
        where=f"{points} inputs",
        measured=seen.value,
        stderr=seen.stderr,
        expected=Band.around(rates.largest, rel=0.25),
        meaning=f"Plain gradient descent on {points} such inputs diverges above a step of 2 over this, {2 / seen.value:.3g}. "
        "It falls as 1 over the width; layer-wise rates as 1 over fan-in do not.",
    )


def _options(sigma: Any, point: Criticality, width: int) -> Iterator[Option]:
    """The critical point first, then what people use."""
    from theodolite.theory.propagation import phase

    usual = {"He": (2.0, 0.0), "Xavier (LeCun)": (1.0, 0.0), "PyTorch default": (1 / 3, 1 / (3 * width))}
    if point.weight_variance is not None and point.bias_variance is not None:
        usual = {"critical": (point.weight_variance, point.bias_variance), **usual}
    for name, (weight, bias) in usual.items():
        start = (point.fixed_point if name == "critical" else None) or 1.0
        yield Option(name, weight, bias, phase(sigma, weight_variance=weight, bias_variance=bias, variance=start))


def _inputs(x: Any) -> tuple[float, float]:
    """The mean power of an input entry and the mean cosine between inputs."""
    if x is None:
        return 1.0, 0.5
    import torch

    x = x[:512].flatten(1).double()
    if len(x) < 2:
        raise ValueError(f"expected at least two inputs, got {len(x)}; pass more data")
    unit = torch.nn.functional.normalize(x, dim=1)
    cosines = (unit @ unit.T)[~torch.eye(len(x), dtype=torch.bool)]
    return x.square().mean().item(), cosines.mean().item()


def _readings(sigma: Any, option: Option, depth: int, width: int, inputs: tuple[float, float]) -> Iterator[Reading]:
    """Random networks of this size, beside the infinitely wide prediction."""
    import torch

    from theodolite.core.statistics import mean_estimate
    from theodolite.measure.experiments import Ensemble, conditional_chain, correlations
    from theodolite.theory.propagation import covariance_trajectory

    weight, bias = option.weight_variance, option.bias_variance
    start, angle = _first_layer(option, *inputs)
    ends = covariance_trajectory(_spec(sigma, option, depth), (start, start, angle * start))
    ensemble = Ensemble(activation=sigma, widths=(width,) * depth, weight_variance=weight, bias_variance=bias)
    first = start * torch.tensor([[1.0, angle], [angle, 1.0]], dtype=torch.float64)
    chain = conditional_chain(ensemble, first, nets=NETS, generator=torch.Generator().manual_seed(SEED))
    norms = [mean_estimate(chain[:, layer, 0, 0] / start) for layer in range(depth + 1)]
    alive = chain[(chain[:, -1, 0, 0] > 0) & (chain[:, -1, 1, 1] > 0)]
    cosines = [mean_estimate(correlations(alive)[:, layer]) for layer in range(depth + 1)] if len(alive) > 1 else []
    yield _reading("variance at the end over that at the start", option, norms, [K11 / start for K11, _, _ in ends])
    if cosines:
        predicted = [K12 / math.sqrt(K11 * K22) if K11 * K22 > 0 else 0.0 for K11, K22, K12 in ends]
        yield _reading("cosine of two inputs at the end", option, cosines, predicted)


def _first_layer(option: Option, power: float, cosine: float) -> tuple[float, float]:
    """The variance and correlation of the first preactivations; at a half-stable point the first layer aims at it."""
    if option.name == "critical" and option.phase.fixed_point:
        start = option.phase.fixed_point
        return start, (option.bias_variance + (start - option.bias_variance) * cosine) / start
    start = option.bias_variance + option.weight_variance * power
    return start, (option.bias_variance + option.weight_variance * power * cosine) / start


def _reading(quantity: str, option: Option, measured: Sequence[Estimate], predicted: Sequence[float]) -> Reading:
    """Expected within a quarter (a cosine within 0.1): what finite width adds at the depths people use."""
    is_angle = quantity.startswith("cosine")
    if is_angle:
        bands = [Band(max(-1.0, value - 0.1), min(1.0, value + 0.1)) for value in predicted]
    else:
        bands = [Band.around(value, rel=0.25) if math.isfinite(value) else Band() for value in predicted]
    series = Series(
        x=tuple(float(layer) for layer in range(1, len(measured) + 1)),
        measured=tuple(e.value for e in measured),
        stderr=tuple(e.stderr for e in measured),
        low=tuple(b.low for b in bands),
        high=tuple(b.high for b in bands),
        x_label="layer",
        y_label="cosine" if is_angle else "variance over the first",
        log="" if is_angle else "y",
    )
    last = measured[-1]
    return Reading(
        quantity=quantity,
        where=option.name,
        measured=last.value,
        stderr=last.stderr,
        expected=bands[-1],
        meaning=_angle_words(last.value) if is_angle else _norm_words(last.value),
        series=series,
    )


def _norm_words(ratio: float) -> str:
    if 0.1 <= ratio <= 10:
        return "Signals keep their size through this depth."
    fate = "fade" if ratio < 1 else "grow"
    return f"Signals {fate} to {ratio:.3g} of their variance, and gradients likewise; try the critical initialisation."


def _angle_words(cosine: float) -> str:
    if cosine > 0.99:
        return "Inputs have become alike: the output can hardly tell them apart; try fewer layers or residual paths."
    return "Inputs can still be told apart at the end."


_SIGNALS = Instrument(
    question="Do signals survive this depth, at this width?",
    read=lambda subject: (),
    needs=frozenset(),
    cost="forward",
    laws=("criticality-conditions", "conditional-gaussian-layer", "depth-scale"),
    name="random networks",
)
_STEPS = Instrument(
    question="How large a step may be, before training?",
    read=lambda subject: (),
    needs=frozenset(),
    cost="backward",
    laws=("lr-width-scaling", "ntk-infinite-recursion"),
    name="step size",
)
_SPREAD = Instrument(
    question="How much will gradients differ between seeds?",
    read=lambda subject: (),
    needs=frozenset(),
    cost="backward",
    laws=("jacobian-log-normal",),
    name="spread of gradients",
)
