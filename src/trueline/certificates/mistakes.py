r"""What is proven about a perceptron: training errors counted, and mistakes bounded.

**Theorem** (Novikoff, "On convergence proofs on perceptrons", Symposium on the Mathematical Theory
of Automata, 1962). Let steps c_1, c_2, ... add c_k y_k x_k to weights that start at zero, each for
a row with y_k w.x_k <= beta. If a unit vector u has y_i u.x_i >= gamma > 0 for all rows, and
||x_i|| <= R, then with c <= c_k <= C the number of updates is at most

    (C R^2 + 2 beta) / (c gamma^2);      for c = C = 1, beta = 0:  (R / gamma)^2.

*Proof.* Every update adds c_k y_k u.x_k >= c_k gamma to u.w, so u.w >= gamma S with S the sum of
the steps; and adds 2 c_k y_k w.x_k + c_k^2 ||x_k||^2 <= c_k (2 beta + C R^2) to ||w||^2. As
u.w <= ||w||, gamma^2 S^2 <= S (2 beta + C R^2); and S is at least c times the number of updates.

If several rows are added at once (the batch form), C is the largest sum of steps added at once, and
the same two inequalities hold. An intercept with step h is a constant column of value sqrt(h): R
and gamma are those of the rows with this column.

**Several classes.** The direct rule adds c x to the right class and subtracts it from a wrong one
whose score is not lower by more than beta. The matrix of weights is then one long vector, the added
matrix has squared norm 2 c^2 ||x||^2, and with a matrix U of norm 1 whose score of the right class
exceeds all others by gamma the same proof gives (2 C R^2 + 2 beta) / (c gamma^2). (Crammer and
Singer, JMLR 3, 2003.) In the one-vs-rest scheme each class has the bound of its own two-class
problem.

The witness is the separator U, which may be any, and the number of updates by each row. The sum of
these updates must be the weights the run ended with: a wrong number of mistakes would show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.losses.classification.zero_one import ZeroOne
from trueline.penalties import NoPenalty

__all__ = ["Run", "certify_mistakes", "margins_of"]

Array = NDArray[np.float64]

#: Rows, labels and the step of the intercept; to weights and intercepts of largest margin.
Widest = Callable[[Any, Array, float], tuple[Array, Array] | None]

_EPS = float(np.finfo(np.float64).eps)
_ROWS = 4096


@dataclass(frozen=True)
class Run:
    """What a run of the perceptron from zero did.

    Attributes
    ----------
    counts : array of int, of shape (n, k)
        Updates by each row: for each class's own problem, or against each class if ``direct``.
    last, last_intercept : arrays of shape (d, k) and (k,)
        The weights it ended with.
    rate : float
    threshold : float
        beta.
    intercept_step : float
    largest : array of shape (k,)
        Largest sum of steps added at once; zero where rows were added one by one.
    direct : bool
    precision : float
        Spacing of the numbers in which the weights were added up.
    """

    counts: NDArray[np.int32]
    last: Array
    last_intercept: Array
    rate: float
    threshold: float
    intercept_step: float
    largest: Array
    direct: bool
    precision: float

    @classmethod
    def of(cls, witness: Mapping[str, Any]) -> Run:
        """The run that a witness tells of."""
        return cls(**{name.name: witness[name.name] for name in fields(cls)})

    @property
    def witness(self) -> dict[str, Array]:
        """The run as arrays of numbers."""
        return {name: np.asarray(value, dtype=np.float64) for name, value in vars(self).items()}


def certify_mistakes(
    X: Any,
    y: Array,
    weights: Array | None,
    class_weights: Array,
    W: Array,
    b: Array,
    fit_intercept: bool,
    run: Run | None,
    widest: Widest | None = None,
) -> Certificate:
    """Count the training errors of (W, b), and bound the mistakes of the run if it allows that.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
    y : array of shape (n,)
        Signs -1 and +1 if W has one column, else the class of each row, from 0.
    weights : array of shape (n,), optional
    class_weights : array of shape (classes,)
    W, b : arrays of shape (d, k) and (k,)
    run : Run, optional
        None if the run did not start at zero, or had a penalty: then only errors are counted.
    widest : function of rows, labels and the step of the intercept, optional
        Weights and intercepts of largest margin, or None: the better the separator, the better the
        bound.
    """
    plain = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    own = class_weights[(y > 0).astype(int) if W.shape[1] == 1 else y.astype(int)]
    s = plain * own
    z, reach = margins_of(X, y, W, b)
    errors = float(s[z <= 0].sum())
    unsure = float(s[np.abs(z) <= 4 * reach].sum())
    rounding = unsure + 4 * (len(y) + 8) * _EPS * (errors + unsure)
    witness: dict[str, Array] = {"class_weights": class_weights}
    kind = "training errors"
    if run is not None:
        candidates = [(W, b), (run.last, run.last_intercept)]
        proof = _bound(X, y, plain, own, run, candidates, widest)
        if proof is not None:
            kind, witness = "mistake bound", {**witness, **proof}
    return Certificate(
        kind=kind,
        objective=errors,
        objective_rounding=rounding,
        gap=errors + 2 * rounding,
        loss=ZeroOne(),
        penalty=NoPenalty(),
        fit_intercept=fit_intercept,
        coef=W,
        intercept=b,
        witness=witness,
    )


def margins_of(X: Any, y: Array, W: Array, b: Array) -> tuple[Array, Array]:
    """By how much each row is right, and a bound on the rounding in it.

    y (x.w + b) for one column; else the score of the right class less the highest other one.
    """
    n = X.shape[0]
    z, reach = np.empty(n), np.empty(n)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, n, _ROWS):
            part = slice(start, min(start + _ROWS, n))
            block: Any = X[part]
            block = block if sp.issparse(X) else np.asarray(block, dtype=np.float64)
            terms = int(np.diff(block.indptr).max()) if sp.issparse(block) else block.shape[1]
            scores = np.asarray(block @ W) + b
            size = (terms + 3) * _EPS * (np.asarray(abs(block) @ np.abs(W)) + np.abs(b)) + 1e-300
            if W.shape[1] == 1:
                z[part], reach[part] = y[part] * scores[:, 0], size[:, 0]
                continue
            gold = y[part].astype(int)
            at = np.arange(len(gold))
            right, right_size = scores[at, gold], size[at, gold]
            scores[at, gold] = -np.inf
            z[part] = right - scores.max(axis=1)
            reach[part] = right_size + size.max(axis=1)
    return z, reach


def _bound(
    X: Any,
    y: Array,
    plain: Array,
    own: Array,
    run: Run,
    candidates: list[tuple[Array, Array]],
    widest: Widest | None,
) -> dict[str, Array] | None:
    """The witness of a mistake bound, or None if nothing at hand separates the rows."""
    k = 1 if run.direct else run.counts.shape[1]
    columns = run.last.shape[1]
    U, u = np.zeros_like(run.last), np.zeros(columns)
    gamma, radius, bound = np.zeros(k), np.zeros(k), np.full(k, np.inf)
    for r in range(k):
        target, steps = _problem(y, plain, own, run, columns, r)
        counted = steps > 0
        of = slice(None) if run.direct or columns == 1 else slice(r, r + 1)
        Xc = X if counted.all() else X[counted]
        own_candidates = [(V[:, of], v[of]) for V, v in candidates]
        best = _separator(Xc, target[counted], own_candidates, run)
        if best is not None and widest is not None:
            wider = widest(Xc, target[counted], run.intercept_step)
            if wider is not None:
                own_candidates.append(wider)
                best = _separator(Xc, target[counted], own_candidates, run)
        square = _largest_square(Xc) + run.intercept_step
        room = 1e-12 + 4 * (U.size + 16) * _EPS  # for another order of summation
        radius[r] = np.sqrt(square) * (1 + room)
        if best is None:
            continue
        U[:, of], u[of], gamma[r] = best[0], best[1], best[2] * (1 - room)
        low, high = steps[counted].min(), max(steps[counted].max(), run.largest[r])
        twice = 2.0 if run.direct else 1.0
        bound[r] = (twice * high * radius[r] ** 2 + 2 * run.threshold) / (low * gamma[r] ** 2)
        bound[r] *= 1 + room
    if not np.isfinite(bound).any():
        return None
    updates = run.counts.sum(axis=0, dtype=np.float64)
    return {
        **run.witness,
        "separator": U,
        "separator_intercept": u,
        "mistakes": np.array([updates.sum()]) if run.direct else updates,
        "gamma": gamma,
        "radius": radius,
        "bound": bound,
    }


def _problem(
    y: Array, plain: Array, own: Array, run: Run, columns: int, r: int
) -> tuple[Array, Array]:
    """Target and steps of the rows in one problem of the run."""
    if run.direct or columns == 1:
        return y, run.rate * (plain * own)
    # One class against the rest: the rest has class weight one, as in scikit-learn.
    mine = y == r
    return np.where(mine, 1.0, -1.0), run.rate * (plain * np.where(mine, own, 1.0))


def _separator(
    X: Any, y: Array, candidates: list[tuple[Array, Array]], run: Run
) -> tuple[Array, Array, float] | None:
    """The candidate that separates the rows with the largest margin, or None if none does."""
    best = None
    for V, v in candidates:
        if run.intercept_step == 0 and v.any():
            continue
        extra = (v**2).sum() / run.intercept_step if run.intercept_step > 0 else 0.0
        norm = float(np.sqrt((V**2).sum() + extra))
        if not (0 < norm < np.inf):
            continue
        z, reach = margins_of(X, y, V, v)
        gamma = float((z - 2 * reach).min()) / norm * (1 - 1e-12)
        if gamma > 0 and (best is None or gamma > best[2]):
            best = V, v, gamma
    return best


def _largest_square(X: Any) -> float:
    """The largest squared norm of a row, from above."""
    if sp.issparse(X):
        squares = np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel()
    else:
        squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return float(squares.max(initial=0.0)) * (1 + (X.shape[1] + 4) * _EPS)
