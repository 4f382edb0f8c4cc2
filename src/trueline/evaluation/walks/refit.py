"""Every model, one fit at a time."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from trueline.evaluation.task import FoldRows
from trueline.evaluation.walks.base import EstimatorFits, Fits, Walk

__all__ = ["Refit"]


class Refit(Walk):
    """Clone, set the parameters, fit: what scikit-learn does."""

    route = "refitted for every fold"

    def fit(self, fold: FoldRows) -> Fits:
        X, y, weights = fold.part("train")
        fitted = []
        for setting in self.settings:
            own = clone(self.model).set_params(**{k: clone_value(v) for k, v in setting.items()})
            fitted.append(own.fit(X, y, **fit_weights(own, weights)))
        return EstimatorFits(fitted)


def clone_value(value: Any) -> Any:
    """A setting may hold estimators, which a fit must not change."""
    return clone(value, safe=False) if hasattr(value, "get_params") else value


def fit_weights(model: Any, weights: Any) -> dict[str, Any]:
    """Sample weights under the name by which ``fit`` takes them."""
    if weights is None:
        return {}
    if hasattr(model, "steps"):
        return {f"{model.steps[-1][0]}__sample_weight": weights}
    return {"sample_weight": weights}
