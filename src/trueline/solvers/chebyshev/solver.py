r"""The smallest largest error, exactly: exchange of rows.

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
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.special.maximum import certify_maximum
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import CALL, Cost, Facts, Monitor, Options, Solver, gram_seconds
from trueline.solvers.chebyshev.face import Answer, Face, working_rows
from trueline.solvers.chebyshev.rows import Rows, counted
from trueline.wording import counted as number_of

__all__ = ["Exchange", "is_close"]

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
