"""Random networks drawn to see how much gradients differ between seeds."""

import theodolite as th


def test_networks_too_large_to_draw_often_have_no_spread():
    from theodolite.construct.propagation import gradient_spread

    assert gradient_spread(th.Mlp(100, "relu", 2.0), 4096) == ()
