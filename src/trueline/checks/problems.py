r"""Small problems whose exact answers are known because they were planted.

The optimum of sum_i s_i loss(y_i, x_i.w + b) + p(w) is where some u fulfils

    u_i = l_i'(z_i),     -X^T (s u) is a subgradient of p at w,
    sum_i s_i u_i = 0    (with an intercept).

So w, b and a subgradient of p at w are chosen first, then u, and the targets follow from them. The
columns are those of a Hadamard matrix H, mixed by an integer matrix with an integer inverse: every
number is a small dyadic fraction, nothing rounds, and the answers are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from trueline.design import as_design
from trueline.losses import (
    Absolute,
    CrammerSinger,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    MaximumError,
    OrderedQuantiles,
    Quantile,
    Softmax,
    Squared,
)
from trueline.penalties import (
    L1,
    L2,
    ElasticNet,
    Group,
    MultiTask,
    NonNegative,
    NoPenalty,
    Penalty,
)
from trueline.problem import Problem

__all__ = ["KnownProblem", "known_problems", "plant"]

Array = NDArray[np.float64]


def _hadamard(n: int) -> Array:
    """Orthogonal columns of +1 and -1, the first all +1; n a power of two."""
    H = np.ones((1, 1))
    while len(H) < n:
        H = np.block([[H, H], [H, -H]])
    return H


_H = _hadamard(16)
# Integer, with an integer inverse: unit triangular.
_MIX = np.array([[1.0, 2.0, -1.0], [0.0, 1.0, 3.0], [0.0, 0.0, 1.0]])
_WEIGHTS = np.tile([0.5, 1.0, 2.0, 4.0], 4)


@dataclass(frozen=True)
class KnownProblem:
    """A problem and its answer.

    Attributes
    ----------
    name : str
    X : array or sparse array
    problem : Problem
    coef, intercept : arrays of shape (d, k) and (k,)
        A minimiser, exact.
    dual : array of shape (n, k)
        The u of the module's text, which proves it.
    """

    name: str
    X: Any
    problem: Problem
    coef: Array
    intercept: Array
    dual: Array

    def __str__(self) -> str:
        return self.name

    @property
    def optimum(self) -> float:
        """The least value of the objective."""
        return self.problem.objective(self.coef, self.intercept)

    @property
    def scale(self) -> float:
        """The objective of the best constant model: what tolerances are relative to.

        The zero model without an intercept.
        """
        problem = self.problem
        best = np.zeros(problem.n_targets)
        if problem.fit_intercept:
            weights = np.ones(problem.n_samples) if problem.weights is None else problem.weights
            best = np.average(problem.target, axis=0, weights=weights)
        return problem.objective(np.zeros(self.coef.shape), best)

    @cached_property
    def bending(self) -> float:
        """mu with P(w) - P* >= mu/2 ||w - w*||^2 for the minimisers w*, 0 if not known."""
        problem = self.problem
        if "quadratic" not in problem.loss.capabilities:
            return 0.0
        X = problem.design.toarray()
        factor = np.ones(len(X)) if problem.weights is None else problem.weights
        if problem.fit_intercept:
            X = X - factor @ X / factor.sum()
        gram = (factor[:, None] * X).T @ X
        least = min(
            np.linalg.eigvalsh(gram + np.diag(curvature))[0]
            for curvature in np.broadcast_to(problem.penalty.curvature, self.coef.shape).T
        )
        return float(least) if least > 1e-9 * np.trace(gram) else 0.0


def plant(
    name: str,
    X: ArrayLike,
    rest: Array,
    penalty: Penalty,
    W: Array,
    subgradient: Array,
    loss: type[Loss] = Squared,
    *,
    intercept: ArrayLike | None = 1.5,
    noise: float = 1.0,
    weights: Array | None = None,
    wrap: Callable[[Array], Any] = np.asarray,
) -> KnownProblem:
    """A problem with the given answer.

    Parameters
    ----------
    name : str
    X : array of shape (n, d)
        Whose pseudo-inverse consists of dyadic fractions.
    rest : array of shape (n, m)
        Columns orthogonal to those of X and to the constant: directions of the residuals.
    penalty : Penalty
    W : array of shape (d, k)
        The answer.
    subgradient : array of shape (d, k)
        Of the penalty, at the answer.
    loss : {Squared, Huber, MaximumError}
    intercept : float or None
        None for a problem without one.
    noise : float
        Size of the residuals that no coefficients can explain.
    weights : array of shape (n,), optional
    wrap : callable
        Makes a sparse or a single-precision matrix of X.
    """
    X = np.asarray(X, dtype=float)
    k = W.shape[1]
    centred = X - X.mean(axis=0) if intercept is not None else X
    dual_basis = np.linalg.pinv(centred).T
    dual_basis = np.round(dual_basis * 2.0**20) / 2.0**20  # dyadic by construction
    amounts = noise * (1.0 + np.arange(rest.shape[1] * k).reshape(rest.shape[1], k) % 3) / 2
    weighted = -dual_basis @ subgradient + rest @ amounts
    u = weighted if weights is None else weighted / weights[:, None]
    chosen: Loss
    if loss is Huber:
        delta = float(np.abs(u).max())
        chosen = Huber(delta=delta)
        # Beyond delta the derivative does not grow: these residuals may be as large as we like.
        residual = np.where(np.abs(u) == delta, 4 * u, u)
    elif loss is MaximumError:
        # One direction of residuals: all rows err alike, and share the multiplier.
        chosen, residual = MaximumError(), weighted
        u = np.sign(weighted) / len(X) / (1.0 if weights is None else weights[:, None])
    else:
        chosen, residual = Squared(), u
    b = np.zeros(k) if intercept is None else np.full(k, intercept)
    Y = X @ W + b - residual
    matrix = wrap(X)
    problem = Problem(as_design(matrix), Y, chosen, penalty, intercept is not None, weights)
    return KnownProblem(name, matrix, problem, W, b, u)


def _single(X: Array) -> NDArray[np.float32]:
    return X.astype(np.float32)


def _squared_problems() -> list[KnownProblem]:
    """Least squares without a penalty, in every shape that a solver may meet."""
    X, rest = _H[:, 1:4] @ _MIX, _H[:, 8:11]
    none, zero = NoPenalty(), np.zeros((3, 1))
    W = np.array([[1.5], [-2.0], [0.25]])
    W3 = np.hstack([W, -2 * W, 0 * W])
    padded = np.vstack([X, 7.0 * np.ones((2, 3))])
    known = [
        plant("least squares", X, rest, none, W, zero),
        plant("least squares, no intercept", X, rest, none, W, zero, intercept=None),
        plant("least squares, weighted", X, rest, none, W, zero, weights=_WEIGHTS),
        plant("least squares, columns far from zero", X + 4096.0, rest, none, W, zero),
        plant("least squares, three targets", X, rest, none, W3, np.zeros((3, 3))),
        plant("least squares, exact fit", X, rest, none, W, zero, noise=0.0),
        plant("least squares, sparse", X, rest, none, W, zero, wrap=sp.csr_array),
        plant("least squares, single precision", X, rest, none, W, zero, wrap=_single),
        plant("least squares, one column", X[:, :1], rest, none, W[:1], zero[:1]),
    ]
    base = known[2]
    # Weight 0 is a row that is not there, whatever it says.
    absent = Problem(
        as_design(padded),
        np.vstack([base.problem.target, [[1e3], [-1e3]]]),
        Squared(),
        none,
        True,
        np.append(_WEIGHTS, [0.0, 0.0]),
    )
    dual = np.vstack([base.dual, [[0.0], [0.0]]])
    known.append(
        KnownProblem(
            "least squares, rows of weight zero", padded, absent, base.coef, base.intercept, dual
        )
    )
    return known + _undetermined_problems()


def _undetermined_problems() -> list[KnownProblem]:
    """Least squares with many answers: a copied, a constant and a zero column; more than rows."""
    H, rest = _H[:, 1:3], _H[:, 8:11]
    copied = np.column_stack([H, H[:, 0], np.ones(16), np.zeros(16)])
    W = np.array([[0.5], [-2.0], [0.5], [0.0], [0.0]])
    plain = plant("", H, rest, NoPenalty(), np.array([[1.0], [-2.0]]), np.zeros((2, 1)))
    target = plain.problem.target
    none = NoPenalty()
    wide = _hadamard(8)[:4]
    answer = np.array([[1.0], [-2.0], [0.5], [0.0], [1.0], [-2.0], [0.5], [0.0]])
    return [
        KnownProblem(
            "least squares, columns that depend on each other",
            copied,
            Problem(as_design(copied), target, Squared(), none, True),
            W,
            plain.intercept,
            plain.dual,
        ),
        KnownProblem(
            "least squares, more columns than rows",
            wide,
            Problem(as_design(wide), wide @ answer, Squared(), none, False),
            answer,
            np.zeros(1),
            np.zeros((4, 1)),
        ),
    ]


def _penalised_problems(loss: type[Loss]) -> list[KnownProblem]:
    """Every penalty, with and without the restriction to w >= 0."""
    X, rest = _H[:, 1:4] @ _MIX, _H[:, 8:11]
    W = np.array([[1.5], [-2.0], [0.0]])
    up = np.array([[1.5], [0.0], [0.25]])
    title = "Huber" if loss is Huber else "squared"
    sign, bound = np.sign(W), np.array([[0.0], [-3.0], [0.0]])
    idle = np.where(W == 0, 0.5, 0.0)  # a subgradient of abs(w) at zero
    mixed = ElasticNet(alpha=2.0, l1_ratio=0.5)

    def known(name: str, penalty: Penalty, W: Array, G: Array, **options: Any) -> KnownProblem:
        return plant(f"{title}, {name}", X, rest, penalty, W, G, loss, **options)

    return [
        known("L2", L2(4.0), W, 4 * W),
        known("L2, weighted", L2(0.5), W, 0.5 * W, weights=_WEIGHTS),
        known("L2, no intercept", L2(4.0), W, 4 * W, intercept=None),
        known("L2, sparse", L2(4.0), W, 4 * W, wrap=sp.csr_array),
        known("L2, sparse by columns", L2(4.0), W, 4 * W, wrap=sp.csc_array),
        known(
            "L2, a strength for each target",
            L2(np.array([0.5, 8.0])),
            np.hstack([W, -W]),
            np.hstack([0.5 * W, -8 * W]),
        ),
        known("L2 of strength zero", L2(0.0), W, 0 * W),
        known("L1", L1(2.0), W, 2 * (sign + idle)),
        known("L1, weighted", L1(2.0), W, 2 * (sign + idle), weights=_WEIGHTS),
        known("L1, sparse", L1(2.0), W, 2 * (sign + idle), wrap=sp.csr_array),
        known("L1, all coefficients zero", L1(2.0), 0 * W, np.array([[1.0], [-1.5], [0.5]])),
        known("elastic net", mixed, W, sign + idle + W),
        known("nonnegative", NonNegative(), up, bound),
        known("nonnegative, no intercept", NonNegative(), up, bound, intercept=None),
        known("nonnegative L2", NonNegative(L2(4.0)), up, 4 * up + bound),
        known("nonnegative L1", NonNegative(L1(2.0)), up, 2 * np.sign(up) + bound),
        known("nonnegative elastic net", NonNegative(mixed), up, np.sign(up) + up + bound),
        *_block_problems(known),
    ]


def _block_problems(known: Callable[..., KnownProblem]) -> list[KnownProblem]:
    """Norms of blocks in which one coefficient stands alone: they and their slopes are exact."""
    labels, weights = np.array([0, 1, 0]), np.array([2.0, 0.5])
    one = np.array([[1.5], [0.0], [0.0]])
    pull = np.array([[4.0], [0.75], [0.0]])  # of norm 2 x 2, and within 2 x 0.5
    group = Group(2.0, labels, weights)
    ridged = Group(2.0, labels, weights, l2=2.0)
    two = np.array([[1.5, 0.0], [0.0, -2.0], [0.0, 0.0]])
    unit = np.array([[1.0, 0.0], [0.0, -1.0], [0.0, 0.5]])
    return [
        known("groups", group, one, pull),
        known("groups, weighted", group, one, pull, weights=_WEIGHTS),
        known("groups, no intercept", group, one, pull, intercept=None),
        known("groups, sparse", group, one, pull, wrap=sp.csr_array),
        known("groups, all coefficients zero", group, 0 * one, 0.5 * pull),
        known("groups, two targets", group, np.hstack([one, -one]), np.hstack([pull, -pull])),
        known("groups and L2", ridged, one, pull + 2 * one),
        known("coupled targets", MultiTask(2.0), two, 2 * unit),
        known("coupled targets, weighted", MultiTask(2.0), two, 2 * unit, weights=_WEIGHTS),
        known("coupled targets, sparse", MultiTask(2.0), two, 2 * unit, wrap=sp.csc_array),
        known("coupled targets and L2", MultiTask(4.0, 0.5), two, 2 * unit + 2 * two),
    ]


def _largest_errors() -> list[KnownProblem]:
    """The maximum error, where all rows are on the edges of the band."""
    X, rest = _H[:, 1:4] @ _MIX, _H[:, 8:9]
    W = np.array([[1.5], [-2.0], [0.25]])

    def known(name: str, W: Array = W, **options: Any) -> KnownProblem:
        return plant(name, X, rest, NoPenalty(), W, 0 * W, MaximumError, **options)

    return [
        known("largest error"),
        known("largest error, no intercept", intercept=None),
        known("largest error, weighted", weights=_WEIGHTS),
        known("largest error, two targets", np.hstack([W, -2 * W])),
        known("largest error, exact fit", noise=0.0),
        known("largest error, sparse", wrap=sp.csr_array),
        known("largest error, single precision", wrap=_single),
    ]


def plant_straight(
    name: str,
    penalty: Penalty,
    W: Array,
    subgradient: Array,
    loss: Loss,
    *,
    intercept: float | None = 1.5,
    weights: Array | None = None,
    wrap: Callable[[Array], Any] = np.asarray,
) -> KnownProblem:
    """A problem with the given answer, for a loss made of straight lines.

    Rows whose u is inside its interval lie on a kink. Pairs of rows off their kinks are added, one
    on each side, whose slopes cancel.
    """
    X, rest, k = _H[:, 1:4] @ _MIX, _H[:, 8:11], W.shape[1]
    basis = np.round(np.linalg.pinv(X).T * 2.0**20) / 2.0**20
    weighted = -basis @ subgradient + rest @ np.full((3, k), 0.25)
    left, right = loss.first_slope, loss.first_slope + sum(loss.jumps)
    s = np.ones(len(X)) if weights is None else weights
    # A power of two that leaves every u in the middle of its interval: nothing rounds.
    most = float(np.abs(weighted / s[:, None]).max()) / min(-left, right)
    s = s * 2.0 ** (np.ceil(np.log2(most)) + 1)
    u = weighted / s[:, None]
    edge = max(loss.kinks)
    residual = edge * np.sign(u)
    # (x, +right) and (x, left) with weights that balance.
    X = np.vstack([X, X[:2], X[:2]])
    s = np.concatenate([s, np.full(2, -left), np.full(2, right)])
    u = np.vstack([u, np.full((2, k), right), np.full((2, k), left)])
    residual = np.vstack([residual, np.full((2, k), edge + 3.0), np.full((2, k), -edge - 0.5)])
    b = np.zeros(k) if intercept is None else np.full(k, intercept)
    matrix = wrap(X)
    Y = X @ W + b - residual
    problem = Problem(as_design(matrix), Y, loss, penalty, intercept is not None, s)
    return KnownProblem(name, matrix, problem, W, b, u)


def _straight_problems(loss: Loss) -> list[KnownProblem]:
    """Every penalty that a loss made of straight lines is solved with."""
    W = np.array([[1.5], [-2.0], [0.0]])
    slope = np.sign(W) + np.where(W == 0, 0.5, 0.0)

    def known(name: str, penalty: Penalty, W: Array, G: Array, **options: Any) -> KnownProblem:
        return plant_straight(f"{loss.name}, {name}", penalty, W, G, loss, **options)

    return [
        known("no penalty", NoPenalty(), W, 0 * W),
        known("weighted", NoPenalty(), W, 0 * W, weights=_WEIGHTS),
        known("no intercept", NoPenalty(), W, 0 * W, intercept=None),
        known("two targets", NoPenalty(), np.hstack([W, -W]), np.zeros((3, 2))),
        known("sparse", NoPenalty(), W, 0 * W, wrap=sp.csr_array),
        known("single precision", NoPenalty(), W, 0 * W, wrap=_single),
        known("L1", L1(2.0), W, 2 * slope),
        known("L2", L2(4.0), W, 4 * W),
        known("L2, no intercept", L2(4.0), W, 4 * W, intercept=None),
        known("L2, no intercept, sparse", L2(4.0), W, 4 * W, intercept=None, wrap=sp.csr_array),
        known("elastic net", ElasticNet(alpha=2.0, l1_ratio=0.5), W, slope + W),
    ]


def _ordered_problems() -> list[KnownProblem]:
    """Two quantiles that are in order by themselves.

    Every row twice, once on the lower and once on the upper line: each is off the other's kink, and
    the slopes of both copies cancel.
    """
    X = np.tile(_H[:, 1:4] @ _MIX, (2, 1))
    W = np.tile(np.array([[1.5], [-2.0], [0.25]]), (1, 2))
    b = np.array([1.5, 3.5])
    low, high = np.split(X @ W[:, :1] + b, 2)
    Y = np.tile(np.vstack([low[:, :1], high[:, 1:]]), (1, 2))
    quarter = np.full((len(low), 1), 0.25)
    u = np.hstack([np.vstack([quarter, -quarter]), np.vstack([quarter, -quarter])])
    loss = OrderedQuantiles((0.25, 0.75))
    return [
        KnownProblem(
            f"ordered quantiles, {name}",
            matrix,
            Problem(as_design(matrix), Y, loss, NoPenalty()),
            W,
            b,
            u,
        )
        for name, matrix in (("dense", X), ("sparse", sp.csr_array(X)))
    ]


def plant_labels(
    name: str,
    penalty: Penalty,
    W: Array,
    subgradient: Array,
    *,
    intercept: ArrayLike | None = 0.25,
    wrap: Callable[[Array], Any] = np.asarray,
) -> KnownProblem:
    """A problem of labels: every row once with each class, and weights that make w the answer.

    With p the probabilities at w, weights p_k + r_k leave the slopes -r_k: X^T r is the subgradient
    that was asked for, and r is small enough for all weights to be positive. Logarithms round, so
    that the answer is exact up to rounding.
    """
    X = _H[:, 1:4] @ _MIX
    k = W.shape[1]
    b = (
        np.zeros(k)
        if intercept is None
        else np.resize(np.asarray(intercept), k) * np.arange(1, k + 1)
    )
    r = X @ np.linalg.solve(X.T @ X, subgradient)
    n = len(X)
    if k == 1:
        z = X @ W + b
        plus = 1.0 / (1.0 + np.exp(-z)) + r
        target, weights = np.repeat([[1.0], [-1.0]], n, axis=0), np.vstack([plus, 1 - plus])[:, 0]
        loss: Loss = Logistic()
    else:
        loss = Softmax()
        p = loss.probabilities(X @ W + b) + r
        target, weights = np.repeat(np.eye(k), n, axis=0), p.T.ravel()
    rows = wrap(np.tile(X, (max(k, 2), 1)))
    problem = Problem(as_design(rows), target, loss, penalty, intercept is not None, weights)
    dual = loss.gradient(target, problem.scores(W, b))
    return KnownProblem(name, rows, problem, W, b, dual)


def _label_problems() -> list[KnownProblem]:
    w = np.array([[0.75], [-1.0], [0.0]])
    three = np.array([[0.5, -0.25, -0.25], [0.0, 0.25, -0.25], [0.0, 0.0, 0.0]])
    return [
        plant_labels("logistic, l2", L2(0.015625), w, 0.015625 * w),
        plant_labels("logistic, l2, sparse", L2(0.015625), w, 0.015625 * w, wrap=sp.csr_array),
        plant_labels("logistic, l2, no intercept", L2(0.015625), w, 0.015625 * w, intercept=None),
        plant_labels("logistic, l1", L1(0.015625), w, 0.015625 * np.array([[1.0], [-1.0], [0.5]])),
        plant_labels(
            "logistic, elastic net",
            ElasticNet(0.03125, 0.5),
            w,
            0.015625 * np.array([[1.0], [-1.0], [0.5]]) + 0.015625 * w,
        ),
        plant_labels("softmax, l2", L2(0.015625), three, 0.015625 * three),
        plant_labels(
            "softmax, l2, no intercept", L2(0.015625), three, 0.015625 * three, intercept=None
        ),
        plant_labels(
            "softmax, l1",
            L1(0.015625),
            np.array([[0.5, -0.25, 0.0], [0.0, 0.25, -0.25], [0.0, 0.0, 0.0]]),
            0.015625 * np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [0.5, -0.5, 0.0]]),
        ),
    ]


def _class_problems() -> list[KnownProblem]:
    """One row along each axis, each of a class of its own: all margins are one, by symmetry.

    Own scores of 3/4 and others of -1/4 are the shortest that differ by one.
    """
    W, rows = np.eye(4) - 0.25, np.eye(4)
    weights = np.full(4, 2.0)

    def known(name: str, fit_intercept: bool, matrix: Any) -> KnownProblem:
        design = as_design(matrix)
        problem = Problem(design, np.eye(4), CrammerSinger(), L2(1.0), fit_intercept, weights)
        return KnownProblem(f"multiclass hinge, {name}", matrix, problem, W, np.zeros(4), -W / 2)

    return [
        known("no intercept", False, rows),
        known("intercept", True, rows),
        known("sparse", False, sp.csr_array(rows)),
    ]


def _margin_problems() -> list[KnownProblem]:
    """Two rows of each class on their margins: w = 1/2 leaves them at distance 2 of the boundary.

    Of every two rows of a class one is at z = 1 or -1, with multiplier 1/8, the other beyond.
    """
    X = np.array([[2.0], [4.0], [-2.0], [-4.0]])
    y = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    w, u = np.array([[0.5]]), np.array([[-0.125], [0.0], [0.125], [0.0]])

    def known(name: str, fit_intercept: bool, matrix: Any) -> KnownProblem:
        problem = Problem(as_design(matrix), y, Hinge(), L2(1.0), fit_intercept)
        return KnownProblem(f"hinge, {name}", matrix, problem, w, np.zeros(1), u)

    return [known("intercept", True, X), known("sparse", True, sp.csr_array(X))]


def known_problems() -> list[KnownProblem]:
    """The table of problems with exactly known answers.

    Examples
    --------
    >>> from trueline.checks import known_problems
    >>> first = known_problems()[0]
    >>> first.name, first.coef.ravel().tolist(), first.intercept.tolist()
    ('least squares', [1.5, -2.0, 0.25], [1.5])
    """
    X, rest = _H[:, 1:4] @ _MIX, _H[:, 8:11]
    W, zero = np.array([[1.5], [-2.0], [0.25]]), np.zeros((3, 1))
    robust = plant("Huber", X, rest, NoPenalty(), W, zero, Huber)
    return [
        *_squared_problems(),
        *_penalised_problems(Squared),
        robust,
        *_penalised_problems(Huber),
        *_largest_errors(),
        *_ordered_problems(),
        *_label_problems(),
        *_class_problems(),
        *_margin_problems(),
        *_straight_problems(Absolute()),
        *_straight_problems(Quantile(0.25)),
        *_straight_problems(EpsilonInsensitive(0.5)),
    ]
