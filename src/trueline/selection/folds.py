r"""One problem on the training rows of every fold, and squared errors on the other rows.

The problems of all folds and penalties are one set (:class:`~trueline.problem_set.ProblemSet`):
rows that a fold does not train on have weight zero. Where they were solved from moments, the errors
follow from the moments of the rows left out,

    sum over the fold of (y - prediction)^2 = residual square about the fold's means
                                              + (rows of the fold) (mean error)^2,

so that after one pass over the data nothing depends on the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.design.columns import submatrix
from trueline.moments import Moments, SharedMoments
from trueline.penalties import Penalty
from trueline.problem import Problem
from trueline.problem_set import Member, ProblemSet
from trueline.solution import PathSolution

__all__ = ["fold_problems", "fold_weights", "r2_from_moments", "squared_errors", "held_moments"]

Array = NDArray[np.float64]


def fold_weights(n: int, train: Iterable[Any], weights: Array | None) -> list[Array]:
    """The weights of all rows in each fold: none for rows that are not trained on.

    Examples
    --------
    >>> from trueline.selection.folds import fold_weights
    >>> fold_weights(3, [[0, 1], [2, 2]], None)
    [array([1., 1., 0.]), array([0., 0., 2.])]
    """
    counts = [np.bincount(np.arange(n)[rows], minlength=n).astype(float) for rows in train]
    return counts if weights is None else [count * weights for count in counts]


def fold_problems(
    problem: Problem,
    splits: Iterable[tuple[Any, Any]],
    penalties: Callable[[float], Sequence[Penalty]],
) -> ProblemSet:
    """A problem with several penalties on the training rows of every fold, fold by fold.

    Parameters
    ----------
    problem : Problem
        On all rows.
    splits : iterable of pairs
        Training and test rows of each fold.
    penalties : callable
        From the total weight of a fold's rows to its penalties.
    """
    rows = fold_weights(problem.n_samples, (train for train, _ in splits), problem.weights)
    shared = SharedMoments(problem.design, problem.target, problem.weights, rows)
    # Folds of the same weight have the same penalties.
    known = {weight: penalties(weight) for weight in {float(s.sum()) for s in rows}}
    target = problem.target
    members = tuple(Member(target, each, s) for s in rows for each in known[float(s.sum())])
    return ProblemSet(problem.design, problem.loss, members, problem.fit_intercept, shared)


def held_moments(problems: ProblemSet, number: int, test: Any) -> Moments | None:
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
    held = held_moments(problems, first, test) if path.moments is not None else None
    if held is not None:
        return (_squares(held, W, b) / held.weight).mean(axis=0)
    index = np.arange(problems.design.shape[0])[test]
    used = np.flatnonzero(W.any(axis=(1, 2)))
    scores = submatrix(problems.design, index, used) @ W[used].reshape(len(used), -1)
    target = problems.members[first].target[index]
    errors = (target[:, :, None] - scores.reshape(len(index), *b.shape) - b) ** 2
    s = None if weights is None else weights[index]
    return np.asarray(np.average(errors, axis=0, weights=s).mean(axis=0))


def _squares(held: Moments, W: Array, b: Array) -> Array:
    """Sums of squared errors on the rows of these moments, of shape (k, m)."""
    k, count = b.shape
    flat = W.reshape(len(W), -1)
    residual = held.targets(np.repeat(np.arange(k), count)).residual_square(flat)[0]
    off = held.y_mean[:, None] - (held.x_mean @ flat).reshape(k, count) - b
    return residual.reshape(k, count) + held.weight * off**2


def r2_from_moments(held: Moments, W: Array, b: Array) -> Array:
    """The coefficient of determination on the rows of these moments, for every model.

    W has shape (d, k, m), b (k, m). As scikit-learn defines it: mean over targets; a constant
    target scores 1 if it is hit exactly and 0 otherwise.
    """
    residual, spread = _squares(held, W, b), held.y_square[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = 1.0 - residual / spread
    hit = np.where(residual == 0, 1.0, 0.0)
    return np.where(spread == 0, hit, scores).mean(axis=0)
