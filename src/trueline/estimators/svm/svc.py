"""Support vector classification, with a soft or a hard margin.

With infinite C no row may be inside the margin. The widest margin is half the distance of the
convex hulls of both classes in the kernel's space. With multipliers a of sum one in each class,
p = sum_i a_i y_i k(x_i, .) joins two points of the hulls, and at the nearest ones the machine is
f = 2 p / ||p||^2. For the linear kernel the points are found, or excluded, with a proof in exact
arithmetic (:mod:`trueline.estimators.classification.separability`); for others by steps with two
multipliers on the bounded program

    minimise  1/2 ||sum_i a_i y_i k(x_i, .)||^2   such that   a >= 0, of sum one in each class,

which always has a solution: where its value is zero up to rounding, the hulls meet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.estimators.classification.separability import REMEDY, separated
from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.estimators.svm.base import SupportVectorMachine
from trueline.estimators.svm.classifier import Pair, PairwiseClassifier
from trueline.estimators.svm.multipliers import normalised, priced
from trueline.kernels import Array, KernelSource
from trueline.solvers import DualProgram, DualSolution, filled, largest_score, levels, solve_dual

Index = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# Of the largest multiplier: smaller margins are rounding.
_NO_MARGIN = 1e-12
# The violation falls by this factor at most before the margin is looked at again.
_NEXT = 1e-2
# Steps where the margin is small: so many, or so many for each multiplier if that is more; sparse
# rows in large units took 60 for each. Where the margin is zero no number of steps is enough.
_FURTHER_STEPS, _FURTHER_STEPS_EACH = 100_000, 100
# The tolerance follows the distance of the hulls, which is known better after each round.
_ROUNDS = 30


def linear_margin(
    X: Any, source: KernelSource, signs: Index, names: Any, numbers: Index, tol: float
) -> DualSolution:
    """The hard margin of rows themselves; an error proves it where there is none."""
    best = separated(X, signs > 0, names, True, numbers)
    beta = np.zeros(len(signs))
    beta[best.support] = signs[best.support] * best.weights / (2.0 * best.margin**2)
    return on_margins(beta, signs, source, tol, 1)


def nearest_hulls(
    source: KernelSource,
    signs: Index,
    names: Any,
    tol: float,
    max_iter: int,
    cache_bytes: float,
) -> DualSolution:
    """The hard margin in the kernel's space; rows of the positive class come first."""
    n, split = len(signs), int((signs > 0).sum())
    start = np.zeros(n)
    start[0], start[split] = 1.0, -1.0
    low, high = np.where(signs > 0, 0.0, -1.0), np.where(signs > 0, 1.0, 0.0)
    program = DualProgram(np.zeros(n), low, high, start, split=split)
    reach = largest_score(source.diagonal())
    goal, steps = tol * reach, 0
    for _ in range(_ROUNDS):
        left = max_iter - steps if max_iter >= 0 else -1
        found = solve_dual(program, source, goal, left, cache_bytes)
        steps += found.n_iter
        square = float(found.beta @ found.scores)
        if not square > 8 * n * _EPS * reach:
            raise ValueError(
                f"There is no hard margin between {names[0]!s} and {names[1]!s}: in the space of "
                "the kernel their convex hulls meet, as far as double precision tells. " + REMEDY
            )
        # In units of the margin, scores are these times 2 / square.
        wanted = 0.5 * tol * square
        if found.violation <= wanted or not found.is_solved or 0 <= max_iter <= steps:
            break
        program, goal = replace(program, start=found.beta), 0.5 * wanted
    done = on_margins(2.0 * found.beta / square, signs, source, tol, steps)
    return replace(done, notes=found.notes)


def on_margins(
    beta: Array, signs: Index, source: KernelSource, tol: float, n_iter: int
) -> DualSolution:
    """Multipliers scaled such that every row is on its margin or beyond, rounding included."""
    used = np.flatnonzero(beta)
    scores = np.zeros(source.n)
    if len(used):
        rows = np.empty((len(used), source.n), dtype=source.dtype)
        source.rows(used, rows)
        scores = beta[used] @ rows.astype(np.float64, copy=False)
    # What a sum of kernel values of so many rows errs by, kernel values included.
    sizes = np.sqrt(np.abs(source.diagonal()))
    error = (len(used) + 64) * _EPS * sizes * float(sizes @ np.abs(beta))
    lowest = float((scores - error)[signs > 0].min())
    highest = float((scores + error)[signs < 0].max())
    half, middle = 0.5 * (lowest - highest), 0.5 * (lowest + highest)
    if not half > 0:
        raise ValueError(
            "The hard margin is lost in the rounding of kernel values. Standardise the columns, or "
            "take LinearSVC(C=np.inf), which computes with the columns themselves."
        )
    factor = (1.0 + 16 * _EPS) / half
    level = np.array([-factor * middle])
    beta, scores = factor * beta, factor * scores
    _, violation = levels(program_of(signs), beta, scores)
    return DualSolution(beta, scores, level, violation, n_iter, bool(violation <= tol))


def rho_of(solution: DualSolution) -> float:
    """The margin of a program whose groups have the thresholds b - rho and b + rho."""
    positive, negative = solution.level
    return 0.5 * float(negative - positive)


def largest(solution: DualSolution) -> float:
    """The largest multiplier."""
    return float(np.abs(solution.beta).max())


def program_of(signs: Index) -> DualProgram:
    """The program of an infinite C: no multiplier has an upper end."""
    y = signs.astype(np.float64)
    low, high = np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)
    return DualProgram(y, low, high, np.zeros(len(y)))


@parameters()
class SVC(PairwiseClassifier, SupportVectorMachine):
    r"""Support vector classification with a kernel: the widest margin, at a price for errors.

    Minimises over functions f of the kernel's space and intercepts b, for two classes with
    y_i = -1 or +1::

        1/2 ||f||^2 + C sum_i s_i max(0, 1 - y_i (f(x_i) + b))

    With more classes there is one such machine for each pair ("one versus one"), and the class
    that wins most pairs is predicted. The weights s_i are sample weights times class weights.

    A drop-in for ``sklearn.svm.SVC``: the same parameters, attributes, order and signs.

    Parameters
    ----------
    C : float, default=1.0
        Price of an error: the smaller, the stronger the penalty. ``np.inf`` is the hard margin: no
        row may be inside; an error says so where there is none.
    class_weight : dict or "balanced", optional
        Multiplies C for the rows of a class.
    solver : {"auto", "working_set", "textbook_smo"}, default="auto"
        "textbook_smo" takes the steps of the textbook one by one; for learning.
    trace : bool, default=False
        With "textbook_smo": keep every step in ``trace_``.

    Attributes
    ----------
    n_iter_ : array of shape (k (k - 1) / 2,)
        Steps with two multipliers, for each pair.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import SVC
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> y = ["left", "left", "right", "right"]
    >>> model = SVC(kernel="linear").fit(X, y)
    >>> model.support_, model.dual_coef_.round(3), model.coef_.round(3)
    (array([0, 2], dtype=int32), array([[-0.25,  0.25]]), array([[0.5, 0.5]]))
    >>> bool(model.verify(X, y)), round(model.certificate_.objective, 6)
    (True, 0.25)
    """

    _machine = "svc"
    _objective_text = "1/2 ||f||^2 + C sum_i s_i max(0, 1 - y_i (f(x_i) + b))"

    _: KW_ONLY
    C: float = given(1.0, "(0, inf]")

    def _boxes(self, codes: Index, weights: Array) -> Array:
        return priced(float(self.C), self.class_weight_[codes], weights)

    def _program(self, signs: Index, box: Array) -> DualProgram:
        y = signs.astype(np.float64)
        low, high = np.where(y > 0, 0.0, -box), np.where(y > 0, box, 0.0)
        return DualProgram(y, low, high, np.zeros(len(y)))

    def _solve_pair(self, pair: Pair) -> DualSolution:
        if np.isfinite(self.C):
            return super()._solve_pair(pair)
        X, rows, signs, _, source, names = pair
        if self.kernel == "linear":
            best = linear_margin(X[rows], source, signs, names, rows, self.tol)
        else:
            cache_bytes = self.cache_size * 1e6
            best = nearest_hulls(source, signs, names, self.tol, self.max_iter, cache_bytes)
        if self.solver != "textbook_smo":
            return best
        # There is a margin, so that the textbook's steps come to an end.
        found = self._solve(program_of(signs), source)
        done = on_margins(found.beta, signs, source, self.tol, found.n_iter)
        return replace(done, trace=found.trace)

    def _parameters(self) -> Mapping[str, float]:
        return {"C": float(self.C)}


@parameters()
class NuSVC(PairwiseClassifier, SupportVectorMachine):
    r"""Support vector classification that chooses its margin so that a share nu of rows errs.

    Minimises over functions f of the kernel's space, intercepts b and margins rho, for two classes
    with y_i = -1 or +1::

        1/2 ||f||^2 - nu sum_i s_i rho + sum_i s_i max(0, rho - y_i (f(x_i) + b))

    and divides the result by rho: the margin is then at 1, as that of SVC. Class weights do not
    enter, as in LIBSVM. A drop-in for ``sklearn.svm.NuSVC``.

    Parameters
    ----------
    nu : float, default=0.5
        At most this share of the rows errs or is inside the margin, at least this share supports.
    tol : float, default=1e-3
        No two multipliers may be moved against each other with a gain above this, neither before
        nor after they are divided by rho.
    class_weight : dict or "balanced", optional
        Accepted; it has no influence, as in LIBSVM.
    solver : {"auto", "working_set"}, default="auto"
    trace : bool, default=False
        Accepted; the textbook's steps are for machines with one threshold.

    Attributes
    ----------
    n_iter_ : array of shape (k (k - 1) / 2,)
        Steps with two multipliers, for each pair.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import NuSVC
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> y = ["left", "left", "right", "right"]
    >>> model = NuSVC(kernel="linear").fit(X, y)
    >>> model.predict([[-0.8, -1.0]]).tolist(), bool(model.verify(X, y))
    (['left'], True)
    """

    _machine = "nu_svc"
    _objective_text = "1/2 ||f||^2 - nu sum_i s_i rho + sum_i s_i max(0, rho - y_i (f(x_i) + b))"

    _: KW_ONLY
    nu: float = given(0.5, "(0, 1]")

    def _boxes(self, codes: Index, weights: Array) -> Array:
        return weights

    def _solve_pair(self, pair: Pair) -> DualSolution:
        """Multipliers and thresholds grow with the weights: they are solved for in units.

        What is found is divided by its margin, so that a violation of ``tol`` is one of ``tol``
        divided by the margin in the end. Where the margin is below one the steps go on.
        """
        units, size = normalised(pair.box, pair.source)
        program = self._program(pair.signs, units)
        found = self._within_margin(pair, program, self._solve(program, pair.source))
        margin = rho_of(found)
        violation = found.violation / margin if 0 < margin < 1 else found.violation
        return replace(found.times(size), violation=violation)

    def _within_margin(self, pair: Pair, program: DualProgram, found: DualSolution) -> DualSolution:
        """Further steps where the violation is above ``tol`` times the margin."""
        source = pair.source
        limit = found.n_iter + max(_FURTHER_STEPS, _FURTHER_STEPS_EACH * program.size)
        limit = limit if self.max_iter < 0 else min(limit, self.max_iter)
        while found.is_solved and found.violation > _NO_MARGIN * largest(found):
            wanted = self.tol * min(1.0, rho_of(found))
            if found.violation <= wanted:
                break
            if found.n_iter >= limit:
                return replace(found, is_solved=False)
            # A margin that violations hide comes to light step by step.
            goal = max(0.5 * wanted, _NEXT * found.violation)
            if source.dtype == np.float32:
                source = self._source(pair.X, pair.rows, math.inf)
            begun = replace(program, start=found.beta)
            further = self._solve_to(begun, source, goal, limit - found.n_iter)
            found = replace(further, n_iter=found.n_iter + further.n_iter)
        return found

    def _program(self, signs: Index, box: Array) -> DualProgram:
        split = int((signs > 0).sum())
        sums = float(box[:split].sum()), float(box[split:].sum())
        half, smaller = 0.5 * float(self.nu) * sum(sums), min(sums)
        if half > smaller:
            raise ValueError(
                f"specified nu is infeasible: with nu={self.nu} half of the multipliers of a pair "
                f"of classes must add up to {half:.6g}, and the smaller class has room for "
                f"{smaller:.6g}. Lower nu to {2 * smaller / sum(sums):.3g} or less."
            )
        zeros = np.zeros(len(box))
        start = np.concatenate([filled(box[:split], half), -filled(box[split:], half)])
        low, high = np.where(signs > 0, 0.0, -box), np.where(signs > 0, box, 0.0)
        return DualProgram(zeros, low, high, start, split=split)

    def _unscaled(self, solution: DualSolution) -> tuple[Array, float, float]:
        """The thresholds of the classes are b - rho and b + rho."""
        rho, level = rho_of(solution), 0.5 * float(solution.level.sum())
        if not rho > _NO_MARGIN * largest(solution):
            raise ValueError(
                f"With nu={self.nu} the widest margin of a pair of classes is zero: more than this "
                "share of the rows is on the wrong side of every function that is not zero. Raise "
                "nu, or use SVC."
            )
        return solution.beta / rho, level / rho, rho

    def _keep_scales(
        self, order: Index, support: Index, pairs: list[Any], unscaled: list[Any]
    ) -> None:
        """Multipliers and rho, which the proof is about."""
        self._rho = np.array([rho for _, _, rho in unscaled])
        table = np.zeros((len(pairs), len(order)))
        for number, (rows, solution) in enumerate(pairs):
            table[number, rows] = solution.beta
        self._multipliers = table[:, support]

    def _parameters(self) -> Mapping[str, float]:
        return {"nu": float(self.nu)}

    def _witness(self) -> dict[str, Any]:
        return {"scale": self._rho, "multipliers": self._multipliers}
