r"""Stochastic gradient descent, one row or a small batch at a time, as the textbook writes it.

The steps follow the objective divided by the total weight W = sum_i s_i. For a batch B of rows,
drawn without repetition by shuffling the rows anew in every epoch,

    g   = n / (W |B|) sum_{i in B} s_i l'(x_i.w + b) x_i  +  grad penalty(w) / W
    h   = n / (W |B|) sum_{i in B} s_i l'(x_i.w + b)
    w  <-  w - eta_t g,      b  <-  b - eta_t h

from w = 0, b = 0 unless a start is given: with unit weights and one row this is
w <- w - eta (l' x_i + alpha/n w). The steps, t counting from 0:

    "constant"   eta_t = eta0
    "inverse"    eta_t = eta0 / (1 + decay t)
    "sqrt"       eta_t = eta0 / sqrt(1 + t)

(H. Robbins, S. Monro, "A stochastic approximation method", Ann. Math. Statist. 22 (1951) 400-407).
By default eta0 = 1 / L_B, L_B a bound on the expected curvature of a batch of m rows,

    L_B = (n - m) / (m (n - 1)) max_i L_i + n (m - 1) / (m (n - 1)) L

with L_i the curvature of row i alone and L that of the whole (R. M. Gower et al., "SGD: general
analysis and improved rates", ICML 2019, proposition 3.8), and decay halves the step after ten
epochs. With ``average`` the answer is the mean of all iterates (B. T. Polyak,
A. B. Juditsky, "Acceleration of stochastic approximation by averaging", SIAM J. Control Optim. 30
(1992) 838-855).

One iteration of the loop is one epoch. Two ways through an epoch give the same numbers to
rounding: compiled single-row steps for squared loss with at most a ridge penalty, where a sparse
row costs only its non-zeros, and plain NumPy steps for every other smooth loss and penalty.

Each compiled step for 1/2 (z - y)^2 with a ridge penalty shrinks all coefficients and adds a
multiple of one row:

    w  <-  shrink_t w - eta_t share_i (x_i.w + b - y_i) x_i

Shrinking d numbers would cost more than a sparse row has. So w = scale * v is kept as a product:
the shrinkage multiplies the scalar, the row changes v where it is not zero (S. Shalev-Shwartz,
Y. Singer, N. Srebro, A. Cotter, "Pegasos", Math. Program. 127 (2011) 3-30, section 2.3).

The sum of the iterates follows the same way. With C the sum of the scales so far, it is C v - q,
and a change of v by e changes q by (C before the step) e (W. Xu, "Towards optimal one pass large
scale learning with averaged stochastic gradient descent", arXiv:1107.2490, section 3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from trueline.certificates.choose import Prover
from trueline.design import DenseDesign, SparseDesign
from trueline.numerics.jit import kernel
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import (
    CALL,
    Cost,
    Facts,
    Iteration,
    Keep,
    Monitor,
    Options,
    Progress,
    Solver,
    run,
)
from trueline.solvers.iterative import (
    finish,
    iteration_cost,
    largest_eigenvalue,
    make_prover,
    starting_point,
    target_gap,
)

Array = NDArray[np.float64]
Order = NDArray[np.intp]

SCHEDULES = ("constant", "inverse", "sqrt")
_EPOCHS = 200
# Into how many pieces an epoch is cut where the weights on the way are kept.
_PIECES = 200


class StochasticGradient(Solver):
    """Stochastic gradient descent with one row per step, for any smooth loss and penalty."""

    name = "stochastic_gradient"
    title = "stochastic gradient descent, one row per step"
    needs_loss = frozenset({"smooth"})
    needs_penalty = frozenset({"smooth"})
    is_direct = False
    is_textbook = True
    proof = "quadratic, duality or bounded"

    def cost(self, facts: Facts) -> Cost:
        return iteration_cost(facts, 2.0 * _EPOCHS)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        return _solve(problem, options, monitor, self.name, batch_size=1)


class MiniBatch(Solver):
    """Stochastic gradient descent with ``batch_size`` rows per step."""

    name = "mini_batch"
    title = "stochastic gradient descent, a batch of rows per step"
    needs_loss = frozenset({"smooth"})
    needs_penalty = frozenset({"smooth"})
    is_direct = False
    is_textbook = True
    proof = "quadratic, duality or bounded"

    def cost(self, facts: Facts) -> Cost:
        cost = iteration_cost(facts, 2.0 * _EPOCHS)
        calls = _EPOCHS * facts.n / Options().batch_size * CALL
        return Cost(cost.flops, cost.passes, cost.memory, cost.seconds + calls)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        return _solve(problem, options, monitor, self.name, batch_size=options.batch_size)


def _solve(
    problem: Problem, options: Options, monitor: Monitor, name: str, batch_size: int
) -> Solution:
    if options.schedule not in SCHEDULES:
        raise ValueError(f"schedule={options.schedule!r} is not one of {SCHEDULES}.")
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
    prover = make_prover(problem)
    with np.errstate(over="ignore", invalid="ignore"):  # divergence is a status here
        iteration = _Iteration(problem, prover, options, batch_size, monitor.keep)
        outcome = run(
            iteration,
            monitor,
            max_iter=options.max_iter or _EPOCHS,
            target_gap=target_gap(problem, options.tol),
        )
    notes = [f"first step size {iteration.eta0:.6g}, {options.schedule} schedule"]
    return finish(problem, prover, iteration, outcome, monitor, name, notes)


def step_sizes(schedule: str, eta0: float, decay: float, start: int, count: int) -> Array:
    """eta_t for t = start, ..., start + count - 1.

    Examples
    --------
    >>> from trueline.solvers.first_order.stochastic_gradient import step_sizes
    >>> step_sizes("inverse", eta0=1.0, decay=0.5, start=0, count=3)
    array([1.        , 0.66666667, 0.5       ])
    """
    t = np.arange(start, start + count, dtype=np.float64)
    if schedule == "constant":
        return np.full(count, eta0)
    if schedule == "inverse":
        return eta0 / (1.0 + decay * t)
    return eta0 / np.sqrt(1.0 + t)


def first_step(problem: Problem, batch_size: int) -> float:
    """1 / L_B of the module's text."""
    squares = problem.design.row_squares(None) + float(problem.fit_intercept)
    n, weight = problem.n_samples, problem.total_weight
    scaled = squares if problem.weights is None else squares * problem.weights * (n / weight)
    single, m = float(scaled.max(initial=0.0)), min(batch_size, n)
    if m > 1:
        whole = largest_eigenvalue(problem.design, problem.weights, problem.fit_intercept) / weight
        single = ((n - m) * single + n * (m - 1) * whole) / (m * (n - 1))
    own_curvature = float(np.max(problem.penalty.curvature, initial=0.0)) / weight
    curvature = problem.loss.curvature_bound * single + own_curvature
    return 1.0 / curvature if curvature > 0 else 1.0


class _Epoch(ABC):
    """A pass over the rows, or a part of it; also adds up the iterates it went through."""

    @abstractmethod
    def run(self, W: Array, b: Array, order: Order, eta: Array) -> tuple[Array, Array]:
        """Update W and b in place; return the sums of all iterates after each step."""


class _NumpyEpoch(_Epoch):
    """Any smooth loss and penalty, any batch size."""

    def __init__(self, problem: Problem, batch_size: int) -> None:
        self.problem, self.batch_size = problem, batch_size

    def run(self, W: Array, b: Array, order: Order, eta: Array) -> tuple[Array, Array]:
        problem, size = self.problem, self.batch_size
        weight, n = problem.total_weight, problem.n_samples
        W_sum, b_sum = np.zeros_like(W), np.zeros_like(b)
        for number, start in enumerate(range(0, len(order), size)):
            rows = order[start : start + size]
            some, y = problem.design.take(rows), problem.target[rows]
            u = problem.loss.gradient(y, some.matvec(W) + b) * (n / (weight * len(rows)))
            if problem.weights is not None:
                u = u * problem.weights[rows, None]
            W -= eta[number] * (some.rmatvec(u) + problem.penalty.gradient(W) / weight)
            if problem.fit_intercept:
                b -= eta[number] * u.sum(axis=0)
            W_sum += W
            b_sum += b
        return W_sum, b_sum


class _CompiledEpoch(_Epoch):
    """Squared loss, one curvature per target, one row per step, rows of an array or CSR matrix."""

    def __init__(self, problem: Problem, design: DenseDesign | SparseDesign) -> None:
        self.problem = problem
        # The kernel walks along rows, however the entries are stored.
        self.X = design.by_rows if isinstance(design, SparseDesign) else design.X
        self.curvature = np.broadcast_to(problem.penalty.curvature, problem.n_targets)
        self.weights = np.ones(problem.n_samples) if problem.weights is None else problem.weights
        # An epoch of no rows compiles the kernel now, so that the trace times steps alone.
        W, b = np.zeros((problem.n_features, problem.n_targets)), np.zeros(problem.n_targets)
        self.run(W, b, np.empty(0, dtype=np.intp), np.empty(0))

    @staticmethod
    def can_run(problem: Problem, batch_size: int) -> bool:
        return (
            batch_size == 1
            and "quadratic" in problem.loss.capabilities & problem.penalty.capabilities
            and np.ndim(problem.penalty.curvature) < 2
            and np.size(problem.penalty.curvature) in (1, problem.n_targets)
        )

    def run(self, W: Array, b: Array, order: Order, eta: Array) -> tuple[Array, Array]:
        problem = self.problem
        shares = self.weights * (problem.n_samples / problem.total_weight)
        W_sum, b_sum = np.empty_like(W), np.empty_like(b)
        for t in range(problem.n_targets):
            shrink = 1.0 - eta * (self.curvature[t] / problem.total_weight)
            y, w = np.ascontiguousarray(problem.target[:, t]), np.ascontiguousarray(W[:, t])
            common = (y, shares, order, eta, shrink, w, b[t], problem.fit_intercept)
            X = self.X
            if isinstance(X, np.ndarray):
                w_sum, b[t], b_sum[t] = dense_epoch(X, *common)
            else:
                w_sum, b[t], b_sum[t] = sparse_epoch(X.indptr, X.indices, X.data, *common)
            W[:, t], W_sum[:, t] = w, w_sum
        return W_sum, b_sum


class _Iteration(Iteration):
    """The last iterate, the sum of all iterates, and the number of steps so far."""

    def __init__(
        self,
        problem: Problem,
        prover: Prover,
        options: Options,
        batch_size: int,
        keep: Keep | None = None,
    ) -> None:
        n, self.batch_size, self.keep = problem.n_samples, batch_size, keep
        self.problem, self.prover, self.options = problem, prover, options
        self.random = check_random_state(options.random_state)
        self.steps_per_epoch = -(-n // batch_size)
        self.eta0 = options.eta0 or first_step(problem, batch_size)
        self.decay = 0.1 / self.steps_per_epoch if options.decay is None else options.decay
        self.steps = 0
        self.W, self.b = starting_point(problem, options)
        self.W_sum, self.b_sum = np.zeros_like(self.W), np.zeros_like(self.b)
        self.coef, self.intercept = self.W.copy(), self.b.copy()
        design = problem.design
        self.epoch: _Epoch
        if isinstance(design, DenseDesign | SparseDesign) and (
            _CompiledEpoch.can_run(problem, batch_size)
        ):
            self.epoch = _CompiledEpoch(problem, design)
        else:
            self.epoch = _NumpyEpoch(problem, batch_size)

    def step(self) -> None:
        count = self.steps_per_epoch
        eta = step_sizes(self.options.schedule, self.eta0, self.decay, self.steps, count)
        order = self.random.permutation(self.problem.n_samples)
        # Whoever keeps weights sees them within the epoch, too.
        piece = count if self.keep is None else -(-count // _PIECES)
        for start in range(0, count, piece):
            rows = order[start * self.batch_size : (start + piece) * self.batch_size]
            W_sum, b_sum = self.epoch.run(self.W, self.b, rows, eta[start : start + piece])
            self.W_sum, self.b_sum = self.W_sum + W_sum, self.b_sum + b_sum
            if self.keep is not None and start + piece < count:
                self.keep((self.steps + start + piece) / count, self.W, self.b)
        self.steps += count

    def progress(self) -> Progress:
        if self.options.average and self.steps:
            self.coef, self.intercept = self.W_sum / self.steps, self.b_sum / self.steps
        else:
            self.coef, self.intercept = self.W.copy(), self.b.copy()
        at = self.prover.evaluate(self.coef, self.intercept)
        return Progress(float(at.objective.sum()), self.prover.gap(at, self.coef, self.intercept))


Indices = NDArray[np.integer]


@kernel
def _fold(v: Array, q: Array, scale: float, scales: float) -> None:
    """Multiply the scale into v, and C v into q: afterwards scale = 1 and C = 0."""
    for j in range(len(v)):
        q[j] -= scales * v[j]
        v[j] *= scale


@kernel
def dense_epoch(
    X: NDArray[np.floating],
    y: Array,
    shares: Array,
    order: Indices,
    eta: Array,
    shrink: Array,
    w: Array,
    b: float,
    fit_intercept: bool,
) -> tuple[Array, float, float]:
    """Steps over the rows of an array; w is updated in place.

    Returns
    -------
    w_sum : array of shape (d,)
        Sum of the coefficients after each step.
    b, b_sum : float
        The intercept after the last step, and the sum of the intercepts after each.
    """
    d = len(w)
    q = np.zeros(d)
    scale, scales, b_sum = 1.0, 0.0, 0.0
    for t in range(len(order)):
        i = order[t]
        z = 0.0
        for j in range(d):
            z += X[i, j] * w[j]
        move = eta[t] * shares[i] * (scale * z + b - y[i])
        scale *= shrink[t]
        if abs(scale) < 1e-9:  # keep the quotient below far from overflow
            _fold(w, q, scale, scales)
            scale, scales = 1.0, 0.0
        change = move / scale
        for j in range(d):
            w[j] -= change * X[i, j]
            q[j] -= scales * change * X[i, j]
        scales += scale
        if fit_intercept:
            b -= move
        b_sum += b
    _fold(w, q, scale, scales)
    return -q, b, b_sum


@kernel
def sparse_epoch(
    indptr: Indices,
    indices: Indices,
    data: NDArray[np.floating],
    y: Array,
    shares: Array,
    order: Indices,
    eta: Array,
    shrink: Array,
    w: Array,
    b: float,
    fit_intercept: bool,
) -> tuple[Array, float, float]:
    """The same over the rows of a CSR matrix, touching only their non-zeros."""
    q = np.zeros(len(w))
    scale, scales, b_sum = 1.0, 0.0, 0.0
    for t in range(len(order)):
        i = order[t]
        z = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            z += data[p] * w[indices[p]]
        move = eta[t] * shares[i] * (scale * z + b - y[i])
        scale *= shrink[t]
        if abs(scale) < 1e-9:
            _fold(w, q, scale, scales)
            scale, scales = 1.0, 0.0
        change = move / scale
        for p in range(indptr[i], indptr[i + 1]):
            w[indices[p]] -= change * data[p]
            q[indices[p]] -= scales * change * data[p]
        scales += scale
        if fit_intercept:
            b -= move
        b_sum += b
    _fold(w, q, scale, scales)
    return -q, b, b_sum
