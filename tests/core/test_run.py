"""The run so far."""

from theodolite.core.run import Run, RunMoment


def test_the_last_step_is_that_of_the_last_look():
    assert Run().last_step == 0
    assert Run((RunMoment(3), RunMoment(70))).last_step == 70
