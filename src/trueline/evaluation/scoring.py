"""Scorers, by name: scikit-learn's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer
from sklearn.utils.validation import has_fit_parameter

__all__ = ["Scorers", "as_scorers", "scorer_name", "takes_weights"]

Scorers = dict[str, Any]


def as_scorers(model: Any, scoring: Any) -> Scorers:
    """The scorers by name; a single one is called "score", as scikit-learn does.

    Parameters
    ----------
    model : estimator
    scoring : str, callable, list, dict or None
        None means what the model itself calls its score: R^2 or accuracy for most.
    """
    if scoring is None:
        own = type(model).score if hasattr(type(model), "score") else None
        if own is RegressorMixin.score:
            return {"score": get_scorer("r2")}
        if own is ClassifierMixin.score:
            return {"score": get_scorer("accuracy")}
        return {"score": check_scoring(model, scoring=None)}
    if isinstance(scoring, str):
        return {"score": get_scorer(scoring)}
    if callable(scoring):
        return {"score": check_scoring(model, scoring=scoring)}
    if isinstance(scoring, Mapping):
        return {name: check_scoring(model, scoring=value) for name, value in scoring.items()}
    names = list(scoring)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(
            "scoring must be the name of a scorer, a callable, several names, or a dict of "
            f"scorers; got {scoring!r}."
        )
    return {name: get_scorer(name) for name in names}


def scorer_name(scorer: Any) -> str:
    """What a scorer measures, in a word or two."""
    function = getattr(scorer, "_score_func", None)
    if function is None:
        return getattr(scorer, "__name__", "score")
    sign = "" if getattr(scorer, "_sign", 1) == 1 else "neg "
    name = function.__name__.removesuffix("_score").replace("_", " ")
    return sign + {"r2": "R2"}.get(name, name)


def takes_weights(scorer: Any) -> bool:
    """Whether a scorer can weigh the rows."""
    accepts = getattr(scorer, "_accept_sample_weight", None)
    return bool(accepts()) if accepts is not None else False


def can_weigh(model: Any) -> bool:
    """Whether the model can be fitted to weighted rows."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    return has_fit_parameter(last, "sample_weight")
