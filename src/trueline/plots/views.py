"""How rows of many columns are seen in one or two coordinates.

A *plane* holds all columns fixed but one or two. A *projection* of a linear model with two classes
uses the signed distance to its boundary, (x.w + b) / ||w||, and the direction along the boundary in
which the rows vary most: it shows every row on its true side, however many columns there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from trueline.plots.shared import Array, coefficients_of, column_number, dense, names_of


@dataclass
class View:
    """Rows in the coordinates of a picture, and the classifier as a function of these.

    Parameters
    ----------
    points : array of shape (n, 1) or (n, 2)
    labels : array of shape (n,)
        Positions in ``classes``.
    mistaken : array of bool of shape (n,)
        By the classifier's own predictions from all columns.
    classes : array
    names : tuple of str
        Of the coordinates.
    predict : function of an array of shape (m, 1) or (m, 2)
        Class positions at points of the picture.
    score : function of an array of shape (m, 1) or (m, 2)
        Scores of two classes; None for more.
    normal : array of shape (2,), optional
        The weight vector of a linear model in the picture's coordinates.
    row_scores : array of shape (n,), optional
        Scores of the rows, two classes only.
    rows : array of int of shape (n,), optional
        Which rows of the data are drawn.
    probability : function of an array of shape (m, 1) or (m, 2), optional
        The probabilities of all classes at points of the picture.
    """

    points: Array
    labels: NDArray[np.intp]
    mistaken: NDArray[np.bool_]
    classes: NDArray[Any]
    names: tuple[str, ...]
    predict: Callable[[Array], NDArray[np.intp]]
    score: Callable[[Array], Array | None]
    normal: Array | None = None
    row_scores: Array | None = None
    rows: NDArray[np.intp] | None = None
    probability: Callable[[Array], Array] | None = None


def choose_view(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    view: str,
    features: tuple[Any, ...] | None,
    at: ArrayLike | None,
    max_points: int,
) -> View:
    """See rows in at most two coordinates; the parameters are those of the display."""
    check_is_fitted(estimator)
    classes = _classes(estimator)
    rows = _thin(X, max_points)
    y_drawn = np.asarray(y)[rows]
    drawn = _safe_indexing(X, rows)
    unknown = ~np.isin(y_drawn, classes)
    if unknown.any():
        raise ValueError(
            f"y holds labels that the classifier does not know: {np.unique(y_drawn[unknown])[:5]}."
        )
    labels = np.searchsorted(classes, y_drawn)
    mistaken = np.asarray(estimator.predict(drawn)) != y_drawn
    weights = _weights(estimator)
    names = names_of(getattr(X, "columns", None), X.shape[1])
    values = dense(drawn)
    scores = _scores(estimator, drawn, classes)
    can_project = weights is not None and len(classes) == 2 and np.any(weights[0])
    wide = X.shape[1] > 2 and features is None
    if view == "projection" and not can_project:
        raise ValueError(
            "A projection needs a linear model (with coef_) of two classes. Use view='plane' and "
            "name two columns by features=(...)."
        )
    if can_project and (view == "projection" or (wide and view == "auto")):
        seen = _projection(values, weights, scores)
    else:
        columns = _columns(features, names, weights)
        seen = _plane(estimator, X, values, columns, at, names, classes, weights)
    return View(labels=labels, mistaken=mistaken, classes=classes, rows=rows, **seen)


# --- the two views ------------------------------------------------------------------------------


def _projection(X: Array, weights: Any, scores: Array | None) -> dict[str, Any]:
    w = np.asarray(weights[0], dtype=float)
    length = float(np.linalg.norm(w))
    raw = np.asarray(scores, dtype=float)
    distance = raw / length
    along = X - X.mean(axis=0)
    along = along - np.outer(along @ (w / length), w / length)
    # The first right singular vector: most variation of what the first axis does not show.
    direction = np.linalg.svd(along, full_matrices=False)[2][0]
    return {
        "points": np.column_stack([distance, along @ direction]),
        "names": ("signed distance to the boundary", "direction of most variation along it"),
        "predict": lambda at: (at[:, 0] > 0).astype(np.intp),
        "score": lambda at: at[:, 0] * length,
        "normal": np.array([length, 0.0]),
        "row_scores": raw,
    }


def _plane(
    estimator: Any,
    X: Any,
    drawn: Array,
    columns: list[int],
    at: ArrayLike | None,
    names: list[str],
    classes: NDArray[Any],
    weights: Any,
) -> dict[str, Any]:
    held = drawn.mean(axis=0) if at is None else np.asarray(at, dtype=float)
    if held.shape != (X.shape[1],):
        raise ValueError(f"at must give a value for each of {X.shape[1]} columns.")
    if len(columns) == 1 and X.shape[1] > 1:
        raise ValueError("Name two columns by features=(...); one is enough only for one column.")

    def rows_at(points: Array) -> Any:
        rows = np.tile(held, (len(points), 1))
        rows[:, columns] = points
        return _like(rows, X)

    def predict(points: Array) -> NDArray[np.intp]:
        return np.searchsorted(classes, np.asarray(estimator.predict(rows_at(points))))

    def score(points: Array) -> Array | None:
        return _scores(estimator, rows_at(points), classes)

    def probability(points: Array) -> Array:
        return np.asarray(estimator.predict_proba(rows_at(points)), dtype=float)

    is_binary = weights is not None and len(classes) == 2 and len(columns) == 2
    is_whole = X.shape[1] == len(columns)
    return {
        "points": drawn[:, columns],
        "names": tuple(names[j] for j in columns),
        "predict": predict,
        "score": score,
        "normal": np.asarray(weights[0], dtype=float)[columns] if is_binary else None,
        # Between the lines of a cut lie rows that are far from it: no margin is shown then.
        "row_scores": _scores(estimator, _like(drawn, X), classes) if is_whole else None,
        "probability": probability if hasattr(estimator, "predict_proba") else None,
    }


# --- what is asked of data and classifier ---------------------------------------------------------


def _classes(estimator: Any) -> NDArray[Any]:
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        raise ValueError(
            f"{type(estimator).__name__} has no classes_: a decision boundary needs a classifier."
        )
    return np.asarray(classes)


def _thin(X: Any, max_points: int) -> NDArray[np.intp]:
    """All rows, or an even selection of so many."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if n <= max_points:
        return np.arange(n)
    return np.unique(np.linspace(0, n - 1, max_points).astype(np.intp))


def _like(rows: Array, X: Any) -> Any:
    """Rows in the container of X, so that names of columns are not missed."""
    if hasattr(X, "columns"):
        return type(X)(rows, columns=X.columns)
    return rows


def _weights(estimator: Any) -> Array | None:
    """The coefficients of a linear model in the columns it was given, one row per score."""
    is_linear = hasattr(estimator, "coef_") and hasattr(estimator, "predict")
    return coefficients_of(estimator) if is_linear else None


def _scores(estimator: Any, X: Any, classes: NDArray[Any]) -> Array | None:
    """Scores of two classes that are positive where the second is predicted, or None."""
    if len(classes) != 2:
        return None
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(X), dtype=float).ravel()
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(X), dtype=float)[:, 1] - 0.5
    return None


def _columns(features: tuple[Any, ...] | None, names: list[str], weights: Any) -> list[int]:
    """The columns of a plane, as numbers."""
    if features is None:
        if len(names) <= 2:
            return list(range(len(names)))
        if weights is None:
            raise ValueError(
                f"There are {len(names)} columns. Name the two to draw by features=(...)."
            )
        return sorted(np.argsort(-np.abs(weights).max(axis=0), kind="stable")[:2].tolist())
    if len(features) not in (1, 2):
        raise ValueError(f"features must name one or two columns, got {len(features)}.")
    return [column_number(feature, names) for feature in features]
