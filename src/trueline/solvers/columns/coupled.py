r"""The model of a proximal Newton step for coupled scores on dense rows, by its Hessian.

    minimise over D     G.D + 1/2 D.H D + sum_jt ( l_j abs(V + D)_jt + a_j/2 (V + D)_jt^2 )
    H = sum_i s_i (diag(p_i) - p_i p_i^T) kron a_i a_i^T,         a_i = [x_i, 1]

H of m columns and k scores is a matrix of (m k)^2 numbers: coordinate descent on it costs as many
for a sweep, however many rows there are. It comes from a sample of the rows (about ten for each of
its columns: R. H. Byrd, G. M. Chin, W. Neveitt, J. Nocedal, "On the use of stochastic Hessian
information in optimization methods for machine learning", SIAM J. Optim. 21 (2011) 977-995) and is
kept while probabilities are about the same; gradients are always those of all rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["CoupledModel", "suits_hessian"]

Array = NDArray[np.float64]

_MOST_COLUMNS, _ROWS_EACH = 700, 10
# The Hessian is renewed when probabilities moved by this share of their variance.
_MOVED = 0.25
_SWEEPS, _LEFT = 300, 1e-3
# Steps that had to be cut say that the sample promises too much; whole ones that it does not.
_CUT, _HARDER, _SOFTER = 0.7, 1.5, 0.8


def suits_hessian(n: int, d: int, k: int) -> bool:
    """Whether the Hessian is small, and rows are more than coefficients."""
    return (d + 1) * k <= _MOST_COLUMNS and n >= (d + 1) * k


class CoupledModel:
    """The Hessian near the present point.

    Parameters
    ----------
    X : array of shape (n, d)
    s : array of shape (n,)
        Weights.
    fit_intercept : bool
    k : int
        Scores of a row.
    """

    def __init__(self, X: Array, s: Array, fit_intercept: bool, k: int) -> None:
        n, d = X.shape
        count = min(n, _ROWS_EACH * (d + 1) * k)
        self._rows = np.arange(n)
        if count < n:
            chosen = np.random.default_rng(0).choice(n, count, replace=False, shuffle=False)
            self._rows = np.sort(chosen)
        self._A = np.hstack([X[self._rows], np.full((count, 1), float(fit_intercept))])
        self._s = s[self._rows] * (s.sum() / max(float(s[self._rows].sum()), 1e-300))
        self._P: Array | None = None
        self._hardness = 1.0

    def look(self, P: Array) -> None:
        """Renew the Hessian if probabilities P of all rows are others than they were."""
        P = P[self._rows]
        if self._P is not None:
            moved = float((self._s @ np.abs(P - self._P)).sum())
            if moved <= _MOVED * float((self._s @ (P * (1 - P))).sum()):
                return
        self._P = P
        A, s = self._A, self._s
        (n, m), k = A.shape, P.shape[1]
        B = (A[:, :, None] * (np.sqrt(s)[:, None] * P)[:, None, :]).reshape(n, m * k)
        self._H = -(B.T @ B)
        for t in range(k):
            self._H[t::k, t::k] += (A.T * (s * P[:, t])) @ A

    def solve(
        self, chosen: NDArray[np.intp], V: Array, G: Array, linear: Array, quad: Array
    ) -> Array:
        """The best step of some columns, V, G of shape (m, k)."""
        from trueline.solvers.columns.kernels import solve_gram

        k = V.shape[1]
        where = (chosen[:, None] * k + np.arange(k)).ravel()
        H = self._hardness * self._H[np.ix_(where, where)]
        diagonal = np.maximum(H.diagonal(), 0.0)
        # Where no row bends any more; and a trace that keeps shifts of all scores where they are.
        least = 1e-8 * max(float(diagonal.max(initial=0.0)), 1e-300)
        H[np.diag_indices(len(where))] = diagonal + np.repeat(quad, k) + least
        D = np.zeros(len(where))
        parts = V.ravel(), G.ravel().copy(), np.repeat(linear, k)
        solve_gram(H, *parts, _SWEEPS, _LEFT, D)
        return D.reshape(V.shape)

    def learn(self, t: float) -> None:
        """How long the last step was."""
        self._hardness *= _HARDER if t < _CUT else _SOFTER
        self._hardness = max(self._hardness, 1.0)
