"""Data in the formats that classifiers ask for, and their answers in the common one."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.classification.objective import ClassData
from benchmarks.kernels.objective import Machine
from benchmarks.objective import Answer

__all__ = ["CACHE", "by_columns", "cores", "labels", "machine_of", "schemes_coef"]

#: Megabytes for kernel values, the same for everyone.
CACHE = 4000


def cores() -> int:
    """How many threads a library may be told to use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def by_columns(data: ClassData) -> ClassData:
    """The same numbers, stored by columns."""
    X = sp.csc_matrix(data.X) if sp.issparse(data.X) else np.asfortranarray(data.X)
    return replace(data, X=X)


def schemes_coef(model: Any) -> Answer:
    """Coefficients of the parts of a fitted OneVsRestClassifier or OneVsOneClassifier."""
    parts = model.estimators_
    intercepts = np.array([float(np.ravel(part.intercept_)[0]) for part in parts])
    return Answer(np.column_stack([np.ravel(part.coef_) for part in parts]), intercepts)


def machine_of(model: Any) -> Machine:
    """The multipliers of a fitted SVC."""
    coef = np.asarray(model.dual_coef_, dtype=np.float64).ravel()
    return Machine(np.asarray(model.support_), coef, float(np.ravel(model.intercept_)[0]))


def labels(fitted: tuple[Any, Any], _: None) -> Any:
    """Predictions of a model that is fitted already."""
    model, rows = fitted
    return model.predict(rows)
