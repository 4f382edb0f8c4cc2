"""What both forms of best subset selection share: a search, and the fit on what it found."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.base import build_problem
from trueline.estimators.best_subset_results import fit_on, listener, notes, status, tabulated
from trueline.estimators.callbacks import fit_with_callbacks, watch
from trueline.estimators.regressor import LinearRegressorBase
from trueline.estimators.scaling import exponents_of
from trueline.estimators.validation import checked_rows, numeric_target
from trueline.guard import Verdict, warn_of_gap
from trueline.losses import Squared
from trueline.penalties import L2, NoPenalty
from trueline.planner import Plan
from trueline.problem import Problem
from trueline.solvers.base import Cost, Facts
from trueline.solvers.loop import Monitor
from trueline.subset import (
    Answer,
    Statement,
    SubsetPath,
    best_subsets,
    carried_down,
    certify_search,
    state,
)
from trueline.threads import single_threaded_blas
from trueline.trace import Trace
from trueline.wording import counted, relative

__all__ = ["SubsetRegressor"]

Array = NDArray[np.float64]

# The gap, relative to the square of the target, up to which a support counts as the best.
_CLOSE = 1e-6
_SOLVER = "branch_and_bound"
_TITLE = "exchange descents, then branch and bound on perspective relaxations"


class SubsetRegressor(LinearRegressorBase):
    """What both forms share: one target, a search, the fit on what it found."""

    l2: float
    fit_intercept: bool
    _targets = "one"
    time_limit: float | None
    min_eigenvalue: float | None
    verbose: bool

    @property
    def progress(self) -> bool:
        """Whether a progress bar is shown (see ``verbose``)."""
        return bool(self.verbose)

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

    def _validated_problem(
        self, X: Any, y: Any, sample_weight: Any, reset: bool
    ) -> tuple[Problem, Any, NDArray[Any]]:
        arguments: dict[str, Any] = {
            "accept_sparse": ["csr", "csc", "coo"],
            "dtype": [np.float64, np.float32],
            "y_numeric": True,
        }
        with numeric_target(self, y):
            X, y = checked_rows(self, X, y, reset, **arguments)
        X = X.tocsr() if sp.issparse(X) else X
        weights = self._weights(sample_weight, X)
        with numeric_target(self, y):
            Y = y.reshape(-1, 1).astype(np.float64, copy=False)
        rows = slice(None) if weights is None else weights > 0
        kept = None if weights is None else weights[rows]
        return self._problem(X[rows], Y[rows], kept), X[rows], y[rows]

    @fit_with_callbacks
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
            raise ValueError(
                "The squares of these values overflow or vanish in double precision: multiply the "
                "columns or the target by a power of ten."
            )
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
            f"{type(self).__name__} was stopped ({reasons}) before {said}. Raise time_limit to "
            "close the gap.",
            ConvergenceWarning,
            stacklevel=4,
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
