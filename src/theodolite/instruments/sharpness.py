"""How curved is the loss here, against the edge of stability of the step?

The largest Hessian eigenvalue over all the data, with the bound on its error, beside (2 + 2 momentum) / lr: full-batch
descent drives it up to that edge and holds it there, while a step whose edge lies below it enlarges the loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from theodolite.core.instrument import Instrument
from theodolite.core.reading import SIGMAS, Band, Reading
from theodolite.core.subject import Subject
from theodolite.measure.curvature import top_hessian_eigenvalues
from theodolite.theory.dynamics import step_size_edge


def read(subject: Subject) -> Iterator[Reading]:
    """The largest eigenvalue beside the edge."""
    assert subject.model is not None and subject.loss is not None and subject.lr is not None
    top = top_hessian_eigenvalues(subject.model, subject.loss, subject.data, count=1)
    value, error = top.values[0], top.errors[0] / SIGMAS  # a bound, which three standard errors must cover
    edge = step_size_edge(subject.lr, momentum=subject.momentum)
    yield Reading(
        quantity="largest Hessian eigenvalue",
        measured=value,
        stderr=error,
        expected=Band(high=edge),
        against="health",
        meaning=sharpness_meaning(value / edge, converged=top.converged),
    )


def sharpness_meaning(ratio: float, *, converged: bool = True) -> str:
    """What the curvature over that of the edge says; what to do about it is for a diagnosis, which tries it out."""
    doubt = "" if converged else " The search did not converge: the bound on the error is wide."
    if ratio <= 0:
        return "No direction curves upwards: a plateau, a saddle or a dead network; the step has no limit here." + doubt
    if ratio < 0.9:
        return f"At {100 * ratio:.0f} % of the edge of this step: steps of full-batch descent are stable here." + doubt
    if ratio <= 1.1:
        return "At the edge of stability: the loss may rise and fall, and training goes on there." + doubt
    return (
        f"Beyond the edge by a factor {ratio:.2g}: a step of full-batch descent from here enlarges the loss along this "
        "direction." + doubt
    )


instrument = Instrument(
    question="How curved is the loss, against the edge of stability?",
    read=read,
    needs={"model", "data", "loss", "lr"},
    cost="hvp",
    laws=("edge-of-stability", "edge-with-momentum", "quadratic-step-limit"),
)
