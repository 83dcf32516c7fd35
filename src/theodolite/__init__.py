"""Theodolite: theory predicts, a measurement is taken, the two are laid side by side.

The public surface. Names that need torch are imported when first used, so that the command line answers at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from theodolite.design import Design, design
from theodolite.reading import Band, Estimate, Reading, Series
from theodolite.survey import Survey, read, survey
from theodolite.version import __version__

if TYPE_CHECKING:
    from theodolite import bayes, nn, optim
    from theodolite.checking import check
    from theodolite.construct.corrective import CorrectiveNetwork, corrective
    from theodolite.construct.estimators import NetworkKernelClassifier, NetworkKernelRegressor
    from theodolite.construct.initialisation import initialise_
    from theodolite.construct.memorize import memorize
    from theodolite.construct.module_kernels import kernel_of
    from theodolite.construct.quadratic import quadratic
    from theodolite.construct.random_features import CorrectiveFeatures
    from theodolite.construct.smoothed_relu import SReLU
    from theodolite.construct.subspace import Subspace, subspace
    from theodolite.dimensions import Dimension, dimension
    from theodolite.instrument import Instrument
    from theodolite.invariance import RotationInvariance, rotation_invariance
    from theodolite.law import Law, Verdict
    from theodolite.measure.objective_dimension import ObjectiveDimension, objective_dimension
    from theodolite.subject import Subject
    from theodolite.theory.activations import Activation
    from theodolite.theory.propagation import Criticality, criticality
    from theodolite.theory.specification import Mlp
    from theodolite.watch import Watch

_LATER = {
    "Activation": "theory.activations",
    "CorrectiveFeatures": "construct.random_features",
    "CorrectiveNetwork": "construct.corrective",
    "Criticality": "theory.propagation",
    "Dimension": "dimensions",
    "Instrument": "instrument",
    "Law": "law",
    "Mlp": "theory.specification",
    "NetworkKernelClassifier": "construct.estimators",
    "NetworkKernelRegressor": "construct.estimators",
    "SReLU": "construct.smoothed_relu",
    "ObjectiveDimension": "measure.objective_dimension",
    "RotationInvariance": "invariance",
    "Subject": "subject",
    "Subspace": "construct.subspace",
    "Verdict": "law",
    "Watch": "watch",
    "check": "checking",
    "corrective": "construct.corrective",
    "criticality": "theory.propagation",
    "dimension": "dimensions",
    "initialise_": "construct.initialisation",
    "kernel_of": "construct.module_kernels",
    "memorize": "construct.memorize",
    "objective_dimension": "measure.objective_dimension",
    "subspace": "construct.subspace",
    "quadratic": "construct.quadratic",
    "rotation_invariance": "invariance",
}
_MODULES = ("bayes", "nn", "optim")

__all__ = [
    "Activation",
    "Band",
    "CorrectiveFeatures",
    "CorrectiveNetwork",
    "Criticality",
    "Design",
    "Dimension",
    "Estimate",
    "Instrument",
    "Law",
    "Mlp",
    "NetworkKernelClassifier",
    "NetworkKernelRegressor",
    "ObjectiveDimension",
    "Reading",
    "RotationInvariance",
    "SReLU",
    "Series",
    "Subject",
    "Subspace",
    "Survey",
    "Verdict",
    "Watch",
    "__version__",
    "bayes",
    "check",
    "corrective",
    "criticality",
    "design",
    "dimension",
    "initialise_",
    "kernel_of",
    "memorize",
    "nn",
    "objective_dimension",
    "optim",
    "quadratic",
    "read",
    "rotation_invariance",
    "subspace",
    "survey",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"theodolite.{name}")
    if name not in _LATER:
        raise AttributeError(f"module 'theodolite' has no attribute {name!r}")
    return getattr(importlib.import_module(f"theodolite.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_MODULES})
