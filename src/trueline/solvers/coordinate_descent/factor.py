r"""Solves with the free block of a symmetric matrix, while coordinates come and go.

The block H_BB of a base set B is factored once. For a set F = B + P - R that differs by a few
coordinates, the solution of H_FF x_F = p_F follows from the bordered system

    [ H_BB  U ] [x_B]   [p_B]         U = [H_BP  E_R],     K = [ H_PP  0 ]
    [ U^T   K ] [ z ] = [p_C],                                 [ 0     0 ]

in which z holds x_P and the multipliers that keep x_R at zero: with the factor of H_BB it costs one
block of triangular solves and a dense system of size len(P) + len(R) (the Schur-complement update
of active-set methods; P. E. Gill, W. Murray, M. A. Saunders, M. H. Wright, "A Schur-complement
method for sparse quadratic programming", 1987). When the difference has grown, F becomes the base.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm, dtrsv
from scipy.linalg.lapack import dgesv, dpotrf

__all__ = ["FreeBlock"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
_LEAST_CHANGES = 16
_SHARE_OF_CHANGES = 12
_SOLVE, _FASTER = 4.0, 13.0


class FreeBlock:
    """The factor of a base set, and solves for sets nearby."""

    def __init__(self) -> None:
        self._base: Integers = np.empty(0, dtype=np.intp)
        self._bend: Array = np.empty(0)
        self._factor: Array | None = None
        # Columns of L^-1 U by the coordinate that came, or by -1 - the place that was left.
        self._known: dict[int, int] = {}
        self._solved: Array = np.empty((0, 0), order="F")
        #: Whether the last solve factored its own block.
        self.is_fresh = False
        #: Of a singular block: x with (G_FF + diag(bend)) x = 0, to rounding.
        self.dependence: Array = np.empty(0)
        self.factorisations = 0

    def solve(self, G: Array, order: Integers, size: int, bend: Array, pull: Array) -> Array | None:
        """x with (G_FF + diag(bend)) x = pull, F the first coordinates; None if it is singular.

        ``order`` names the coordinate at each place of G, of which ``size`` are in use.
        """
        free = order[: len(pull)]
        self.is_fresh = False
        changes = self._changes(order, size, free, bend)
        if changes is not None and len(changes[1]) + len(changes[2]):
            x = self._bordered(G, order, bend, pull, *changes)
            if x is not None:
                return x
            changes = None
        if changes is None:
            if not self._refactor(G, free, bend):
                return None
            self.is_fresh = True
        else:  # the base itself, in another order
            back = changes[0]
            x = np.empty_like(pull)
            x[back] = self._base_solve(pull[back])
            return x
        return self._base_solve(pull)

    def cost(self, order: Integers, size: int, bend: Array) -> float:
        """What a solve would cost, in sweeps over the free coordinates.

        Matrix products and factorisations run some thirteen times faster per operation.
        """
        changes = self._changes(order, size, order[: len(bend)], bend)
        if changes is None:
            return _SOLVE + len(bend) / (3 * _FASTER)
        return _SOLVE + (len(changes[1]) + len(changes[2])) / _FASTER

    def forget(self) -> None:
        """Make the next set the base: small differences have added up."""
        self._factor = None

    def _changes(
        self, order: Integers, size: int, free: Integers, bend: Array
    ) -> tuple[Integers, Integers, Integers] | None:
        """Where the base's coordinates stand now, who came (P), who left (R, places in the base).

        None if the base is of no use.
        """
        if self._factor is None:
            return None
        a = len(free)
        place = np.full(int(order[:size].max()) + 1, -1, dtype=np.intp)
        place[order[:size]] = np.arange(size)
        places = place[self._base]
        left = np.flatnonzero(places >= a)
        stays = np.ones(a, dtype=bool)
        stays[places[places < a]] = False
        came = np.flatnonzero(stays)
        if len(left) + len(came) > max(_LEAST_CHANGES, a // _SHARE_OF_CHANGES):
            return None
        here = places < a
        if not np.array_equal(bend[places[here]], self._bend[here]):
            return None
        return places, came, left

    def _refactor(self, G: Array, free: Integers, bend: Array) -> bool:
        a = len(free)
        self._factor = None
        H = np.array(G[:a, :a].T, order="F")  # symmetric: the transpose is contiguous as it is
        np.einsum("ii->i", H)[:] += bend
        diagonal = H.diagonal().copy()
        L, info = dpotrf(H, lower=1, clean=0, overwrite_a=1)
        self.factorisations += 1
        # A pivot that lost nearly all of its column is rounding: the columns are dependent.
        good = info - 1 if info else a
        lost = L.diagonal()[:good] ** 2 <= 8 * a * _EPS * diagonal[:good]
        first = int(np.argmax(lost)) if lost.any() else good
        if first < a:
            self.dependence = np.zeros(a)
            self.dependence[first] = 1.0
            if first:
                half = dtrsv(L[:first, :first], G[:first, first], lower=1)
                self.dependence[:first] = -dtrsv(L[:first, :first], half, lower=1, trans=1)
            return False
        self._factor, self._base, self._bend = L, free.copy(), bend.copy()
        self._known, self._solved = {}, np.empty((a, 0), order="F")
        return True

    def _borders(
        self, G: Array, places: Integers, came: Integers, names: Integers, left: Integers
    ) -> Array:
        """L^-1 U; columns that were solved for since the base was made are remembered."""
        wanted = [*names.tolist(), *(-1 - left).tolist()]
        fresh = [i for i, name in enumerate(wanted) if name not in self._known]
        if fresh:
            p = len(came)
            U = np.zeros((len(places), len(fresh)), order="F")
            new = [i for i in fresh if i < p]
            U[:, : len(new)] = G[np.ix_(came[new], places)].T
            for k, i in enumerate(fresh[len(new) :]):
                U[left[i - p], len(new) + k] = 1.0
            Y = dtrsm(1.0, self._factor, U, lower=1, overwrite_b=1)
            start = self._solved.shape[1]
            self._known.update({wanted[i]: start + k for k, i in enumerate(fresh)})
            self._solved = np.asfortranarray(np.hstack([self._solved, Y]))
        return self._solved[:, [self._known[name] for name in wanted]]

    def _base_solve(self, right: Array) -> Array:
        half = dtrsv(self._factor, right, lower=1)
        return dtrsv(self._factor, half, lower=1, trans=1, overwrite_x=1)

    def _bordered(
        self,
        G: Array,
        order: Integers,
        bend: Array,
        pull: Array,
        places: Integers,
        came: Integers,
        left: Integers,
    ) -> Array | None:
        b, p, r = len(places), len(came), len(left)
        here = places < len(pull)
        Y = self._borders(G, places, came, order[came], left)
        right = np.zeros(b)
        right[here] = pull[places[here]]
        half = dtrsv(self._factor, right, lower=1, overwrite_x=1)
        S = -(Y.T @ Y)
        S[:p, :p] += G[np.ix_(came, came)] + np.diag(bend[came])
        scale = np.concatenate([G[came, came] + bend[came], -S[range(p, p + r), range(p, p + r)]])
        border = -(Y.T @ half)
        border[:p] += pull[came]
        lu, _, z, info = dgesv(S, border)
        if info or (np.abs(lu.diagonal()) <= 64 * b * _EPS * scale).any():
            return None
        inner = dtrsv(self._factor, half - Y @ z, lower=1, trans=1, overwrite_x=1)
        x = np.empty_like(pull)
        x[places[here]] = inner[here]
        x[came] = z[:p]
        return x
