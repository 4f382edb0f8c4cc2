"""The proof of a member of a set, worked out when somebody asks for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.choose import certify
from trueline.certificates.tangent import at_most_objective
from trueline.problem_set import ProblemSet
from trueline.solution import PathSolution, Solution, Status

__all__ = ["PendingMember", "single_solutions"]


@dataclass(frozen=True)
class PendingMember:
    """What is known of the gap of an answer, and how the proof is made.

    Parameters
    ----------
    problems : ProblemSet
    number : int
        The member that it is about.
    coef, intercept : arrays of shape (d, k) and (k,)
    most : float
        At least the gap.
    """

    problems: ProblemSet
    number: int
    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    most: float

    def bound(self) -> float:
        return self.most

    def certificate(self) -> Certificate:
        problem = self.problems[self.number]
        return at_most_objective(problem, certify(problem, self.coef, self.intercept))


def single_solutions(problems: ProblemSet, paths: list[PathSolution]) -> list[Solution]:
    """One solution for each member, whose proofs are worked out when somebody asks for them."""
    found: dict[int, Solution] = {}
    for path in paths:
        for i, number in enumerate(path.numbers):
            coef, intercept = np.ascontiguousarray(path.coefs[..., i]), path.intercepts[:, i].copy()
            gap = float(path.gaps[i])
            found[number] = Solution(
                coef,
                intercept,
                Status.CONVERGED if gap <= path.allowed else Status.STALLED,
                path.solver,
                n_iter=int(path.n_iter[i]),
                proof=PendingMember(problems, number, coef, intercept, gap),
                moments=path.moments,
                tolerance=path.allowed,
            )
    return [found[number] for number in range(len(problems))]
