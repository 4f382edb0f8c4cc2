"""Ridge regression that chooses its strength by cross-validation."""

from __future__ import annotations

import numbers
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
from sklearn.utils import check_scalar
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)

from trueline.estimators.regression.gaussian import GaussianLikelihood
from trueline.estimators.regression.ridge_cv_scores import StrengthSearch
from trueline.estimators.shared.base import LinearEstimator, build_problem
from trueline.estimators.shared.callbacks import fit_with_callbacks
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.regressor import LinearRegressorBase
from trueline.losses import Squared
from trueline.numerics.threads import single_threaded_blas
from trueline.penalties import L2, NoPenalty, Penalty
from trueline.problem import Problem
from trueline.selection.edges import edge_notes

__all__ = ["RidgeCV"]

Array = NDArray[np.float64]

_ALPHAS = (0.1, 1.0, 10.0)
# Stands for the strength until it is chosen; as an array it is not printed as a number.
_SOME_STRENGTH = L2(np.ones(1))
# Below this many multiplications no BLAS starts threads, and limiting it would cost more.
_TINY_WORK = 50_000
# Up to so many strengths are named one by one.
_NAMED = 6


@parameters()
class RidgeCV(StrengthSearch, GaussianLikelihood, LinearRegressorBase, LinearEstimator):
    """Ridge regression with the strength chosen by cross-validation, for the cost of a few fits.

    For each strength in ``alphas`` the objective of :class:`Ridge`::

        1/2 sum_i s_i (y_i - x_i.w - b)^2 + alpha/2 ||w||^2

    is scored by leave-one-out (``cv=None``, in closed form) or by any splitter (from the moments
    of the folds), and the best one is refitted on all rows, with a certificate.

    A drop-in for ``sklearn.linear_model.RidgeCV``.

    Parameters
    ----------
    alphas : float or array-like, default=(0.1, 1.0, 10.0)
        Strengths to try; positive for leave-one-out.
    fit_intercept : bool, default=True
    scoring : str, callable or None
        None means the negative mean squared error for leave-one-out and R^2 for folds.
    cv : int, splitter, iterable or None
        None means leave-one-out.
    gcv_mode : {"auto", "svd", "eigen"} or None
        Accepted for compatibility: the decomposition is chosen by shape and conditioning.
    store_cv_results : bool, default=False
        Keep the leave-one-out errors (``cv=None`` only).
    alpha_per_target : bool, default=False
        Choose one strength per target (``cv=None`` only).

    Attributes
    ----------
    alpha_ : float or array of shape (k,)
        The chosen strength.
    best_score_ : float or array of shape (k,)
    cv_results_ : array of shape (n, number of alphas) or (n, k, number of alphas)
        Squared leave-one-out errors (times the weights), or predictions if ``scoring`` is given.
    fold_scores_ : array of shape (folds, number of alphas)
        Scores of every fold and strength (``cv`` given).
    coef_ : array of shape (d,) or (k, d)
    intercept_ : float or array of shape (k,)
    certificate_ : Certificate
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import RidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeCV(alphas=[1e-3, 1e-2, 1e-1, 1.0]).fit(X, y)
    >>> float(model.alpha_)
    0.01
    """

    _keeps_single_target = False

    alphas: Any = given(_ALPHAS, "array-like", "(0, inf)")
    _: KW_ONLY
    fit_intercept: bool = True
    scoring: Any = given(None, one_of(*get_scorer_names()), callable, None)
    cv: Any = given(None, "cv_object")
    gcv_mode: str | None = given(None, one_of("auto", "svd", "eigen"), None)
    store_cv_results: bool = False
    alpha_per_target: bool = False

    def _penalty(self, n_targets: int) -> Penalty:
        alpha = np.asarray(self.alpha_, dtype=np.float64)
        return L2(float(alpha) if alpha.ndim == 0 else alpha) if alpha.any() else NoPenalty()

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        return build_problem(X, Y, weights, Squared(), _SOME_STRENGTH, self.fit_intercept)

    def _strengths(self) -> Array:
        """The strengths to try, checked one by one."""
        if self.alphas is _ALPHAS:
            return np.array(_ALPHAS)
        boundaries = "neither" if self.cv is None else "left"
        check = partial(
            check_scalar, target_type=numbers.Real, min_val=0.0, include_boundaries=boundaries
        )
        if np.ndim(self.alphas) == 0:
            return np.array([check(np.asarray(self.alphas).item(), "alphas")], dtype=np.float64)
        if len(self.alphas) == 0:
            raise ValueError("alphas is empty: give at least one strength to try.")
        if len(self.alphas) == 1:
            check(self.alphas[0], "alphas")
        else:
            for i, alpha in enumerate(self.alphas):
                check(alpha, f"alphas[{i}]")
        alphas = np.asarray(self.alphas, dtype=np.float64)
        if not np.isfinite(alphas).all():
            raise ValueError(f"alphas must be finite, got {self.alphas!r}.")
        return alphas

    @fit_with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Choose the strength and fit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,) or (n, k)
        sample_weight : float or array-like of shape (n,), optional
            Used in the fits and, where the scorer takes weights, in the scores.
        **params
            Routed to the scorer and the splitter, if metadata routing is enabled.

        Returns
        -------
        self : object
        """
        _raise_for_params(params, self, "fit")
        self._check_parameters()
        alphas = self._strengths()
        if self.cv is not None and self.store_cv_results:
            raise ValueError("cv!=None and store_cv_results=True are incompatible")
        if self.cv is not None and self.alpha_per_target:
            raise ValueError("cv!=None and alpha_per_target=True are incompatible")
        for name in ("alpha_", "cv_results_", "fold_scores_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        problem, X, y = self._validated_problem(X, y, sample_weight, reset=True)
        if sample_weight is not None:
            params["sample_weight"] = problem.weights
        scorer_params, split_params = self._route(params)
        n, d = problem.design.shape
        is_tiny = n * d * max(min(n, d), problem.n_targets * len(alphas)) < _TINY_WORK
        # The answer must not depend on the number of threads.
        with nullcontext() if is_tiny else single_threaded_blas():
            if self.cv is None:
                moments = self._choose_by_leave_one_out(problem, X, y, alphas, scorer_params)
            else:
                moments = self._choose_by_folds(problem, X, y, alphas, scorer_params, split_params)
        problem = replace(problem, penalty=self._penalty(problem.n_targets))
        self._solve_and_store(problem, X, y, sample_weight, moments)
        if self.store_cv_results:
            self.cv_results_ = self.cv_results_.astype(X.dtype, copy=False)
        return self

    def _explained_fit(self) -> Any:
        return replace(super()._explained_fit(), search=self._search_done())

    def _explained_plan(self, X: Any, y: Any, sample_weight: Any) -> Any:
        explanation = super()._explained_plan(X, y, sample_weight)
        plan = explanation.plan
        objective = f"{plan.objective},  {self._search_text()}"
        return replace(explanation, plan=replace(plan, objective=objective))

    def _search_done(self) -> list[str]:
        """What the last fit chose from, and what is to be said of the choice."""
        return [self._search_text(), *edge_notes("alpha", self.alpha_, self._strengths())]

    def _search_text(self) -> str:
        """Which strengths are searched, and how they are scored."""
        alphas = self._strengths()
        if len(alphas) <= _NAMED:
            among = "of " + ", ".join(f"{alpha:g}" for alpha in alphas)
        else:
            among = f"of {len(alphas)} from {alphas.min():g} to {alphas.max():g}"
        return f"alpha the best {among} by {'leave-one-out' if self.cv is None else 'folds'}"

    def _route(self, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Metadata for the scorer and for the splitter."""
        if _routing_enabled():
            routed = process_routing(self, "fit", **params)
            return dict(routed.scorer.score), dict(routed.splitter.split)
        weight = params.get("sample_weight")
        if weight is None:
            return {}, {}
        # As scikit-learn's grid search does: weights count in the scores where a scorer takes them.
        scorer = check_scoring(estimator=self, scoring=self.scoring, allow_none=True)
        accepts = getattr(scorer, "_accept_sample_weight", None)
        takes = accepts() if accepts else "sample_weight" in signature(scorer).parameters
        return ({"sample_weight": weight} if self.cv is None or takes else {}), {}

    def get_metadata_routing(self) -> MetadataRouter:
        """Which metadata go to the scorer and to the splitter."""
        return (
            # By name: some releases of scikit-learn copy the owner, with a generator of splits.
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(
                scorer=self._routed_scorer(),
                method_mapping=MethodMapping().add(caller="fit", callee="score"),
            )
            .add(
                # Only splitters ask for metadata; a generator of splits must not be used up here.
                splitter=self.cv if hasattr(self.cv, "split") else None,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def _routed_scorer(self) -> Any:
        if self.scoring is None and _routing_enabled():
            return get_scorer("r2").set_score_request(sample_weight=True)
        return check_scoring(estimator=self, scoring=self.scoring, allow_none=True)
