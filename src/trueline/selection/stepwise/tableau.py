"""The sweep tableau: least squares on a set S of columns, and on every set that differs by a few.

From moments about the means, with G the Gram matrix, c the cross products and h the square of the
target, the symmetric tableau of a set S of columns (N are the others) holds

    M_SS = -P,  P = G_SS^{-1}      M_SN = P G_SN = B      M_NN = G_NN - G_NS B
    M_Sy = P c_S = w (coefficients)     M_Ny = c_N - G_NS w     M_yy = h - c_S.w (residual square)

Letting the columns g into S (or out of it) with K = M_gg, X = K^{-1} M_g: and sign +1 (-1):

    M_ij <- M_ij - M_ig X_j        M_gj <- sign X_j        M_gg <- -K^{-1}        (i, j not in g)

so that the residual square after exchanging g is M_yy - M_yg K^{-1} M_gy, for columns inside and
outside alike. A. E. Beaton (1964); J. H. Goodnight, "A tutorial on the SWEEP operator", Amer.
Statist. 33 (1979) 149-158; M. A. Efroymson, "Multiple regression analysis" (1960).

Held-out rows follow without refitting. Let z_j = e_j - B_j for columns outside, P_j for columns
inside, and z_y = e_y - w; with H the second moments of held-out rows (columns and target) about the
means of the training rows, T = z^T H z has the squared error of the held-out rows at T_yy, and an
exchange of g makes it

    T_yy - 2 m.T_gy + m.T_gg m,        m = K^{-1} M_gy,

because an exchange replaces z_j by z_j - z_g X_j, and z_g by sign z_g K^{-1}.

Tableaux of folds: trained on some rows, judged on the others, from moments alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from trueline.moments import Moments, SharedMoments
from trueline.problem import Problem
from trueline.selection.cross_validation import fold_weights

Array = NDArray[np.float64]
Columns = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# What is left of a column, relative to it, when it counts as a combination of those inside.
_DEPENDENT = 1e-10
# Rounding left of a perfect fit, in units of that of the moments, for columns of ordinary angles.
_FLOOR = 16.0


def dependent_below(moments: Moments, strength: float = 0.0) -> Array:
    """What has to be left of each column for it not to be a combination of others."""
    noise = 16 * moments.unit * moments.x_size
    noise += moments.weight * (8 * _EPS * moments.x_mean) ** 2
    return np.maximum(_DEPENDENT * (moments.gram.diagonal() + strength), noise)


def rounding_floor(moments: Moments) -> float:
    """What rounding leaves of the residual square of a perfect fit."""
    return _FLOOR * (moments.unit + 16 * _EPS) * float(moments.y_size[0])


@dataclass(frozen=True)
class Outlook:
    """What models would be like after an exchange; arrays with one entry per exchange.

    Attributes
    ----------
    square : array of shape (m, k)
        Residual squares of the training rows.
    held_square : array of shape (m, k)
        Squared errors of the held-out rows; NaN if there are none.
    change : array of shape (m,)
        By how many the number of columns inside changes; 0 where nothing can be exchanged.
    """

    square: Array
    held_square: Array
    change: NDArray[np.intp]


class Tableau:
    """Least squares on the columns inside, with the means swept out already.

    Parameters
    ----------
    moments : Moments
        Of the training rows, about their means (about zero for a model without intercept).
    held : Moments, optional
        Of held-out rows, about their own means (or zero).
    strength : float, default=0.0
        Of a ridge penalty ``strength/2 ||w||^2``.

    Attributes
    ----------
    inside : array of bool
        The columns of the model.
    wanted : array of bool
        The columns asked for: those inside, and those that depend on them.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design import as_design
    >>> from trueline.moments import Moments
    >>> from trueline.selection.stepwise.tableau import Tableau
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]), np.array([[0.0], [1.0], [2.0]])
    >>> tableau = Tableau(Moments.from_rows(as_design(X), y))
    >>> tableau.outlook().square.ravel().round(12).tolist()
    [0.0, 1.5]
    >>> tableau.enter(np.array([0]))
    >>> round(float(tableau.coefficients()[0, 0]), 12)
    1.0
    """

    def __init__(
        self, moments: Moments, held: Moments | None = None, strength: float = 0.0
    ) -> None:
        self.moments, self.held, self.strength = moments, held, strength
        self.n_features, self.n_targets = moments.n_features, moments.n_targets
        self.size = moments.gram.diagonal() + strength
        self.least = dependent_below(moments, strength)
        self._start()

    def _start(self) -> None:
        """No column inside."""
        moments, held = self.moments, self.held
        self.inside = np.zeros(self.n_features, dtype=bool)
        self.wanted = np.zeros(self.n_features, dtype=bool)
        self.M = _augmented(moments.gram, moments.cross, moments.y_square)
        columns = np.arange(self.n_features)
        self.M[columns, columns] += self.strength
        self.T: Array | None = None
        if held is not None:
            x_gap = (held.x_mean - moments.x_mean) + (held.x_mean_low - moments.x_mean_low)
            y_gap = (held.y_mean - moments.y_mean) + (held.y_mean_low - moments.y_mean_low)
            self.T = _augmented(
                held.gram + held.weight * np.outer(x_gap, x_gap),
                held.cross + held.weight * np.outer(x_gap, y_gap),
                held.y_square + held.weight * y_gap**2,
            )

    # --- what is so -----------------------------------------------------------------------------

    @property
    def y_square(self) -> float:
        """The residual square of the model without columns, of the first target."""
        return float(self.moments.y_square[0])

    @property
    def floor(self) -> float:
        """What rounding leaves of the residual square of a perfect fit."""
        return rounding_floor(self.moments)

    def held_floor(self) -> float:
        """The same for the squared error of held-out rows."""
        assert self.held is not None
        scale = self.held.weight / self.moments.weight
        return rounding_floor(self.held) + scale * rounding_floor(self.moments)

    def centre(self) -> tuple[Array, Array]:
        """The means of the columns and of the target."""
        return self.moments.x_mean, self.moments.y_mean

    def square(self) -> Array:
        """The residual square, per target (with a ridge penalty: twice the objective)."""
        return np.maximum(self.M.diagonal()[self.n_features :], 0.0)

    def held_square(self) -> Array:
        """The squared error of the held-out rows, per target."""
        assert self.T is not None
        return np.maximum(self.T.diagonal()[self.n_features :], 0.0)

    def coefficients(self) -> Array:
        """w, of shape (d, k), zero outside."""
        return np.where(self.inside[:, None], self.M[: self.n_features, self.n_features :], 0.0)

    def free(self) -> NDArray[np.bool_]:
        """The columns outside that do not depend on those inside."""
        return ~self.inside & (self.M.diagonal()[: self.n_features] > self.least)

    def stranded(self) -> NDArray[np.bool_]:
        """The columns that were asked for but depend on those inside."""
        return self.wanted & ~self.inside

    # --- what would be --------------------------------------------------------------------------

    def outlook(self) -> Outlook:
        """Each column on its own exchanged: those inside leave, those outside enter."""
        d = self.n_features
        pivot = self.M.diagonal()[:d, None]
        can = self.inside | self.free()
        safe = np.where(can[:, None], pivot, np.inf)
        step = self.M[:d, d:] / safe
        square = np.maximum(self.square() - self.M[:d, d:] * step, 0.0)
        held = np.full_like(square, np.nan)
        if self.T is not None:
            T = self.T
            own = T.diagonal()
            held = own[d:] - 2 * step * T[:d, d:] + step**2 * own[:d, None]
            held = np.maximum(held, 0.0)
        change = np.where(can, np.where(self.inside, -1, 1), 0)
        return Outlook(square, held, change)

    def outlook_of(self, terms: list[Columns], inside: NDArray[np.bool_]) -> Outlook:
        """Each term (columns that go together) exchanged."""
        parts = [self._exchanged(term, leaves) for term, leaves in zip(terms, inside)]
        if not parts:
            nothing = np.empty((0, self.n_targets))
            return Outlook(nothing, nothing, np.empty(0, dtype=np.intp))
        square, held, change = zip(*parts)
        return Outlook(np.array(square), np.array(held), np.array(change, dtype=np.intp))

    def _exchanged(self, term: Columns, leaves: bool) -> tuple[Array, Array, int]:
        d = self.n_features
        if leaves and self.stranded().any():
            # Without this term others may no longer depend on what is left: from the beginning.
            left = self.wanted.copy()
            left[term] = False
            other = self.only(np.flatnonzero(left))
            held = np.full(self.n_targets, np.nan) if self.T is None else other.held_square()
            return other.square(), held, int(other.inside.sum() - self.inside.sum())
        term = term[self.inside[term]] if leaves else term[self.independent(term)]
        K, right = self.M[np.ix_(term, term)], self.M[term, d:]
        step = np.linalg.solve(K, right) if len(term) else right
        square = np.maximum(self.square() - np.einsum("gk,gk->k", right, step), 0.0)
        held = np.full(self.n_targets, np.nan)
        if self.T is not None:
            held = self.T.diagonal()[d:] - 2 * np.einsum("gk,gk->k", self.T[term, d:], step)
            held = held + np.einsum("gk,gh,hk->k", step, self.T[np.ix_(term, term)], step)
            held = np.maximum(held, 0.0)
        return square, held, -len(term) if leaves else len(term)

    def independent(self, columns: Columns) -> NDArray[np.bool_]:
        """Which of some columns outside depend neither on those inside nor on earlier ones."""
        K, least = self.M[np.ix_(columns, columns)].copy(), self.least[columns]
        try:
            if (np.diag(np.linalg.cholesky(K)) ** 2 > least).all():
                return np.ones(len(columns), dtype=bool)
        except np.linalg.LinAlgError:
            pass
        chosen = np.zeros(len(columns), dtype=bool)
        for j in range(len(columns)):
            if K[j, j] > least[j]:
                chosen[j] = True
                K[j:, j:] -= np.outer(K[j:, j], K[j, j:] / K[j, j])
        return chosen

    def only(self, columns: Columns) -> Tableau:
        """A tableau of these columns alone, all that can be inside."""
        part = Tableau(
            self.moments.columns(columns),
            None if self.held is None else self.held.columns(columns),
            self.strength,
        )
        part.enter(np.arange(len(columns)))
        return part

    # --- exchanges ------------------------------------------------------------------------------

    def enter(self, columns: Columns) -> None:
        """Let columns in; those that depend on others are remembered and stay outside."""
        self.wanted[columns] = True
        columns = columns[~self.inside[columns]]
        self._exchange(columns[self.independent(columns)], 1.0)

    def leave(self, columns: Columns) -> None:
        """Let columns out; those that depended on them come in."""
        self.wanted[columns] = False
        self._exchange(columns[self.inside[columns]], -1.0)
        if self.stranded().any():
            wanted = np.flatnonzero(self.wanted)
            self._start()
            self.enter(wanted)

    def _exchange(self, g: Columns, sign: float) -> None:
        if len(g) == 0:
            return
        M, T = self.M, self.T
        K, rows = M[np.ix_(g, g)], M[g]
        inverse = np.linalg.inv(K)
        X = rows / K if len(g) == 1 else np.asarray(np.linalg.solve(K, rows), np.float64)
        _subtract_product(M, rows, X)
        M[g], M[:, g] = sign * X, sign * X.T
        M[np.ix_(g, g)] = -inverse
        if T is not None:
            own, beside = T[np.ix_(g, g)], T[g]
            half = beside - 0.5 * (own @ X)
            _subtract_product(T, X, half)
            _subtract_product(T, half, X)
            new = sign * (inverse @ (beside - own @ X))
            T[g], T[:, g] = new, new.T
            T[np.ix_(g, g)] = inverse @ own @ inverse
        self.inside[g] = sign > 0


def _augmented(gram: Array, cross: Array, squares: Array) -> Array:
    """[[gram, cross], [cross^T, squares]] in Fortran order; targets do not meet each other."""
    d, k = cross.shape
    out = np.zeros((d + k, d + k), order="F")
    out[:d, :d], out[:d, d:], out[d:, :d] = gram, cross, cross.T
    out[range(d, d + k), range(d, d + k)] = squares
    return out


def _subtract_product(A: Array, left: Array, right: Array) -> None:
    """A <- A - left^T right in place, for A in Fortran order."""
    if len(left) == 1:
        blas.dger(-1.0, left[0], right[0], a=A, overwrite_a=1)
    else:
        blas.dgemm(-1.0, left.T, right, 1.0, A, overwrite_c=1)


def about(moments: Moments, fit_intercept: bool) -> Moments:
    """About the means with an intercept, about zero without."""
    return moments if fit_intercept else moments.about_zero()


def fold_tableaux(
    problem: Problem, splits: Sequence[tuple[Any, Any]], strength: float = 0.0
) -> tuple[list[Tableau], list[Moments], Moments]:
    """A tableau per fold, the moments of its test rows about their means, and those of all rows.

    Any splitter will do: rows may be in neither part of a fold, or in several test parts.
    """
    splits = list(splits)
    rows = fold_weights(problem.n_samples, (train for train, _ in splits), problem.weights)
    shared = SharedMoments(problem.design, problem.target, problem.weights, rows)
    tableaux, helds = [], []
    for weights, (_, test) in zip(rows, splits):
        train, held = shared.of_fold(weights), shared.left_out(weights, test)
        if held is None:
            s = None if problem.weights is None else problem.weights[test]
            held = Moments.from_rows(problem.design.take(test), problem.target[test], s)
        tableaux.append(
            Tableau(
                about(train, problem.fit_intercept), about(held, problem.fit_intercept), strength
            )
        )
        helds.append(held)
    return tableaux, helds, shared.total
