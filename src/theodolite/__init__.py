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
    from theodolite import bayes
    from theodolite.checking import check
    from theodolite.construct.estimators import NetworkKernelClassifier, NetworkKernelRegressor
    from theodolite.construct.initialisation import initialise_
    from theodolite.instrument import Instrument
    from theodolite.law import Law, Verdict
    from theodolite.subject import Subject
    from theodolite.theory.activations import Activation
    from theodolite.theory.propagation import Criticality, criticality
    from theodolite.theory.specification import Mlp

_LATER = {
    "Activation": "theory.activations",
    "Criticality": "theory.propagation",
    "Instrument": "instrument",
    "Law": "law",
    "Mlp": "theory.specification",
    "NetworkKernelClassifier": "construct.estimators",
    "NetworkKernelRegressor": "construct.estimators",
    "Subject": "subject",
    "Verdict": "law",
    "bayes": "bayes",
    "check": "checking",
    "criticality": "theory.propagation",
    "initialise_": "construct.initialisation",
}

__all__ = [
    "Activation",
    "Band",
    "Criticality",
    "Design",
    "Estimate",
    "Instrument",
    "Law",
    "Mlp",
    "NetworkKernelClassifier",
    "NetworkKernelRegressor",
    "Reading",
    "Series",
    "Subject",
    "Survey",
    "Verdict",
    "__version__",
    "bayes",
    "check",
    "criticality",
    "design",
    "initialise_",
    "read",
    "survey",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'theodolite' has no attribute {name!r}")
    module = importlib.import_module(f"theodolite.{_LATER[name]}")
    return module if _LATER[name] == name else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
