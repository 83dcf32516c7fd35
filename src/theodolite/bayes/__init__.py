"""Bayesian regression with a deep linear network: exact evidence, exact posterior, and a choice of depth and width.

`LinearPosterior` has no noise: it interpolates, so it wants independent samples, at most as many as there are features.
`NoisyLinearPosterior` takes any samples.
"""

from theodolite.bayes.noisy import NoisyLinearPosterior
from theodolite.bayes.posteriors import LinearPosterior
from theodolite.bayes.results import Candidate, Prediction, Selection

__all__ = ["Candidate", "LinearPosterior", "NoisyLinearPosterior", "Prediction", "Selection"]
