"""What the plot functions are given: a fitted object first, and how earlier calls are understood.

Every ``plot_*`` function takes the fitted object, then ``X`` and ``y`` where it needs them, then
``ax``, and returns its display. Fitted objects are estimators, also at the end of a pipeline or
inside a search over parameters, and results such as paths and traces.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from trueline.losses import Loss
from trueline.plots.style import Array

__all__ = [
    "Fitted",
    "coefficients_of",
    "fitted",
    "is_axes",
    "is_fitted_object",
    "losses_of",
    "replaces",
]

P = ParamSpec("P")
R = TypeVar("R")


class Fitted(NamedTuple):
    """A fitted model, the names of its columns, and what makes them out of the user's X."""

    model: Any
    names: Any
    transform: Callable[[Any], Any]


def fitted(estimator: Any) -> Fitted:
    """The model that was fitted: an estimator, or the last step of a pipeline.

    Of a search over parameters, such as scikit-learn's ``GridSearchCV``, it is the best one.
    """
    check_is_fitted(estimator)
    estimator = getattr(estimator, "best_estimator_", estimator)
    if not isinstance(estimator, Pipeline):
        return Fitted(estimator, getattr(estimator, "feature_names_in_", None), lambda X: X)
    before, model = estimator[:-1], estimator[-1]
    names = getattr(model, "feature_names_in_", None)
    try:
        names = before.get_feature_names_out() if names is None else names
    except (AttributeError, ValueError):  # a step that cannot name its columns
        names = None
    return Fitted(model, names, before.transform if len(estimator) > 1 else lambda X: X)


def coefficients_of(model: Any) -> Array:
    """The coefficients of a linear model, one row for each target or class."""
    if not hasattr(model, "coef_"):
        raise ValueError(f"{type(model).__name__} has no coefficients (coef_) to draw.")
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    return np.atleast_2d(np.asarray(coef, dtype=float))


def losses_of(given: Any) -> dict[str, Loss]:
    """Losses by label: of a fitted model, a loss itself, or a mapping of labels to these."""
    if isinstance(given, Mapping):
        return {label: _loss_of(one) for label, one in given.items()}
    loss = _loss_of(given)
    return {(loss.name if given is loss else type(fitted(given).model).__name__): loss}


def _loss_of(given: Any) -> Loss:
    if isinstance(given, Loss):
        return given
    model = fitted(given).model
    loss = getattr(getattr(model, "certificate_", None), "loss", None)
    if not isinstance(loss, Loss):
        raise ValueError(f"{type(model).__name__} does not minimise a loss of linear predictions.")
    return loss


def is_fitted_object(given: Any) -> bool:
    """Whether this is an estimator, or a mapping of names to estimators."""
    return isinstance(given, Mapping) or hasattr(given, "fit")


def is_axes(given: Any) -> bool:
    """Whether this is something to draw on."""
    return hasattr(given, "get_figure") and hasattr(given, "plot")


def replaces(
    earlier: Callable[..., Any],
    *,
    instead: str,
    when: Callable[..., bool] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a plot function that was called in another way before.

    Parameters
    ----------
    earlier : callable
        What the earlier call did, with its parameters.
    instead : str
        How to write it now, for the warning.
    when : callable, optional
        Whether the arguments are those of the earlier form; by default, whether the first one is
        neither an estimator nor a mapping of estimators.
    """
    parameters = inspect.signature(earlier)

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__name__
        first = next(iter(inspect.signature(function).parameters))

        def is_earlier(*args: Any, **named: Any) -> bool:
            return not is_fitted_object(args[0] if args else named.get(first))

        @functools.wraps(function)
        def plot(*args: Any, **named: Any) -> Any:
            if not (args or named) or not (when or is_earlier)(*args, **named):
                return function(*args, **named)
            try:
                parameters.bind(*args, **named)
            except TypeError as error:
                form = f"{name}{inspect.signature(function)}".partition(" ->")[0]
                given = type(args[0]).__name__ if args else f"only {', '.join(named)}"
                raise TypeError(
                    f"{name} takes the fitted object first, got {given}. Its form: {form}."
                ) from error
            warnings.warn(
                f"This form of {name} is deprecated: it takes the fitted object first. Write "
                f"{instead}.",
                FutureWarning,
                stacklevel=2,
            )
            return earlier(*args, **named)

        return cast("Callable[P, R]", plot)

    return decorate
