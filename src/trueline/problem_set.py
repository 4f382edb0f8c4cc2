r"""ProblemSet: many related problems on the same rows.

    minimise over W, b     sum_i s_i sum_t loss(y_it, x_i.W_t + b_t)  +  penalty(W)

once for every member. The rows x_i, the loss and the intercept are shared; the weights s, the
target y, the penalty and the point to start from are each member's own. A fold of a
cross-validation is a member whose held-out rows have weight zero; a path of strengths is a list of
members with the same weights and different penalties.

Members that are given the very same arrays of weights and targets (the same objects, not equal
ones) are known to differ in the penalty alone, and solvers use that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.design import Design
from trueline.losses import Loss
from trueline.moments import Moments, SharedMoments
from trueline.penalties import Penalty
from trueline.problem import Problem
from trueline.wording import Readable, counted

Array = NDArray[np.float64]


class Member(NamedTuple):
    """What one problem of a set has for itself.

    Attributes
    ----------
    target : array of shape (n, k)
        Of all rows, those of weight zero included.
    penalty : Penalty
    weights : array of shape (n,), optional
        None means one for each row; weight zero leaves a row out.
    start : pair of arrays of shape (d, k) and (k,), optional
        Coefficients and intercepts near the solution.
    rows : array of int of shape (m,), optional
        A problem about few of the rows names them; target and weights are then of these alone.
    """

    target: Array
    penalty: Penalty
    weights: Array | None = None
    start: tuple[Array, Array] | None = None
    rows: NDArray[np.intp] | None = None


@dataclass(frozen=True, repr=False)
class ProblemSet(Readable):
    """Problems that share their rows, their loss, and whether there is an intercept.

    Parameters
    ----------
    design : Design
        The matrix X, of shape (n, d).
    loss : Loss
    members : tuple of Member
    fit_intercept : bool, default=True
    shared : SharedMoments, optional
        Of the members' rows and their target; formed when a solver first asks for them.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design import as_design
    >>> from trueline.losses import Squared
    >>> from trueline.penalties import L2
    >>> from trueline.problem_set import Member, ProblemSet
    >>> y, first = np.array([[1.0], [0.0], [2.0]]), np.array([1.0, 1.0, 0.0])
    >>> members = tuple(Member(y, L2(a), s) for s in (first, None) for a in (1.0, 10.0))
    >>> problems = ProblemSet(as_design(np.eye(3)), Squared(), members)
    >>> len(problems), problems[0].n_samples, problems[3].penalty
    (4, 2, L2(alpha=10.0))
    >>> problems.paths()
    [[1, 0], [3, 2]]
    """

    design: Design
    loss: Loss
    members: tuple[Member, ...]
    fit_intercept: bool = True
    shared: SharedMoments | None = field(default=None, compare=False)
    #: The training rows that were used last; a path of strengths asks for the same ones again.
    _taken: list[tuple[Array, Design, Array | None]] = field(default_factory=list, compare=False)

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Problem]:
        return (self[number] for number in range(len(self)))

    def __str__(self) -> str:
        n, d = self.design.shape
        paths = counted(len(self.paths()), "path")
        return (
            f"ProblemSet: {counted(len(self), 'problem')} in {paths} on {counted(n, 'row')} x "
            f"{counted(d, 'column')}, {self.loss.formula}"
        )

    def __getitem__(self, number: int) -> Problem:
        """One member by itself, without the rows that have no weight in it."""
        problem, weights = self.on_all_rows(number), self.members[number].weights
        if weights is None or weights.all() or self.members[number].rows is not None:
            return problem
        taken = self._taken[0] if self._taken else None
        if taken is None or taken[0] is not weights:
            rows = np.flatnonzero(weights)
            own = weights[rows]
            taken = weights, self.design.take(rows), None if (own == 1).all() else own
            self._taken[:] = [taken]  # other threads may keep theirs
        _, design, own_weights = taken
        target = np.ascontiguousarray(problem.target[weights != 0])
        return replace(problem, design=design, target=target, weights=own_weights)

    def on_all_rows(self, number: int) -> Problem:
        """One member, with the rows that have no weight in it; only rows it names are copied."""
        member = self.members[number]
        parts = member.target, self.loss, member.penalty, self.fit_intercept, member.weights
        design = self.design if member.rows is None else self.design.take(member.rows)
        return Problem(design, *parts)

    def on_common_rows(self) -> ProblemSet:
        """The same problems, each on all rows: those that a member does not name weigh nothing."""
        if all(member.rows is None for member in self.members):
            return self
        members = tuple(_on_all(member, self.design.shape[0]) for member in self.members)
        return replace(self, members=members, shared=None, _taken=[])

    def moments(self, number: int) -> Moments:
        """The moments of the rows that one member counts."""
        member = self.members[number]
        if self.shared is not None and self.shared.target is member.target:
            return self.shared.of_fold(member.weights)
        if self.design.is_sequential:
            return Moments.from_rows(self.design, member.target, member.weights)
        problem = self[number]
        return Moments.from_rows(problem.design, problem.target, problem.weights)

    def take(self, numbers: Sequence[int]) -> ProblemSet:
        """The set of some of the members."""
        if len(numbers) == len(self):
            return self
        return replace(self, members=tuple(self.members[number] for number in numbers), _taken=[])

    def paths(self) -> list[list[int]]:
        """Members that differ in the penalty alone, the strongest penalty first.

        Along such a path each solution is a good start for the next.
        """
        found: dict[tuple[int, int], list[int]] = {}
        for number, member in enumerate(self.members):
            found.setdefault((id(member.weights), id(member.target)), []).append(number)
        strengths = [_strength(member.penalty) for member in self.members]
        return [sorted(path, key=lambda number: -strengths[number]) for path in found.values()]


def _on_all(member: Member, n: int) -> Member:
    """A member on all rows."""
    target, weights = np.repeat(member.target[:1], n, axis=0), np.zeros(n)
    rows = slice(None) if member.rows is None else member.rows
    target[rows] = member.target
    weights[rows] = 1.0 if member.weights is None else member.weights
    return member._replace(target=target, weights=weights, rows=None)


def _strength(penalty: Penalty) -> float:
    linear, curvature = penalty.linear, penalty.curvature
    if isinstance(linear, float) and isinstance(curvature, float):
        return linear + curvature
    return float(np.max(linear)) + float(np.max(curvature))
