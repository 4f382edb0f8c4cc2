r"""The smallest largest error, exactly: by exchange of rows, or as a linear program.

    minimise over w, b     max_i abs(y_i - x_i.w - b)

Few rows decide: p + 1 of them for p coefficients (with the intercept) carry the solution. So

1. least squares shows which rows err most: some hundreds of them are the working rows;
2. on these a reference is exchanged until it is optimal
   (:mod:`trueline.solvers.chebyshev.reference`), which takes microseconds a step;
3. one pass over the data adds the rows that err by more than the level; if there are none, the
   level is a lower bound that is reached, and its multipliers prove it;
4. where multipliers vanish, several coefficients may be optimal. The rows with multipliers err
   alike in all of them; of the other errors the largest is then minimised, and so on, until
   nothing is free: this strict solution is unique, and repeated or reordered rows change nothing
   (J. R. Rice, "Tchebycheff approximation in a compact metric space", Bull. Amer. Math. Soc. 68
   (1962) 405-410).

On a face of the optimal solutions some coordinates are free: v = origin + directions v'. At first
these are all. The rows that carry a minimum (those with multipliers) err alike in every minimum;
fixing their errors leaves the directions that are orthogonal to them, and only rows that these
directions move count there.

The linear program is solved by HiGHS,

    minimise h    such that    X w + b + h >= y,    X w + b - h <= y,    h >= 0

It shares nothing with the exchange of rows but the statement of the problem: an independent
answer to compare with. The multipliers of the two inequalities of a row are the two signs that its
own multiplier may have.

Q. Huangfu and J. A. J. Hall, "Parallelizing the dual revised simplex method", Math. Program.
Comput. 10 (2018) 119-142.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lu_factor, lu_solve, qr

from trueline.certificates.base import Certificate
from trueline.certificates.special.maximum import certify_maximum
from trueline.design import Design
from trueline.numerics.blas import singular_values, svd
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import CALL, Cost, Facts, Monitor, Options, Solver, gram_seconds
from trueline.solvers.chebyshev.reference import Reference, Rows, counted
from trueline.wording import counted as number_of

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
_UNDERFLOW = 1e-280
# An inverse of so many rows and columns is too many numbers.
_MOST_COLUMNS = 4000
# A gap of more than this part of the objective is no exact solution.
_CLOSE = 1e-9


class Exchange(Solver):
    """Single exchange on working rows, for the maximum error."""

    name = "exchange"
    title = "exchange of single rows (Remez) until no error is larger than on the reference rows"
    needs_loss = frozenset({"maximum"})
    needs_penalty = frozenset({"none"})
    is_direct = True
    proof = "maximum error"

    def refuses(self, facts: Facts) -> str | None:
        if facts.d > _MOST_COLUMNS:
            return f"inverts matrices of that size, too large for {facts.d} columns"
        return None

    def cost(self, facts: Facts) -> Cost:
        p = min(facts.d + facts.fit_intercept, facts.n)
        rows = working_rows(facts.n, p)
        steps = 5.0 * p
        flops = facts.k * steps * (2.0 * rows * p + 6.0 * p * p)
        passes = 6.0 + 4.0 * facts.k
        seconds = CALL + gram_seconds(facts) + passes * 1.5e-9 * facts.nonzeros
        seconds += facts.k * steps * 5e-5 + flops / 2e9
        return Cost(flops, passes, 8.0 * (2 * rows * p + 4 * p * p), seconds)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        design, target, places = counted(problem)
        found, sources = [], []
        for t in range(problem.n_targets):
            source = Rows.of(design, np.ascontiguousarray(target[:, t]), problem.fit_intercept)
            found.append(_solve_target(source, target[:, t]))
            sources.append(source)
        W = np.stack([one.w for one in found], axis=1)
        b = np.array([one.b for one in found])
        rows, u = joined([(one.rows, one.multipliers) for one in found])
        spread = (sources[0].mean, sources[0].scale)
        certificate = certify_maximum(problem, W, b, places[rows], u, spread)
        exchanges = sum(one.exchanges for one in found)
        rounds, working = sum(one.rounds for one in found), max(one.working for one in found)
        status = Status.SOLVED if is_close(problem, certificate, _CLOSE) else Status.STALLED
        notes = [
            f"{number_of(exchanges, 'exchange')} of rows in {number_of(rounds, 'round')}",
            f"{number_of(working, 'row')} of {len(target)} treated one by one",
        ]
        extra = {"rows": places[rows], "dual": u}
        steps = max(1, exchanges)
        return monitor.solution(certificate, status, self.name, steps, notes=notes, extra=extra)


def is_close(problem: Problem, certificate: Certificate, tolerance: float) -> bool:
    """Whether the gap is a small part of the objective, or of what targets round by."""
    if certificate.gap <= tolerance * certificate.objective + _UNDERFLOW:
        return True
    size = float((problem.design.column_largest() @ np.abs(certificate.coef)).sum())
    size += float(np.abs(certificate.intercept).sum() + np.abs(problem.target).max(initial=0.0))
    return certificate.gap <= 16 * (problem.n_features + 8) * _EPS * size


def joined(parts: list[tuple[Indices, Array]]) -> tuple[Indices, Array]:
    """The rows of all targets, and a column of multipliers for each."""
    rows = np.unique(np.concatenate([own for own, _ in parts]))
    u = np.zeros((len(rows), len(parts)))
    for t, (own, multipliers) in enumerate(parts):
        u[np.searchsorted(rows, own), t] = multipliers
    return rows, u


def _solve_target(source: Rows, y: Array) -> Answer:
    """The strict solution: face by face, until nothing is free any more."""
    n = len(y)
    most = float(np.abs(y).max())
    if source.size == 0:  # no column varies and there is no intercept: the errors are the targets
        first = int(np.abs(y).argmax())
        carried, sign = np.array([first]), np.sign(y[[first]])
        return Answer(np.zeros(len(source.mean)), 0.0, carried[sign != 0], sign[sign != 0])
    answer = Answer(np.zeros(0), 0.0, np.empty(0, dtype=np.intp), np.empty(0))
    p, every = source.size, np.ones(n, dtype=bool)
    none = np.empty(0, dtype=np.intp)
    face = Face(source, np.zeros(p), np.eye(p), every, none, none)
    while face.size:
        try:
            found = face.minimise(answer)
        except np.linalg.LinAlgError:
            break  # no rows hold the directions that are left: another solver has to go on
        face.origin = face.origin + face.directions @ found.v
        if found.level <= 16 * _EPS * most:
            break  # a perfect fit: what is left of errors is rounding
        if not len(answer.rows):
            answer.rows, answer.multipliers = found.rows, found.multipliers
        size, face = face.size, face.beyond(found.rows)
        if face.size == size:
            break  # rounding hides what these rows hold: the rest is not told apart
    answer.w, answer.b = source.coefficients(face.origin)
    return answer


# Working rows at first, some and some per coordinate, and half of the former in later rounds:
# fewer need more passes, more make every exchange dearer.
_FEWEST, _PER_COORDINATE = 200, 3
# Directions that working rows determine less than this are looked for in all rows.
_WEAK = 1e-6
# Rows that are moved by less than this (they have norms around one) are not moved.
_STILL = 1e-10


@dataclass
class Answer:
    """One target: coefficients, the rows that carry them with their multipliers, and the work."""

    w: Array
    b: float
    rows: Indices
    multipliers: Array
    exchanges: int = 0
    rounds: int = 0
    working: int = 0


class Minimum(NamedTuple):
    """Free coordinates, the largest error, and the rows that carry it with their multipliers."""

    v: Array
    level: float
    rows: Indices
    multipliers: Array


def working_rows(n: int, p: int) -> int:
    """How many rows are exchanged at first."""
    return min(n, _FEWEST + _PER_COORDINATE * p)


@dataclass
class Face:
    """Coordinates origin + directions v', and the rows that these move.

    Attributes
    ----------
    source : Rows
    origin : array of shape (p,)
    directions : array of shape (p, free)
        Orthonormal columns.
    counts : array of bool of shape (n,)
        The rows that count.
    seen : array of int
        Rows that were worked on before.
    idle : array of int
        Rows of the last reference without multipliers: independent on the face beyond.
    """

    source: Rows
    origin: Array
    directions: Array
    counts: NDArray[np.bool_]
    seen: Indices
    idle: Indices

    @property
    def size(self) -> int:
        """Number of free coordinates."""
        return self.directions.shape[1]

    def gather(self, rows: Indices) -> Array:
        """Some rows in the free coordinates."""
        return self.source.gather(rows) @ self.directions

    def errors(self, v: Array) -> Array:
        """Errors of all rows; zero for those that do not count."""
        error = self.source.errors(self.origin + self.directions @ v)
        return error if self.counts.all() else np.where(self.counts, error, 0.0)

    def beyond(self, rows: Indices) -> Face:
        """The face on which these rows err as they do now."""
        if len(rows) > self.size:  # a whole reference leaves nothing free
            nothing = self.directions[:, :0]
            none = np.zeros_like(self.counts)
            return Face(self.source, self.origin, nothing, none, self.seen, self.idle)
        _, size, Vt = svd(self.gather(rows), full_matrices=True)
        rank = int(np.count_nonzero(size > _STILL * size.max(initial=0.0)))
        directions = self.directions @ Vt[rank:].T
        # What no direction moves, no mixture of them moves, and conversely with probability one.
        mixtures = np.random.default_rng(0).standard_normal((directions.shape[1], 2))
        moved = np.abs(self.source.products(directions @ mixtures)).max(axis=1)
        counts = self.counts & (moved > _STILL)
        return Face(self.source, self.origin, directions, counts, self.seen, self.idle)

    def minimise(self, work: Answer) -> Minimum:
        """The smallest largest error on this face; the work is added to what was done before."""
        p, n = self.size, int(self.counts.sum())
        residual = self.errors(np.zeros(p))
        working, Q = self._first_rows(np.abs(residual), working_rows(n, p))
        if n <= p:
            return self._interpolation(working, Q, residual)
        # What the residuals were rounded by when they were formed is part of the data from here on.
        noise = 64 * _EPS * float(np.abs(residual).max())
        first = self._first_reference(working, Q, residual[working])
        reference = Reference(Q, residual[working], first)
        more = (_FEWEST + _PER_COORDINATE * p) // 2
        while True:
            work.rounds += 1
            finished = reference.optimise(noise, 50 * (p + 1) + 10_000)
            reference.polish()
            error = np.abs(self.errors(reference.v))
            error[working] = 0.0
            beyond = np.flatnonzero(error > reference.level + 4 * noise)
            if not len(beyond) or not finished:
                break
            if len(beyond) > more:
                beyond = beyond[np.argpartition(-error[beyond], more - 1)[:more]]
            working = np.concatenate([working, beyond])
            reference.extend(self.gather(beyond), residual[beyond])
        work.exchanges += reference.exchanges
        work.working = max(work.working, len(working))
        self.seen = working
        self.idle = working[reference.rows[reference.multipliers == 0]]
        carried = reference.multipliers > 0
        return Minimum(
            reference.v,
            reference.level,
            working[reference.rows[carried]],
            (reference.signs * reference.multipliers)[carried],
        )

    def _interpolation(self, rows: Indices, Q: Array, residual: Array) -> Minimum:
        """As many coordinates as rows: no error is left."""
        factor = lu_factor(Q, check_finite=False)
        v = lu_solve(factor, residual[rows])
        v = v + lu_solve(factor, self.errors(v)[rows])
        return Minimum(v, 0.0, np.empty(0, dtype=np.intp), np.empty(0))

    def _first_reference(self, working: Indices, Q: Array, r: Array) -> Indices:
        """Of the rows that the reference before left over, or of any that are independent."""
        first = np.flatnonzero(np.isin(working, self.idle))
        if len(first) == self.size:
            size = singular_values(Q[first])
            if size[-1] > _WEAK * size[0]:
                return _reference(Q, r, first)
        first = qr(Q.T, mode="r", pivoting=True, check_finite=False)[1][: self.size]
        return _reference(Q, r, first)

    def _first_rows(self, error: Array, count: int) -> tuple[Indices, Array]:
        """The rows that err most, and as many more as are needed to determine all coordinates."""
        candidates = np.flatnonzero(self.counts)
        rows = candidates
        if count < len(candidates):
            most = candidates[np.argpartition(-error[candidates], count - 1)[:count]]
            rows = np.union1d(most, self.seen[self.counts[self.seen]])
        Q = self.gather(rows)
        while len(rows) < len(candidates):
            # The last rows of V^T: directions that the working rows hardly see.
            _, size, Vt = svd(np.asarray(np.linalg.qr(Q, mode="r")), full_matrices=True)
            weak = Vt[size <= _WEAK * size[0]]
            if not len(weak):
                break
            seen = np.abs(self.source.products(self.directions @ weak.T))
            seen[~self.counts] = seen[rows] = 0.0
            extra = np.unique(seen.argmax(axis=0))
            rows = np.concatenate([rows, extra])
            Q = np.concatenate([Q, self.gather(extra)])
        return rows, Q


def _reference(Q: Array, r: Array, first: Indices) -> Indices:
    """A first reference: independent rows, and the one that errs most if these do not err."""
    error = np.abs(r - Q @ np.linalg.solve(Q[first], r[first]))
    error[first] = -1.0
    return np.append(first, int(error.argmax()))


# An answer whose proven gap is larger than this part of the objective is not called solved.
_CLOSE_BY_HIGHS = 1e-6
# The finest that HiGHS accepts.
_TOLERANCE = 1e-10


class MaximumProgram(Solver):
    """The linear program of the maximum error, by a solver that is not ours."""

    name = "highs_maximum"
    title = "linear program of the maximum error, by HiGHS"
    needs_loss = frozenset({"maximum"})
    needs_penalty = frozenset({"none"})
    is_direct = True
    proof = "maximum error"

    def cost(self, facts: Facts) -> Cost:
        # Measured: the square root of the rows counts the steps, each of which reads the data.
        elements = 2.0 * (facts.nonzeros + facts.n)
        seconds = CALL + 5e-3 + facts.k * elements * (4e-7 + 6e-9 * facts.n**0.5)
        return Cost(2 * elements * facts.n**0.5, facts.n**0.5, 60 * elements, seconds)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        design, target, places = counted(problem)
        found = [_solve_program(design, y, problem.fit_intercept) for y in target.T]
        W = np.stack([w for w, *_ in found], axis=1)
        b = np.array([level for _, level, *_ in found])
        rows, u = joined([(own, multipliers) for *_, own, multipliers, _ in found])
        certificate = certify_maximum(problem, W, b, places[rows], u)
        status = (
            Status.SOLVED if is_close(problem, certificate, _CLOSE_BY_HIGHS) else Status.STALLED
        )
        extra = {"rows": places[rows], "dual": u}
        return monitor.solution(
            certificate, status, self.name, max(1, sum(steps for *_, steps in found)), extra=extra
        )


def _solve_program(
    design: Design, y: Array, fit_intercept: bool
) -> tuple[Array, float, Indices, Array, int]:
    """w, b, the rows with multipliers, these, and the number of iterations."""
    from scipy.optimize import linprog

    n, d = design.shape
    # Units of powers of two change no digit; the tolerances of HiGHS are absolute.
    columns = _powers_of_two(design.column_largest())
    size = float(_powers_of_two(np.abs(y).max(keepdims=True, initial=0.0))[0])
    blocks = [sp.csr_array(block / columns) for _, block in design.blocks(4096)]
    scores = sp.hstack([sp.vstack(blocks), np.ones((n, int(fit_intercept)))])
    h = np.ones((n, 1))
    found = linprog(
        np.append(np.zeros(d + fit_intercept), 1.0),
        A_ub=sp.vstack([sp.hstack([-scores, -h]), sp.hstack([scores, -h])], format="csc"),
        b_ub=np.concatenate([-y, y]) / size,
        bounds=[(None, None)] * (d + fit_intercept) + [(0, None)],
        method="highs",
        options={
            "primal_feasibility_tolerance": _TOLERANCE,
            "dual_feasibility_tolerance": _TOLERANCE,
        },
    )
    if found.x is None:
        raise FloatingPointError(f"HiGHS found no answer: {found.message}")
    below, above = -np.asarray(found.ineqlin.marginals).reshape(2, n)
    u = below - above
    rows = np.flatnonzero(u)
    level = float(found.x[d]) * size if fit_intercept else 0.0
    return found.x[:d] * size / columns, level, rows, u[rows], int(found.nit)


def _powers_of_two(size: Array) -> Array:
    """The power of two above each magnitude; one where it is zero."""
    return np.where(size > 0, np.ldexp(1.0, np.frexp(size)[1]), 1.0)
