r"""Newton's method for many problems of two classes at once, steps by conjugate gradients.

    minimise over v_t, f_t    P_t = sum_i s_ti l(y_ti, v_t.x_i + f_t) + a/2 |v_t|^2

Each problem has a step, a length and a tolerance of its own, as
:class:`~trueline.solvers.truncated.descent.TruncatedDescent` has for one; what they share are
passes over the rows. Problems that are done take no part in further passes. Steps are found the
more exactly the more the last one helped (S. C. Eisenstat, H. F. Walker, "Choosing the forcing
terms in an inexact Newton method", SIAM J. Sci. Comput. 17 (1996) 16-32, choice 2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.losses import Loss
from trueline.solvers.books.precondition import Directions, Preconditioner
from trueline.solvers.books.rows import BookRows, Stretch

__all__ = ["BookDescent"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

# How exactly steps are found, relative to the gradient: at least, at most, and the power of what
# the last step left of it.
_COARSE, _FINEST, _POWER = 0.1, 1e-4, 1.6
_MOST_INNER = 250
# A step is good when it leaves this share of the slope.
_LEFT, _LOOKS = 0.1, 30
# Newton's method for intercepts alone.
_LEVEL_STEPS = 6
_EPS = float(np.finfo(np.float64).eps)


class BookDescent:
    """The state of the method.

    Parameters
    ----------
    rows : BookRows
    loss : Loss
        Of margins, and smooth.
    bend : float
        a.
    levels : array of shape (problems,)
        Intercepts to begin with.

    Attributes
    ----------
    V : array of shape (problems, d + 1)
        Coefficients, intercepts last.
    G : array of shape (problems, d + 1)
        Gradients.
    active : array of int
        Problems that are not done.
    steps : array of shape (problems,)
        Steps so far.
    products : int
        Passes over the rows for products with Hessians.
    """

    def __init__(self, rows: BookRows, loss: Loss, bend: float, levels: Array) -> None:
        self.rows, self.loss, self.bend = rows, loss, bend
        count, (n, d) = len(rows.book), rows.X.shape
        self.V, self.G = np.zeros((count, d + 1)), np.zeros((count, d + 1))
        self.V[:, -1] = levels
        self._level_bends, self._counts = np.zeros(count), np.zeros(count, dtype=np.intp)
        self.steps, self.products = np.zeros(count, dtype=np.intp), 0
        shape = (rows.slots, n)
        self.Z, self._change, self._U = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self._H = np.zeros(shape, np.float32)
        self._preconditioner = Preconditioner(Directions(rows.single), bend, rows.fit_intercept)
        self._set_active(np.arange(count))
        self._level()
        self.look()
        self._norm = np.maximum(np.linalg.norm(self.G, axis=1), 1e-300)

    def _set_active(self, problems: Integers) -> None:
        self.active, self.stretches = problems, self.rows.stretches(problems)

    def _level(self) -> None:
        """Scores of points without coefficients."""
        for one in self.stretches:
            self.Z[one.at, one.rows] = self.V[one.problems, -1:]

    # --- derivatives ----------------------------------------------------------------------------

    def _weights(self, one: Stretch) -> Array:
        return one.factors * self.rows.weights[one.rows]

    def look(self) -> Array:
        """Gradients and curvatures at the present points; the sums of losses, s u^2, s u, s l''."""

        def work(one: Stretch) -> Array:
            z, s = self.Z[one.at, one.rows], self._weights(one)
            u, h = self._derivatives(one, z)
            self._U[one.at, one.rows] = s * u
            self._H[one.at, one.rows] = s * h
            sums = (self.loss.value(one.labels, z), u * u, u, h)
            return np.stack([(s * each).sum(axis=1) for each in sums], axis=1)

        facts = self.rows.over_rows(self.stretches, work)
        sums = self.rows.totals(self.stretches, self._U)
        sums[:, :-1] += self.bend * self.V[:, :-1]
        self.G[self.active] = sums[self.active]
        self._level_bends[self.active] = facts[self.active, 3]
        return facts

    def _derivatives(self, one: Stretch, z: Array) -> tuple[Array, Array]:
        if self.loss.name == "logistic":
            return self.loss.derivatives(one.labels, z)
        return self.loss.gradient(one.labels, z), self.loss.curvature(one.labels, z)

    def refresh(self) -> None:
        """Scores afresh: those of many steps have gathered rounding."""
        self.rows.scores(self.stretches, self.V, self.Z)

    def balance(self) -> None:
        """The best intercepts for the coefficients of active problems: proofs want them exact."""
        if not self.rows.fit_intercept:
            return
        shift = np.zeros(len(self.V))
        slope, bend, size = self._slopes_of_levels(shift)
        for _ in range(_LEVEL_STEPS):
            with np.errstate(divide="ignore", invalid="ignore"):
                ahead = np.where(bend > 0, shift - slope / bend, shift)
            found, bent, size = self._slopes_of_levels(ahead)
            better = np.abs(found) < 0.5 * np.abs(slope)
            if not better.any():
                break
            shift = np.where(better, ahead, shift)
            slope, bend = np.where(better, found, slope), np.where(better, bent, bend)
            if (np.abs(slope) <= 4 * _EPS * size)[self.active].all():
                break
        self.V[:, -1] += shift
        for one in self.stretches:
            self.Z[one.at, one.rows] += shift[one.problems, None]

    def _slopes_of_levels(self, shift: Array) -> tuple[Array, Array, Array]:
        """Slope and curvature in the intercepts, and the sum of the sizes of the terms."""

        def work(one: Stretch) -> Array:
            s = self._weights(one)
            u, h = self._derivatives(one, self.Z[one.at, one.rows] + shift[one.problems, None])
            return np.stack([(s * each).sum(axis=1) for each in (u, h, np.abs(u))], axis=1)

        slope, bend, size = self.rows.over_rows(self.stretches, work).T
        return slope, bend, size

    # --- steps ----------------------------------------------------------------------------------

    def most(self) -> Array:
        """What the penalty and the curvature in the intercept allow any step to promise."""
        bends = np.where(self._level_bends > 0, self._level_bends, 1.0)
        levels = self.G[:, -1] ** 2 / bends
        return 0.5 * ((self.G[:, :-1] ** 2).sum(axis=1) / self.bend + levels)

    def resume(self) -> None:
        """Take all problems up again, with scores afresh and the best intercepts."""
        self._set_active(np.arange(len(self.V)))
        self.refresh()
        self.balance()

    def finish(self, problems: Integers) -> None:
        """Leave these problems where they are."""
        self._set_active(np.setdiff1d(self.active, problems))

    def step(self) -> None:
        """Move all active problems."""
        D = self._directions()
        first = (self.G * D).sum(axis=1)
        D[~(first < 0)] = 0.0  # made of rounding
        first = np.minimum(first, 0.0)
        self.rows.scores(self.stretches, D, self._change)
        t = self._lengths(D, first)
        self.V += t[:, None] * D
        for one in self.stretches:
            self.Z[one.at, one.rows] += t[one.problems, None] * self._change[one.at, one.rows]
        self.steps[self.active] += 1
        self.look()

    def _lengths(self, D: Array, first: Array) -> Array:
        """Steps that minimise along the directions, almost: Newton's method between brackets."""
        own = self.bend * (self.V[:, :-1] * D[:, :-1]).sum(axis=1)
        across = self.bend * (D[:, :-1] ** 2).sum(axis=1)
        t = np.zeros(len(D))
        low, high = np.zeros(len(D)), np.full(len(D), np.inf)
        t[self.active] = 1.0
        open_ones, stretches = self.active[first[self.active] < 0], self.stretches
        t[np.setdiff1d(self.active, open_ones)] = 0.0
        for _ in range(_LOOKS):
            if not len(open_ones):
                break
            if len(open_ones) < len(self.active):
                stretches = self.rows.stretches(open_ones)

            def work(one: Stretch) -> Array:
                change = self._change[one.at, one.rows]
                z = self.Z[one.at, one.rows] + t[one.problems, None] * change
                u, h = self._derivatives(one, z)
                weighted = self._weights(one) * change
                return np.stack(
                    [(weighted * u).sum(axis=1), (weighted * h * change).sum(axis=1)], axis=1
                )

            slope, bend = self.rows.over_rows(stretches, work).T
            slope, bend = slope + own + t * across, bend + across
            left = np.abs(slope) > _LEFT * np.abs(first)
            open_ones = open_ones[left[open_ones]]
            rising = slope > 0
            low, high = np.where(rising, low, t), np.where(rising, t, high)
            with np.errstate(invalid="ignore", divide="ignore"):
                ahead = t - slope / bend
            outside = ~((ahead > low) & (ahead < high))
            between = np.where(np.isfinite(high), 0.5 * (low + high), 4.0 * t)
            t[open_ones] = np.where(outside, between, ahead)[open_ones]
        t[open_ones] = low[open_ones]  # nothing has risen on the way there
        return t

    def _directions(self) -> Array:
        """Conjugate gradients for H_t d_t = -g_t, all problems side by side."""
        at = self.active
        self._preconditioner.renew(at, self._curvatures(), self._counts)
        self._counts[at] = 0
        G = self.G[at]
        norm = np.linalg.norm(G, axis=1)
        fall, self._norm[at] = norm / self._norm[at], norm
        enough = np.clip(fall**_POWER, _FINEST, _COARSE) ** 2
        D, R, out = np.zeros_like(G), -G, np.zeros_like(self.G)
        Q = self._preconditioner.apply(at, R)
        p, size = Q, (R * Q).sum(axis=1)
        enough = enough * size
        stretches = self.stretches
        for _ in range(_MOST_INNER):
            image = self.rows.bent(stretches, self._H, _placed(p, at, len(out)))[at]
            image[:, :-1] += self.bend * p[:, :-1]
            along = (p * image).sum(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                length = np.where(along > 0, size / along, 0.0)
            D, R = D + length[:, None] * p, R - length[:, None] * image
            Q = self._preconditioner.apply(at, R)
            before, size = size, (R * Q).sum(axis=1)
            self.products += 1
            self._counts[at] += 1
            out[at] = D
            going = (size > enough) & (along > 0) & (size > 0)
            if not going.any():
                break
            with np.errstate(divide="ignore", invalid="ignore"):
                p = Q + np.where(before > 0, size / before, 0.0)[:, None] * p
            if not going.all():
                at, D, R, p = at[going], D[going], R[going], p[going]
                size, enough = size[going], enough[going]
                stretches = self.rows.stretches(at)
        return out

    def _curvatures(self) -> dict[int, tuple[Integers, Array]]:
        """Rows and curvatures of each active problem."""
        parts: dict[int, list[tuple[slice, NDArray[np.float32]]]] = {
            int(t): [] for t in self.active
        }
        for one in self.stretches:
            for slot, t in zip(one.at.tolist(), one.problems.tolist(), strict=True):
                parts[t].append((one.rows, self._H[slot, one.rows].astype(np.float64)))
        return {
            t: (
                np.concatenate([np.arange(rows.start, rows.stop) for rows, _ in own]),
                np.concatenate([h for _, h in own]),
            )
            for t, own in parts.items()
        }


def _placed(part: Array, at: Integers, count: int) -> Array:
    """Rows of some problems at their places among all."""
    out = np.zeros((count, part.shape[1]))
    out[at] = part
    return out
