"""The phase of a run from its numbers."""

import itertools
import math
from dataclasses import replace

import pytest

from theodolite.theory.dynamics import Moment, is_launch, training_phase


def run(*triples, drift=0.01):
    return [
        Moment(10 * n, loss, sharpness, 0.0, 1.0, alive=alive, drift=drift)
        for n, (loss, sharpness, alive) in enumerate(triples)
    ]


@pytest.mark.parametrize(
    ("history", "name"),
    [
        ([], "undecided"),
        (run((1.0, 1.0, 1.0)), "undecided"),
        (run((1.0, 1.0, 1.0), (1.0, 1.0, 1.0)), "undecided"),
        (run((1.0, 1.0, 1.0), (0.5, 1.1, 1.0)), "lazy"),
        (run((1.0, 1.0, 1.0), (0.5, 1.1, 1.0), drift=2.0), "stable"),
        (run((1.0, 1.0, 1.0), (0.5, 1.1, 1.0), drift=None), "stable"),
        (run((1.0, 1.0, 1.0), (0.5, 2.02, 1.0)), "edge"),
        (run((1.0, 3.0, 1.0), (50.0, 2.5, 1.0)), "undecided"),
        (run((1.0, 3.0, 1.0), (50.0, 2.5, 1.0), (0.1, 0.4, 1.0)), "catapult"),
        (run((1e-8, 3.0, 1.0), (50.0, 2.9, 1.0)), "undecided"),  # in flight: far up, but the curvature falls
        (run((1e-2, 6.0, 1.0), (1e6, 7.0, 1.0)), "divergent"),
        (run((1.0, 6.0, 1.0), (math.nan, 1.0, 1.0)), "divergent"),
        (run((1.0, 6.0, 1.0), (0.0, 0.0, 0.0)), "dead"),
        ([Moment(0, 1.0), Moment(1, 0.5)], "stable"),  # without curvature: it came down and never rose
        ([Moment(0, 1.0), Moment(1, 1.5), Moment(2, 0.5)], "undecided"),
        ([Moment(0, 1.0), Moment(1, 1500.0)], "divergent"),
    ],
)
def test_phases(history, name):
    phase = training_phase(history)
    assert phase.name == name
    assert phase.reason.endswith(".")


def test_a_step_raised_beyond_the_edge_launches_anew():
    calm = [Moment(0, 1.0, 1.0, lr=0.1), Moment(10, 0.5, 1.0, lr=0.1)]
    raised = [*calm, Moment(20, 0.5, 1.0, lr=3.0)]
    assert training_phase(raised).name == "undecided"
    rose = Moment(25, 2.0, 0.8, lr=3.0)
    assert training_phase([*raised, rose, Moment(30, 0.1, 0.3, lr=3.0)]).name == "catapult"
    overshoot = [*calm, Moment(20, 0.5, 29.0, lr=0.1), Moment(30, 0.4, 20.0, lr=0.1)]
    assert training_phase(overshoot).name == "edge"
    assert training_phase(calm).name == "stable"


def test_a_rise_between_looks_makes_a_catapult():
    start, down = Moment(0, 1.0, 3.0, lr=1.0), Moment(20, 0.1, 0.5, lr=1.0)
    assert training_phase([start, down]).name == "stable"
    assert training_phase([start, replace(down, peak=1.3)]).name == "catapult"
    below = training_phase([start, replace(down, peak=0.7, bounce=6.0)])  # thrown up below all that had fallen before
    assert below.name == "catapult" and "6 times its lowest" in below.reason
    assert is_launch([start]) and not is_launch([start, down]) and not is_launch([])
    assert is_launch([down, Moment(30, 0.1, 0.5, lr=8.0)]) and not is_launch([down, Moment(30, 0.1)])


def test_a_loss_that_stays_a_thousand_times_up_diverges_however_flat_it_is():
    start = Moment(0, 1.5, 3.0, lr=1.0)
    assert training_phase([start, Moment(20, 1.6e4, 1e-9, lr=1.0)]).name == "divergent"  # sure of the wrong classes
    assert training_phase([start, Moment(20, 1.6e4, 2.9, lr=1.0)]).name == "undecided"  # in flight
    landing = Moment(20, 2e3, 1.0, lr=1.0, peak=1e5)
    assert training_phase([start, landing]).name == "undecided"  # it comes down
    far = [Moment(0, 1.5, 300.0, lr=1.0), Moment(20, 1.6e4, 200.0, lr=1.0)]
    assert training_phase(far).name == "divergent"  # flatter, and still far beyond what any network came back from


def test_what_was_dead_when_it_could_be_read_last_is_dead():
    history = [*run((1.0, 3.0, 1.0), (5.0, 2.5, 0.0)), Moment(20, 4.0, 0.1, lr=1.0)]
    assert training_phase(history).name == "dead"
    assert training_phase([*history, Moment(30, 0.4, 0.1, lr=1.0, alive=0.5)]).name != "dead"


def test_the_saw_of_adam_at_its_edge_is_the_edge():
    def saw(*ratios, first=0):
        early = [Moment(n, 1.0) for n in range(first)]  # before its first step its edge is not known
        return [*early, *(Moment(10 * n + first, 0.5**n, r, lr=1.0, edge=1.0, drift=2.0) for n, r in enumerate(ratios))]

    assert training_phase(saw(0.1, 0.9, 1.0, 0.82)).name == "edge"
    assert training_phase(saw(0.1, 1.0, 0.6, 0.5, 0.5)).name == "stable"
    assert training_phase(saw(0.1, 0.7, 0.8, 0.85)).name == "stable"  # never there
    assert training_phase(saw(0.92, 1.0, first=1)).name == "edge"
    assert training_phase(saw(0.92, 0.92)).name == "stable"  # as it began: nothing grew


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("lr", [0.1, 2.0])
def test_beyond_the_edge_is_decided_by_the_curvature_less_its_error(lr, momentum):
    edge = (2 + 2 * momentum) / lr
    for share, error in itertools.product((0.5, 0.98, 1.02, 1.1, 2.0), (0.0, 0.01, 0.05, 0.3)):
        moment = Moment(0, 1.0, share * edge, error * edge, lr=lr, momentum=momentum)
        assert moment.ratio == pytest.approx(share)
        assert moment.beyond == (share - error > 1)


def test_nothing_is_beyond_the_edge_without_a_step_or_a_positive_curvature():
    assert not Moment(0, 1.0, 5.0).beyond
    assert not Moment(0, 1.0, None, lr=1.0).beyond
    assert not Moment(0, 1.0, 0.0, lr=1.0).beyond
    assert not Moment(0, 1.0, -5.0, 20.0, lr=1.0).beyond
