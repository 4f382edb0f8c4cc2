r"""Newton's method for many problems on the same rows at once.

    P_j(V) = sum_i s_ij l(y_i, a_i.V) + 1/2 sum_c q_jc ||v_c||^2,        j = 1 .. p

differ in the weights s (a fold's test rows have weight zero) and in the strengths q. One matrix
product gives the scores of all of them, where one after the other would read the data as often as
there are problems. Newton's equations H D = -g are solved by conjugate gradients, each problem with
its own steps, preconditioned by

    dense rows, few columns     the Cholesky factor of a Hessian near by (that of all rows)
    otherwise                   the diagonal of the Hessian

A step is halved until it lowers the objective. A problem is done, and costs nothing more, when the
decrease that the model promises, 1/2 g^T H^-1 g, is below ``tol`` times the objective: the relative
distance from the minimum, near it. (Truncated Newton: R. S. Dembo and T. Steihaug, Math.
Program. 26 (1983) 190-212; blocks of problems share products as in block conjugate gradients.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from trueline.evaluation.walks.curves import Curve

__all__ = ["Batch", "Rows", "factor_hessian", "solve_batch"]

Array = NDArray[np.float64]
Precondition = Callable[[Array, NDArray[np.intp]], Array]

_OUTER, _INNER, _HALVINGS = 60, 60, 30
_SUFFICIENT, _LEFT = 1e-4, 0.1


class Rows:
    """The design with a column of ones, behind two products.

    Parameters
    ----------
    X : array or sparse array of shape (n, d)
    fit_intercept : bool
    """

    def __init__(self, X: Any, fit_intercept: bool) -> None:
        self.X = sp.csr_array(X) if sp.issparse(X) else np.ascontiguousarray(X)
        self.is_sparse = sp.issparse(X)
        self.turned = sp.csr_array(self.X.T) if self.is_sparse else self.X.T
        self.fit_intercept = fit_intercept
        self.n, self.d = X.shape

    def scores(self, V: Array) -> Array:
        """A V for V of shape (d + 1, p, k), as (n, p, k)."""
        p, k = V.shape[1:]
        flat = np.ascontiguousarray(V[:-1].reshape(self.d, p * k))
        Z = np.asarray(self.X @ flat).reshape(self.n, p, k)
        if self.fit_intercept:
            Z += V[-1]
        return Z

    def total(self, U: Array) -> Array:
        """A^T U for U of shape (n, p, k), as (d + 1, p, k)."""
        p, k = U.shape[1:]
        G = np.zeros((self.d + 1, p, k))
        flat = U.reshape(self.n, p * k)
        G[:-1] = np.asarray(self.turned @ flat).reshape(self.d, p, k)
        if self.fit_intercept:
            G[-1] = U.sum(axis=0)
        return G

    def diagonal(self, U: Array) -> Array:
        """The diagonals of A^T diag(u) A, of shape (d + 1, p, k)."""
        p, k = U.shape[1:]
        if not hasattr(self, "_squared"):
            turned: Any = self.turned
            self._squared = turned.power(2) if self.is_sparse else turned**2
        out = np.zeros((self.d + 1, p, k))
        flat = U.reshape(self.n, p * k)
        out[:-1] = np.asarray(self._squared @ flat).reshape(self.d, p, k)
        out[-1] = U.sum(axis=0)
        return out


@dataclass
class Batch:
    """Problems on the same rows.

    Attributes
    ----------
    rows : Rows
    curve : Curve
    Y : array of shape (n, 1, k)
    S : array of shape (n, p)
        Weights of the rows in each problem.
    quad : array of shape (d + 1, p)
        Strengths of the squares, the last of the intercept.
    """

    rows: Rows
    curve: Curve
    Y: Array
    S: Array
    quad: Array

    def take(self, which: NDArray[np.intp]) -> Batch:
        """Some of the problems."""
        return Batch(self.rows, self.curve, self.Y, self.S[:, which], self.quad[:, which])

    def objective(self, V: Array, Z: Array) -> Array:
        """P of each problem and, where scores are not coupled, of each score: (p, k) or (p, 1)."""
        values = np.einsum("np,npk->pk", self.S, self.curve.value(self.Y, Z))
        squares = 0.5 * np.einsum("dp,dpk->pk", self.quad, V * V)
        return values + (squares.sum(axis=1, keepdims=True) if self.curve.is_coupled else squares)

    def dot(self, A: Array, B: Array) -> Array:
        """Inner products, by problem and, where scores are not coupled, by score."""
        if self.curve.is_coupled:
            return np.einsum("dpk,dpk->p", A, B)[:, None]
        return np.einsum("dpk,dpk->pk", A, B)


def solve_batch(
    batch: Batch, V: Array, precondition: Precondition | None, tol: float
) -> tuple[Array, Array, Array]:
    """Minimise all problems from V of shape (d + 1, p, k); coefficients, scores, what is left.

    The last has the shape (2, p): the decrease that was promised at the end, and the objective.
    """
    V, left = V.copy(), np.zeros((2, V.shape[1]))
    rows = batch.rows
    Z = rows.scores(V)
    live = np.arange(V.shape[1])
    for _ in range(_OUTER):
        part = batch.take(live)
        v, z = V[:, live], Z[:, live]
        U, state = part.curve.look(part.Y, z)
        g = rows.total(part.S[:, :, None] * U) + part.quad[:, :, None] * v
        if not rows.fit_intercept:
            g[-1] = 0.0
        inverse = _inverse_diagonal(part, state) if precondition is None else None
        apply = _preconditioner(inverse, precondition, live)
        promise = 0.5 * part.dot(g, apply(g)).sum(axis=1)
        # Relative to the objective itself, which may be tiny where classes can be separated.
        scale = part.objective(v, z).sum(axis=1)
        left[:, live] = promise, scale
        going = promise > tol * scale
        if not going.any():
            break
        if not going.all():
            keep = np.flatnonzero(going)
            live, part = live[keep], part.take(keep)
            v, z, g, state = v[:, keep], z[:, keep], g[:, keep], state[:, keep]
            inverse = None if inverse is None else inverse[:, keep]
            apply = _preconditioner(inverse, precondition, live)
            promise, scale = promise[keep], scale[keep]
        # Close to the minimum more of the equations is solved: Newton's steps get quick there. What
        # is left of the promise need not be smaller than a tenth of what ends the descent.
        share = promise / scale
        share = np.clip(np.maximum(share, _LEFT * tol / share), 1e-8, 1e-2)
        D, Q = _newton_direction(part, state, g, apply, share)
        v, z, moved = _step(part, v, z, g, D, Q)
        V[:, live], Z[:, live] = v, z
        live = live[moved]
        if not len(live):
            break
    return V, Z, left


def _preconditioner(
    inverse: Array | None, given: Precondition | None, live: NDArray[np.intp]
) -> Callable[[Array], Array]:
    if given is not None:
        return lambda R: given(R, live)
    assert inverse is not None
    return lambda R: R * inverse


def _inverse_diagonal(part: Batch, state: Array) -> Array:
    """One over the diagonals of the Hessians, where these are not zero."""
    bends = state * (1 - state) if part.curve.is_coupled else state
    diagonal = part.rows.diagonal(part.S[:, :, None] * bends) + part.quad[:, :, None]
    return 1.0 / np.where(diagonal > 0, diagonal, 1.0)


def _newton_direction(
    part: Batch, state: Array, g: Array, apply: Callable[[Array], Array], share: Array
) -> tuple[Array, Array]:
    """D with H D = -g, but for a residual of the given share of g; and A D."""
    rows, S = part.rows, part.S[:, :, None]
    D, R = np.zeros_like(g), -g
    Q = np.zeros((rows.n, *g.shape[1:]))
    M = apply(R)
    P, size = M, part.dot(R, M)
    first = size.copy()
    for _ in range(_INNER):
        AP = rows.scores(P)
        HP = rows.total(S * part.curve.bend(state, AP)) + part.quad[:, :, None] * P
        bend = part.dot(P, HP)
        with np.errstate(divide="ignore", invalid="ignore"):
            a = np.where((bend > 0) & (size > 0), size / bend, 0.0)
        D += a * P
        Q += a * AP
        R = R - a * HP
        M = apply(R)
        before, size = size, part.dot(R, M)
        if (size <= share[:, None] * first).all() or not a.any():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            P = M + np.where(before > 0, size / before, 0.0) * P
    return D, Q


def _step(
    part: Batch, v: Array, z: Array, g: Array, D: Array, Q: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Along D as far as it helps, each problem for itself; which problems moved."""
    start, slope = part.objective(v, z), part.dot(g, D)
    t = np.ones_like(start)
    for _ in range(_HALVINGS):
        now = part.objective(v + t * D, z + t * Q)
        good = now <= start + _SUFFICIENT * t * slope + 1e-13 * np.abs(start)
        if good.all():
            break
        t = np.where(good, t, 0.5 * t)
    t = np.where(good, t, 0.0)
    return v + t * D, z + t * Q, np.asarray((t > 0).any(axis=1))


def factor_hessian(batch: Batch, Z: Array) -> list[list[Any]]:
    """Cholesky factors of the Hessians of dense problems, by problem and by score.

    Coupled scores have one factor for all of them.
    """
    rows, p = batch.rows, batch.S.shape[1]
    A = np.column_stack([rows.X, np.ones(rows.n)]) if rows.fit_intercept else rows.X
    m = A.shape[1]
    _, state = batch.curve.look(batch.Y, Z)
    out: list[list[Any]] = []
    for j in range(p):
        quad, s = batch.quad[:m, j], batch.S[:, j]
        if batch.curve.is_coupled:
            out.append([_factored(_coupled_hessian(A, s, state[:, j], quad))])
            continue
        own = []
        for c in range(Z.shape[2]):
            h = s * state[:, j, c]
            used = np.flatnonzero(h)
            few = A[used] if 2 * len(used) < len(h) else A
            weights = h[used] if few is not A else h
            own.append(_factored((few.T * weights) @ few + np.diag(quad)))
        out.append(own)
    return out


def _coupled_hessian(A: Array, s: Array, q: Array, quad: Array) -> Array:
    """sum_i s_i (diag(q_i) - q_i q_i^T) kron a_i a_i^T + squares, ordered by score."""
    (n, m), k = A.shape, q.shape[1]
    B = (np.sqrt(s)[:, None, None] * q[:, :, None] * A[:, None, :]).reshape(n, k * m)
    H = -(B.T @ B)
    for c in range(k):
        block = slice(c * m, (c + 1) * m)
        H[block, block] += (A.T * (s * q[:, c])) @ A + np.diag(quad)
    return H


def _factored(H: Array) -> Any:
    """A Cholesky factor, of a matrix with a larger diagonal if there is none."""
    size = float(np.abs(H.diagonal()).max(initial=0.0)) or 1.0
    for jitter in (1e-14, 1e-11, 1e-8, 1e-4):
        try:
            return cho_factor(H + jitter * size * np.eye(len(H)))
        except np.linalg.LinAlgError:
            continue
    return cho_factor(np.diag(np.abs(H.diagonal()) + size))


def solve_factors(factors: list[Any], R: Array, is_coupled: bool, has_constant: bool) -> Array:
    """One factor (by score) applied to right-hand sides of shape (d + 1, p, k)."""
    m = len(R) if has_constant else len(R) - 1
    out = np.zeros_like(R)
    if is_coupled:
        k = R.shape[2]
        right = R[:m].transpose(2, 0, 1).reshape(k * m, -1)
        out[:m] = cho_solve(factors[0], right).reshape(k, m, -1).transpose(1, 2, 0)
        return out
    for c, factor in enumerate(factors):
        out[:m, :, c] = cho_solve(factor, R[:m, :, c])
    return out
