"""Logistic and softmax regression over a grid of strengths."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite

from trueline.estimators.classification.logistic import LogisticRegression
from trueline.estimators.shared.fold_sets import solve_folds
from trueline.guard import warn_of_gaps
from trueline.problem import Problem
from trueline.solvers import best_constant
from trueline.wording import Readable, counted

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class LogisticPath(Readable):
    """Fits of :class:`~trueline.LogisticRegression` from the strongest penalty to the weakest.

    Made by :func:`logistic_path`. ``path[i]`` is the i-th fit, a complete model with its
    certificate.

    Attributes
    ----------
    Cs : array of shape (m,)
        Increasing.
    models : tuple of LogisticRegression
    coefs : array of shape (m, 1, d) or (m, k, d)
    intercepts : array of shape (m, 1) or (m, k)
    objectives, gaps : arrays of shape (m,)
        What was reached, and how far from the optimum it can be.
    deviances : array of shape (m,)
        Twice the losses, without the penalty.
    """

    Cs: Array
    models: tuple[LogisticRegression, ...]

    def __len__(self) -> int:
        return len(self.models)

    def __str__(self) -> str:
        counts = self.n_nonzero
        return (
            f"LogisticPath: {counted(len(self), 'value')} of C from {self.Cs[0]:.4g} to "
            f"{self.Cs[-1]:.4g}\n"
            f"columns with non-zero coefficients: {counts[0]} to {counts[-1]} of "
            f"{self.coefs.shape[-1]}"
        )

    def __getitem__(self, number: int) -> LogisticRegression:
        return self.models[number]

    @property
    def coefs(self) -> NDArray[Any]:
        return np.stack([model.coef_ for model in self.models])

    @property
    def intercepts(self) -> NDArray[Any]:
        return np.stack([model.intercept_ for model in self.models])

    @property
    def n_nonzero(self) -> NDArray[np.intp]:
        """How many columns have a coefficient that is not zero, at each C."""
        return np.count_nonzero(self.coefs.any(axis=1), axis=1).astype(np.intp)

    @property
    def objectives(self) -> Array:
        return np.array([model.certificate_.objective for model in self.models])

    @property
    def gaps(self) -> Array:
        return np.array([model.certificate_.gap for model in self.models])

    @property
    def deviances(self) -> Array:
        found = (model.certificate_ for model in self.models)
        return np.array([2 * (one.objective - one.penalty.value(one.coef)) for one in found])


def logistic_path(
    X: Any,
    y: Any,
    *,
    Cs: Any = 20,
    eps: float = 1e-3,
    l1_ratio: float = 1.0,
    fit_intercept: bool = True,
    class_weight: Any = None,
    sample_weight: Any = None,
    tol: float = 1e-4,
    max_iter: int = 100,
) -> LogisticPath:
    """Fit logistic or softmax regression for many strengths, all of them as one set.

    For every C the objective is that of :class:`~trueline.LogisticRegression`::

        sum_i s_i loss(y_i, x_i.w + b) + 1/C (l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2)

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,)
        Class labels.
    Cs : int or array-like, default=20
        The inverse strengths; or how many of them, from the largest C at which no column takes part
        (with ``l1_ratio=0`` from 1e-4) up to that divided by ``eps``.
    eps : float, default=1e-3
        The ratio of the smallest and the largest C.
    l1_ratio : float, default=1.0
        0 is the squared penalty, 1 that of absolute values.
    fit_intercept : bool, default=True
    class_weight : dict or "balanced", optional
    sample_weight : array-like of shape (n,), optional
    tol : float, default=1e-4
    max_iter : int, default=100
        Both for every fit, as in :class:`~trueline.LogisticRegression`.

    Returns
    -------
    path : LogisticPath

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from trueline import logistic_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> path = logistic_path(X, y, Cs=5)
    >>> path.n_nonzero
    array([ 0,  4,  9, 17, 22])
    >>> bool(path[2].verify(X, y))
    True
    """
    model = LogisticRegression(
        l1_ratio=l1_ratio,
        fit_intercept=fit_intercept,
        class_weight=class_weight,
        tol=tol,
        max_iter=max_iter,
    )
    model._check_parameters()
    problem, X, y = model._validated_problem(X, y, sample_weight, reset=True)
    assert_all_finite(X, input_name="X", estimator_name="logistic_path")
    grid, models = _grid(Cs, eps, l1_ratio, problem), []
    for C in grid:
        models.append(copy(model))
        models[-1].C = float(C)
    weights = model._weights(sample_weight, X)
    weights = np.ones(len(y)) if weights is None else weights
    codes = np.searchsorted(model.classes_, y)
    fits = solve_folds(models, X, codes, [weights], classes=model.classes_)[0]
    warn_of_gaps("logistic_path", "strengths", [fit.verdict for fit in fits])
    return LogisticPath(grid, tuple(fit.estimator() for fit in fits))


def _grid(Cs: Any, eps: float, l1_ratio: float, problem: Problem) -> Array:
    if not isinstance(Cs, Integral):
        values = np.sort(np.asarray(Cs, dtype=np.float64).ravel())
        if not len(values) or not (values > 0).all():
            raise ValueError(f"Cs must be positive numbers, at least one of them, got {Cs!r}.")
        return values
    if Cs < 1 or not 0 < eps < 1:
        raise ValueError(f"Cs must be at least 1 and eps between 0 and 1, got {Cs!r} and {eps!r}.")
    least = 1e-4
    if l1_ratio > 0:
        # No column takes part while 1/C l1_ratio is at least the largest slope at w = 0.
        scores = np.broadcast_to(best_constant(problem), problem.target.shape)
        u = problem.loss.gradient(problem.target, scores)
        slope = float(np.abs(problem.design.rmatvec(problem.weigh(u))).max(initial=0.0))
        least = l1_ratio / slope * (1 - 1e-9) if slope > 0 else 1.0
    return np.geomspace(least, least / eps, int(Cs))
