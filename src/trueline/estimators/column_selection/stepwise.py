"""Least squares on columns chosen step by step."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils import assert_all_finite

from trueline.design import as_design
from trueline.estimators.column_selection.stepwise_columns import ChosenColumns
from trueline.estimators.regression.gaussian import GaussianLikelihood
from trueline.estimators.shared.base import LinearEstimator
from trueline.estimators.shared.callbacks import Seen, fit_with_callbacks, watch
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.regressor import LinearRegressorBase
from trueline.numerics.blas import single_threaded_blas
from trueline.penalties import NoPenalty, Penalty
from trueline.problem import Problem
from trueline.selection.criteria import CRITERIA
from trueline.selection.stepwise import (
    DIRECTIONS,
    FitScorer,
    HeldOutScorer,
    Pricing,
    Search,
    Selection,
    StepwiseExplanation,
    Watcher,
    purpose,
)
from trueline.solvers.base import Monitor, Options
from trueline.trace import Trace

__all__ = ["StepwiseRegression", "check_combination", "check_reached", "check_sizes"]

Array = NDArray[np.float64]


@parameters()
class StepwiseRegression(ChosenColumns, GaussianLikelihood, LinearRegressorBase, LinearEstimator):
    """Least squares on columns that are chosen step by step, with books and a proof.

    Starting from no column (or from all), each step lets the column in (or out) that lowers a
    criterion most, until none does. The chosen columns C are then fitted by least squares::

        1/2 sum_i s_i (y_i - sum_{j in C} x_ij w_j - b)^2

    and the certificate is about that fit: what is proven is that the coefficients are optimal for
    the chosen columns. That the choice is the best of all choices is not claimed (a greedy search
    does not know).

    Columns of a DataFrame that are categories or text are encoded, one column of zeros and ones for
    each level but the first, and enter and leave together.

    The whole search, with cross-validation too, works on the Gram matrix of the columns: after one
    pass over the rows its time does not depend on their number.

    Parameters
    ----------
    direction : {"forward", "backward", "both"}, default="both"
        "forward" lets columns in, "backward" starts from all columns and lets them out, "both"
        starts from none and considers each time every column that could enter or leave.
    criterion : {"aic", "aicc", "bic", "adjusted_r2", "cp", "cv"}, default="aic"
        What is improved: an information criterion (as :meth:`aic` defines it), adjusted R^2,
        Mallows' Cp, or ("cv") the mean squared error on the test rows of ``cv``.
    n_features_to_select : int, optional
        Go on until exactly so many columns (with ``groups``: terms) are chosen, even if the
        criterion gets worse. For "forward" and "backward".
    max_features : int, optional
        Never choose more columns (terms) than this. For "forward" and "both".
    k : float, default=2.0
        What "aic" charges for a parameter: ``log(n)`` would make it BIC.
    groups : array-like of labels, sequence of sequences, dict or "factors", optional
        Columns that enter and leave together, as those of a factor should: one label per column,
        or lists of columns by number or name (other columns stay alone), or "factors", which
        joins columns named alike before ``=`` (``city=Rome``, ``city=Oslo``). The levels of a
        categorical column of a DataFrame are joined anyway.
    cv : int, splitter or iterable, default=5
        The folds of ``criterion="cv"``. One split, as of ``ShuffleSplit(1)`` or
        ``PredefinedSplit``, is a hold-out set.
    fit_intercept : bool, default=True

    Attributes
    ----------
    support_ : array of bool of shape (d,)
        The chosen columns (also :meth:`get_support`; :meth:`transform` takes them out of X).
    coef_ : array of shape (d,)
        Zero for columns that were not chosen.
    intercept_ : float
    history_ : list of dict
        The books: for each step (the first record is the start) the columns that ``entered`` and
        ``left``, ``n_features``, ``n_terms``, ``n_parameters`` (with the intercept), ``rss``, the
        ``criterion`` and beside it ``aic``, ``aicc``, ``bic``, ``adjusted_r2``, ``cp`` (if it is
        the criterion) and for "cv" its ``standard_error`` over the folds (NaN for one).
        ``pandas.DataFrame(model.history_)`` is a table.
    n_features_ : int
        How many columns were chosen.
    encoded_names_ : array of str
        The columns that ``coef_`` and ``support_`` are about: those of X, or if it has categories
        those that they become.
    finished_ : bool
        False if the search was interrupted (Ctrl-C): the model is then that of the last step.
    certificate_ : Certificate
        About the fit on the chosen columns; :meth:`verify` takes the whole X.
    noise_variance_ : float
    n_features_in_ : int
    feature_names_in_ : array of str

    Notes
    -----
    Columns that are combinations of those inside (to a relative square of 1e-10) never enter.
    Where two columns are equally good to rounding, the lower one is taken. Tests and intervals of
    the final fit do not know that its columns were chosen: they are too optimistic.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import StepwiseRegression
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = StepwiseRegression(criterion="bic").fit(X, y)
    >>> model.get_feature_names_out().tolist()
    ['sex', 'bmi', 'bp', 's1', 's2', 's5']
    >>> [step["entered"] for step in model.history_]
    [[], [2], [8], [3], [4], [1], [5]]
    >>> bool(model.verify(X, y))
    True
    """

    _targets = "one"

    direction: str = given("both", one_of(*DIRECTIONS))
    criterion: str = given("aic", one_of(*CRITERIA, "cv"))
    _: KW_ONLY
    n_features_to_select: int | None = given(None, "int [0, inf)", None)
    max_features: int | None = given(None, "int [0, inf)", None)
    k: float = given(2.0, "[0, inf)")
    groups: Any = given(None, None, "array-like", dict, one_of("factors"))
    cv: Any = given(5, "cv_object")
    fit_intercept: bool = True

    def _penalty(self, n_targets: int) -> Penalty:
        return NoPenalty()

    def _validated_problem(
        self, X: Any, y: Any, sample_weight: Any, reset: bool
    ) -> tuple[Problem, Any, NDArray[Any]]:
        if reset:
            self._learn_categories(X)
        validated = super()._validated_problem(self._as_numbers(X), y, sample_weight, reset)
        if reset:
            self._restore_names()
        return validated

    # --- fitting --------------------------------------------------------------------------------

    @fit_with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the columns and fit them.

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
        self._check_parameters()
        check_combination(self)
        problem, X, y = self._validated_problem(X, y, sample_weight, reset=True)
        terms = self._terms(problem.n_features, self._names())
        check_sizes(self, len(terms), self._is_grouped())
        with watch(self, Trace(), Seen(X, y, sample_weight, _attributes)) as monitor:
            with single_threaded_blas():
                scorer = self._scorer(problem, X, y)
                search = Search(
                    scorer, terms, self.direction, self.n_features_to_select, self.max_features
                )
                found = search.run(Watcher(scorer.tableau, search, monitor))
            check_reached(self, found, problem.n_samples)
            self._keep(found, problem, X)
        if not found.finished:
            warnings.warn(
                f"The search was stopped after step {len(found.history) - 1}; the model is the "
                f"one of that step, with {len(found.columns)} columns.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _is_grouped(self) -> bool:
        return self.groups is not None or self._sources is not None

    def _scorer(self, problem: Problem, X: Any, y: NDArray[Any]) -> FitScorer | HeldOutScorer:
        """What prices the models, from one pass over the rows."""
        splits = None
        if self.criterion == "cv":
            splits = list(check_cv(self.cv).split(X.tocsr() if sp.issparse(X) else X, y))
        steps = self.n_features_to_select
        steps = self.max_features if steps is None else steps
        grouped = self._is_grouped()
        pricing = Pricing(self.criterion, self.direction, float(self.k), grouped, steps)
        try:
            return pricing.scorer(problem, splits)
        except ValueError:
            # Sums that are not finite tell of NaN and infinity in X: those have words of their own.
            assert_all_finite(X, input_name="X", estimator_name=type(self).__name__)
            raise

    def _keep(self, found: Selection, problem: Problem, X: Any) -> None:
        """Fit the chosen columns and store what is known."""
        d = problem.n_features
        self.support_ = np.zeros(d, dtype=bool)
        self.support_[found.columns] = True
        self.history_ = found.history
        self.n_features_ = len(found.columns)
        self.finished_ = found.finished
        chosen = self._chosen(X)
        part = replace(problem, design=as_design(chosen))
        self._store(part, *self._solve(part, chosen, Monitor()), X.dtype, 1)

    def _options(self) -> Options:
        return Options(tol=1e-12)

    def _fitted_attributes(
        self, W: NDArray[Any], b: NDArray[Any], y_ndim: int, fit_intercept: bool
    ) -> dict[str, Any]:
        """Zeros for the columns that were not chosen."""
        coef = np.zeros(len(self.support_), dtype=W.dtype)
        coef[self.support_] = W[: self.n_features_, 0]
        return {"coef_": coef, "intercept_": b[0] if fit_intercept else 0.0}

    # --- afterwards -----------------------------------------------------------------------------

    def _explained_plan(self, X: Any, y: Any, sample_weight: Any) -> StepwiseExplanation:
        check_combination(self)
        # What an earlier fit has learnt says nothing about these data.
        fresh = type(self)(**self.get_params(deep=False))
        fresh._learn_categories(X)
        problem = fresh._validated_problem(X, y, sample_weight, reset=False)[0]
        names = list(X.columns) if hasattr(X, "columns") else None
        terms = fresh._terms(problem.n_features, names)
        check_sizes(self, len(terms), fresh._is_grouped())
        return StepwiseExplanation(self._purpose(*problem.design.shape, len(terms)))

    def _explained_fit(self) -> StepwiseExplanation:
        fit = super()._explained_fit()
        title = self._purpose(self._plan.facts.n, len(self.support_), None)
        return StepwiseExplanation(
            title, self.history_, self.criterion, self._names(), fit, fit.certificate
        )

    def _purpose(self, n: int, d: int, n_terms: int | None) -> list[str]:
        limits = (self.n_features_to_select, self.max_features)
        return purpose(self.direction, self.criterion, *limits, n, d, n_terms)


def _attributes(W: Array, b: Array) -> dict[str, Any]:
    """What a model in the middle of the search would predict with."""
    return {"coef_": W[:, 0], "intercept_": b[0], "support_": W[:, 0] != 0}


def check_combination(model: Any) -> None:
    """Raise for parameters that contradict each other."""
    if model.n_features_to_select is not None and model.direction == "both":
        raise ValueError(
            "n_features_to_select needs direction='forward' or 'backward': a search both ways "
            "ends where the criterion does. Use max_features to limit it."
        )
    if model.max_features is not None and model.direction == "backward":
        raise ValueError(
            "max_features limits what enters; with direction='backward' use n_features_to_select."
        )
    if model.k != 2.0 and model.criterion != "aic":
        raise ValueError(
            f"k={model.k!r} is the charge per parameter of criterion='aic'; "
            f"criterion={model.criterion!r} has its own."
        )


def check_sizes(model: Any, n_terms: int, is_grouped: bool) -> None:
    """Raise if more is asked for than there is."""
    for name in ("n_features_to_select", "max_features"):
        value = getattr(model, name)
        if value is not None and value > n_terms:
            what = "terms" if is_grouped else "columns"
            raise ValueError(f"{name}={value} is more than the {n_terms} {what} there are.")
    if None not in (model.max_features, model.n_features_to_select) and (
        model.max_features < model.n_features_to_select
    ):
        raise ValueError(
            f"max_features={model.max_features} is less than "
            f"n_features_to_select={model.n_features_to_select}."
        )


def check_reached(model: Any, found: Selection, rows: int) -> None:
    """Raise if so many columns as were asked for could not be chosen."""
    wanted = model.n_features_to_select
    reached = found.history[-1]["n_terms"]
    if wanted is not None and found.finished and reached < wanted:
        raise ValueError(
            f"n_features_to_select={wanted}, but only {reached} are linearly independent on "
            f"{rows} sample{'s' * (rows != 1)} (constant columns and combinations of others "
            "cannot be chosen)."
        )
