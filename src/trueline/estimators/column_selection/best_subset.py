"""Least squares on the best few columns, with a proof that there are no better ones.

Both forms share a search, and the fit on what it found.
"""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from trueline.best_subset.elimination import DEPENDENT, gain_of
from trueline.best_subset.exchange import independent
from trueline.best_subset.search import Answer, SubsetPath, best_subsets, carried_down
from trueline.best_subset.statement import Statement, certify_search, state
from trueline.design import Design, as_design
from trueline.errors import squares_out_of_range
from trueline.estimators.shared.base import (
    LinearEstimator,
    Stated,
    build_problem,
    fit_with_callbacks,
    watch,
)
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.precision import exponents_of
from trueline.estimators.shared.regressor import LinearRegressorBase
from trueline.estimators.shared.validation import (
    checked_rows,
    numeric_target,
    takes_batches,
    wrappers,
)
from trueline.guard import Verdict, verdict_of, warn_of_gap
from trueline.losses import Squared
from trueline.numerics.blas import single_threaded_blas
from trueline.penalties import L2, NoPenalty
from trueline.plan import Plan
from trueline.planner import execute, make_plan
from trueline.problem import Array, Problem
from trueline.selection.criteria import CRITERIA, Criterion
from trueline.solvers.base import Cost, Facts, Monitor, Options
from trueline.trace import Trace
from trueline.wording import counted, relative

# The gap, relative to the square of the target, up to which a support counts as the best.
_CLOSE = 1e-6
_SOLVER = "branch_and_bound"
_TITLE = "exchange descents, then branch and bound on perspective relaxations"


@parameters()
class SubsetRegressor(LinearRegressorBase, LinearEstimator):
    """What both forms share: one target, a search, the fit on what it found.

    Parameters
    ----------
    l2 : float, default=0.0
        Strength of the squared penalty.
    fit_intercept : bool, default=True
        Whether to fit b; it is 0 otherwise.
    verbose : bool or None, default=None
        Whether to show the progress of the search; None: on a terminal, after three seconds.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    support_ : array of int
        Indices of the columns with non-zero coefficients.
    certificate_ : Certificate
        How far from the optimum the objective can be at most.
    trace_ : Trace
        Nodes, size, objective, gap and seconds as the search went on.
    n_iter_ : int
        Nodes of the branch and bound.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names.
    """

    _targets = "one"
    _: KW_ONLY
    l2: float = given(0.0, "[0, inf)")
    fit_intercept: bool = True
    time_limit: float | None = given(10.0, "[0, inf)", None)
    min_eigenvalue: float | None = given(None, "[0, 1]", None)
    verbose: bool | None = given(None, "boolean", None)

    @property
    def progress(self) -> bool | None:
        """Whether a progress bar is shown (see ``verbose``)."""
        return self.verbose

    @abstractmethod
    def _limits(self, problem: Problem) -> tuple[int, float]:
        """The largest size to search, and the price of a column."""

    @abstractmethod
    def _sizes(self, statement: Statement) -> list[int]:
        """The sizes to search."""

    @abstractmethod
    def _choose(self, path: SubsetPath, rows: float) -> int:
        """Which row of the path to predict with; ``rows`` is the sum of the weights."""

    @abstractmethod
    def _formula(self, largest: int) -> str:
        """What the count of columns adds to the objective, in plain text."""

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        penalty = L2(float(self.l2)) if self.l2 else NoPenalty()
        return build_problem(X, Y, weights, Squared(), penalty, self.fit_intercept)

    def _validated_problem(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Stated:
        with numeric_target(self, y):
            X, y = checked_rows(self, X, y, reset, y_numeric=True, ensure_all_finite=True)
        X = X.tocsr() if sp.issparse(X) else X
        weights = self._weights(sample_weight, X)
        with numeric_target(self, y):
            Y = y.reshape(-1, 1).astype(np.float64, copy=False)
        rows = slice(None) if weights is None or isinstance(X, Design) else weights > 0
        kept = None if weights is None else weights[rows]
        return self._problem(X[rows], Y[rows], kept), X[rows], y[rows]

    @fit_with_callbacks
    @takes_batches
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Search for the best columns and fit them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : float or array-like of shape (n,), optional
            Weight 2 counts a row twice, weight 0 leaves it out.

        Returns
        -------
        self : object
        """
        self._validate_params()
        began = time.perf_counter()
        problem, X, y = self._validated_problem(X, y, sample_weight, reset=True)
        largest, alpha = self._limits(problem)
        if exponents_of(problem) is not None:
            raise squares_out_of_range()
        self.trace_ = Trace(enabled=True)
        with watch(self, self.trace_) as monitor, single_threaded_blas():
            statement = state(problem, largest, alpha)
            answers = self._search(statement, self._sizes(statement), monitor, began)
            fits = [fit_on(problem, X, answer.found.support, X.dtype) for answer in answers]
            self._path = tabulated(problem, statement, answers, fits)
            chosen = self._choose(self.path_, problem.total_weight)
            W, b = fits[chosen]
            self._keep(problem, statement, answers[chosen], W, b, X.dtype)
            self._sharpen(chosen)
            self._plan = self._plan_for(problem)
        self._solution_facts = {
            "solver": _SOLVER,
            "n_iter": int(sum(answer.found.nodes for answer in answers)),
            "seconds": time.perf_counter() - began,
            "status": status(answers),
            "notes": notes(answers),
        }
        if not all(answer.found.is_proven for answer in answers):
            self._warn_of_gap(answers, answers[chosen])
        else:
            proof = self._resolved_certificate()
            allowed = _CLOSE * statement.task.constant + 4 * proof.objective_rounding
            verdict = Verdict(bool(proof.gap <= allowed), proof.gap, allowed)
            warn_of_gap(type(self).__name__, "the columns chosen", verdict)
        return self

    def _search(
        self, statement: Statement, sizes: Sequence[int], monitor: Monitor, began: float
    ) -> list[Answer]:
        limit = monitor.time_limit - (time.perf_counter() - began)
        hear = listener(statement, monitor, began)
        return best_subsets(
            statement.task, sizes, statement.columns, self.min_eigenvalue, limit, hear
        )

    def _keep(
        self,
        problem: Problem,
        statement: Statement,
        answer: Answer,
        W: Array,
        b: Array,
        dtype: np.dtype,
    ) -> None:
        """Fitted attributes of the support that predicts."""
        task = replace(statement.task, k=answer.k, delta=answer.delta)
        statement = replace(statement, task=task)
        self._certificate = certify_search(problem, statement, W, b, answer.found.lower_bound)
        self.coef_ = W[:, 0].astype(dtype)
        self.intercept_ = b.astype(dtype)[0] if problem.fit_intercept else 0.0
        self.support_ = answer.found.support
        self.proven_ = answer.found.is_proven
        self.n_iter_ = max(1, answer.found.nodes)
        self.solver_ = _SOLVER
        self._mark_fitted()

    def _sharpen(self, chosen: int) -> None:
        """The bound of the certificate into the path, for this size and for smaller ones."""
        path = self._path
        bound = path["lower_bound"]
        bound[chosen] = max(bound[chosen], self._resolved_certificate().lower_bound)
        path["lower_bound"] = carried_down(path["k"], path["delta"], bound)

    def _warn_of_gap(self, answers: list[Answer], chosen: Answer) -> None:
        """Say which sizes are open, and how far the support that predicts may be from the best."""
        left = [answer for answer in answers if not answer.found.is_proven]
        reasons = ", ".join(sorted({answer.found.reason for answer in left}))
        proof = self._resolved_certificate()
        gap = f"within {proof.gap:.3g} ({relative(proof.relative_gap)}) of the best one"
        if chosen.found.is_proven:
            sizes = ", ".join(str(answer.k) for answer in left)
            open_ = f"{counted(len(left), 'size')} (k = {sizes})"
            said = (
                f"{open_} of {len(answers)} could be proven best. The size that predicts, "
                f"k = {chosen.k}, is proven: its support is {gap}, but another size might have "
                "been chosen"
            )
        else:
            said = f"its support was proven best; it is {gap}"
        warnings.warn(
            f"{type(self).__name__} was stopped ({reasons}) before {said}. Raise time_limit "
            f"({self.time_limit} seconds), or set None, to close the gap.",
            ConvergenceWarning,
            stacklevel=3 + wrappers(type(self).fit),
        )

    @property
    def path_(self) -> SubsetPath:
        """What was found for every size."""
        check_is_fitted(self)
        return SubsetPath(**self._path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_path")

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """The columns of the support: a mask, or their indices."""
        check_is_fitted(self)
        if indices:
            return self.support_
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.support_] = True
        return mask

    def _plan_for(self, problem: Problem) -> Plan:
        largest = self._limits(problem)[0]
        n, d = problem.design.shape
        # What is certain: the products of the columns. The search takes what it takes.
        cost = Cost(float(n) * d * d, 1.0, 8.0 * d * d, 1e-10 * n * d * d)
        objective = f"{problem.formula},  {self._formula(largest)}"
        why = "the estimate is for the Gram matrix alone"
        return Plan.only(_SOLVER, _TITLE, cost, objective, Facts.of(problem), why)


def fit_on(
    problem: Problem, X: Any, support: NDArray[np.int64], dtype: np.dtype
) -> tuple[Array, Array]:
    """The fit on a support, by the solver that suits it, in the precision that will be kept."""
    W = np.zeros((problem.n_features, 1))
    if len(support):
        few = X.tocsc()[:, support].tocsr() if sp.issparse(X) else X[:, support]
        part = replace(problem, design=as_design(few))
        solution = execute(part, make_plan(part), Options(), Monitor())
        warn_of_gap("The fit on a support", "its coefficients", verdict_of(solution), stacklevel=6)
        W[support], b = solution.coef, solution.intercept
    elif problem.fit_intercept:
        b = np.average(problem.target, axis=0, weights=problem.weights)
    else:
        b = np.zeros(1)
    return W.astype(dtype).astype(np.float64), b.astype(dtype).astype(np.float64)


def tabulated(
    problem: Problem, statement: Statement, answers: list[Answer], fits: list[tuple[Array, Array]]
) -> dict[str, Any]:
    """The path as plain arrays, which model files can hold."""
    task, founds = statement.task, [answer.found for answer in answers]
    square = _residual_squares(problem, statement, fits)
    total, rows = 2.0 * task.constant, problem.total_weight
    constant = int(problem.fit_intercept)
    criterion = Criterion("bic", rows, total, bool(constant), _noise_variance(statement, problem))
    parameters = np.array([len(found.support) + constant for found in founds])
    objective = [
        0.5 * left + problem.penalty.value(W) + task.alpha * len(found.support)
        for left, (W, _), found in zip(square, fits, founds)
    ]
    return {
        "k": np.array([answer.k for answer in answers]),
        "supports": [found.support for found in founds],
        "coef": np.array([W[:, 0] for W, _ in fits]),
        "intercept": np.array([b[0] for _, b in fits]),
        "objective": np.array(objective),
        "lower_bound": np.array([max(found.lower_bound, 0.0) for found in founds]),
        "proven": np.array([found.is_proven for found in founds]),
        "nodes": np.array([found.nodes for found in founds]),
        "delta": np.array([answer.delta for answer in answers]),
        "residual_square": square,
        "seconds": np.array([answer.seconds for answer in answers]),
        "criteria": {
            name: np.atleast_1d(np.asarray(criterion.value(square, parameters, name), float))
            for name in CRITERIA
        },
    }


def _residual_squares(
    problem: Problem, statement: Statement, fits: list[tuple[Array, Array]]
) -> Array:
    """Of every fit; rows in batches are not read again for them."""
    if problem.design.is_sequential:
        return statement.moments.residual_square(np.hstack([W for W, _ in fits]))[0]
    plain = replace(problem, penalty=NoPenalty())
    return np.array([2.0 * plain.objective(W, b) for W, b in fits])


def _noise_variance(statement: Statement, problem: Problem) -> float:
    """Of the fit with all columns; NaN if these leave no degree of freedom."""
    moments, columns = statement.moments, statement.columns
    left = moments.weight - int(columns.sum()) - int(problem.fit_intercept)
    if left <= 0:
        return float("nan")
    gram, cross = moments.gram[np.ix_(columns, columns)], moments.cross[columns]
    scale = np.sqrt(gram.diagonal())
    R = gram / scale[:, None] / scale
    w = np.linalg.lstsq(R, cross / scale[:, None], rcond=1e-12)[0]
    square = float(moments.y_square[0]) - float((w * (cross / scale[:, None])).sum())
    return max(square, 0.0) / left


def listener(
    statement: Statement, monitor: Monitor, began: float
) -> Callable[[int, int, float, float, NDArray[np.int64]], bool]:
    """Records the bounds of the search, and passes them to the callbacks."""

    def hear(k: int, nodes: int, value: float, bound: float, support: NDArray[np.int64]) -> bool:
        point = partial(_coefficients, statement, support)
        return monitor.heard(began, point, nodes, value, bound, k=k)

    return hear


def _coefficients(statement: Statement, support: NDArray[np.int64]) -> tuple[Array, Array]:
    """Coefficients and intercept of a support, from the moments."""
    moments, task = statement.moments, statement.task
    W = np.zeros((len(statement.scale), 1))
    block, right = task.gram[np.ix_(support, support)], task.cross[support]
    W[support, 0] = np.linalg.lstsq(block, right, rcond=None)[0] / statement.scale[support]
    return W, moments.y_mean - moments.x_mean @ W


def status(answers: list[Answer]) -> str:
    """How the search ended, in words."""
    finished = sum(answer.found.is_proven for answer in answers)
    reasons = {answer.found.reason for answer in answers if not answer.found.is_proven}
    said = f"{finished} of {counted(len(answers), 'size')} proven"
    return said + (f"; stopped by: {', '.join(sorted(reasons))}" if reasons else "")


def notes(answers: list[Answer]) -> list[str]:
    """For which supports the proof holds, if not for all."""
    deltas = [answer.delta for answer in answers if answer.delta > 0]
    if not deltas:
        return []
    return [f"compared: supports whose correlations have eigenvalues of {min(deltas):.3g} or more"]


# With k=None, the sizes go up to this.
_MOST_SIZES = 30
# A fit that leaves no more than this of the target's square is perfect.
_NOTHING = 1e-9


@parameters()
class BestSubset(SubsetRegressor):
    """Least squares on the k best columns: the best of all supports, proven.

    Minimises over w and b::

        1/2 sum_i s_i (y_i - x_i.w - b)^2 + l2/2 ||w||^2    subject to  ||w||_0 <= k

    with sample weights s_i (one by default). Good supports come from exchanges of single columns
    from many starts; branch and bound then proves that there is no better one, or finds it. Each
    node is bounded by the perspective relaxation of the Gram matrix with the best diagonal taken
    out of it, which needs no bound on the coefficients.

    With more columns than rows, and ``l2=0``, some supports may be so nearly dependent that no
    relaxation can rule them out. The proof is then given for the supports whose correlation matrix
    has no eigenvalue below ``min_eigenvalue``, and the certificate says so: its kind is
    "conditioned search". Columns that nearly depend on each other, near copies for example, are
    compared in doubled precision (for up to 200 columns); only where they agree to more than ten
    digits the certificate states, with a far smaller eigenvalue, that such supports were left out.

    Ties: supports whose objectives agree to 11 digits are equal, and of columns that can be
    exchanged without loss (copies of each other) the one with the lowest index is taken.

    Parameters
    ----------
    k : int, sequence of int or None, default=None
        Number of columns; several numbers are searched in one call (see ``path_``), None means all
        from 1 to the number of independent columns (less one if these fit any target), but not
        beyond 30.
    criterion : {"aic", "aicc", "bic", "adjusted_r2", "cp"}, default="bic"
        Which size predicts, if there are several; sizes with as many parameters as rows do not.
    time_limit : float or None, default=10.0
        Seconds for all sizes together; the gap that is then left is in the certificate.
    min_eigenvalue : float or None, default=None
        Compare only supports whose correlation matrix has no eigenvalue below this; 0 compares
        all. None means 0 if the columns can be independent or ``l2`` is positive, and otherwise a
        little less than the smallest one that exchange descents find.

    Attributes
    ----------
    k_ : int
        The size that predicts.
    proven_ : bool
        Whether its search was finished: no support is better, or none that
        ``certificate_.statement`` speaks of.
    path_ : SubsetPath
        For every size: support, coefficients, objective, lower bound, nodes and criteria.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import BestSubset
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BestSubset(k=3).fit(X, y)
    >>> model.support_, model.proven_
    (array([2, 3, 8]), True)
    >>> bool(model.verify(X, y))
    True
    """

    k: Any = given(None, "int", "array-like", None)
    _: KW_ONLY
    criterion: str = given("bic", one_of(*CRITERIA))

    def _limits(self, problem: Problem) -> tuple[int, float]:
        d = problem.n_features
        if self.k is None:
            return min(d, _MOST_SIZES), 0.0
        given = self._given()
        if not given:
            raise ValueError("k is empty: give at least one number of columns.")
        for size in given:
            is_count = isinstance(size, int | np.integer) and not isinstance(size, bool)
            if not is_count or not 0 <= int(size) <= d:
                raise ValueError(
                    f"k must be between 0 and the number of columns, {d}; got {size!r}."
                )
        if len(set(given)) < len(given):
            raise ValueError(f"k has repeated sizes: {self.k!r}.")
        return max(int(size) for size in given), 0.0

    def _given(self) -> list[Any]:
        return [self.k] if isinstance(self.k, Integral) else list(self.k)

    def _sizes(self, statement: Statement) -> list[int]:
        if self.k is not None:
            return [int(size) for size in self._given()]
        # Beyond the number of independent columns nothing is gained.
        task, columns = statement.task, np.flatnonzero(statement.columns)
        apart = independent(task.gram, columns, task.k, DEPENDENT)
        count = len(apart)
        if count < len(columns):
            left = task.constant - gain_of(task.gram, task.cross, apart)
            # So many columns fit anything: which of them are taken would mean nothing.
            count -= int(left <= _NOTHING * task.constant)
        return list(range(1, max(1, count) + 1))

    def _choose(self, path: SubsetPath, rows: float) -> int:
        values = path.criteria[self.criterion]
        cost = -values if self.criterion == "adjusted_r2" else values
        # A fit with as many parameters as rows says nothing, however well it fits.
        parameters = np.array([len(support) for support in path.supports]) + self.fit_intercept
        sensible = ~np.isnan(cost) & (parameters < rows)
        if sensible.any():
            chosen = int(np.argmin(np.where(sensible, cost, np.inf)))
        else:
            chosen = int(np.argmin(path.k))
        self.k_ = int(path.k[chosen])
        return chosen

    def _formula(self, largest: int) -> str:
        if self.k is None:
            return f"||w||_0 <= k,  k = 1, ..., {largest}"
        return f"||w||_0 <= k,  k = {', '.join(str(size) for size in self._given())}"


@parameters()
class L0Regression(SubsetRegressor):
    """Least squares with a price per column: the best of all supports, proven.

    Minimises over w and b::

        1/2 sum_i s_i (y_i - x_i.w - b)^2 + alpha ||w||_0 + l2/2 ||w||^2

    with sample weights s_i (one by default), by the methods of :class:`BestSubset`. With s^2 the
    variance of the noise, alpha = s^2 is AIC, alpha = s^2 log(n) / 2 is BIC.

    Parameters
    ----------
    alpha : float, default=1.0
        Price of a column.
    time_limit : float or None, default=10.0
        Seconds; the gap that is then left is in the certificate.
    min_eigenvalue : float or None, default=None
        As in :class:`BestSubset`.

    Attributes
    ----------
    proven_ : bool
        Whether the search was finished: no support is better, or none that
        ``certificate_.statement`` speaks of.
    path_ : SubsetPath
        The one support, with its objective, lower bound, nodes and criteria.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import L0Regression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = L0Regression(alpha=20_000.0).fit(X, y)
    >>> model.support_, model.proven_
    (array([2, 3, 8]), True)
    """

    alpha: float = given(1.0, "[0, inf)")

    def _limits(self, problem: Problem) -> tuple[int, float]:
        alpha, d = float(self.alpha), problem.n_features
        if alpha == 0:
            return d, 0.0
        # More columns than this cost more than the fit without any.
        level = np.average(problem.target, axis=0, weights=problem.weights) * self.fit_intercept
        square = float(problem.weigh((problem.target - level) ** 2).sum())
        return int(min(d, np.ceil(0.5 * square / alpha))), alpha

    def _sizes(self, statement: Statement) -> list[int]:
        return [statement.task.k]

    def _choose(self, path: SubsetPath, rows: float) -> int:
        return 0

    def _formula(self, largest: int) -> str:
        return f"+ alpha ||w||_0,  alpha = {float(self.alpha):g}"
