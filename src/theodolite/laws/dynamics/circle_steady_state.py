r"""A walk that steps by one on half a circle and by two on the other half spends four fifths of its time where it steps less."""

import math

import numpy as np

from theodolite.core.law import Law
from theodolite.measure.experiments import stationary_vector
from theodolite.theory.dynamics import circle_mass


def measure(sites: int, *, chosen: str = "where it is") -> float:
    """The mass of the half with steps of one in the stationary law of the chain's transition matrix."""
    transition = np.zeros((sites, sites))
    for site in range(sites):
        step = 1 if site < sites // 2 else 2
        for sign in (-1, 1):
            transition[site, (site + sign * step) % sites] += 0.5
    if chosen == "where it goes":  # a jump has the length that belongs to its end
        transition = transition.T / transition.sum(0)[:, None]
    return float(stationary_vector(transition)[: sites // 2].sum())


law = Law(
    claim="Steps whose size depends on the present place are an Itô diffusion: its density is one over the variance, so twice "
    "the step is a quarter of the density.",
    formula=r"p(\mathrm{quiet})=\frac{4N}{5N+4}\to\frac45\quad(4\mid N)",
    assumes={"the step's size is chosen by the present place": {"chosen": "where it goes"}},
    source="wei2019",
    predict=lambda sites: circle_mass(sites),
    measure=measure,
    cases=({"sites": 40}, {"sites": 42}, {"sites": 120}),
    full=({"sites": 600},),
    tolerance=1e-10,
    quantity="share of time with the smaller step",
    along="sites",
    erratum="The share sqrt 2 / (sqrt 2 + 1) = 0.586 belongs to Stratonovich's rule with twice the variance, not to these steps.",
    refuted=lambda **case: math.sqrt(2) / (math.sqrt(2) + 1),
)
