"""Least squares on columns chosen step by step.

They are chosen out of an array, a sparse matrix, or a DataFrame with categories.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from trueline.design import Design, as_design
from trueline.estimators.shared.base import (
    Attributes,
    LinearEstimator,
    Seen,
    Stated,
    fit_with_callbacks,
    watch,
)
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.regressor import GaussianLikelihood, LinearRegressorBase
from trueline.estimators.shared.validation import (
    is_word,
    new_rows,
    refuse_nonfinite,
    takes_batches,
    wrappers,
)
from trueline.numerics.blas import single_threaded_blas
from trueline.penalties import NoPenalty, Penalty
from trueline.problem import Array, Problem
from trueline.selection.criteria import CRITERIA
from trueline.selection.stepwise.pricing import Pricing
from trueline.selection.stepwise.report import StepwiseExplanation, Watcher, purpose
from trueline.selection.stepwise.search import (
    DIRECTIONS,
    FitScorer,
    HeldOutScorer,
    Search,
    Selection,
    make_terms,
)
from trueline.solvers.base import Monitor, Options
from trueline.table.columns import MISSING, Column
from trueline.table.encoding import Source
from trueline.trace import Trace


class ChosenColumns(TransformerMixin):
    """What a regressor on chosen columns knows about them.

    Columns of a DataFrame that are categories become several; ``coef_``, ``support_`` and all other
    numbers are about those, which ``encoded_names_`` names.
    """

    support_: NDArray[np.bool_]
    coef_: NDArray[Any]
    groups: Any
    # Name, kind and levels of each column of a DataFrame with categories; None otherwise.
    _sources: list[tuple[str, str, tuple[str, ...]]] | None = None

    # --- categories -----------------------------------------------------------------------------

    def _learn_categories(self, X: Any) -> None:
        sources = sources_of(X)
        self._sources = None
        if sources is not None:
            self._sources = [(source.name, source.kind, source.levels) for source in sources]

    def _read_sources(self) -> list[Source]:
        return [Source(*source) for source in self._sources or ()]

    def _as_numbers(self, X: Any) -> Any:
        """X, categories encoded."""
        return X if self._sources is None else design_of(X, self._read_sources())

    def _restore_names(self) -> None:
        """After the encoded columns have been validated: what was given is the DataFrame."""
        if self._sources is not None:
            names = [name for name, _, _ in self._sources]
            self.n_features_in_ = len(names)
            self.feature_names_in_ = np.array(names, dtype=object)

    def _names(self) -> list[str] | None:
        """Of the columns, categories encoded."""
        if self._sources is not None:
            return names_of(self._read_sources())
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else list(names)

    def _terms(self, d: int, names: list[str] | None) -> list[NDArray[np.intp]]:
        """Columns that enter and leave together; those of a category always do."""
        if self._sources is None:
            return make_terms(self.groups, d, names)
        sources = self._read_sources()
        places = places_of(sources)
        given = make_terms(self.groups, len(sources), [source.name for source in sources])
        terms = [np.concatenate([places[j] for j in term]) for term in given]
        return [term for term in terms if len(term)]  # a category with one level has no column

    @property
    def encoded_names_(self) -> NDArray[Any]:
        """Names of the columns that ``coef_`` is about: categories have one for each level."""
        check_is_fitted(self)
        if self._sources is not None:
            return np.array(self._names(), dtype=object)
        return np.asarray(_check_feature_names_in(self))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the target for new rows.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n, d)

        Returns
        -------
        y : array of shape (n,)
        """
        check_is_fitted(self)
        if self._sources is None:
            return np.asarray(super().predict(X))
        return np.asarray(self._checked(X) @ self.coef_ + self.intercept_)

    def _checked(self, X: Any) -> NDArray[Any]:
        """New rows of a DataFrame with categories, as numbers that are finite."""
        from trueline.estimators.shared.validation import check_array

        return np.asarray(check_array(self._as_numbers(X), estimator=self))

    # --- what was chosen ------------------------------------------------------------------------

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """The chosen columns.

        Parameters
        ----------
        indices : bool, default=False
            Their numbers instead of a mask.

        Returns
        -------
        support : array
        """
        check_is_fitted(self)
        return np.flatnonzero(self.support_) if indices else self.support_

    def transform(self, X: Any) -> Any:
        """X with the chosen columns alone.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        X : array or sparse matrix of shape (n, number of chosen columns)
        """
        check_is_fitted(self)
        if self._sources is not None:
            return self._checked(X)[:, self.support_]
        rows = new_rows(self, X, accept_sparse=["csr", "csc"])
        return rows[:, np.flatnonzero(self.support_)]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the chosen columns.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of all columns; by default those seen in ``fit``, or x0, x1, ...

        Returns
        -------
        names : array of str
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.asarray(names if self._sources is None else self.encoded_names_)[self.support_]

    def _coefficients(self) -> tuple[Array, Array]:
        """Those of the chosen columns: what the certificate and the moments are about."""
        if self.coef_[~self.support_].any():
            raise ValueError(
                "coef_ was changed for columns that were not chosen: the certificate is about the "
                "chosen columns alone."
            )
        W = np.asarray(self.coef_[self.support_], dtype=np.float64).reshape(-1, 1)
        W = W if len(W) else np.zeros((1, 1))
        return W, np.broadcast_to(np.asarray(self.intercept_, dtype=np.float64), 1)

    def _verified_design(self, X: Any) -> Any:
        X = self._as_numbers(X)
        X = X if sp.issparse(X) or isinstance(X, Design) else np.asarray(X)
        if X.shape[1] != len(self.support_):
            raise ValueError(
                f"X has {X.shape[1]} features; the model was fitted with {len(self.support_)}."
            )
        return self._chosen(X)

    def _chosen(self, X: Any) -> Any:
        """The chosen columns of X; none at all are one column of zeros."""
        if not self.support_.any():
            return np.zeros((X.shape[0], 1), dtype=X.dtype)
        if sp.issparse(X):
            return X.tocsc()[:, np.flatnonzero(self.support_)]
        return X[:, self.support_]


def sources_of(X: Any) -> list[Source] | None:
    """What the columns of a DataFrame are; None if X is none, or all of them are numbers.

    Categories are columns declared as such, and those that hold text. Their levels are in the
    order that was declared, otherwise in alphabetical order.

    Examples
    --------
    >>> import pandas as pd
    >>> from trueline.estimators.column_selection.stepwise import names_of, sources_of
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 4.0], "city": ["Rome", "Oslo", "Rome"]})
    >>> names_of(sources_of(frame))
    ['size', 'city=Rome']
    """
    if isinstance(X, Design) or not (hasattr(X, "columns") and hasattr(X, "__getitem__")):
        return None
    names = list(X.columns)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return None
    sources = [_source(name, X[name]) for name in names]
    return None if all(source.kind == "number" for source in sources) else sources


def _source(name: str, column: Any) -> Source:
    declared = _declared(column)
    values = None if declared is not None else np.asarray(column)
    if values is not None and (values.dtype.kind not in "OUST" or not any(map(is_word, values))):
        return Source(name, "number")
    present = set(_cells(column))
    levels = sorted(present) if not declared else [level for level in declared if level in present]
    return Source(name, "category", tuple(level for level in levels if level))


def _declared(column: Any) -> list[str] | None:
    """The levels of a column that is declared as a category; empty if it does not order them."""
    if not str(getattr(column, "dtype", "")).lower().startswith(("categor", "enum")):
        return None
    levels = getattr(getattr(column, "cat", None), "categories", None)
    return [] if levels is None else [str(level) for level in levels]


def _cells(column: Any) -> list[str]:
    """The values as text, empty where one is missing."""
    values = np.asarray(column, dtype=object)
    cells = ["" if value is None or value != value else str(value).strip() for value in values]
    return ["" if cell in MISSING else cell for cell in cells]


def names_of(sources: Sequence[Source]) -> list[str]:
    """The names of the columns that the sources become."""
    return [name for source in sources for name in source.names]


def places_of(sources: Sequence[Source]) -> list[NDArray[np.intp]]:
    """For each source, the numbers of the columns it becomes."""
    stops = np.cumsum([0, *(len(source.names) for source in sources)])
    return [np.arange(first, last) for first, last in pairwise(stops)]


def design_of(X: Any, sources: Sequence[Source]) -> Array:
    """The columns as numbers; NaN and infinity among numbers are left to be complained about."""
    names = [source.name for source in sources]
    if not hasattr(X, "columns"):
        raise ValueError(
            f"The model was fitted on a DataFrame with categories; give one with the columns "
            f"{', '.join(names)}, not a {type(X).__name__}."
        )
    if list(X.columns) != names:
        missing = [name for name in names if name not in set(X.columns)]
        what = f"it has no column {missing[0]!r}" if missing else "they are others, or in disorder"
        raise ValueError(
            f"The columns of X do not match those the model was fitted on ({', '.join(names)}): "
            f"{what}."
        )
    return np.column_stack([_columns(X[source.name], source) for source in sources])


def _columns(column: Any, source: Source) -> Array:
    if source.kind == "number":
        return np.asarray(column, dtype=np.float64)[:, None]
    cells = _cells(column)
    if "" in cells:
        raise ValueError(
            f"The category {source.name!r} has no value in row {cells.index('') + 1}: leave the "
            "row out, or give missing values a level of their own."
        )
    return source.columns(Column(source.name, cells))


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

    def _validated_problem(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Stated:
        if reset:
            self._learn_categories(X)
        validated = super()._validated_problem(self._as_numbers(X), y, sample_weight, reset)
        if reset:
            self._restore_names()
        return validated

    # --- fitting --------------------------------------------------------------------------------

    @fit_with_callbacks
    @takes_batches
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
                stacklevel=2 + wrappers(type(self).fit),
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
            # Sums that are not finite come from NaN or infinity in X, which have their own error.
            refuse_nonfinite(X, self)
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

    def _fitted_attributes(self, W: Any, b: Any, y_ndim: int, fit_intercept: bool) -> Attributes:
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
        fit = replace(super()._explained_fit(), by_hand=())  # of many fits, one
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
