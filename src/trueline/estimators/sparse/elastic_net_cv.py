"""The lasso and the elastic net with the strength chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from numbers import Integral, Number, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import check_scalar, column_or_1d
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import check_consistent_length

from trueline.estimators.shared.base import fit_with_callbacks
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.validation import (
    numeric_target,
    refuse_nonfinite,
    router_of,
    some_folds,
    takes_batches,
    validate_data,
    wrappers,
)
from trueline.estimators.sparse.elastic_net import ElasticNet
from trueline.estimators.sparse.paths import lasso_path, said_of
from trueline.guard import warn_of_gaps
from trueline.penalties import Penalty
from trueline.plan import Plan
from trueline.planner import execute_paths, make_set_plans
from trueline.problem import Array, Problem
from trueline.selection.cross_validation import (
    edge_notes,
    fold_problems,
    largest_correlation,
    largest_strength,
    squared_errors,
    strengths,
)
from trueline.solvers.base import Options
from trueline.solvers.registry import SOLVERS
from trueline.wording import counted

#: How the fits of the folds get at the data: from moments, or not.
_WAYS = {
    True: "from the moments of the folds: the rows are read once, whatever the number of fits",
    False: "from the columns, a warm-started path per fold; held-out rows have weight zero",
}
# Up to so many numbers are named one by one.
_NAMED = 6


def _without_strength(plan: Plan, total_weight: float) -> Plan:
    """The same plan, for a strength (and a mixture) that is still to be chosen."""
    known = [
        part
        for part in plan.objective.split(",  ")
        if not part.startswith(("alpha = ", "n alpha = ", "sum(s) alpha = ", "l1_ratio = "))
    ]
    count = "sum(s)" if "sum_i s_i" in plan.objective else "n"
    chosen = f"alpha is chosen by the search,  {count} = {total_weight:g}"
    return replace(plan, objective=",  ".join([*known, chosen]))


def _search_planned(model: Any, way: str, X: Any, y: Any) -> list[str]:
    """What ``fit`` would do before the final fit; no data are looked at."""
    if isinstance(model.alphas, Integral):
        count = int(model.alphas)
        grid = (
            f"{counted(count, 'strength')}, from the smallest that leaves all coefficients zero "
            f"down to {model.eps:g} of it"
        )
    else:
        count, grid = len(model.alphas), _named("strength", model.alphas)
    mixtures = model._mixtures()
    if "l1_ratio" in model.get_params(deep=False):
        grid += f"; {_named('l1_ratio', mixtures)}"
    folds = _folds(model.cv, X, y)
    fits = "" if folds is None else f", {counted(folds * count * len(mixtures), 'fit')}"
    many = "the given folds" if folds is None else counted(folds, "fold")
    return [
        grid,
        f"{many}{fits} {way}",
        f"{_rule(model.rule)}; then one fit of all rows, which the estimates are for",
    ]


def _search_done(model: Any) -> list[str]:
    """What the last ``fit`` chose, and from what."""
    alphas, mixtures = np.atleast_2d(model.alphas_), model._mixtures()
    folds = model.mse_path_.size // (alphas.shape[1] * len(mixtures))
    grid = f"{counted(alphas.shape[1], 'strength')} from {alphas.max():g} to {alphas.min():g}"
    if len(mixtures) > 1:
        grid += f"; {_named('l1_ratio', mixtures)}"
    chosen = f"alpha = {model.alpha_:g}"
    if hasattr(model, "l1_ratio_"):
        chosen += f", l1_ratio = {model.l1_ratio_:g}"
    tried = alphas[mixtures.index(model.l1_ratio_)] if len(alphas) > 1 else alphas[0]
    return [
        f"{grid}; {counted(folds, 'fold')}",
        f"{_rule(model.rule)}: {chosen}",
        *_at_an_end(model, tried),
    ]


def _at_an_end(model: Any, tried: Any) -> list[str]:
    """What is to be said if the strength is the smallest or the largest of its grid."""
    if len(tried) > 1 and not np.any(model.coef_):
        said = "leaves all coefficients zero, and none of the others that were tried does better"
        return [f"alpha = {model.alpha_:g} {said}"]
    return edge_notes("alpha", model.alpha_, tried)


def _rule(rule: str) -> str:
    if rule == "min":
        return "the strength of the smallest mean squared error is taken"
    return "the largest strength within one standard error of the smallest mean error is taken"


def _named(what: str, values: Any) -> str:
    """Numbers, or how many there are and from where to where."""
    values = np.asarray(values, dtype=float)
    if len(values) <= _NAMED:
        return f"{what} " + ", ".join(f"{value:g}" for value in values)
    return f"{len(values)} times {what}, from {values.max():g} to {values.min():g}"


def _folds(cv: Any, X: Any, y: Any) -> int | None:
    """How many folds there will be; None if only a split would tell."""
    if isinstance(cv, Iterator):  # asking would use it up
        return None
    try:
        return int(check_cv(cv).get_n_splits(X, y))
    except (TypeError, ValueError):  # groups, which only a fit is given
        return None


#: Parameters of the elastic net that are chosen, or that have no meaning in a search.
CHOSEN = ["alpha", "warm_start"]

if TYPE_CHECKING:
    _Host = ElasticNet
else:
    _Host = object


@parameters()
class ChosenByFolds(_Host):
    """Strength (and mixture) chosen by cross-validation, the best one refitted to all rows.

    The problems of all folds, mixtures and strengths are one set.

    Parameters
    ----------
    eps : float, default=1e-3
        Smallest over largest strength of the grid.
    alphas : int or array-like, default=100
        The number of strengths, or the strengths.
    max_iter : int, default=1000
        Limit on the readings of the data in the final fit.
    cv : int, splitter, iterable or None
        None means five folds.
    """

    #: The gap asked of the fits of the folds, as a share of ``tol``.
    _fold_share = 0.01
    warm_start = False
    _is_its_problem = False

    _: KW_ONLY
    eps: float = given(1e-3, "(0, inf)")
    alphas: Any = given(100, "int [1, inf)", "array-like")
    precompute: Any = given("auto", one_of("auto"), "array-like", "boolean")
    max_iter: int = given(1000, "int [1, inf)")
    cv: Any = given(None, "cv_object")
    verbose: Any = given(0, "verbose")
    n_jobs: int | None = given(None, "int", None)
    rule: str = given("min", one_of("min", "1se"))

    def _mixtures(self) -> list[float]:
        mixtures = [float(ratio) for ratio in np.atleast_1d(self.l1_ratio)]
        if not mixtures:
            raise ValueError("l1_ratio is empty: give at least one mixture to try.")
        return mixtures

    def _strength(self) -> tuple[float, float]:
        """What was chosen; before that, some strength and the first mixture."""
        ratio = self.__dict__.get("l1_ratio_", self._mixtures()[0])
        return getattr(self, "alpha_", 1.0), ratio

    @fit_with_callbacks
    @takes_batches
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Choose the strength and fit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,), or (n, k) for the multi-task estimators
        sample_weight : float or array-like of shape (n,), optional
            Used in the fits and in the mean squared errors of the folds.
        **params
            For the splitter, if metadata routing is enabled.

        Returns
        -------
        self : object
        """
        _raise_for_params(params, self, "fit")
        self._check_parameters()
        for name in ("alpha_", "l1_ratio_"):
            self.__dict__.pop(name, None)
        y = self._single_target(X, y)
        given = None if isinstance(sample_weight, Number) else sample_weight
        problem, X, y = self._validated_problem(X, y, given, reset=True)
        refuse_nonfinite(X, self)
        folds = self._splits(X, y, given, params)
        with said_of(X):
            grids_of = cache(partial(self._grids, problem))
            problems, tests = fold_problems(
                problem, folds, lambda weight: self._penalties(grids_of(), X.shape[1], weight)
            )
            grids = grids_of()
            plans = make_set_plans(problems)
            found, verdicts = execute_paths(
                problems, plans, Options(tol=self.tol * self._fold_share)
            )
            flat, count = np.empty(len(problems)), len(problems) // len(tests)
            for path in found:
                test = tests[path.numbers[0] // count]
                flat[path.numbers] = squared_errors(problems, path, test, problem.weights)
        warn_of_gaps(
            type(self).__name__,
            "folds and strengths",
            verdicts,
            stacklevel=3 + wrappers(type(self).fit),
        )
        errors = flat.reshape(len(tests), len(grids), -1).swapaxes(0, 1)
        mixture, strength = self._choose(errors, grids)
        problem = self._problem(X, problem.target, problem.weights)
        number, moments, options = mixture * len(grids[0]) + strength, None, self._options()
        near = next(path for path in found if number in path.numbers)
        if near.moments is not None and problems.shared is not None:
            moments = problems.shared.total
        else:  # the solution of the first fold at what was chosen: the final fit is not far from it
            options = replace(options, start=near.coefs[..., near.numbers.index(number)])
        self._solve_and_store(problem, X, y, given, moments, options)
        return self

    def _penalties(self, grids: list[Array], d: int, weight: float) -> list[Penalty]:
        """The penalties of all mixtures and strengths, for rows of that weight."""
        pairs = [(a * weight, ratio) for ratio, grid in zip(self._mixtures(), grids) for a in grid]
        return [self._penalty_of(float(strength), ratio, d) for strength, ratio in pairs]

    def _single_target(self, X: Any, y: Any) -> NDArray[Any]:
        """y as a vector; several targets belong to the multi-task estimators."""
        if self._targets == "several":
            return y
        with numeric_target(self, y):
            X, y = validate_data(
                self,
                X,
                y,
                validate_separately=(
                    {"accept_sparse": ["csr", "csc"], "ensure_all_finite": False, "dtype": None},
                    {"ensure_2d": False, "dtype": [np.float64, np.float32]},
                ),
            )
        check_consistent_length(X, y)
        if y.ndim > 1 and y.shape[1] > 1:
            raise ValueError(f"For multi-task outputs, use MultiTask{type(self).__name__}")
        return column_or_1d(y, warn=True)

    def _splits(self, X: Any, y: Any, weights: Any, params: dict[str, Any]) -> Iterator[Any]:
        routed: dict[str, Any] = {}
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=weights, **params).splitter.split
        return some_folds(check_cv(self.cv).split(X, y, **routed))

    def _grids(self, problem: Problem) -> list[Array]:
        """The strengths to try, for each mixture."""
        if not isinstance(self.alphas, Integral):
            for i, alpha in enumerate(self.alphas):
                check_scalar(alpha, f"alphas[{i}]", Real, min_val=0.0, include_boundaries="left")
            return [strengths(self.alphas, 0.0, self.eps) for _ in self._mixtures()]
        if 0 in self._mixtures():
            raise ValueError(
                "Automatic alpha grid generation is not supported for l1_ratio=0: no strength "
                "makes all coefficients zero. Give the alphas themselves."
            )
        tops = [self._top(problem, ratio) / problem.total_weight for ratio in self._mixtures()]
        return [strengths(self.alphas, top, self.eps) for top in tops]

    def _top(self, problem: Problem, ratio: float) -> float:
        """The smallest strength at which no coefficient is left, times the weight of the rows."""
        if self._targets == "several":
            return largest_correlation(problem) / ratio
        return largest_strength(problem, lambda a: self._penalty_of(a, ratio, problem.n_features))

    def _choose(self, errors: Array, grids: list[Array]) -> tuple[int, int]:
        """Take the best mixture and strength, and return their numbers.

        ``errors`` has the shape (mixtures, folds, strengths).
        """
        mean = errors.mean(axis=1)
        best = int(np.argmin(mean.min(axis=1)))
        alphas, here = grids[best], mean[best]
        least = int(np.argmin(here))
        folds = errors.shape[1]
        spread = errors[best, :, least].std(ddof=1) / np.sqrt(folds) if folds > 1 else 0.0
        within = int(np.argmax(here <= here[least] + spread))
        self.alpha_min_, self.alpha_1se_ = float(alphas[least]), float(alphas[within])
        self.alpha_ = self.alpha_min_ if self.rule == "min" else self.alpha_1se_
        if "l1_ratio" in self._parameter_constraints:
            self.l1_ratio_ = self._mixtures()[best]
        self.mse_path_ = np.squeeze(np.moveaxis(errors, 2, 1))
        one_row = len(grids) == 1 or not isinstance(self.alphas, Integral)
        self.alphas_ = grids[0] if one_row else np.array(grids)
        return best, least if self.rule == "min" else within

    def _explained_fit(self) -> Any:
        return replace(super()._explained_fit(), search=_search_done(self))

    def _explained_plan(self, X: Any, y: Any, sample_weight: Any) -> Any:
        # What an earlier fit has chosen says nothing about these data.
        fresh = type(self)(**self.get_params(deep=False))
        explanation = super(ChosenByFolds, fresh)._explained_plan(X, y, sample_weight)
        weights = None if isinstance(sample_weight, Number) else sample_weight
        total = explanation.plan.facts.n if weights is None else float(np.sum(weights))
        plan = _without_strength(explanation.plan, total)
        way = _WAYS[SOLVERS[plan.chosen].reads_once(plan.facts)]
        return replace(explanation, plan=plan, search=_search_planned(self, way, X, y))

    def get_metadata_routing(self) -> MetadataRouter:
        """The routing of metadata, for the splitter."""
        return router_of(self, check_cv(self.cv))


@parameters(without=CHOSEN)
class ElasticNetCV(ChosenByFolds, ElasticNet):
    """The elastic net with strength and mixture chosen by cross-validation.

    For every strength of a grid (and every ``l1_ratio`` given) the objective of
    :class:`ElasticNet`::

        1/(2 S) sum_i s_i (y_i - x_i.w - b)^2
            + alpha l1_ratio ||w||_1 + alpha (1 - l1_ratio)/2 ||w||^2

    (S the sum of the weights) is minimised on the training rows of each fold and scored by the mean
    squared error on its test rows; the best pair is refitted on all rows, with a certificate.

    A drop-in for ``sklearn.linear_model.ElasticNetCV``.

    Parameters
    ----------
    l1_ratio : float or list of float, default=0.5
        Mixtures to try, above 0 if the grid is made here.
    fit_intercept : bool, default=True
    precompute, copy_X, n_jobs, random_state, selection
        Accepted for compatibility: how the solutions are found is planned, threads are used where
        they help, and the order of the coordinates does not change the answer.
    tol : float, default=1e-4
        As in :class:`ElasticNet`.
    verbose : bool or int, default=0
    positive : bool, default=False
    feature_weights, bounds
        As in :class:`ElasticNet`.
    rule : {"min", "1se"}, default="min"
        "min" takes the strength with the smallest mean error. "1se" takes the largest strength
        whose mean error is within one standard error of that: a sparser model that is as good as
        one can tell (L. Breiman, J. Friedman, R. Olshen, C. Stone, "Classification and Regression
        Trees", 1984, section 3.4.3).

    Attributes
    ----------
    alpha_ : float
        The strength taken.
    alpha_min_, alpha_1se_ : float
        The strengths of both rules.
    l1_ratio_ : float
    alphas_ : array of shape (m,) or (number of mixtures, m)
    mse_path_ : array of shape (m, folds) or (number of mixtures, m, folds)
    coef_ : array of shape (d,)
    intercept_ : float
    dual_gap_ : float
    certificate_ : Certificate
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import ElasticNetCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNetCV(l1_ratio=[0.5, 0.9, 1.0]).fit(X, y)
    >>> float(model.l1_ratio_), bool(model.verify(X, y))
    (1.0, True)
    """

    _targets = "one"

    _: KW_ONLY
    l1_ratio: Any = given(0.5, "[0, 1]", "array-like")


@parameters(without=[*CHOSEN, "l1_ratio"])
class LassoCV(ChosenByFolds, ElasticNet):
    """The lasso with the strength chosen by cross-validation.

    For every strength of a grid the objective of :class:`Lasso`::

        1/(2 S) sum_i s_i (y_i - x_i.w - b)^2 + alpha ||w||_1

    (S the sum of the weights) is minimised on the training rows of each fold and scored by the mean
    squared error on its test rows; the best one is refitted on all rows, with a certificate.

    A drop-in for ``sklearn.linear_model.LassoCV``.

    Parameters
    ----------
    fit_intercept : bool, default=True
    precompute, copy_X, n_jobs, random_state, selection
        Accepted for compatibility: how the solutions are found is planned, threads are used where
        they help, and the order of the coordinates does not change the answer.
    tol : float, default=1e-4
        As in :class:`Lasso`.
    verbose : bool or int, default=False
    positive : bool, default=False
    feature_weights, bounds
        As in :class:`Lasso`.
    rule : {"min", "1se"}, default="min"
        "1se" takes the largest strength whose mean error is within one standard error of the
        smallest: a sparser model that is as good as one can tell.

    Attributes
    ----------
    alpha_ : float
        The strength taken.
    alpha_min_, alpha_1se_ : float
        The strengths of both rules.
    alphas_ : array of shape (m,)
    mse_path_ : array of shape (m, folds)
    coef_ : array of shape (d,)
    intercept_ : float
    dual_gap_ : float
    certificate_ : Certificate
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import LassoCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LassoCV(cv=5).fit(X, y)
    >>> round(model.alpha_, 5), model.alpha_1se_ > model.alpha_
    (0.00375, True)
    """

    _targets = "one"

    _: KW_ONLY
    verbose: Any = given(False, "verbose")

    path = staticmethod(lasso_path)
    l1_ratio = 1.0
