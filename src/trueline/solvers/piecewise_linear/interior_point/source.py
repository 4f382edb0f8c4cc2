r"""Between the data and a program: standardised rows, and those of them that are near their kinks.

Columns are brought to mean 0 (if there is an intercept) and spread 1, so that neither milliseconds
since 1970 nor micrograms disturb anything:

    x_i.w + b = a_i.v,    a_ij = (x_ij - mean_j) / scale_j,    w_j = v_j / scale_j,
                          the last of a_i is 1 and the last of v is b + mean.w.

Only columns that vary are kept, and without a penalty only as many as are independent.

Rows near their kinks are treated one by one, with one slope for all others. Most rows are far from
their kinks and stay there: all that counts is the sum of their slopes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, qr

from trueline.losses import Loss
from trueline.problem import Problem
from trueline.solvers.piecewise_linear.interior_point.program import (
    Program,
    pieces,
)

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# Pivots of a Gram matrix below this may be rounding: an orthogonal factorisation decides.
_DOUBTFUL, _DEPENDENT = 1e-7, 1e-11


@dataclass(frozen=True)
class Source:
    """One target of a problem with a piecewise linear loss, column by column standardised.

    Attributes
    ----------
    problem : Problem
    loss, target : Loss and array of shape (n,)
        Of this target, the one of that ``number``.
    mean, scale : arrays of shape (d,)
    kept : array of int
        Columns that vary.
    samples : dict
        Rows that were gathered at random, shared by all targets.
    """

    problem: Problem
    loss: Loss
    target: Array
    mean: Array
    scale: Array
    kept: Indices
    samples: dict[int, tuple[Indices, Array]]
    number: int

    @classmethod
    def of(cls, problem: Problem) -> list[Source]:
        """One source for each target; they share two passes over the data."""
        design, weights, d = problem.design, problem.weights, problem.n_features
        targets = _columns(problem.target)
        mean = design.column_means(weights) if problem.fit_intercept else np.zeros(d)
        shift = mean if problem.fit_intercept else None
        squares = design.column_squares(weights, shift)
        _require_ordinary(squares / problem.total_weight + mean**2)
        scale = np.sqrt(squares / problem.total_weight)
        kept = np.flatnonzero(scale > 64 * _EPS * np.abs(mean))
        samples: dict[int, tuple[Indices, Array]] = {}
        return [
            cls(problem, problem.loss.of_target(j), y, mean, scale, kept, samples, j)
            for j, y in enumerate(targets)
        ]

    @property
    def size(self) -> int:
        """Number of coefficients v."""
        return len(self.kept) + self.problem.fit_intercept

    def row_weights(self, rows: Indices | slice = slice(None)) -> Array:
        """s of some rows."""
        if self.problem.weights is not None:
            return self.problem.weights[rows]
        return np.ones(self.target[rows].shape)

    def weigh(self, values: Array) -> Array:
        """One number for every row, times the rows' weights."""
        return values if self.problem.weights is None else values * self.problem.weights

    def coefficients(self, v: Array) -> tuple[Array, float]:
        """w and b."""
        w = np.zeros(len(self.mean))
        w[self.kept] = v[: len(self.kept)] / self.scale[self.kept]
        if not self.problem.fit_intercept:
            return w, 0.0
        return w, float(v[-1] - self.mean @ w)

    def standard(self, w: Array, b: float) -> Array:
        """v, from coefficients."""
        v = np.zeros(self.size)
        v[: len(self.kept)] = w[self.kept] * self.scale[self.kept]
        if self.problem.fit_intercept:
            v[-1] = b + self.mean @ w
        return v

    def scores(self, v: Array) -> Array:
        """a_i.v for all rows."""
        return self.scores_of([(self, v)])[0]

    @staticmethod
    def scores_of(points: list[tuple[Source, Array]]) -> list[Array]:
        """a_i.v for all rows, of several targets: one product."""
        found = [source.coefficients(v) for source, v in points]
        W = np.stack([w for w, _ in found], axis=1)
        b = np.array([level for _, level in found])
        design = points[0][0].problem.design
        if len(points) == 1:
            return [design.matvec(W[:, 0]) + b[0]]
        return list(np.add(design.matvec(W).T, b[:, None], order="C"))

    def gather(self, rows: Indices | slice) -> Array:
        """Some of the rows a_i, dense."""
        X, count = self.problem.design.take(rows).toarray(), len(self.kept)
        A = np.empty((len(X), self.size))
        if count < X.shape[1]:
            X = X[:, self.kept]
        np.subtract(X, self.mean[self.kept], out=A[:, :count])
        A[:, :count] /= self.scale[self.kept]
        A[:, count:] = 1.0
        return A

    def sample(self, count: int) -> tuple[Indices, Array]:
        """Rows at random, the same ones for every target."""
        if count not in self.samples:
            n = self.problem.n_samples
            chosen = np.sort(np.random.default_rng(0).choice(n, count, replace=False))
            self.samples[count] = chosen, self.gather(chosen)
        return self.samples[count]

    def total(self, weights: Array) -> Array:
        """sum_i weights_i a_i over all rows."""
        return self.totals_of([(self, weights)])[0]

    @staticmethod
    def totals_of(points: list[tuple[Source, Array]]) -> list[Array]:
        """sum_i weights_i a_i over all rows, of several targets: one product."""
        design = points[0][0].problem.design
        if len(points) == 1:
            sums = design.rmatvec(points[0][1])[:, None]
        else:
            sums = design.rmatvec(np.stack([weights for _, weights in points], axis=1))
        return [
            source._centred(own, float(weights.sum()))
            for (source, weights), own in zip(points, sums.T, strict=True)
        ]

    def _centred(self, sums: Array, overall: float) -> Array:
        """sum_i weights_i a_i, from those of the columns as they are."""
        out = np.empty(self.size)
        count = len(self.kept)
        own = sums[self.kept] - overall * self.mean[self.kept]
        out[:count] = own / self.scale[self.kept]
        out[count:] = overall
        return out

    def restricted(self, A: Array, rows: Indices | slice = slice(None)) -> Source:
        """Without columns that depend on others in these rows, unless all are penalised."""
        penalty = self.problem.penalty
        strengths = np.asarray(penalty.linear) + np.asarray(penalty.curvature)
        if np.all(strengths > 0) or not A.shape[1]:
            return self
        # With weights, so that a row twice and a row of weight 2 leave the same columns.
        own = _independent(A * np.sqrt(self.row_weights(rows))[:, None])
        own = own[own < len(self.kept)]
        return self if len(own) == len(self.kept) else replace(self, kept=self.kept[np.sort(own)])

    def loss_at(self, z: Array, rows: Indices | slice = slice(None)) -> float:
        """sum_i s_i l_i(z_i) over some rows."""
        values = self.loss.value(self.target[rows], z)
        return float((self.row_weights(rows) * values).sum())

    def program(self, A: Array, rows: Indices | slice, beside: Array | None = None) -> Program:
        """The function of rows A, and of the slopes that all other rows have."""
        return self.program_of(A, self.row_weights(rows), self.target[rows], beside)

    def program_of(self, A: Array, s: Array, y: Array, beside: Array | None = None) -> Program:
        """The function of rows A with weights s and targets y."""
        loss, penalty = self.loss, self.problem.penalty
        jumps, kinks = loss.row_jumps(y), np.array(loss.kinks)
        linear, quad = self._of_kept(penalty.linear, 1), self._of_kept(penalty.curvature, 2)
        # No coefficient is pulled harder than by all rows together: a stronger penalty says no
        # more, and would drown the others in its rounding.
        linear = np.minimum(linear, 2 * loss.slope_bound * self.problem.total_weight)
        lasso = np.flatnonzero(linear)
        first = loss.first_slopes(y)
        ell = A.T @ (first * s) - linear
        c = np.concatenate([(jumps * s).ravel(), 2 * linear[lasso]])
        share = np.full(len(c), 0.5)
        share[: len(c) - len(lasso)] = np.tile(-first / jumps.sum(axis=0), len(jumps))
        return Program(
            A=A,
            ell=ell if beside is None else ell + beside,
            quad=quad,
            lasso=lasso,
            t=np.concatenate([np.add.outer(kinks, y).ravel(), np.zeros(len(lasso))]),
            c=c,
            share=share,
        )

    def _of_kept(self, strength: float | Array, power: int) -> Array:
        """A strength of the penalty for each v_j = scale_j w_j; none for the intercept."""
        out = np.zeros(self.size)
        if np.ndim(strength) or strength:
            shape = (len(self.mean), self.problem.n_targets)
            whole = np.broadcast_to(strength, shape)[:, self.number]
            out[: len(self.kept)] = whole[self.kept] / self.scale[self.kept] ** power
        return out


def _require_ordinary(squares: Array) -> None:
    """Raise ``FloatingPointError`` if mean squares are not finite, or some may have vanished."""
    present = squares[squares != 0]
    if not ((present > 1e-230) & (present < 1e200)).all():
        raise FloatingPointError("the squares of the data are not finite, or vanish")


def _columns(Y: Array) -> list[Array]:
    """The targets; several quantiles of one are one array."""
    first = np.ascontiguousarray(Y[:, 0])
    if Y.strides[1] == 0:
        return [first] * Y.shape[1]
    rest = [np.ascontiguousarray(Y[:, j]) for j in range(1, Y.shape[1])]
    return [first, *(first if np.array_equal(y, first) else y for y in rest)]


def _independent(A: Array) -> Indices:
    """Columns that are independent, as many as there are."""
    gram = A.T @ A
    _, _, rank, _ = lapack.dpstrf(gram, tol=_DOUBTFUL**2 * float(gram.diagonal().max()))
    if rank == A.shape[1]:
        return np.arange(rank)
    # All columns have the same norm: earlier ones go first, or rounding would choose.
    A = A * np.linspace(1.0, 0.9, A.shape[1])
    R, order = qr(A, mode="r", pivoting=True, check_finite=False)
    size = np.abs(R.diagonal())
    rank = int(np.count_nonzero(size > _DEPENDENT * size.max(initial=0.0)))
    return order[:rank]


# Rows by which is judged how far the nearest ones reach, and how many times more than asked for
# may be within that.
_JUDGED, _ABOUT = 16384, 1.5


class Cut(NamedTuple):
    """Which rows are near their kinks.

    Attributes
    ----------
    rows : array of int
    slopes : array of shape (n,)
        Derivatives of the losses of all other rows, times their weights.
    piece : array of shape (n,)
        The straight piece that each row is on.
    width : float
        Distance of the last of the rows from its kink.
    """

    rows: Indices
    slopes: Array
    piece: NDArray[np.int8]
    width: float

    @classmethod
    def around(cls, source: Source, z: Array, count: int) -> Cut:
        """The rows whose kinks are nearest to their scores."""
        piece, distance, there = pieces(z, source.target, np.array(source.loss.kinks))
        rows = _nearest(piece, distance, there, count)
        slopes = source.weigh(_slopes(source, z, piece))
        slopes[rows] = 0.0
        return cls(rows, slopes, piece, float(distance[rows].max()))


class Band:
    """The rows of a cut, and the function that they and all others make.

    Parameters
    ----------
    source : Source
    cut : Cut
    beside : array of shape (p,)
        The sum of a_i times the slopes of the cut.

    Attributes
    ----------
    rows, slopes
        As in the cut.
    width : float
    program : Program
    """

    def __init__(self, source: Source, cut: Cut, beside: Array) -> None:
        self.source, self._beside = source, beside
        self.rows, self.slopes, self._piece = cut.rows, cut.slopes, cut.piece
        self.width, self._most = max(cut.width, 1e-300), max(len(cut.rows), 1000)
        self.program: Program = source.program(source.gather(cut.rows), cut.rows, beside)

    def around(self, z: Array, count: int) -> Band:
        """The band at other scores, from the few rows whose slopes are not the same."""
        cut = Cut.around(self.source, z, count)
        change = cut.slopes - self.slopes
        beside = self._beside + self.program.A.T @ change[self.rows]
        change[self.rows] = 0.0
        others = np.flatnonzero(change)
        if len(others):
            beside = beside + self.source.gather(others).T @ change[others]
        return Band(self.source, cut, beside)

    def changed(self, z: Array) -> Indices:
        """Rows beside that are on another piece than the one their slope is of."""
        piece, _, _ = pieces(z, self.source.target, np.array(self.source.loss.kinks))
        piece[self.rows] = self._piece[self.rows]
        moved = np.flatnonzero(piece != self._piece)
        # By rounding a row may be on either side of its kink.
        y, z, piece = self.source.target[moved], z[moved], self._piece[moved]
        kinks = np.array([-np.inf, *self.source.loss.kinks, np.inf])
        noise = 1e-13 * (np.abs(z) + np.abs(y))
        low, high = kinks[piece] - noise, kinks[piece + 1] + noise
        return moved[(z - y < low) | (z - y > high)]

    def join(self, more: Indices) -> bool:
        """Treat more rows one by one; False if there are too many for this band to be right."""
        if len(more) > self._most:
            return False
        A = self.source.gather(more)
        self._beside = self._beside - A.T @ self.slopes[more]
        self.slopes[more] = 0.0
        self.rows = np.concatenate([self.rows, more])
        A = np.concatenate([self.program.A, A])
        self.program = self.source.program(A, self.rows, self._beside)
        return True


def _slopes(source: Source, z: Array, piece: NDArray[np.int8]) -> Array:
    """Derivatives of the losses of all rows."""
    loss = source.loss
    if "margins" in loss.capabilities:
        return loss.gradient(source.target, z)
    return (loss.first_slope + np.cumsum([0.0, *loss.jumps]))[piece]


def _nearest(
    piece: NDArray[np.int8], distance: Array, there: NDArray[np.intp], count: int
) -> Indices:
    """The rows nearest to their kinks, about as many as asked for, in order.

    As many from each straight piece as there are: on the rare side of an extreme quantile all rows
    matter, however far they are.
    """
    there = there[: np.flatnonzero(there)[-1] + 1]
    share = count // len(there)
    most = share + count - int(np.minimum(there, share).sum())
    rows = np.flatnonzero(distance <= _reaches(piece, distance, there, most)[piece])
    if len(rows) <= _ABOUT * count:
        return rows
    # Many rows at one distance.
    chosen = []
    for number in range(len(there)):
        own = np.flatnonzero(piece == number)
        if len(own) > most:
            own = own[np.argpartition(distance[own], most)[:most]]
        chosen.append(own)
    return np.sort(np.concatenate(chosen))


def _reaches(piece: NDArray[np.int8], distance: Array, there: NDArray[np.intp], most: int) -> Array:
    """For each piece the distance within which so many of its rows are, judged by some of them."""
    reaches = np.full(len(there), np.inf)
    step = max(1, len(piece) // _JUDGED)
    for number in np.flatnonzero(there > most):
        own = distance[::step][piece[::step] == number]
        place = len(own) * most // int(there[number])
        if place < len(own):
            reaches[number] = np.partition(own, place)[place]
    return reaches
