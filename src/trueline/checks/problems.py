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
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from trueline.checks.planted import (
    MIX,
    SIGNS,
    Array,
    KnownProblem,
    class_problems,
    hadamard,
    label_problems,
    margin_problems,
)
from trueline.design import as_design
from trueline.losses import (
    Absolute,
    EpsilonInsensitive,
    Huber,
    Loss,
    MaximumError,
    OrderedQuantiles,
    Quantile,
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

_WEIGHTS = np.tile([0.5, 1.0, 2.0, 4.0], 4)


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
    X, rest = SIGNS[:, 1:4] @ MIX, SIGNS[:, 8:11]
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
    H, rest = SIGNS[:, 1:3], SIGNS[:, 8:11]
    copied = np.column_stack([H, H[:, 0], np.ones(16), np.zeros(16)])
    W = np.array([[0.5], [-2.0], [0.5], [0.0], [0.0]])
    plain = plant("", H, rest, NoPenalty(), np.array([[1.0], [-2.0]]), np.zeros((2, 1)))
    target = plain.problem.target
    none = NoPenalty()
    wide = hadamard(8)[:4]
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
    X, rest = SIGNS[:, 1:4] @ MIX, SIGNS[:, 8:11]
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
    subgradient = np.array([[4.0], [0.75], [0.0]])  # of norm 2 x 2, and within 2 x 0.5
    group = Group(2.0, labels, weights)
    ridged = Group(2.0, labels, weights, l2=2.0)
    two = np.array([[1.5, 0.0], [0.0, -2.0], [0.0, 0.0]])
    unit = np.array([[1.0, 0.0], [0.0, -1.0], [0.0, 0.5]])
    return [
        known("groups", group, one, subgradient),
        known("groups, weighted", group, one, subgradient, weights=_WEIGHTS),
        known("groups, no intercept", group, one, subgradient, intercept=None),
        known("groups, sparse", group, one, subgradient, wrap=sp.csr_array),
        known("groups, all coefficients zero", group, 0 * one, 0.5 * subgradient),
        known(
            "groups, two targets",
            group,
            np.hstack([one, -one]),
            np.hstack([subgradient, -subgradient]),
        ),
        known("groups and L2", ridged, one, subgradient + 2 * one),
        known("coupled targets", MultiTask(2.0), two, 2 * unit),
        known("coupled targets, weighted", MultiTask(2.0), two, 2 * unit, weights=_WEIGHTS),
        known("coupled targets, sparse", MultiTask(2.0), two, 2 * unit, wrap=sp.csc_array),
        known("coupled targets and L2", MultiTask(4.0, 0.5), two, 2 * unit + 2 * two),
    ]


def _largest_errors() -> list[KnownProblem]:
    """The maximum error, where all rows are on the edges of the band."""
    X, rest = SIGNS[:, 1:4] @ MIX, SIGNS[:, 8:9]
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
    X, rest, k = SIGNS[:, 1:4] @ MIX, SIGNS[:, 8:11], W.shape[1]
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
    X = np.tile(SIGNS[:, 1:4] @ MIX, (2, 1))
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


def known_problems() -> list[KnownProblem]:
    """The table of problems with exactly known answers.

    Examples
    --------
    >>> from trueline.checks import known_problems
    >>> first = known_problems()[0]
    >>> first.name, first.coef.ravel().tolist(), first.intercept.tolist()
    ('least squares', [1.5, -2.0, 0.25], [1.5])
    """
    X, rest = SIGNS[:, 1:4] @ MIX, SIGNS[:, 8:11]
    W, zero = np.array([[1.5], [-2.0], [0.25]]), np.zeros((3, 1))
    robust = plant("Huber", X, rest, NoPenalty(), W, zero, Huber)
    return [
        *_squared_problems(),
        *_penalised_problems(Squared),
        robust,
        *_penalised_problems(Huber),
        *_largest_errors(),
        *_ordered_problems(),
        *label_problems(),
        *class_problems(),
        *margin_problems(),
        *_straight_problems(Absolute()),
        *_straight_problems(Quantile(0.25)),
        *_straight_problems(EpsilonInsensitive(0.5)),
    ]
