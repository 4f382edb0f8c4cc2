"""trueline: every linear model in one library, fast, and each fit with a proof.

Names are imported when they are first used, so that ``import trueline`` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

#: Public name -> module that defines it.
_HOMES = {
    "Certificate": "trueline.certificates",
    "LinearRegression": "trueline.estimators",
    "LinearRegressor": "trueline.estimators",
    "PolynomialRegression": "trueline.estimators",
    "Ridge": "trueline.estimators",
    "RidgeCV": "trueline.estimators",
    "SequentialFeatureSelector": "trueline.estimators.sequential",
    "StepwiseRegression": "trueline.estimators.stepwise",
    "load": "trueline.persistence",
    "save": "trueline.persistence",
}

__all__ = [
    "Certificate",
    "LinearRegression",
    "LinearRegressor",
    "PolynomialRegression",
    "Ridge",
    "RidgeCV",
    "SequentialFeatureSelector",
    "StepwiseRegression",
    "__version__",
    "load",
    "save",
]

if TYPE_CHECKING:
    from trueline.certificates import Certificate
    from trueline.estimators import (
        LinearRegression,
        LinearRegressor,
        PolynomialRegression,
        Ridge,
        RidgeCV,
    )
    from trueline.estimators.sequential import SequentialFeatureSelector
    from trueline.estimators.stepwise import StepwiseRegression
    from trueline.persistence import load, save


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'trueline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
