"""The models that are compared if none are named, each with its grid.

What a strength does depends on the units of the columns, on those of the target and on the number
of rows, so that no fixed list serves all data. Here s are the weights of the rows, and

    T = sum_i s_i ||x_i - mean||^2

is the sum of the eigenvalues of the centred Gram matrix.

===================  =============================================================================
penalty              the grid begins at the strength that
===================  =============================================================================
absolute values      is the least that leaves no column: max_j |sum_i s_i x_ij r_i|, with r the
                     residuals of the best constant
squares              shrinks every direction at least by half: T, for least squares; for losses of
                     classes the curvature of the loss times T / sqrt(min(n, d)), between the bounds
                     T and T / min(n, d) of the largest eigenvalue
===================  =============================================================================

A grid ends a few powers of ten below. That is a start only: where the best score is at an end, the
grid is continued there (:mod:`trueline.evaluation.grid_search`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import trueline
from trueline.estimators.shared.validation import no_number
from trueline.evaluation.grid_fits import Setting
from trueline.evaluation.task import Task

# A grid goes on by a factor of a hundred at a time.
_DECADES = 2.0
# Strengths for each power of ten, and the powers of ten that a grid has at first.
_ABSOLUTE = 20 / 3, 3.0
_SQUARED = 2.0, 8.0
_ABSOLUTE_COSTS = 2.0, 4.0
_SQUARED_COSTS = 1.0, 6.0
# The most strengths that a grid has at first.
_MOST = 40
# How often a grid is continued. Paths of least squares are cheap; fits of classes with next to no
# penalty are not.
_OFTEN, _SELDOM = 6, 2
# The curvature of the logistic loss where both classes are as likely; of the squared hinge loss.
_LOGISTIC, _SQUARED_HINGE = 0.25, 1.0


@dataclass(frozen=True)
class Axis:
    """The one parameter that varies in a grid of our own.

    Attributes
    ----------
    name : str
    factor : float
        From a value to the next, less simple one.
    extensions : int
        How often the grid may be continued at an end.
    leaves_nothing : bool
        Whether no column is left at the simple end, so that there is nothing beyond it.
    values : tuple of float
        Of the grid as it is at first, the simplest one first.
    """

    name: str
    factor: float
    extensions: int
    leaves_nothing: bool = False
    values: tuple[float, ...] = ()

    @property
    def settings(self) -> list[Setting]:
        return [{self.name: value} for value in self.values]

    def beyond(self, settings: Sequence[Setting], is_simple_end: bool) -> list[Setting]:
        """The settings that continue a grid at one end, the simplest first."""
        if is_simple_end and self.leaves_nothing:
            return []
        count = max(1, round(_DECADES / abs(np.log10(self.factor))))
        if is_simple_end:
            first, powers = settings[0], -np.arange(count, 0, -1)
        else:
            first, powers = settings[-1], np.arange(1, count + 1)
        values = float(first[self.name]) * self.factor ** powers.astype(float)
        return [{**first, self.name: float(v)} for v in values if 0 < v < np.inf]


def absolute_alphas(task: Task, model: Any) -> Axis:
    """From the least strength that leaves no column down to a thousandth of it.

    Of an elastic net, whose squares do not know the units of the target, down to where the squares
    are a thousandth of the mean eigenvalue of the Gram matrix if that is farther.
    """
    s, ratio = _weights(task), float(getattr(model, "l1_ratio", 1.0))
    y, total = task.targets[:, 0], float(s.sum())
    top = _largest_slope(task, (y - s @ y / total)[:, None], s) / total / ratio
    density, decades = _ABSOLUTE
    if ratio < 1.0:
        eigenvalue = _spread(task) / total / min(task.matrix.shape)
        bottom = 10.0**-decades * eigenvalue / (1.0 - ratio)
        decades = max(decades, float(np.log10(top) - np.log10(bottom)))
    count = min(round(density * decades), _MOST)
    # The first and the last value are part of the grid.
    axis = Axis("alpha", 10.0 ** (-decades / (count - 1)), _OFTEN, leaves_nothing=True)
    return _made(axis, top, count)


def absolute_costs(task: Task, model: Any) -> Axis:
    """C = 1 / strength, from the largest that leaves no column."""
    s = _weights(task)
    classes, codes = task.labels
    member = (codes[:, None] == np.arange(len(classes))).astype(float)
    steepest = _largest_slope(task, member - s @ member / s.sum(), s)
    density, decades = _ABSOLUTE_COSTS
    axis = Axis("C", 10.0 ** (1 / density), _SELDOM, leaves_nothing=True)
    return _made(axis, 1.0 / steepest, round(density * decades) + 1)


def squared_alphas(task: Task, model: Any) -> Axis:
    """Powers of ten and what is half-way between them."""
    density, decades = _SQUARED
    axis = Axis("alpha", 10.0 ** (-1 / density), _OFTEN)
    return _made(axis, _power_above(_spread(task)), round(density * decades) + 1)


def squared_costs(task: Task, model: Any) -> Axis:
    """Powers of ten."""
    curvature = _LOGISTIC if hasattr(model, "l1_ratio") else _SQUARED_HINGE
    top = curvature * _spread(task) / np.sqrt(min(task.matrix.shape))
    density, decades = _SQUARED_COSTS
    axis = Axis("C", 10.0 ** (1 / density), _SELDOM)
    return _made(axis, 1.0 / _power_above(top), round(density * decades) + 1)


def _made(axis: Axis, first: float, count: int) -> Axis:
    values = [float(value) for value in first * axis.factor ** np.arange(count, dtype=float)]
    return replace(axis, values=tuple(v for v in values if 0 < v < np.inf) or (1.0,))


def _weights(task: Task) -> Any:
    return np.ones(task.n_samples) if task.weights is None else task.weights


def _largest_slope(task: Task, residuals: Any, s: Any) -> float:
    """max |X^T (s r)|; one where no column has a slope."""
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = np.abs(np.asarray(task.matrix.T @ (s[:, None] * residuals)))
    return _ordinary(float(slopes.max(initial=0.0)))


def _spread(task: Task) -> float:
    """T; one where no column varies."""
    X, s = task.matrix, _weights(task)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.asarray(X.T @ s) / s.sum()
        if sp.issparse(X):
            total = float((X.multiply(X).T @ s).sum() - s.sum() * (mean @ mean))
        else:
            total = float(s @ ((X - mean) ** 2).sum(axis=1))
    return _ordinary(total)


def _ordinary(value: float) -> float:
    return value if 1e-250 < value < 1e250 else 1.0


def _power_above(value: float) -> float:
    return 10.0 ** int(np.ceil(np.log10(value)))


@dataclass(frozen=True)
class Candidate:
    """A model with the settings to choose from.

    ``axis`` says how the grid goes on beyond its ends; None for a grid that the caller gave.
    """

    name: str
    model: Any
    settings: list[Setting]
    axis: Axis | None = None


@dataclass(frozen=True)
class _Known:
    """How to make a candidate for a task, and when it suits."""

    make: Callable[[], Any]
    grid: Callable[[Task, Any], Axis] | None = None
    suits: Callable[[Task], bool] = lambda task: True
    #: Whether it is compared if no models are named.
    is_usual: bool = True


def _is_tall(task: Task) -> bool:
    n, d = task.matrix.shape
    return bool(n > d and not sp.issparse(task.matrix))


def _ours(name: str, **parameters: Any) -> Callable[[], Any]:
    """Makes one of the models of this package, which is imported when it is asked for."""
    return lambda: getattr(trueline, name)(**parameters)


_REGRESSION: dict[str, _Known] = {
    "mean": _Known(DummyRegressor),
    "least squares": _Known(
        _ours("LinearRegression"), suits=lambda t: t.matrix.shape[0] > t.matrix.shape[1]
    ),
    "ridge": _Known(_ours("Ridge"), squared_alphas),
    "lasso": _Known(_ours("Lasso"), absolute_alphas),
    "elastic net": _Known(_ours("ElasticNet", l1_ratio=0.5), absolute_alphas),
    "bayesian ridge": _Known(_ours("BayesianRidge"), suits=lambda t: not sp.issparse(t.matrix)),
    "huber": _Known(_ours("HuberRegressor"), suits=_is_tall),
    "least absolute deviations": _Known(_ours("LeastAbsoluteDeviations"), suits=_is_tall),
}
# Those that are compared if they are named.
_NAMED_AMOUNTS: dict[str, Callable[[], Any]] = {
    "ard": _ours("ARDRegression"),
    "maximum error": _ours("ChebyshevRegressor"),
    "best subset": _ours("BestSubset"),
    "stepwise": _ours("StepwiseRegression"),
    "polynomial": _ours("PolynomialRegression"),
    "poisson": _ours("PoissonRegressor"),
    "gamma": _ours("GammaRegressor"),
    "linear SVR": _ours("LinearSVR"),
    "SVR": _ours("SVR"),
    "kernel ridge": _ours("KernelRidge", kernel="rbf"),
    "gaussian process": _ours("GaussianProcessRegressor", normalize_y=True),
}
_REGRESSION |= {name: _Known(one, is_usual=False) for name, one in _NAMED_AMOUNTS.items()}
_CLASSIFICATION: dict[str, _Known] = {
    "majority": _Known(DummyClassifier),
    "ridge classifier": _Known(_ours("RidgeClassifier"), squared_alphas),
    "logistic, L2": _Known(_ours("LogisticRegression"), squared_costs),
    "logistic, L1": _Known(_ours("LogisticRegression", l1_ratio=1.0), absolute_costs),
    "linear SVM": _Known(_ours("LinearSVC"), squared_costs),
}
_NAMED_CLASSES: dict[str, Callable[[], Any]] = {
    "least squares": _ours("LeastSquaresClassifier"),
    "hinge SVM": _ours("LinearSVC", loss="hinge"),
    "SVM": _ours("SVC"),
    "0-1 halfspace": _ours("ZeroOneHalfspace"),
    "perceptron": _ours("Perceptron"),
    "textbook perceptron": _ours("Perceptron", variant="textbook"),
    "cyclic perceptron": _ours("Perceptron", variant="cyclic"),
    "batch perceptron": _ours("Perceptron", variant="batch"),
    "averaged perceptron": _ours("Perceptron", variant="averaged"),
    "voted perceptron": _ours("Perceptron", variant="voted"),
    "pocket": _ours("Perceptron", variant="pocket"),
    "margin perceptron": _ours("Perceptron", variant="cyclic", margin=1.0),
    "kernel perceptron": _ours("KernelPerceptron"),
    "passive-aggressive": _ours("PassiveAggressiveClassifier"),
    "online logistic": _ours("OnlineLogisticRegression"),
}
_CLASSIFICATION |= {name: _Known(make, is_usual=False) for name, make in _NAMED_CLASSES.items()}


def known_candidates(is_classifier: bool) -> list[str]:
    """The names by which :func:`~trueline.compare` knows models."""
    return list(_CLASSIFICATION if is_classifier else _REGRESSION)


def candidates_for(models: Any, task: Task, scale: bool = False) -> list[Candidate]:
    """The candidates that ``models`` stands for.

    Parameters
    ----------
    models : None, or list or dict of models
        None: all that suit. Entries are names, estimators, or pairs (estimator, grid); a dict names
        them.
    task : Task
    scale : bool, default=False
        Put models that are known by name behind a ``StandardScaler``.
    """
    if models is None:
        book = _CLASSIFICATION if task.is_classifier else _REGRESSION
        _check_numbers(task)
        names = [name for name, known in book.items() if known.is_usual and known.suits(task)]
        return [_known(name, task, scale) for name in names]
    if isinstance(models, Mapping):
        found = [_candidate(entry, task, str(name), scale) for name, entry in models.items()]
    elif isinstance(models, Sequence) and not isinstance(models, str):
        found = [_candidate(entry, task, None, scale) for entry in models]
    else:
        raise ValueError(f"models must be a list or a dict of models, got {models!r}.")
    if not found:
        raise ValueError("models is empty: there is nothing to compare.")
    return _with_own_names(found)


def _known(name: str, task: Task, scale: bool) -> Candidate:
    book = _CLASSIFICATION if task.is_classifier else _REGRESSION
    if name not in book:
        kind = "classification" if task.is_classifier else "regression"
        raise ValueError(f"{name!r} is not known for {kind}. Known: {', '.join(book)}.")
    _check_numbers(task)
    known = book[name]
    model = known.make()
    is_scaled = scale and not isinstance(model, DummyClassifier | DummyRegressor)
    if is_scaled:
        scaler, X = StandardScaler(with_mean=not sp.issparse(task.matrix)), task.matrix
        task = task.shared("scaled", lambda: replace(task, matrix=scaler.fit_transform(X)))
    axis = None if known.grid is None else known.grid(task, model)
    if is_scaled:
        model = Pipeline([("scale", scaler), ("model", model)])
        axis = axis and replace(axis, name=f"model__{axis.name}")
    return Candidate(name, model, [{}] if axis is None else axis.settings, axis)


def _check_numbers(task: Task) -> None:
    """Linear models that are known by name take finite numbers."""
    if task.matrix is not None:
        return
    if np.ndim(task.X) == 1:
        model = "LogisticRegression()" if task.is_classifier else "Ridge()"
        raise ValueError(
            "X is a list of texts. TextFeatures makes columns of their words: "
            f"models=[make_pipeline(TextFeatures(), {model})]."
        )
    said = no_number(task.X) or "X holds more than finite numbers (missing or infinite values)"
    raise ValueError(
        f"{said}, which linear models do not take. TableFeatures makes numbers of texts, "
        "categories, dates and missing values: models=[make_pipeline(TableFeatures(), Ridge())]."
    )


def _candidate(entry: Any, task: Task, name: str | None, scale: bool) -> Candidate:
    """A name, an estimator, or an estimator with its grid."""
    if isinstance(entry, str):
        known = _known(entry, task, scale)
        return replace(known, name=name or known.name)
    if isinstance(entry, tuple):
        if len(entry) != 2 or not hasattr(entry[0], "fit"):
            raise ValueError(f"A pair must be (estimator, grid), got {entry!r}.")
        model, grid = entry
        settings = [dict(setting) for setting in ParameterGrid(grid)]
        return Candidate(name or type(model).__name__, model, simplest_first(settings))
    if not hasattr(entry, "fit"):
        raise ValueError(f"{entry!r} is neither a model, a name of one, nor (model, grid).")
    last = entry.steps[-1][1] if hasattr(entry, "steps") else entry
    return Candidate(name or type(last).__name__, entry, [{}])


def _with_own_names(candidates: list[Candidate]) -> list[Candidate]:
    """Names made different by numbers."""
    seen: dict[str, int] = {}
    out = []
    for candidate in candidates:
        count = seen[candidate.name] = seen.get(candidate.name, 0) + 1
        name = candidate.name if count == 1 else f"{candidate.name} ({count})"
        out.append(replace(candidate, name=name))
    return out


def simplest_first(settings: list[Setting]) -> list[Setting]:
    """Settings in order of complexity: large strengths ``alpha`` and small costs ``C`` first."""

    def complexity(setting: Setting) -> tuple[float, ...]:
        key = []
        for name, value in sorted(setting.items()):
            if isinstance(value, int | float | np.number):
                sign = -1.0 if name.rpartition("__")[2] in ("alpha", "lambda_", "l1_ratio") else 1.0
                key.append(sign * float(value))
        return tuple(key)

    return sorted(settings, key=complexity)
