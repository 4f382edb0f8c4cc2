r"""The smallest largest error, exactly: exchange of rows.

    minimise over w, b     max_i abs(y_i - x_i.w - b)

Few rows decide: p + 1 of them for p coefficients (with the intercept) carry the solution. So

1. least squares shows which rows err most: some hundreds of them are the working rows;
2. on these a reference is exchanged until it is optimal
   (:mod:`trueline.solvers.exchange.reference`), which takes microseconds a step;
3. one pass over the data adds the rows that err by more than the level; if there are none, the
   level is a lower bound that is reached, and its multipliers prove it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq, qr

from trueline.certificates.base import Certificate
from trueline.certificates.maximum import certify_maximum
from trueline.design import Design
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Cost, Facts, Options, Solver
from trueline.solvers.costs import CALL, gram_seconds
from trueline.solvers.exchange.reference import Reference
from trueline.solvers.exchange.rows import Rows, counted
from trueline.solvers.loop import Monitor
from trueline.wording import counted as number_of

__all__ = ["Exchange", "is_close"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
_UNDERFLOW = 1e-280
# An inverse of so many rows and columns is too many numbers.
_MOST_COLUMNS = 4000
# Working rows at first and joining in a round, per coordinate; measured flat around these.
_FIRST, _MORE = 8, 4
_FEWEST = 200
# Directions that working rows determine less than this are looked for in all rows.
_WEAK = 1e-6
# A gap of more than this part of the objective is no exact solution.
_CLOSE = 1e-9


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


class Exchange(Solver):
    """Single exchange on working rows, for the maximum error."""

    name = "exchange"
    title = "exchange of single rows until none errs more than the reference"
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
        rows = min(facts.n, max(_FEWEST, _FIRST * p))
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
            found.append(_solve_target(source, design, target[:, t]))
            sources.append(source)
        W = np.stack([one.w for one in found], axis=1)
        b = np.array([one.b for one in found])
        rows, u = joined([(one.rows, one.multipliers) for one in found])
        spread = (sources[0].mean, sources[0].scale)
        certificate = certify_maximum(problem, W, b, places[rows], u, spread)
        exchanges = sum(one.exchanges for one in found)
        rounds, working = sum(one.rounds for one in found), max(one.working for one in found)
        status = Status.SOLVED if is_close(problem, certificate, _CLOSE) else Status.STALLED
        return Solution(
            W,
            b,
            status,
            self.name,
            n_iter=max(1, exchanges),
            proof=certificate,
            trace=monitor.trace,
            notes=[
                f"{number_of(exchanges, 'exchange')} of rows in {number_of(rounds, 'round')}",
                f"{number_of(working, 'row')} of {len(target)} treated one by one",
            ],
            extra={"rows": places[rows], "dual": u},
        )


def is_close(problem: Problem, certificate: Certificate, tolerance: float) -> bool:
    """Whether the gap is a small part of the objective, or of what targets round by."""
    if certificate.gap <= tolerance * certificate.objective + _UNDERFLOW:
        return True
    size = float((problem.design.column_largest() @ np.abs(certificate.coef)).sum())
    size += float(np.abs(certificate.intercept).sum() + np.abs(problem.target).max(initial=0.0))
    return certificate.gap <= 64 * _EPS * size


def joined(parts: list[tuple[Indices, Array]]) -> tuple[Indices, Array]:
    """The rows of all targets, and a column of multipliers for each."""
    rows = np.unique(np.concatenate([own for own, _ in parts]))
    u = np.zeros((len(rows), len(parts)))
    for t, (own, multipliers) in enumerate(parts):
        u[np.searchsorted(rows, own), t] = multipliers
    return rows, u


def _solve_target(source: Rows, design: Design, y: Array) -> Answer:
    n, p = design.shape[0], source.size
    if p >= n:
        return _interpolation(source, design, y)
    if p == 0:
        return _nothing_to_fit(source, y)
    error = np.abs(source.residual)
    largest = float(error.max())
    # What the residuals were rounded by when they were formed is part of the data from here on.
    noise = 64 * _EPS * largest
    working, Q = _first_rows(source, error, min(n, max(_FEWEST, _FIRST * p)))
    reference = Reference(Q, source.residual[working], _start(Q, source.residual[working]))
    rounds, more = 0, max(_FEWEST // 2, _MORE * p)
    is_new = np.ones(n, dtype=bool)
    is_new[working] = False
    while True:
        rounds += 1
        finished = reference.optimise(noise, 50 * (p + 1) + 10_000)
        reference.polish()
        error = np.abs(source.errors(reference.v))
        beyond = np.flatnonzero((error > reference.level + 4 * noise) & is_new)
        if not len(beyond) or not finished:
            break
        if len(beyond) > more:
            beyond = beyond[np.argpartition(-error[beyond], more - 1)[:more]]
        is_new[beyond] = False
        working = np.concatenate([working, beyond])
        reference.Q = np.concatenate([reference.Q, source.gather(beyond)])
        reference.r = source.residual[working]
    w, b = source.coefficients(reference.v)
    carried = reference.multipliers > 0
    if reference.level <= 16 * _EPS * float(np.abs(y).max()):
        carried[:] = False  # a perfect fit: what is left of errors is rounding
    return Answer(
        w,
        b,
        working[reference.rows[carried]],
        (reference.signs * reference.multipliers)[carried],
        reference.exchanges,
        rounds,
        len(working),
    )


def _interpolation(source: Rows, design: Design, y: Array) -> Answer:
    """As many independent coordinates as rows: no error is left; the smallest such coefficients."""
    varying = np.flatnonzero(source.scale > 64 * _EPS * np.abs(source.mean))
    X = design.toarray()[:, varying]
    A = (X - source.mean[varying]) / source.scale[varying]
    level = float(y.mean()) if source.fit_intercept else 0.0
    w = np.zeros(design.shape[1])
    if A.size:
        for _ in range(2):  # the second round removes the rounding of the first
            left = y - level - A @ (w[varying] * source.scale[varying])
            w[varying] += lstsq(A, left, check_finite=False)[0] / source.scale[varying]
    b = level - float(source.mean @ w)
    return Answer(w, b if source.fit_intercept else 0.0, np.empty(0, np.intp), np.empty(0))


def _nothing_to_fit(source: Rows, y: Array) -> Answer:
    """No column varies and there is no intercept: the errors are the targets."""
    most = int(np.abs(y).argmax())
    sign = float(np.sign(y[most]))
    return Answer(np.zeros(len(source.mean)), 0.0, np.array([most]), np.array([sign]))


def _first_rows(source: Rows, error: Array, count: int) -> tuple[Indices, Array]:
    """The rows that err most, and as many more as are needed to determine all coordinates."""
    n, p = len(error), source.size
    rows = np.arange(n) if count >= n else np.argpartition(-error, count - 1)[:count]
    rows = np.sort(rows)
    Q = source.gather(rows)
    while len(rows) < n:
        # The rows of V^T of weak singular values: directions that these rows hardly see.
        _, size, Vt = np.linalg.svd(Q, full_matrices=True)
        size = np.concatenate([size, np.zeros(p - len(size))])
        weak = Vt[size <= _WEAK * size[0]]
        if not len(weak):
            break
        seen = np.abs(source.products(weak.T))
        seen[rows] = 0.0
        extra = np.unique(seen.argmax(axis=0))
        rows = np.concatenate([rows, extra])
        Q = np.concatenate([Q, source.gather(extra)])
    return rows, Q


def _start(Q: Array, r: Array) -> Indices:
    """A first reference: independent rows, and the one that errs most if they do not err."""
    p = Q.shape[1]
    first = qr(Q.T, mode="r", pivoting=True, check_finite=False)[1][:p]
    error = np.abs(r - Q @ np.linalg.solve(Q[first], r[first]))
    error[first] = -1.0
    return np.append(first, int(error.argmax()))
