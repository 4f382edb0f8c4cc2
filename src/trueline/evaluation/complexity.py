"""Training and validation error against complexity, or against the number of rows.

One measure of complexity is the number of radial basis functions of a ridge regression,

    f(x) = b + sum_c w_c exp(-||x - m_c||^2 / (2 r^2)),      r the median distance of the centres

with centres m_c spread over the training rows: rows taken farthest first (T. F. Gonzalez, Theoret.
Comput. Sci. 38 (1985) 293-306), so that the centres of fewer functions are among those of more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier
from sklearn.metrics import pairwise_distances
from sklearn.utils.validation import check_is_fitted

from trueline.errors import require
from trueline.estimators.column_selection.best_subset import BestSubset
from trueline.estimators.regression.polynomial import PolynomialRegression
from trueline.estimators.regression.ridge import Ridge
from trueline.estimators.shared.validation import Array, validate_data
from trueline.evaluation.grid_fits import fit_weights
from trueline.evaluation.grid_search import evaluate_grid
from trueline.evaluation.task import Split, Task, as_scorers, make_task, scorer_name
from trueline.guard import Verdict, warn_of_gaps
from trueline.wording import Readable


class RadialRidge(RegressorMixin, BaseEstimator):
    """Radial basis functions, with coefficients by ridge regression.

    Parameters
    ----------
    n_centres : int, default=10
    width : float, optional
        None means the median distance between neighbouring centres, times two.
    alpha : float, default=1e-6
        Strength of the squares.
    """

    def __init__(
        self, n_centres: int = 10, *, width: float | None = None, alpha: float = 1e-6
    ) -> None:
        self.n_centres = n_centres
        self.width = width
        self.alpha = alpha

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the centres, and fit the coefficients."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self.centres_ = _farthest_first(X, min(int(self.n_centres), len(X)))
        self.width_ = self.width or _typical_distance(self.centres_, X)
        self.ridge_ = Ridge(self.alpha).fit(self._features(X), y, sample_weight)
        return self

    def _features(self, X: Array) -> Array:
        distance = pairwise_distances(X, self.centres_, metric="sqeuclidean")
        return np.exp(-distance / (2 * self.width_**2))

    def predict(self, X: Any) -> Array:
        """Predict."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.ridge_.predict(self._features(X))

    def aic(self) -> float:
        """Akaike's criterion of the ridge regression."""
        return float(self.ridge_.aic())

    def bic(self) -> float:
        """Schwarz's criterion of the ridge regression."""
        return float(self.ridge_.bic())


def _farthest_first(X: Array, count: int) -> Array:
    """Rows spread over the data, beginning with the one nearest to the mean."""
    first = int(((X - X.mean(axis=0)) ** 2).sum(axis=1).argmin())
    chosen, away = [first], ((X - X[first]) ** 2).sum(axis=1)
    for _ in range(count - 1):
        chosen.append(int(away.argmax()))
        away = np.minimum(away, ((X - X[chosen[-1]]) ** 2).sum(axis=1))
    return X[chosen]


def _typical_distance(centres: Array, X: Array) -> float:
    """Twice the median distance to the next centre; of one centre, the spread of the rows."""
    if len(centres) < 2:
        return float(np.sqrt(X.var(axis=0).sum())) or 1.0
    distance = pairwise_distances(centres)
    np.fill_diagonal(distance, np.inf)
    return 2.0 * float(np.median(distance.min(axis=1))) or 1.0


#: What can be varied by name: the model, its parameter, and whether large values are complex.
KINDS: dict[str, tuple[Callable[[], Any], str, bool]] = {
    "degree": (lambda: PolynomialRegression(), "degree", True),
    "lambda": (lambda: Ridge(), "alpha", False),
    "rbf": (lambda: RadialRidge(), "n_centres", True),
    "subset": (lambda: BestSubset(), "k", True),
}


_SHOWN = 8  # rows at each end of a long curve that are printed


@dataclass(repr=False)
class ComplexityCurve(Readable):
    """Scores on the rows that were fitted and on others, for every complexity.

    Attributes
    ----------
    values : array of shape (m,)
        The parameter, in the given order.
    test, train : arrays of shape (m, folds)
        Scores; larger is better.
    aic, bic : arrays of shape (m,), optional
        Of the fits to all rows, where the model knows them.
    parameter : str
    scorer : str
    grows : bool
        Whether larger values mean a more complex model.
    """

    values: Array
    test: Array
    train: Array
    parameter: str
    scorer: str
    grows: bool = True
    aic: Array | None = None
    bic: Array | None = None

    @property
    def best(self) -> float:
        """The value of the best mean score on test rows."""
        return float(self.values[int(np.nanargmax(self.test.mean(axis=1)))])

    @property
    def best_1se(self) -> float:
        """The simplest value within one standard error of the best."""
        mean = self.test.mean(axis=1)
        at = int(np.nanargmax(mean))
        folds = self.test.shape[1]
        error = self.test[at].std(ddof=1) / np.sqrt(folds) if folds > 1 else 0.0
        near = self.values[mean >= mean[at] - error]
        return float(near.min() if self.grows else near.max())

    def rows(self) -> list[dict[str, float]]:
        """One dictionary for each value."""
        out = []
        for i, value in enumerate(self.values):
            row = {self.parameter: float(value)}
            row |= {"test": float(self.test[i].mean()), "train": float(self.train[i].mean())}
            if self.aic is not None and self.bic is not None:
                row |= {"aic": float(self.aic[i]), "bic": float(self.bic[i])}
            out.append(row)
        return out

    def __str__(self) -> str:
        best = f"best {self.parameter}: {self.best:g}"
        return _table(self.rows(), f"{best} ({self.scorer}, {self.test.shape[1]} folds)")

    def to_frame(self) -> Any:
        """The curve as a pandas DataFrame."""
        return require("pandas", "tables").DataFrame(self.rows()).set_index(self.parameter)

    def plot(self, ax: Any = None) -> Any:
        """Draw; see ``trueline.plots.ComplexityDisplay``."""
        from trueline.plots.scores import ComplexityDisplay

        return ComplexityDisplay.from_curve(self).plot(ax)


@dataclass(repr=False)
class LearningCurve(Readable):
    """Scores against the number of rows to learn from.

    Attributes
    ----------
    sizes : array of int of shape (m,)
    test, train : arrays of shape (m, folds)
    scorer : str
    """

    sizes: NDArray[np.intp]
    test: Array
    train: Array
    scorer: str
    notes: list[str] = field(default_factory=list)

    def rows(self) -> list[dict[str, float]]:
        """One dictionary for each size."""
        return [
            {"rows": float(n), "test": float(t.mean()), "train": float(f.mean())}
            for n, t, f in zip(self.sizes, self.test, self.train)
        ]

    def __str__(self) -> str:
        return _table(self.rows(), f"{self.scorer}, {self.test.shape[1]} folds")

    def to_frame(self) -> Any:
        """The curve as a pandas DataFrame."""
        return require("pandas", "tables").DataFrame(self.rows()).set_index("rows")

    def plot(self, ax: Any = None) -> Any:
        """Draw; see ``trueline.plots.ComplexityDisplay``."""
        from trueline.plots.scores import ComplexityDisplay

        return ComplexityDisplay.from_learning(self).plot(ax)


def _table(rows: list[dict[str, float]], below: str) -> str:
    """Numbers in columns; of many rows the first and the last."""
    shown = rows if len(rows) <= 2 * _SHOWN else [*rows[:_SHOWN], *rows[-_SHOWN:]]
    cells = [list(rows[0]), *([f"{value:.4g}" for value in row.values()] for row in shown)]
    widths = [max(len(row[j]) for row in cells) for j in range(len(cells[0]))]
    lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, widths)) for row in cells]
    if len(shown) < len(rows):
        lines.insert(_SHOWN + 1, "...")
    return "\n".join([*lines, below])


def complexity_curve(
    X: Any,
    y: Any,
    vary: str,
    values: ArrayLike,
    *,
    model: Any = None,
    cv: Any = None,
    scoring: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
) -> ComplexityCurve:
    """Training and validation error against the complexity of a model.

    Where the model is too simple both errors are large (underfitting); where it is too complex the
    training error goes on falling while the validation error rises (overfitting).

    Parameters
    ----------
    X, y : arrays
    vary : str
        "degree" of a polynomial, number of "rbf" (radial basis functions), "lambda" of ridge
        regression, size of a best "subset", or any parameter of ``model``.
    values : array-like
        What to try.
    model : estimator, optional
        Needed for other parameters than the named ones.
    cv, scoring, groups, sample_weight
        As in :func:`~trueline.cross_validate`. None of ``scoring`` means the negative mean squared
        error of numbers and the accuracy of classes.

    Returns
    -------
    curve : ComplexityCurve

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import complexity_curve
    >>> rng = np.random.default_rng(5)
    >>> x = rng.uniform(-1, 1, 60)
    >>> y = x**3 - x + 0.05 * rng.standard_normal(60)
    >>> curve = complexity_curve(x[:, None], y, "degree", range(1, 9))
    >>> curve.best, bool(np.all(np.diff(curve.train.mean(axis=1)) >= 0))
    (3.0, True)
    """
    if model is None:
        if vary not in KINDS:
            raise ValueError(
                f"vary={vary!r} is none of {tuple(KINDS)}: give the model that has this parameter."
            )
        make, parameter, grows = KINDS[vary]
        model = make()
    else:
        parameter, grows = vary, vary.rpartition("__")[2] not in ("alpha", "tol", "lambda_")
        if parameter not in model.get_params():
            raise ValueError(f"{type(model).__name__} has no parameter {parameter!r}.")
    listed = list(values)  # type: ignore[arg-type]
    if not listed:
        raise ValueError("values is empty: there is nothing to try.")
    classes = is_classifier(model)
    task = make_task(X, y, cv=cv, groups=groups, sample_weight=sample_weight, is_classifier=classes)
    scoring = scoring or ("accuracy" if classes else "neg_mean_squared_error")
    scorers = as_scorers(model, scoring)
    settings = [{parameter: value} for value in listed]
    grid = evaluate_grid(model, settings, task, scorers, train=True)
    warn_of_gaps(f"The curve of {type(model).__name__}", "folds and settings", grid.verdicts)
    aic, bic = _criteria(model, settings, task)
    return ComplexityCurve(
        np.array(listed, dtype=float),
        grid.test["score"].T,
        grid.train["score"].T,
        vary,
        scorer_name(scorers["score"]),
        grows,
        aic,
        bic,
    )


def _criteria(
    model: Any, settings: Sequence[dict[str, Any]], task: Task
) -> tuple[Array | None, Array | None]:
    """AIC and BIC of the fits to all rows, where the model has them."""
    found = []
    for setting in settings:
        own = clone(model).set_params(**setting)
        if not (hasattr(own, "bic") or isinstance(own, BestSubset)):
            return None, None
        own.fit(task.X, task.y, **fit_weights(own, task.weights))
        if isinstance(own, BestSubset):
            criteria = own.path_.criteria
            found.append((criteria["aic"][-1], criteria["bic"][-1]))
        else:
            found.append((own.aic(), own.bic()))
    aic, bic = np.array(found, dtype=float).T
    return aic, bic


def learning_curve(
    model: Any,
    X: Any,
    y: Any,
    *,
    sizes: ArrayLike = (0.1, 0.325, 0.55, 0.775, 1.0),
    cv: Any = None,
    scoring: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    shuffle: bool = False,
    random_state: int | None = 0,
) -> LearningCurve:
    """Scores against the number of rows to learn from.

    The first rows of each fold's training part are taken, as scikit-learn's ``learning_curve``
    does, so that the same folds give the same scores.

    Parameters
    ----------
    model : estimator
    X, y : arrays
    sizes : array-like
        Numbers of rows, or shares of the smallest training part.
    cv, scoring, groups, sample_weight
        As in :func:`~trueline.cross_validate`.
    shuffle : bool, default=False
        Take rows at random instead of the first ones: for sorted data.
    random_state : int, optional

    Returns
    -------
    curve : LearningCurve

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import Ridge, learning_curve
    >>> X, y = load_diabetes(return_X_y=True)
    >>> curve = learning_curve(Ridge(0.1), X, y, sizes=[50, 100, 353])
    >>> bool(curve.test[-1].mean() > curve.test[0].mean())
    True
    """
    classes = is_classifier(model)
    task = make_task(X, y, cv=cv, groups=groups, sample_weight=sample_weight, is_classifier=classes)
    scorers = as_scorers(model, scoring)
    counts = _counts(sizes, min(len(split.train) for split in task.splits))
    rng = np.random.default_rng(random_state)
    orders = [rng.permutation(s.train) if shuffle else s.train for s in task.splits]
    test, train, verdicts = [], [], list[Verdict]()
    for count in counts:
        splits = [Split(order[:count], s.test) for order, s in zip(orders, task.splits)]
        _check_two_classes(splits, task)
        part = Task(task.X, task.y, task.weights, splits, classes, task.matrix)
        grid = evaluate_grid(model, [{}], part, scorers, train=True)
        verdicts += grid.verdicts
        test.append(grid.test["score"][:, 0])
        train.append(grid.train["score"][:, 0])
    warn_of_gaps(f"learning_curve of {type(model).__name__}", "folds and sizes", verdicts)
    return LearningCurve(counts, np.array(test), np.array(train), scorer_name(scorers["score"]))


def _check_two_classes(splits: Sequence[Split], task: Task) -> None:
    if not task.is_classifier:
        return
    codes = task.labels[1]
    if any(len(np.unique(codes[split.train])) < 2 for split in splits):
        raise ValueError(
            f"The first {len(splits[0].train)} training rows of some fold hold one class only: "
            "take more rows, or shuffle=True for sorted data."
        )


def _counts(sizes: ArrayLike, most: int) -> NDArray[np.intp]:
    """Numbers of rows, increasing, without repetition."""
    given = np.asarray(sizes, dtype=float)
    if given.ndim != 1 or not len(given) or not (given > 0).all():
        raise ValueError(f"sizes must be positive numbers, got {sizes!r}.")
    counts = given * most if given.max() <= 1.0 else given
    if counts.max() > most:
        raise ValueError(
            f"sizes asks for {int(counts.max())} rows, but the smallest training part has {most}."
        )
    return np.unique(np.maximum(counts.astype(np.intp), 1))
