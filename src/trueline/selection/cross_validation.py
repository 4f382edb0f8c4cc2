"""What searches by cross-validation share: folds, grids of strengths, scores, edges of a grid.

One problem is stated on the training rows of every fold, and judged by the other rows.

The problems of all folds and penalties are one set (:class:`~trueline.problem_set.ProblemSet`):
rows that a fold does not train on have weight zero. Where they were solved from moments, the errors
follow from the moments of the rows left out,

    sum over the fold of (y - prediction)^2 = residual square about the fold's means
                                              + (rows of the fold) (mean error)^2,

so that after one pass over the data nothing depends on the number of rows.

Scores of many models come from the predictions of all of them. With weights s_i (one by default)
and for every model, f_i its predictions,

    r2         1 - sum_i s_i (y_i - f_i)^2 / sum_i s_i (y_i - mean of y)^2
    mse, mae   sum_i s_i (y_i - f_i)^2 / sum_i s_i,   sum_i s_i abs(y_i - f_i) / sum_i s_i
    accuracy   sum_i s_i [prediction is the label] / sum_i s_i

All other scorers are called model by model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (
    accuracy_score,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    root_mean_squared_error,
)

from trueline.design.columns import submatrix
from trueline.moments import Moments, SharedMoments
from trueline.penalties import Penalty
from trueline.planner import execute_set, make_set_plans
from trueline.problem import Problem
from trueline.problem_set import Member, ProblemSet
from trueline.solution import PathSolution
from trueline.solvers.base import Options

Array = NDArray[np.float64]


def fold_weights(n: int, train: Iterable[Any], weights: Array | None) -> list[Array]:
    """The weights of all rows in each fold: none for rows that are not trained on.

    Examples
    --------
    >>> from trueline.selection.cross_validation import fold_weights
    >>> fold_weights(3, [[0, 1], [2, 2]], None)
    [array([1., 1., 0.]), array([0., 0., 2.])]
    """
    counts = [np.bincount(np.arange(n)[rows], minlength=n).astype(float) for rows in train]
    return counts if weights is None else [count * weights for count in counts]


def fold_problems(
    problem: Problem,
    splits: Iterable[tuple[Any, Any]],
    penalties: Callable[[float], Sequence[Penalty]],
) -> tuple[ProblemSet, list[Any]]:
    """A problem with several penalties on the training rows of every fold, fold by fold.

    And the test rows of each fold. The numbers of training rows are not kept: those of all folds
    take as much memory as the weights.

    Parameters
    ----------
    problem : Problem
        On all rows.
    splits : iterable of pairs
        Training and test rows of each fold.
    penalties : callable
        From the total weight of a fold's rows to its penalties.
    """
    tests = []

    def training_rows() -> Iterator[Any]:
        for train, test in splits:
            tests.append(test)
            yield train

    rows = fold_weights(problem.n_samples, training_rows(), problem.weights)
    shared = SharedMoments(problem.design, problem.target, problem.weights, rows)
    if problem.design.is_sequential:
        _ = shared.total  # in one pass with those of all folds, before a strength asks for sums
    # Folds of the same weight have the same penalties.
    known = {weight: penalties(weight) for weight in {float(s.sum()) for s in rows}}
    target = problem.target
    members = tuple(Member(target, each, s) for s in rows for each in known[float(s.sum())])
    found = ProblemSet(problem.design, problem.loss, members, problem.fit_intercept, shared)
    return found, tests


def held_out_moments(problems: ProblemSet, number: int, test: Any) -> Moments | None:
    """The moments of test rows, if these are the rows that a member leaves out."""
    weights = problems.members[number].weights
    assert problems.shared is not None
    assert weights is not None
    return problems.shared.left_out(weights, test)


def squared_errors(
    problems: ProblemSet, path: PathSolution, test: Any, weights: Array | None
) -> Array:
    """Mean squared errors of the solutions of one fold on its test rows, over all targets.

    Parameters
    ----------
    problems : ProblemSet
    path : PathSolution
    test : row numbers
    weights : array of shape (n,), optional
        Of all rows, for the means.
    """
    W, b, first = path.coefs, path.intercepts, path.numbers[0]
    held_out = held_out_moments(problems, first, test) if path.moments is not None else None
    if held_out is not None:
        return (_squares(held_out, W, b) / held_out.weight).mean(axis=0)
    index = np.arange(problems.design.shape[0])[test]
    used = np.flatnonzero(W.any(axis=(1, 2)))
    scores = submatrix(problems.design, index, used) @ W[used].reshape(len(used), W[0].size)
    target = problems.members[first].target[index]
    errors = (target[:, :, None] - scores.reshape(len(index), *b.shape) - b) ** 2
    s = None if weights is None else weights[index]
    return np.asarray(np.average(errors, axis=0, weights=s).mean(axis=0))


def _squares(held_out: Moments, W: Array, b: Array) -> Array:
    """Sums of squared errors on the rows of these moments, of shape (k, m)."""
    k, count = b.shape
    flat = W.reshape(len(W), -1)
    residual = held_out.targets(np.repeat(np.arange(k), count)).residual_square(flat)[0]
    off = held_out.y_mean[:, None] - (held_out.x_mean @ flat).reshape(k, count) - b
    return residual.reshape(k, count) + held_out.weight * off**2


def r2_from_moments(held_out: Moments, W: Array, b: Array) -> Array:
    """The coefficient of determination on the rows of these moments, for every model.

    W has shape (d, k, m), b (k, m). As scikit-learn defines it: mean over targets; a constant
    target scores 1 if it is hit exactly and 0 otherwise.
    """
    residual, spread = _squares(held_out, W, b), held_out.y_square[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = 1.0 - residual / spread
    hit = np.where(residual == 0, 1.0, 0.0)
    return np.where(spread == 0, hit, scores).mean(axis=0)


_SMALLEST = float(np.finfo(np.float64).resolution)


def strengths(alphas: Any, top: float, eps: float) -> Array:
    """A decreasing grid: so many strengths from ``top`` down to ``eps top``, or those given."""
    if isinstance(alphas, Integral):
        if top <= _SMALLEST:
            return np.full(int(alphas), _SMALLEST)
        if not 0 < eps < np.inf:
            raise ValueError(
                f"eps must be positive: the last strength relative to the first; got {eps!r}."
            )
        return np.geomspace(top, top * eps, int(alphas))
    values = np.sort(np.asarray(alphas, dtype=np.float64).ravel())[::-1]
    if not len(values):
        raise ValueError("alphas is empty: give at least one strength, or their number.")
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError(f"alphas must be finite and not negative, got {alphas!r}.")
    return values


def largest_strength(problem: Problem, penalty: Callable[[float], Penalty]) -> float:
    """The smallest strength at which all penalised coefficients rest at zero (if they may).

    Columns without a penalty are fitted first.

    Parameters
    ----------
    problem : Problem
        With squared loss; its own penalty does not matter.
    penalty : callable
        The penalty of a strength.
    """
    unit, shape = penalty(1.0), (problem.n_features, problem.n_targets)
    parts = unit.linear, unit.curvature, unit.lower, unit.upper
    linear, curvature, lower, upper = (np.broadcast_to(part, shape) for part in parts)
    free = (linear == 0) & (curvature == 0)
    q = _correlation(problem)
    if free.any() and not free.all():
        # No correlation is larger than the product of the norms: beyond that all others are zero.
        squares = problem.design.column_squares(problem.weights, None).max()
        size = problem.weigh(problem.target**2).sum()
        far = 2 * float(np.sqrt(squares * size)) / float(linear[linear > 0].min())
        member = Member(problem.target, penalty(far), problem.weights)
        alone = ProblemSet(problem.design, problem.loss, (member,), problem.fit_intercept)
        found = execute_set(alone, make_set_plans(alone), Options(tol=1e-8))[0]
        q = np.where(free, 0.0, _correlation(problem, found.coef))
    pull = np.where((q > 0) & (upper <= 0) | (q < 0) & (lower >= 0), 0.0, np.abs(q))
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(linear > 0, pull / linear, 0.0)
    return _finite(float(needed.max(initial=0.0)))


def largest_correlation(problem: Problem) -> float:
    """The largest norm of a column's correlations with all targets."""
    return _finite(float(np.linalg.norm(_correlation(problem), axis=1).max(initial=0.0)))


def _correlation(problem: Problem, W: Array | None = None) -> Array:
    """X^T of the residuals, both centred if there is an intercept."""
    if problem.design.is_sequential:
        moments = Moments.from_rows(problem.design, problem.target, problem.weights)
        about = moments if problem.fit_intercept else moments.about_zero()
        return about.cross if W is None else about.cross - about.gram @ W
    residual = problem.target if W is None else problem.target - problem.design.matvec(W)
    if not problem.fit_intercept:
        return problem.design.rmatvec(problem.weigh(residual))
    residual = residual - problem.weigh(residual).sum(axis=0) / problem.total_weight
    weighted = problem.weigh(residual)
    mean = problem.design.column_means(problem.weights)
    return problem.design.rmatvec(weighted) - np.outer(mean, weighted.sum(axis=0))


def _finite(value: float) -> float:
    if not np.isfinite(value):
        raise FloatingPointError("the products of the data are not finite")
    return value


def edge_notes(name: str, chosen: Any, tried: Any) -> list[str]:
    """A line for each end of the strengths that was chosen; none if the choice lies between.

    Nothing is beyond zero and infinity, so that they are no ends.

    Parameters
    ----------
    name : str
        Of the strength.
    chosen : float or array-like
        One number, or one per target or class.
    tried : array-like
        All strengths that were compared.

    Examples
    --------
    >>> from trueline.selection.cross_validation import edge_notes
    >>> edge_notes("alpha", 10.0, [0.1, 1.0, 10.0])
    ['alpha = 10 is the largest of the 3 that were tried; a larger one may do better']
    >>> edge_notes("alpha", 1.0, [0.1, 1.0, 10.0])
    []
    """
    picks = np.atleast_1d(np.asarray(chosen, dtype=float))
    values = np.unique(np.asarray(tried, dtype=float))
    if len(values) < 2:
        return []
    notes = []
    for end, most, more in ((values[0], "smallest", "smaller"), (values[-1], "largest", "larger")):
        count = int((picks == end).sum())
        if count == 0 or end in (0.0, np.inf):
            continue
        where = "" if len(picks) == 1 else f", for {count} of {len(picks)} choices"
        notes.append(
            f"{name} = {end:g} is the {most} of the {len(values)} that were tried{where}; "
            f"a {more} one may do better"
        )
    return notes


Metric = Callable[[NDArray[Any], NDArray[Any], "Array | None"], Array]


def fast_metric(scorer: Any, is_classifier: bool) -> Metric | None:
    """A function of (truth, predictions of all models, weights), if there is one.

    Classes are given by their positions, of which only equality means something.
    """
    function = getattr(scorer, "_score_func", None)
    if function not in _METRICS or getattr(scorer, "_kwargs", None):
        return None
    if (function is accuracy_score) != is_classifier:
        return None
    return _METRICS[function]


def _mean(values: Array, weights: Array | None) -> Array:
    if weights is None:
        return values.mean(axis=0)
    return weights @ values / weights.sum()


def _r2(y: Array, predicted: Array, weights: Array | None) -> Array:
    if len(y) < 2:
        return np.full(predicted.shape[1], np.nan)
    centre = y.mean() if weights is None else weights @ y / weights.sum()
    s = np.ones(len(y)) if weights is None else weights
    spread = float(s @ (y - centre) ** 2)
    square = s @ (y[:, None] - predicted) ** 2
    if spread == 0:
        return np.where(square == 0, 1.0, 0.0)
    return 1.0 - square / spread


def _accuracy(y: NDArray[Any], predicted: NDArray[Any], weights: Array | None) -> Array:
    return _mean((y[:, None] == predicted).astype(float), weights)


def _square(y: Array, predicted: Array, weights: Array | None) -> Array:
    return -_mean((y[:, None] - predicted) ** 2, weights)


_METRICS: dict[Any, Metric] = {
    r2_score: _r2,
    accuracy_score: _accuracy,
    mean_squared_error: _square,
    root_mean_squared_error: lambda y, f, s: -np.sqrt(-_square(y, f, s)),
    mean_absolute_error: lambda y, f, s: -_mean(np.abs(y[:, None] - f), s),
}
