"""The scores of linear parts, all by one product.

A prediction of one-vs-one for 26 classes asks 325 parts. If each is a plane, their scores are one
product X W + b, and X is checked once instead of 650 times.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_regressor

from trueline.estimators.classification.ridge_classifier import SignRegressionClassifier
from trueline.estimators.multiclass.parts import ConstantPredictor
from trueline.estimators.shared.classifier import LinearClassifierBase
from trueline.estimators.shared.regressor import LinearRegressorBase

__all__ = ["Planes", "planes_of"]


class Planes(NamedTuple):
    """Coefficients of shape (d, L) and intercepts of shape (L,) of linear parts."""

    coef: NDArray[Any]
    intercept: NDArray[Any]

    def scores(self, X: Any) -> NDArray[Any]:
        """X W + b, of shape (n, L)."""
        product = X @ self.coef
        return np.asarray(product.toarray() if sp.issparse(product) else product) + self.intercept


def planes_of(parts: Sequence[Any]) -> Planes | None:
    """The planes whose scores the parts' scores are; None if some part is something else."""
    linear = [part for part in parts if not isinstance(part, ConstantPredictor)]
    if not linear or not all(_is_plane(part) for part in linear):
        return None
    coef = [np.ravel(part.coef_) for part in linear]
    if len({len(w) for w in coef}) != 1:
        return None
    d, kind = len(coef[0]), np.result_type(*coef)
    W, b = np.zeros((d, len(parts)), kind), np.zeros(len(parts), kind)
    planes = iter(coef)
    for k, part in enumerate(parts):
        if isinstance(part, ConstantPredictor):
            b[k] = part.y_[0]
        else:
            W[:, k], b[k] = next(planes), np.ravel(part.intercept_)[0]
    return Planes(W, b)


def _is_plane(part: Any) -> bool:
    """Whether a part's scores are x.w + b, by the very method that computes them."""
    name = "predict" if is_regressor(part) else "decision_function"
    if getattr(type(part), name, None) not in _linear_methods():
        return False
    # Some can make their coefficients sparse.
    return isinstance(part.coef_, np.ndarray) and np.size(part.intercept_) == 1


def _linear_methods() -> list[Any]:
    """Methods that return X coef_ + intercept_ and nothing else."""
    found: list[Any] = [
        LinearRegressorBase.predict,
        LinearClassifierBase.decision_function,
        SignRegressionClassifier.decision_function,
    ]
    theirs = sys.modules.get("sklearn.linear_model._base")  # imported only by who uses it
    if theirs is not None:
        found += [theirs.LinearClassifierMixin.decision_function, theirs.LinearModel.predict]
    return found
