"""A survey and an atlas of real readings and real laws, with hostile names in every place a user can write in."""

from __future__ import annotations

import math

import pytest
import torch

from theodolite.core.instrument import Instrument
from theodolite.core.law import Law
from theodolite.core.question import Answer, Skipped
from theodolite.core.reading import Band, Reading, Series
from theodolite.report.atlas import Charted

SCRIPT = "<script>document.title='pwned'</script>"
IMAGE = '"><img src=x onerror="document.title=\'pwned\'">'


def _no_readings(subject):
    return ()


def _instrument(name, question, cost="free"):
    return Instrument(name=name, question=question, read=_no_readings, needs={"model"}, cost=cost, laws=("some-law",))


@pytest.fixture(scope="session")
def hostile():
    return SCRIPT, IMAGE


@pytest.fixture(scope="session")
def survey():
    """Title, answers, skipped, facts: every status, twelve layers by four quantities, hostile and long names."""
    layers = [f"encoder.layers.{place}.attention.query_key_value" for place in range(12)]
    layers[4], layers[5], layers[6] = SCRIPT, IMAGE, "block." + "very_long_name." * 12 + "weight"
    many = []
    for place, layer in enumerate(layers):
        many += [
            Reading(
                quantity="weight variance",
                measured=2.0 + (place == 3),
                stderr=0.01,
                where=layer,
                expected=Band.around(2, rel=0.1),
                meaning="Too large." if place == 3 else "At criticality.",
            ),
            Reading(
                quantity="bias variance", measured=0.0, expected=Band(0, 1e-3), where=layer, meaning="As it should."
            ),
            Reading(
                quantity="depth scale", measured=10.0 ** (place % 5), stderr=0.5, expected=Band(low=9.0), where=layer
            ),
            Reading(quantity=f"kurtosis {IMAGE}", measured=math.nan if place == 9 else 3.0, stderr=0.1, where=layer),
        ]
    named = Series(
        x=tuple(layers),
        measured=(1.0,) * 12,
        stderr=(0.1,) * 12,
        low=(0.5,) * 12,
        high=(1.5,) * 12,
        x_label=SCRIPT,
        y_label=IMAGE,
    )
    some = [
        Reading(
            quantity="signal",
            measured=1.2,
            stderr=0.02,
            expected=Band(0.9, 1.2),
            where="output",
            series=named,
            meaning=f"Seen {SCRIPT}, try {IMAGE}",
        ),
        Reading(quantity=SCRIPT, measured=-3.0, stderr=0.1, expected=Band(0, 10), where=IMAGE),
        Reading(quantity="top eigenvalue", measured=3.1e7, stderr=2e5, expected=Band(high=1e6)),
    ]
    answers = [
        Answer(_instrument("initialization", "Is it critical?"), tuple(many), 0.8),
        Answer(_instrument("signal", f"How do signals travel? {SCRIPT}", "forward"), tuple(some), 12.0),
        Answer(_instrument("silent", "Is there nothing to say?"), ()),
    ]
    skipped = [Skipped("collapse [red]", f"needs data {SCRIPT}"), Skipped(IMAGE, "needs origin")]
    return f"Survey of {SCRIPT}", answers, skipped, {"model": IMAGE, SCRIPT: "12", "time": "1.2 s"}


def gain(width, *, generator):
    """The mean square that a ReLU layer of He weights passes on, over that of its input."""
    x = torch.randn(width, generator=generator, dtype=torch.float64)
    weight = torch.randn(width, width, generator=generator, dtype=torch.float64) * math.sqrt(2 / width)
    return ((weight @ x).relu().square().mean() / x.square().mean()).item()


def spread(width, *, generator):
    return torch.randn(64, width, generator=generator, dtype=torch.float64).mean(1).square().mean().item()


def power(base, exponent):
    return float(base) ** exponent


LAWS = {
    "gain": Law(
        name="gain",
        topic="propagation",
        quantity="gain",
        claim="He weights keep the mean square.",
        tolerance=0.3,
        formula=r"\mathbb{E}[z^2]=K",
        assumes={"independent weights": None, "wide": {"width": 1}},
        source="he2015, eq. 10",
        predict=lambda width: 1.0,
        measure=gain,
        cases=({"width": 128}, {"width": 256}),
        repeats=64,
    ),
    "powers": Law(
        name="powers",
        topic="propagation",
        quantity="mean square",
        claim="Depth acts as a power, $a^l$.",
        along="exponent",
        formula=r"K_\ell=a^\ell",
        assumes={},
        source="he2015",
        predict=power,
        measure=power,
        tolerance=0.01,
        cases=tuple({"base": base, "exponent": depth} for base in (0.5, 1.0, 2.0) for depth in (1, 4, 9)),
    ),
    "spread": Law(
        name="spread",
        topic="kernels",
        quantity="variance of a mean",
        claim="Fluctuations fall as one over the width.",
        formula=r"\mathrm{Var}\propto n^{-1}",
        assumes={"independent": None},
        source="unknown-key",
        tolerance=0.3,
        predict=lambda: -1.0,
        measure=spread,
        exponent="width",
        cases=tuple({"width": w} for w in (8, 32, 128)),
        erratum="A textbook prints $-1/2$.",
        refuted=lambda: -0.5,
        repeats=16,
    ),
    "wrong": Law(
        name="wrong",
        topic="kernels",
        quantity=f"area {IMAGE}",
        claim=f"Circles are squares. {SCRIPT}",
        source=IMAGE,
        formula=r"\begin{cases}a\\b\end{cases}",
        assumes={SCRIPT: {"shape": "circle"}},
        along="shape",
        predict=lambda shape: Band(high=1.0),
        measure=lambda shape: float(len(shape)),
        cases=({"shape": SCRIPT}, {"shape": ""}),
        erratum=IMAGE,
        refuted=lambda shape: 2.0,
    ),
    "doubtful": Law(
        name="doubtful",
        topic="loose",
        claim="A coin is fair to a percent after a few throws.",
        formula="p=1/2",
        assumes={},
        source="",
        tolerance=0.01,
        predict=lambda: 0.5,
        cases=({},),
        repeats=8,
        measure=lambda *, generator: float(torch.rand(1, generator=generator, dtype=torch.float64)),
    ),
}


@pytest.fixture(scope="session")
def verdicts():
    return {name: law.check() for name, law in LAWS.items()}


@pytest.fixture(scope="session")
def atlas(verdicts):
    """The laws charted, the topics, the references."""
    topics = {"kernels": f"kernels, described {IMAGE}", "propagation": f"signals {SCRIPT}"}
    references = {"he2015": f"He et al. (2015). Delving deep. {IMAGE}"}
    broken = {"gain": {"wide": verdicts["wrong"]}, "wrong": {SCRIPT: verdicts["gain"]}}  # one breaks, one does not
    charted = [
        Charted(verdict, broken.get(name, {}), notes=f"More about it. {IMAGE}", code=f"law = {SCRIPT!r}")
        for name, verdict in verdicts.items()
    ]
    return charted, topics, references
