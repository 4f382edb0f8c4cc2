"""Logistic regression that chooses its penalty by cross-validation."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, _safe_indexing
from sklearn.utils._metadata_requests import _raise_for_params, _routing_enabled
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, process_routing
from sklearn.utils.validation import _check_method_params

from trueline.design.stacked import StackedDesign
from trueline.estimators.classification.logistic import LogisticRegression, penalty_of
from trueline.estimators.shared.fold_sets import predicted, solve_folds
from trueline.estimators.shared.parameters import KW_ONLY, given, hidden, one_of, parameters
from trueline.estimators.shared.report import Explanation
from trueline.estimators.shared.validation import (
    refuse_nonfinite,
    router_of,
    some_folds,
    takes_batches,
)
from trueline.guard import Verdict, warn_of_gaps
from trueline.penalties import Penalty
from trueline.selection.cross_validation import fast_metric, fold_weights

Array = NDArray[np.float64]

# The level of a class that is alone in its fold: its probability is one for every purpose.
_CERTAIN = 30.0


class _Grid(NamedTuple):
    """The inverse strengths and the mixtures of a search."""

    Cs: Array
    ratios: Array

    @property
    def text(self) -> str:
        """What is searched, in the words of the objective."""
        Cs = f"C the best of {len(self.Cs)} from {self.Cs.min():g} to {self.Cs.max():g}"
        ratios = ", ".join(f"{ratio:g}" for ratio in self.ratios)
        return Cs + (f",  l1_ratio the best of {ratios}" if len(self.ratios) > 1 else "")


class _ScoredGrid(NamedTuple):
    """For every fold, mixture and C: scores, [coefficients, intercept] by class, iterations.

    And what is proven of the fits, but for folds with one class.
    """

    scores: Array
    coefs: Array
    n_iter: NDArray[np.int32]
    verdicts: list[Verdict]


def _scored_grid(
    model: Any,
    X: Any,
    y: NDArray[Any],
    weights: Array | None,
    folds: list[tuple[Any, Any]],
    grid: _Grid,
    scorer: Any,
    score_params: dict[str, Any],
) -> _ScoredGrid:
    """Fit the training rows of all folds for the whole grid, and score each fit on the other rows.

    Parameters
    ----------
    model : LogisticRegression
        With the classes of all rows; it is not changed.
    X, y : arrays
        As validated.
    weights : array of shape (n,), optional
    folds : list of pairs of index arrays
        Training rows and rows to score.
    grid : _Grid
    scorer : callable
    score_params : dict
        For the scorer; arrays are cut to the rows that are scored.
    """
    models = [_of(model, C, ratio) for ratio in grid.ratios for C in grid.Cs]
    codes = np.searchsorted(model.classes_, y)
    rows = fold_weights(len(codes), (train for train, _ in folds), weights)
    alone = [len(np.unique(codes[own > 0])) == 1 for own in rows]
    several = [own for own, is_alone in zip(rows, alone) if not is_alone]
    fits = solve_folds(models, X, codes, several, classes=model.classes_) if several else ()
    found = iter(fits)
    scores, coefs, counts, verdicts = [], [], [], list[Verdict]()
    for (_, test), own, is_alone in zip(folds, rows, alone):
        if is_alone:
            fitted = [_certain(one, codes[np.argmax(own > 0)], X.shape[1]) for one in models]
            counts.append([0] * len(models))
        else:
            own_fits = next(found)
            fitted = [fit.scored() for fit in own_fits]
            counts.append([fit.solution.n_iter for fit in own_fits])
            verdicts += [fit.verdict for fit in own_fits]
        params = _check_method_params(X, params=score_params, indices=test)
        scores.append(_scores(fitted, X[test], _safe_indexing(y, test), scorer, params))
        coefs.append([_flat(one) for one in fitted])
    shape = len(folds), len(grid.ratios), len(grid.Cs)
    flat = np.stack([np.stack(own) for own in coefs])
    return _ScoredGrid(
        np.reshape(scores, shape),
        flat.reshape(*shape, *flat.shape[2:]),
        np.array(counts, dtype=np.int32).reshape(shape),
        verdicts,
    )


def _of(model: Any, C: float, ratio: float) -> Any:
    own = copy(model)
    own.C, own.l1_ratio = float(C), float(ratio)
    return own


def _certain(model: Any, code: int, d: int) -> Any:
    """The model of a fold that holds one class only."""
    own, level = copy(model), _CERTAIN if code == 1 else -_CERTAIN
    own.coef_, own.intercept_ = np.zeros((1, d)), np.array([level * model.fit_intercept])
    return own


def _scores(fitted: list[Any], X: Any, y: NDArray[Any], scorer: Any, params: Any) -> list[float]:
    """The scores of all models on the same rows, together if the metric allows for it."""
    metric = fast_metric(scorer, is_classifier=True)
    if metric is None or set(params) - {"sample_weight"}:
        return [scorer(one, X, y, **params) for one in fitted]
    codes = np.searchsorted(fitted[0].classes_, y)
    return list(metric(codes, predicted(fitted, X), params.get("sample_weight")))


def _flat(model: Any) -> Array:
    level = np.atleast_1d(model.intercept_)[:, None]
    return np.hstack([model.coef_, level]) if model.fit_intercept else model.coef_


# What the objective says about parameters that are still to be chosen.
_SEARCHED = ("C = ", "1/C = ", "l1_ratio = ")


@parameters(without=["C", "l1_ratio", "warm_start", "trace", "eta0", "schedule", "batch_size"])
class LogisticRegressionCV(LogisticRegression):
    """Logistic regression with C (and l1_ratio) chosen by cross-validation.

    For every fold and ``l1_ratio`` the objective of :class:`LogisticRegression` is minimised along
    all ``Cs``, each fit starting from the one before, all folds together; the pair with the best
    mean score is fitted to all rows, and that fit is proven.

    Parameters
    ----------
    Cs : int or array, default=10
        Inverse strengths; an int means as many between 1e-4 and 1e4, equally spaced as logarithms.
    l1_ratios : array, optional
        Mixtures to choose from; by default the squared penalty alone.
    fit_intercept : bool, default=True
    cv : int, splitter or iterable, optional
        Five stratified folds by default.
    dual : bool, default=False
        Accepted as in scikit-learn; the answer is the same.
    penalty : {"l1", "l2", "elasticnet"}
        Deprecated, as in scikit-learn: say ``l1_ratios``.
    scoring : str or callable, optional
        How models are judged on rows they have not seen; None means accuracy. Not giving it warns,
        as in scikit-learn 1.9, where the default is going to be "neg_log_loss".
    solver : str, default="auto"
        As in :class:`LogisticRegression`.
    tol : float, default=1e-4
    max_iter : int, default=100
    class_weight : dict or "balanced", optional
    n_jobs : int, optional
        Accepted as in scikit-learn; the folds are fitted together in any case.
    verbose : int, default=0
    refit : bool, default=True
        False averages the coefficients of the folds at their own best penalties instead; nothing is
        proven about averages.
    intercept_scaling : float, default=1.0
    random_state : int, RandomState or None
    use_legacy_attributes : bool
        True keeps scikit-learn's older shapes of ``scores_``, ``coefs_paths_``, ``n_iter_``, ``C_``
        and ``l1_ratio_``, with dictionaries by class. Not giving it warns, as in scikit-learn.

    Attributes
    ----------
    classes_ : array of shape (k,)
    coef_ : array of shape (1, d) or (k, d)
    intercept_ : array of shape (1,) or (k,)
    Cs_, l1_ratios_ : arrays
        What was tried.
    C_, l1_ratio_ : float
        What was chosen.
    scores_ : array of shape (folds, l1_ratios, Cs)
    coefs_paths_ : array of shape (folds, l1_ratios, Cs, classes, d + 1)
    n_iter_ : array of shape (folds, l1_ratios, Cs)
    certificate_ : Certificate
        Of the last fit, to all rows.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from trueline import LogisticRegressionCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegressionCV(
    ...     Cs=5, l1_ratios=(0,), scoring="neg_log_loss", use_legacy_attributes=False
    ... ).fit(X, y)
    >>> model.C_, bool(model.verify(X, y))
    (100.0, True)
    """

    __metadata_request__score: ClassVar[dict[str, Any]] = {"sample_weight": UNUSED}
    _: KW_ONLY
    Cs: Any = given(10, "int [1, inf)", "array-like")
    l1_ratios: Any = given("warn", "array-like", None, hidden("warn"))
    cv: Any = given(None, "cv_object")
    penalty: Any = given("deprecated", one_of("l1", "l2", "elasticnet"), hidden("deprecated"))
    scoring: Any = given("warn", one_of(*get_scorer_names()), callable, None, hidden("warn"))
    refit: bool = True
    intercept_scaling: float = given(1.0, "(0, inf)")
    use_legacy_attributes: Any = given("warn", "boolean", hidden("warn"))
    warm_start = False
    _is_its_problem = False

    # --- parameters -----------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        self._validate_params()
        if isinstance(self.l1_ratios, str) or self.l1_ratios is None:
            self._deprecated("l1_ratios must be given from scikit-learn 1.10 on: say (0,).")
        if self.penalty != "deprecated":
            self._deprecated("penalty is deprecated: use l1_ratios, (0,) for 'l2', (1,) for 'l1'.")
            if self.penalty != "elasticnet" and not self._has_default_ratios:
                warnings.warn(f"l1_ratios is not used with penalty={self.penalty!r}.", stacklevel=4)
        if isinstance(self.scoring, str) and self.scoring == "warn":
            self._deprecated(
                "scoring=None (accuracy) is going to become 'neg_log_loss': say which one you mean."
            )
        if isinstance(self.use_legacy_attributes, str):
            self._deprecated("use_legacy_attributes=True is going to become False: say which.")

    def _deprecated(self, message: str) -> None:
        warnings.warn(message, FutureWarning, stacklevel=5)

    @property
    def _has_default_ratios(self) -> bool:
        return self.l1_ratios is None or isinstance(self.l1_ratios, str)

    def _grid(self) -> _Grid:
        """The Cs and the mixtures."""
        Cs = np.logspace(-4, 4, self.Cs) if isinstance(self.Cs, Integral) else np.asarray(self.Cs)
        Cs = np.asarray(Cs, dtype=np.float64)
        if Cs.ndim != 1 or not len(Cs) or not (Cs > 0).all():
            raise ValueError(f"Cs must be positive numbers, or how many of them; got {self.Cs!r}.")
        if self.penalty in ("l1", "l2"):
            return _Grid(Cs, np.array([float(self.penalty == "l1")]))
        if self._has_default_ratios and self.penalty != "elasticnet":
            return _Grid(Cs, np.zeros(1))
        given = () if self._has_default_ratios else tuple(self.l1_ratios)
        if not given or not all(isinstance(r, Real) and 0 <= float(r) <= 1 for r in given):
            raise ValueError(
                "l1_ratios must be an array-like of numbers between 0 and 1, got "
                f"{self.l1_ratios!r}."
            )
        return _Grid(Cs, np.asarray(given, dtype=np.float64))

    def _declared_weights(self, y: NDArray[Any], sample_weight: Any) -> Any:
        """Class weights for the folds: "balanced" is about all rows, not those of one fold."""
        given = self.class_weight
        if isinstance(given, dict):
            unknown = set(given) - set(self.classes_)
            if unknown:
                raise ValueError(
                    f"class_weight names {sorted(map(str, unknown))}, which are not among the "
                    f"classes {self.classes_.tolist()}."
                )
        elif given == "balanced":
            values = compute_class_weight(
                given, classes=self.classes_, y=y, sample_weight=sample_weight
            )
            return dict(zip(self.classes_, values))
        return given

    # --- fitting --------------------------------------------------------------------------------

    @takes_batches
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Choose the penalty and fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
            Class labels of any type.
        sample_weight : array-like of shape (n,), optional
        **params : dict
            For the splitter and the scorer, where metadata routing is enabled.

        Returns
        -------
        self : object
        """
        _raise_for_params(params, self, "fit")
        self._check_parameters()
        grid = self._grid()
        self.__dict__.pop("_chosen", None)  # of an earlier fit
        _, X, y = self._validated_problem(X, y, sample_weight, reset=True)
        if not isinstance(X, StackedDesign):
            X = X.tocsr() if sp.issparse(X) else X
            X = X.astype(np.float64, copy=False)
        weights = self._weights(sample_weight, X)
        routed = self._routed(sample_weight, params)
        splitter = check_cv(self.cv, y, classifier=True)
        folds = list(some_folds(splitter.split(X, y, **routed.splitter.split)))
        model = self._single(self._declared_weights(y, sample_weight))
        scorer = self._fold_scorer()
        refuse_nonfinite(X, type(self).__name__)
        fits = _scored_grid(model, X, y, weights, folds, grid, scorer, routed.scorer.score)
        warn_of_gaps(type(self).__name__, "folds and strengths", fits.verdicts)
        scores, coefs, n_iter = fits.scores, fits.coefs, fits.n_iter
        self._choose(X, y, sample_weight, grid, scores, coefs)
        self._remember(grid, scores, coefs, n_iter)
        self._mark_fitted()
        return self

    def _explained_plan(self, X: Any, y: Any, sample_weight: Any) -> Any:
        # What an earlier fit has chosen says nothing about these data.
        fresh = type(self)(**self.get_params(deep=False))
        plan = super(LogisticRegressionCV, fresh)._explained_plan(X, y, sample_weight).plan
        known = [part for part in plan.objective.split(",  ") if not part.startswith(_SEARCHED)]
        return Explanation(replace(plan, objective=",  ".join([*known, self._grid().text])))

    def _penalty(self) -> Penalty:
        """Of what was chosen; before that, of the first pair that is tried."""
        grid = self._grid()
        chosen = self.__dict__.get("_chosen", (float(grid.Cs[0]), float(grid.ratios[0])))
        return penalty_of(self.penalty, *chosen)

    def _single(self, class_weight: Any) -> LogisticRegression:
        """The model of one C, as the folds fit it."""
        same = ("dual", "tol", "fit_intercept", "intercept_scaling", "random_state", "solver")
        settings = {name: getattr(self, name) for name in (*same, "max_iter")}
        model = LogisticRegression(class_weight=class_weight, **settings)
        model.classes_, model.n_features_in_ = self.classes_, self.n_features_in_
        return model

    def _choose(
        self,
        X: Any,
        y: NDArray[Any],
        sample_weight: Any,
        grid: _Grid,
        scores: Array,
        coefs: Array,
    ) -> None:
        """Fit the best pair to all rows, or average what was best in the folds."""
        if self.refit:
            total = scores.sum(axis=0).T  # ties: the smallest C, then the first mixture
            c, r = np.unravel_index(int(np.argmax(total)), total.shape)
            self._chosen = float(grid.Cs[c]), float(grid.ratios[r])
            # The names of the columns and the classes are known from the data as they were given.
            problem, X, y = self._validated_problem(X, y, sample_weight, reset=False)
            self._solve_and_store(problem, X, y, sample_weight)
            return
        flat = np.swapaxes(scores, 1, 2).reshape(len(scores), -1)
        best = np.unravel_index(flat.argmax(axis=1), (len(grid.Cs), len(grid.ratios)))
        mean = np.mean([coefs[i, r, c] for i, (c, r) in enumerate(zip(*best))], axis=0)
        d = X.shape[1]
        self.coef_ = np.ascontiguousarray(mean[:, :d])
        self.intercept_ = mean[:, d] if self.fit_intercept else np.zeros(len(mean))
        ratio = float(np.mean(grid.ratios[best[1]])) if len(grid.ratios) > 1 else grid.ratios[0]
        self._chosen = float(np.mean(grid.Cs[best[0]])), float(ratio)
        # Nothing is proven about averages of coefficients.
        for name in ("_certificate", "_plan", "_solution_facts", "solver_", "trace_"):
            self.__dict__.pop(name, None)

    def _remember(self, grid: _Grid, scores: Array, coefs: Array, n_iter: Any) -> None:
        """What was tried, in scikit-learn's shapes, old or new."""
        self.C_: Any
        self.l1_ratio_: Any
        self.scores_: Any
        self.coefs_paths_: Any
        self.Cs_, self.l1_ratios_ = grid.Cs, grid.ratios
        C, ratio = self._chosen
        if self.use_legacy_attributes is False:
            self.C_, self.l1_ratio_ = C, ratio
            self.scores_, self.n_iter_ = scores, n_iter
            self.coefs_paths_ = coefs
            return
        names = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        self.C_, self.l1_ratio_ = np.full(len(names), C), np.full(len(names), ratio)
        by_class = np.moveaxis(coefs, 3, 0).swapaxes(2, 3)  # class, fold, C, ratio, coefficient
        of_scores, self.n_iter_ = scores.swapaxes(1, 2), n_iter.swapaxes(1, 2)[None]
        if self._has_default_ratios:
            by_class, of_scores = by_class[:, :, :, 0], of_scores[:, :, 0]
            self.n_iter_ = self.n_iter_[..., 0]
            self.l1_ratios_ = np.array([None])
        self.coefs_paths_ = dict(zip(names, by_class))
        self.scores_ = {name: of_scores.copy() for name in names}

    # --- scores ---------------------------------------------------------------------------------

    def _get_scorer(self) -> Any:
        is_default = self.scoring is None or (
            isinstance(self.scoring, str) and self.scoring == "warn"
        )
        return get_scorer("accuracy" if is_default else self.scoring)

    def _fold_scorer(self) -> Any:
        """The scorer for folds, which may lack classes that log losses must know of."""
        import inspect

        from sklearn.metrics import make_scorer

        scorer = self._get_scorer()
        function = getattr(scorer, "_score_func", None)
        known = inspect.signature(function).parameters if function is not None else {}
        if "labels" not in known or (self.scoring in (None, "warn")):
            return scorer
        extra: dict[str, Any] = {"labels": self.classes_}
        if "pos_label" in known and len(self.classes_) == 2:
            extra["pos_label"] = self.classes_[1]
        return make_scorer(
            function,
            greater_is_better=scorer._sign == 1,
            response_method=scorer._response_method,
            **{**extra, **scorer._kwargs},
        )

    def _routed(self, sample_weight: Any, params: dict[str, Any]) -> Any:
        """Parameters for the splitter and the scorer."""
        if _routing_enabled():
            return process_routing(self, "fit", sample_weight=sample_weight, **params)
        score = dict(params)
        if sample_weight is not None:
            score["sample_weight"] = sample_weight
        return Bunch(splitter=Bunch(split={}), scorer=Bunch(score=score))

    def score(self, X: Any, y: Any, sample_weight: Any = None, **score_params: Any) -> float:
        """The score of new rows, by ``scoring``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        **score_params : dict
            For the scorer, where metadata routing is enabled.

        Returns
        -------
        score : float
        """
        _raise_for_params(score_params, self, "score")
        if sample_weight is not None:
            score_params["sample_weight"] = sample_weight
        if _routing_enabled():
            routed = process_routing(self, "score", **score_params).scorer.score
        else:
            routed = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self._get_scorer()(self, X, y, **routed))

    def get_metadata_routing(self) -> MetadataRouter:
        """Who may ask for which parameters, of scikit-learn's metadata routing.

        Returns
        -------
        routing : MetadataRouter
        """
        return router_of(self, self.cv, self._get_scorer(), ("score", "fit"))
