r"""Degrees of freedom of fits that hold some coefficients at zero.

They are the divergence of the fitted values, sum_i d(fit of row i)/d(y_i) (C. Stein, Ann. Statist.
9 (1981) 1135-1151). Coefficients that a penalty holds at zero stay there when the target moves a
little; on the columns A of the others, where the penalty is smooth with the second derivatives P,

    df = trace( (G + P)^{-1} G ),        G = X_A' S X_A   (centred if there is an intercept).

    lasso              P = 0: the number of columns (their rank)
    elastic net        P = diag(alpha (1 - r))
    norms of blocks    P_g = strength_g / ||w_g|| (I - w_g w_g' / ||w_g||^2) + l2 I

The last one is exact too, and holds for coupled targets, whose blocks reach over all of them
(S. Vaiter, C. Deledalle, J. Fadili, G. Peyre, C. Dossal, "The degrees of freedom of the group
lasso", arXiv:1205.1481 (2012), theorem 2). M. Yuan and Y. Lin, J. R. Statist. Soc. B 68 (2006)
49-67, equation 6.3, propose an approximation that needs the least-squares fit; it is not used here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from trueline.design.columns import submatrix
from trueline.penalties.group import BlockNorms
from trueline.problem import Problem

__all__ = [
    "ActiveColumns",
    "active_columns",
    "coupled_freedom",
    "elastic_freedom",
    "group_freedom",
    "residual_squares",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ActiveColumns:
    """The columns with non-zero coefficients, kept until somebody asks about them.

    Attributes
    ----------
    index : array of int of shape (a,)
    values : array or sparse array of shape (n, a)
    weights : array of shape (n,), optional
    fit_intercept : bool
    """

    index: NDArray[np.intp]
    values: Any
    weights: Array | None
    fit_intercept: bool

    def weighted(self, used: NDArray[np.bool_]) -> Array:
        """sqrt(s_i) (x_ij - mean_j) for some of them, dense."""
        X = self.values[:, used]
        X = X.toarray() if sp.issparse(X) else X
        if self.fit_intercept and X.size:
            X = X - np.average(X, axis=0, weights=self.weights)
        return X if self.weights is None else np.sqrt(self.weights)[:, None] * X

    def gram(self) -> Array:
        """G."""
        B = self.weighted(np.ones(len(self.index), dtype=bool))
        return B.T @ B


def active_columns(problem: Problem, W: Array) -> ActiveColumns:
    """The columns that any target uses."""
    index = np.flatnonzero(W.any(axis=1))
    values = submatrix(problem.design, np.arange(problem.n_samples), index)
    return ActiveColumns(index, values, problem.weights, problem.fit_intercept)


def residual_squares(problem: Problem, W: Array, b: Array) -> Array:
    """sum_i s_i (residual of row i)^2, per target."""
    residual = problem.target - problem.scores(W, b)
    return np.asarray(problem.weigh(residual**2).sum(axis=0))


def elastic_freedom(active: ActiveColumns, W: Array, alpha: Array) -> Array:
    """Of the elastic net, per target; ``alpha`` (like W) holds the second derivatives."""
    return np.array([_elastic(active, w != 0, a) for w, a in zip(W.T, alpha.T)])


def _elastic(active: ActiveColumns, used: NDArray[np.bool_], alpha: Array) -> float:
    used, alpha = used[active.index], alpha[active.index]
    B, alpha = active.weighted(used), alpha[used]
    if not alpha.all():
        return float(_traces(B.T @ B, np.diag(alpha), 1)[0])
    # In units in which the penalty is the identity; of the two Gram matrices, the smaller one.
    B = B / np.sqrt(alpha)
    values = np.linalg.eigvalsh(B.T @ B if B.shape[1] <= B.shape[0] else B @ B.T)
    values = values[values > 0]
    return float(np.sum(values / (values + 1.0)))


def group_freedom(gram: Array, W: Array, index: NDArray[np.intp], penalty: BlockNorms) -> Array:
    """With norms of groups, each target for itself; ``gram`` is that of the columns ``index``."""
    labels = penalty.labels(len(W))
    strengths = penalty.strengths(*W.shape)[labels][index]
    labels, freedom = labels[index], []
    for w, strength in zip(W[index].T, strengths.T):
        norm = np.sqrt(np.bincount(labels, w**2))[labels]
        used = norm > 0
        unit, pull = w[used] / norm[used], strength[used] / norm[used]
        same = labels[used][:, None] == labels[used]
        P = np.diag(pull + penalty.curvature) - same * (pull * unit)[:, None] * unit
        freedom.append(_traces(gram[np.ix_(used, used)], P, 1)[0])
    return np.array(freedom)


def coupled_freedom(gram: Array, W: Array, penalty: BlockNorms) -> Array:
    """With norms of rows of W, of shape (a, k): what belongs to each target; ``gram`` is G.

    The sum is the divergence of all fitted values.
    """
    a, k = W.shape
    norm = np.linalg.norm(W, axis=1)
    unit = W / norm[:, None]
    pull = penalty.strengths(a, k)[penalty.labels(a), 0] / norm
    P = np.zeros((k, a, k, a))
    rows = np.arange(a)
    for s in range(k):
        for t in range(k):
            P[s, rows, t, rows] = pull * ((s == t) - unit[:, s] * unit[:, t])
        P[s, rows, s, rows] += penalty.curvature
    whole = np.asarray(np.kron(np.eye(k), gram), dtype=np.float64)
    return _traces(whole, P.reshape(k * a, k * a), k)


def _traces(G: Array, P: Array, parts: int) -> Array:
    """The diagonal of (G + P)^{-1} G, added up over equal parts."""
    if not len(G):
        return np.zeros(parts)
    try:
        solved = cho_solve(cho_factor(G + P), G)
        # Columns that depend on each other may pass with pivots that are rounding.
        if not np.all(np.abs(solved.diagonal() - 0.5) <= 0.5 + 1e-6):
            raise np.linalg.LinAlgError
    except np.linalg.LinAlgError:
        solved = np.linalg.lstsq(G + P, G, rcond=None)[0]
    return solved.diagonal().reshape(parts, -1).sum(axis=1)
