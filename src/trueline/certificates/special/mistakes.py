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

**Kernels.** The theorem asks for products of rows only, and so holds for rows phi(x_i) with
k(x_i, x_j) = phi(x_i).phi(x_j), where k is positive semidefinite. A separator u = sum_j beta_j
phi(x_j) with intercept c has the scores K beta + c and the squared norm

    beta.K beta + c^2;      R^2 is the largest K_ii + 1      (without an intercept: no c, no 1).

The weights of the run are alpha_i = (updates by row i) (its step) y_i: their number cannot be
misstated. A matrix that needs delta on its diagonal to be positive semidefinite has a bound with
less room: with g the smallest of y_i times the scores, gamma^2 is to be replaced by

    (g - delta |beta|)^2 / (beta.K beta + c^2 + delta |beta|^2) - delta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.kernel import is_definite, score_error
from trueline.design import Design
from trueline.losses.hinge import ZeroOne
from trueline.penalties import NoPenalty

Array = NDArray[np.float64]

#: Rows, labels and the step of the intercept; to weights and intercepts of largest margin.
Widest = Callable[[Any, Array, float], tuple[Array, Array] | None]
#: Weights and intercepts.
Separator = tuple[Array, Array]
#: Kernel matrix, signs, whether there is an intercept; to beta and c of largest margin.
KernelWidest = Callable[[Array, Array, bool], tuple[Array, float] | None]

_EPS = float(np.finfo(np.float64).eps)
_ROWS = 4096
# Eigenvalues of larger matrices would take longer than learning.
_MOST_ROWS = 500


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
        """The run that a witness describes."""
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
    norms = _norms(X)
    z, reach = margins_of(X, y, W, b, norms)
    errors = float(s[z <= 0].sum())
    unsure = float(s[np.abs(z) <= 4 * reach].sum())
    rounding = unsure + 4 * (len(y) + 8) * _EPS * (errors + unsure)
    witness: dict[str, Array] = {"class_weights": class_weights}
    kind = "training errors"
    if run is not None:
        candidates = [(W, b)]
        if not (np.array_equal(W, run.last) and np.array_equal(b, run.last_intercept)):
            candidates.append((run.last, run.last_intercept))
        proof = _bound(X, y, plain, own, run, candidates, widest, norms)
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


def margins_of(X: Any, y: Array, W: Array, b: Array, norms: Array) -> tuple[Array, Array]:
    """By how much each row is right, and a bound on the rounding in it.

    y (x.w + b) for one column; else the score of the right class less the highest other one. With
    ``norms`` at least ||x_i||, sum_j |x_ij w_j| <= ||x_i|| ||w|| costs no pass over the rows.
    """
    n = X.shape[0]
    z, reach = np.empty(n), np.empty(n)
    with np.errstate(over="ignore", invalid="ignore"):
        for part, rows in _blocks(X):
            block: Any = rows if sp.issparse(X) else np.asarray(rows, dtype=np.float64)
            terms = int(np.diff(block.indptr).max()) if sp.issparse(block) else block.shape[1]
            scores = np.asarray(block @ W) + b
            sums = norms[part, None] * np.linalg.norm(W, axis=0) * (1 + 2 * len(W) * _EPS)
            size = (terms + 3) * _EPS * (sums + np.abs(b)) + 1e-300
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
    candidates: list[Separator],
    widest: Widest | None,
    norms: Array,
) -> dict[str, Array] | None:
    """The witness of a mistake bound, or None if nothing at hand separates the rows."""
    k, columns = 1 if run.direct else run.counts.shape[1], run.last.shape[1]
    U, u = np.zeros_like(run.last), np.zeros(columns)
    gamma, radius, bound = np.zeros(k), np.zeros(k), np.full(k, np.inf)
    room = 1e-12 + 4 * (U.size + 16) * _EPS  # for another order of summation
    with np.errstate(over="ignore", invalid="ignore"):
        scores = [] if run.direct else [np.asarray(X @ V) + v for V, v in candidates]
    for r in range(k):
        target, steps = _problem(y, plain, own, run, columns, r)
        counted = steps > 0
        of = slice(None) if run.direct or columns == 1 else slice(r, r + 1)
        # Most candidates leave a row on the wrong side, which their scores show at once.
        wrong = [bool((target * z[:, r] <= 0)[counted].any()) for z in scores]
        those = [one for number, one in enumerate(candidates) if run.direct or not wrong[number]]
        radius[r], scale = _scale(norms[counted], steps[counted], run, r, room)
        if not those and widest is None:
            continue
        rows, target = X if counted.all() else X[counted], target[counted]
        best = _widest(
            partial(_margin, rows, target, run.intercept_step, norms[counted]),
            [(V[:, of], v[of]) for V, v in those],
            widest and partial(widest, rows, target, run.intercept_step),
        )
        if best is None:
            continue
        (U[:, of], u[of]), gamma[r] = best[0], best[1] * (1 - room)
        bound[r] = scale / gamma[r] ** 2 * (1 + room)
    if not np.isfinite(bound).any():
        return None
    updates = run.counts.sum(axis=0, dtype=np.float64)
    updates = np.array([updates.sum()]) if run.direct else updates
    return {**run.witness, **_witness(U, u, updates, gamma, radius, bound)}


def _scale(norms: Array, steps: Array, run: Run, r: int, room: float) -> tuple[float, float]:
    """R, and what the bound is when divided by gamma^2."""
    largest = float(norms.max(initial=0.0)) ** 2
    radius = float(np.sqrt(largest + run.intercept_step)) * (1 + room)
    low, high = steps.min(), max(steps.max(), run.largest[r])
    wide = (2.0 if run.direct else 1.0) * high * radius**2 + 2 * run.threshold
    return radius, float(wide / low)


def open_mistakes(
    X: Any, y: Array, weights: Array | None, class_weights: Array, columns: int, run: Run
) -> list[tuple[int, float]]:
    """Of a run without a separator: the updates made, and what bounds them if divided by gamma^2.

    One pair for each problem; the parameters are those of :func:`certify_mistakes`, with the number
    of columns of W.
    """
    plain = np.ones(len(y)) if weights is None else weights
    own = class_weights[(y > 0).astype(int) if columns == 1 else y.astype(int)]
    made, norms = run.counts.sum(axis=0, dtype=np.int64), _norms(X)
    pairs = []
    for r in range(1 if run.direct else run.counts.shape[1]):
        _, steps = _problem(y, plain, own, run, columns, r)
        some = steps > 0
        updates = int(made.sum() if run.direct else made[r])
        pairs.append((updates, _scale(norms[some], steps[some], run, r, 0.0)[1]))
    return pairs


def _witness(
    U: Array, u: Array, updates: Array, gamma: Array, radius: Array, bound: Array
) -> dict[str, Array]:
    """A separator, and what is stated of each problem."""
    stated = {"mistakes": updates, "gamma": gamma, "radius": radius, "bound": bound}
    return {"separator": U, "separator_intercept": u, **stated}


def _widest(
    margin: Callable[[Any], float],
    candidates: list[Any],
    wider: Callable[[], Any] | None,
) -> tuple[Any, float] | None:
    """The separator of the largest margin; None if no candidate separates.

    Whoever asks for a wider one pays for the search, also where no candidate separates.
    """
    margins = [np.nan_to_num(margin(candidate)) for candidate in candidates]
    found = None if wider is None else wider()
    if found is not None:
        candidates, margins = [*candidates, found], [*margins, np.nan_to_num(margin(found))]
    if not max(margins, default=0.0) > 0:
        return None
    best = int(np.argmax(margins))
    return candidates[best], margins[best]


def _problem(
    y: Array, plain: Array, own: Array, run: Run, columns: int, r: int
) -> tuple[Array, Array]:
    """Target and steps of the rows in one problem of the run."""
    if run.direct or columns == 1:
        return y, run.rate * (plain * own)
    # One class against the rest: the rest has class weight one, as in scikit-learn.
    mine = y == r
    return np.where(mine, 1.0, -1.0), run.rate * (plain * np.where(mine, own, 1.0))


def _margin(X: Any, y: Array, step: float, norms: Array, separator: Separator) -> float:
    """The margin of weights and intercepts, from below; not positive if they separate nothing."""
    V, v = separator
    if step == 0 and v.any():
        return 0.0
    norm = float(np.sqrt((V**2).sum() + ((v**2).sum() / step if step > 0 else 0.0)))
    if not 0 < norm < np.inf:
        return 0.0
    z, reach = margins_of(X, y, V, v, norms)
    return float((z - 2 * reach).min()) / norm * (1 - 1e-12)


def _blocks(X: Any) -> Iterator[tuple[slice, Any]]:
    if isinstance(X, Design):
        yield from X.blocks(_ROWS)
        return
    for start in range(0, X.shape[0], _ROWS):
        part = slice(start, min(start + _ROWS, X.shape[0]))
        yield part, X[part]


def _norms(X: Any) -> Array:
    """At least the norm of each row."""
    if isinstance(X, Design):
        squares = X.row_squares(None)
    elif sp.issparse(X):
        squared = X.data.astype(np.float64) ** 2
        squares = np.asarray(type(X)((squared, X.indices, X.indptr), X.shape).sum(axis=1))
    else:
        squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return np.sqrt(squares.ravel()) * (1 + (X.shape[1] + 4) * _EPS)


def bound_kernel_mistakes(
    certificate: Certificate,
    K: Array,
    y: Array,
    weights: Array | None,
    counts: NDArray[np.int32],
    rate: float,
    threshold: float,
    recipe: Mapping[str, Any],
    X: Any,
    widest: KernelWidest | None = None,
) -> Certificate:
    """Add the mistake bound to counted training errors, if something at hand separates the rows.

    Parameters
    ----------
    certificate : Certificate
        Of kind "training errors": ``coef`` is alpha of shape (n, k).
    K : array of shape (n, n)
    y : array of shape (n,)
        Signs if k is 1, else classes from 0.
    counts : array of int, of shape (n, k)
        Updates by each row.
    recipe : mapping
        How the matrix is computed from the rows.
    X : array or sparse matrix of shape (n, d)
    widest : callable, optional
        A separator of larger margin than that of the run.
    """
    n, k = certificate.coef.shape
    delta, units = _shift(recipe, K), 8.0 * (n + 32) * _EPS
    steps = rate * (np.ones(n) if weights is None else weights)
    taken = steps > 0
    own = np.abs(np.diagonal(K))[:, None]
    own = own + 2 * score_error(recipe, X, np.ones(1), own)
    square = float(own[taken].max(initial=0.0)) + float(certificate.fit_intercept)
    if not (np.isfinite(delta) and 0 < square < np.inf):
        return certificate
    radius = np.sqrt(square) * (1 + 1e-12 + units)
    wide = steps[taken].max() * radius**2 + 2 * threshold

    def margin(signs: Array, candidate: tuple[Array, float]) -> float:
        size = np.abs(candidate[0])
        carried = (np.abs(K) @ size)[:, None]
        error = 2 * score_error(recipe, X, np.array([size.sum()]), carried) + units * carried
        constant = certificate.fit_intercept
        return _kernel_margin(K, signs, taken, candidate, constant, error[:, 0], delta)

    U, u = np.zeros((n, k)), np.zeros(k)
    gamma, bound = np.zeros(k), np.full(k, np.inf)
    for r in range(k):
        signs = y if k == 1 else np.where(y == r, 1.0, -1.0)
        wider = widest and partial(widest, K, signs, certificate.fit_intercept)
        last = certificate.coef[:, r], float(certificate.intercept[r])
        best = _widest(partial(margin, signs), [last], wider if taken.all() else None)
        if best is None:
            continue
        (U[:, r], u[r]), gamma[r] = best
        room = gamma[r] ** 2 - delta
        if room > 0:
            bound[r] = wide / (steps[taken].min() * room) * (1 + 1e-12 + units)
    if not np.isfinite(bound).any():
        return certificate
    updates = counts.sum(axis=0, dtype=np.float64)
    witness = {
        "counts": counts.astype(np.float64),
        "rate": np.array(rate),
        "threshold": np.array(threshold),
        **_witness(U, u, updates, gamma, np.full(k, radius), bound),
    }
    kind = "kernel mistake bound"
    return replace(certificate, kind=kind, witness={**certificate.witness, **witness})


def _shift(recipe: Mapping[str, Any], K: Array) -> float:
    """What makes the matrix positive semidefinite; infinite if not computed."""
    if is_definite(recipe):
        return 0.0
    if len(K) > _MOST_ROWS:
        return np.inf
    lowest = float(np.linalg.eigvalsh((K + K.T) / 2)[0])
    return 2 * max(-lowest, 0.0) + 16 * len(K) * _EPS * float(np.linalg.norm(K))


def _kernel_margin(
    K: Array,
    y: Array,
    taken: NDArray[np.bool_],
    candidate: tuple[Array, float],
    constant: bool,
    error: Array,
    delta: float,
) -> float:
    """The margin of a separator, from below; not positive if it is none."""
    beta, level = candidate
    if not constant and level != 0:
        return 0.0
    z, _ = margins_of(K, y, beta[:, None], np.array([level]), _norms(K))
    bulk = float(beta @ beta)
    square = float(beta @ (K @ beta)) + level**2 + 2 * float(np.abs(beta) @ error)
    square += delta * bulk * (1 + 1e-9)
    if not 0 < square < np.inf:
        return 0.0
    least = float((z - error - 8 * _EPS * abs(level))[taken].min(initial=np.inf))
    least -= delta * np.sqrt(bulk) * (1 + 1e-9)
    return least / np.sqrt(square) * (1 - 1e-12 - 8 * len(beta) * _EPS)
