"""Sequential feature selection as scikit-learn does it, without refitting least squares.

The features of a step are scored from the moments of folds, or by refitting.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import utils
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SequentialFeatureSelector as _Refitting
from sklearn.model_selection import check_cv, cross_val_score
from sklearn.utils import assert_all_finite
from sklearn.utils.metadata_routing import _routing_enabled, process_routing

from trueline.design import as_design
from trueline.design.stacked import StackedDesign
from trueline.estimators.regression.linear_regression import LinearRegression
from trueline.estimators.regression.ridge import Ridge
from trueline.estimators.shared.report import ExplainMixin
from trueline.estimators.shared.validation import (
    check_array,
    naming_columns,
    numeric_target,
    takes_batches,
    validate_data,
    wrappers,
)
from trueline.losses import Squared
from trueline.numerics.blas import single_threaded_blas
from trueline.penalties import NoPenalty
from trueline.problem import Problem
from trueline.selection.stepwise.pricing import SCORES, FoldScores
from trueline.selection.stepwise.tableau import fold_tableaux
from trueline.wording import counted

Mask = NDArray[np.bool_]

# Solvers that give the least-squares answer to rounding; iterative ones stop at a tolerance.
_DIRECT = {"auto", "cholesky", "svd", "qr", "kernel"}
# Tableaux of more bytes than this are not made: scikit-learn's way needs no memory.
_MOST_BYTES = 2 << 30


class Refits:
    """Scores a candidate by cross-validation with refits, as scikit-learn does."""

    def __init__(self, owner: Any, estimator: Any, X: Any, y: Any, cv: Any, params: Any) -> None:
        self.owner, self.estimator, self.cv, self.params = owner, estimator, cv, params
        self.X, self.y = X, y
        self.count = 0

    def __call__(self, mask: Mask, feature: int) -> float:
        self.count += 1
        candidate = mask.copy()
        candidate[feature] = True
        if self.owner.direction == "backward":
            candidate = ~candidate
        scores = cross_val_score(
            self.estimator,
            self.X[:, candidate],
            self.y,
            cv=self.cv,
            scoring=self.owner.scoring,
            n_jobs=self.owner.n_jobs,
            params=self.params,
        )
        return float(scores.mean())


@dataclass(frozen=True)
class Route:
    """What scores from moments are made of."""

    X: Any
    Y: Any
    splits: list[Any]
    fit_intercept: bool
    strength: float
    name: str

    @property
    def words(self) -> str:
        return f"moments of {len(self.splits)} folds; refits only between near ties"

    def scores(self) -> FoldScores:
        """Scores of exchanges; raises where rounding, or memory, forbids them."""
        if 16 * len(self.splits) * (self.X.shape[1] + self.Y.shape[1]) ** 2 > _MOST_BYTES:
            raise NeedsRefits("the Gram matrices of so many columns and folds take too much memory")
        problem = Problem(as_design(self.X), self.Y, Squared(), NoPenalty(), self.fit_intercept)
        try:
            with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
                tableaux, helds, total = fold_tableaux(problem, self.splits, self.strength)
        except (ValueError, IndexError) as error:  # an empty fold, say
            raise NeedsRefits(str(error)) from None
        if not total.is_finite() or max(total.x_size.max(), total.y_size.max()) > 1e200:
            raise NeedsRefits("squares of these numbers overflow")
        # Answers in single precision can be compared no better than they are.
        unit = 64 * float(np.finfo(np.float32).eps) if self.X.dtype == np.float32 else 0.0
        scores = FoldScores(tableaux, helds, self.name, unit)
        if not scores.is_usable:
            raise NeedsRefits("the target does not vary within the test rows of a fold")
        return scores


class NeedsRefits(Exception):
    """Why moments would not mean the same as refitting."""


def score_name(scoring: Any) -> str:
    """The score, if it is a function of squared errors."""
    if scoring is None:
        return "r2"
    if isinstance(scoring, str) and scoring in SCORES:
        return scoring
    raise NeedsRefits(f"scoring={scoring!r} is not a function of squared errors")


def least_squares(estimator: Any) -> tuple[bool, float]:
    """Intercept and strength of an estimator whose answer is least squares."""
    from sklearn import linear_model

    kind = type(estimator)
    plain = kind in (LinearRegression, linear_model.LinearRegression)
    if not plain and kind not in (Ridge, linear_model.Ridge):
        raise NeedsRefits(f"{kind.__name__} is not least squares")
    if estimator.positive or getattr(estimator, "solver", "auto") not in _DIRECT:
        raise NeedsRefits("coefficients are bounded, or a solver stops at a tolerance")
    alpha = 0.0 if plain else estimator.alpha
    if not isinstance(alpha, Real) or not 0 <= float(alpha) < np.inf:
        raise NeedsRefits(f"alpha={alpha!r} is not one strength")
    if getattr(estimator, "_skl_callbacks", None):
        raise NeedsRefits("callbacks watch the fits")
    return bool(estimator.fit_intercept), float(alpha)


def checked(X: Any, y: Any, cv: Any, split_params: dict[str, Any]) -> tuple[Any, Any, list[Any]]:
    """Dense X of single or double precision, y of double precision, and the folds."""
    if not isinstance(X, np.ndarray | StackedDesign):
        raise NeedsRefits("X is not a dense array")
    try:
        y = utils.check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False)
        utils.check_consistent_length(X, y)
        splits = list(cv.split(X, y, **split_params))
        if isinstance(X, np.ndarray):
            X = X.astype(X.dtype if X.dtype == np.float32 else np.float64, copy=False)
    except (ValueError, TypeError) as error:  # scikit-learn has its own words for it
        raise NeedsRefits(str(error)) from None
    return X, y.reshape(len(y), -1), splits


def _needs_rows(reason: Any) -> TypeError:
    """The error for batches that would have to be fitted again and again."""
    return TypeError(
        f"SequentialFeatureSelector would work by refits: {reason}. These need the rows in memory: "
        "give it rows.toarray() and rows.target."
    )


class SequentialFeatureSelector(ExplainMixin, _Refitting):
    """Choose features one by one, by the cross-validated score of an estimator.

    A drop-in for ``sklearn.feature_selection.SequentialFeatureSelector``: the same parameters, the
    same folds, the same features. Where the estimator is :class:`LinearRegression` or
    :class:`Ridge` (of this package or of scikit-learn), the data are dense and the score is R^2 or
    the (root) mean squared error, all candidates are scored from the moments of the folds, which
    takes milliseconds instead of one fit per candidate and fold. A fold's coefficients minimise ::

        1/2 sum_i s_i (y_i - x_i.w - b)^2 + alpha/2 ||w||^2        (alpha = 0 without penalty)

    over its training rows, s_i being 1. Candidates whose scores are too close to be told apart, or
    that depend on features already chosen, are decided by refitting, as scikit-learn does for all.
    Everything else (other estimators, other scores, sparse data, weights) is left to scikit-learn's
    implementation; :meth:`explain` says which way was taken and why.

    Parameters
    ----------
    estimator : estimator instance
        Unfitted.
    n_features_to_select : "auto", int or float, default="auto"
        How many: a number, a fraction, or "auto", which with ``tol`` goes on while the score
        improves by at least ``tol`` and without it takes half of the features.
    tol : float, optional
        For "auto": stop when the score improves by less. Negative values are for "backward".
    direction : {"forward", "backward"}, default="forward"
    scoring : str, callable or None
        None is the estimator's own score.
    cv : int, splitter, iterable or None, default=5
        A splitter that shuffles without a seed is asked once, and all candidates are compared on
        the same folds (scikit-learn draws new folds for each candidate).
    n_jobs : int, optional
        For refits.

    Attributes
    ----------
    support_ : array of bool of shape (d,)
    n_features_to_select_ : int
        How many were chosen.
    history_ : list of dict
        The books: for each step the ``feature`` that came in (or went out), the ``score`` of the
        model then, ``n_features``, and how many candidates needed ``refits``.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import LinearRegression, SequentialFeatureSelector
    >>> X, y = load_diabetes(return_X_y=True)
    >>> selector = SequentialFeatureSelector(LinearRegression(), n_features_to_select=3).fit(X, y)
    >>> selector.get_support(indices=True)
    array([2, 3, 8])
    >>> [step["feature"] for step in selector.history_]
    [2, 8, 3]
    """

    _doc_link_module = "trueline"

    support_: Mask
    n_features_to_select_: int
    history_: list[dict[str, Any]]
    #: During a fit: rows that are read elsewhere.
    _rows: StackedDesign | None = None

    @takes_batches
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Choose the features.

        Ctrl-C ends the search; the features chosen so far are kept.

        Parameters
        ----------
        X : array-like of shape (n, d), or batches of :func:`trueline.open`
            Batches are read once.
        y : array-like of shape (n,) or (n, k), optional
        **params
            Routed to the estimator, the splitter and the scorer, if metadata routing is enabled.

        Returns
        -------
        self : object
        """
        self.history_ = []
        self._way = ""
        self._scores: FoldScores | None = None
        self._mask: Mask | None = None
        if isinstance(X, StackedDesign):
            # scikit-learn goes through the steps, for which it needs the shape of the rows alone.
            self._rows, X = X, np.broadcast_to(0.0, X.shape)
        try:
            with self._naming(X, y):
                super().fit(X, y, **params)
        except KeyboardInterrupt:
            self._keep_what_was_found()
        finally:
            names = None if self._rows is None else self._rows.columns
            self._scores, self._mask = None, None
            self.__dict__.pop("_rows", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        changed = int(self.support_.sum())
        changed = changed if self.direction == "forward" else len(self.support_) - changed
        self.history_ = self.history_[:changed]  # the last try may not have been worth it
        return self

    def transform(self, X: Any) -> Any:
        """The chosen columns.

        Parameters
        ----------
        X : array-like of shape (n, d), or batches of :func:`trueline.open`

        Returns
        -------
        chosen : array of shape (n, k), or batches
        """
        if isinstance(X, StackedDesign):
            return validate_data(self, X, reset=False)[:, np.flatnonzero(self.get_support())]
        return super().transform(X)

    @contextmanager
    def _naming(self, X: Any, y: Any) -> Iterator[None]:
        """Errors that name the column or the target that holds words, not that all fits failed."""
        last = self.estimator
        last = last.steps[-1][1] if hasattr(last, "steps") else last
        predicts_numbers = hasattr(last, "fit") and is_regressor(last)  # not a name, say
        target = numeric_target(last, y) if predicts_numbers and y is not None else nullcontext()
        with naming_columns(X, type(self).__name__), target:
            yield

    def _keep_what_was_found(self) -> None:
        """After Ctrl-C: the features of the last complete step; without one, give up."""
        mask = self._mask
        if mask is None or not mask.any():
            raise KeyboardInterrupt
        self.support_ = mask if self.direction == "forward" else ~mask
        self.n_features_to_select_ = int(self.support_.sum())
        warnings.warn(
            f"The search was interrupted after step {int(mask.sum())}; the features chosen so far "
            "are kept.",
            ConvergenceWarning,
            stacklevel=3 + wrappers(type(self).fit),
        )

    # --- one step -------------------------------------------------------------------------------

    def _get_best_new_feature_score(
        self, estimator: Any, X: Any, y: Any, cv: Any, current_mask: Mask, **params: Any
    ) -> tuple[int, float]:
        """The feature whose exchange scores best: scikit-learn's hook for one step."""
        self._mask = current_mask.copy()  # complete so far
        if not self.history_:
            self._scores = self._make_scores(estimator, X, y, cv, params)
        refit = Refits(self, estimator, X, y, cv, params)
        best = None if self._scores is None else self._from_moments(current_mask, refit)
        if best is None and self._rows is not None:
            raise _needs_rows("the columns depend on each other")
        if best is None:
            refit.count = int((~current_mask).sum())
            best = super()._get_best_new_feature_score(estimator, X, y, cv, current_mask, **params)
        feature, score = int(best[0]), float(best[1])
        size = int(current_mask.sum()) + 1
        size = size if self.direction == "forward" else len(current_mask) - size
        step = {"feature": feature, "score": score, "n_features": size, "refits": refit.count}
        self.history_.append(step)
        return feature, score

    def _from_moments(self, mask: Mask, refit: Refits) -> tuple[int, float] | None:
        """The best exchange by fold moments; None where they cannot tell."""
        scores = self._scores
        assert scores is not None
        with single_threaded_blas():
            scores.follow(mask if self.direction == "forward" else ~mask)
            if not scores.is_determined:
                return None
            values, rounding = scores.exchanges()
        open_ = ~mask
        known = open_ & np.isfinite(values) & np.isfinite(rounding)
        if not known.any():
            return None
        # What may be the best, as far as rounding goes; of the others it is certain that they are
        # not. Unknown ones (dependent columns) may be anything.
        bar = np.max(values[known] - rounding[known])
        close = np.flatnonzero(open_ & ~(known & (values + rounding < bar)))
        if self._rows is not None:  # near ties are not worth a pass over the rows for each
            close = close[[np.nanargmax(values[close])]]
        if len(close) == 1:
            best, score = int(close[0]), float(values[close[0]])
        else:
            again = {int(j): refit(mask, int(j)) for j in close}
            best = max(again, key=again.__getitem__)
            score = again[best]
        return best, self._decided(mask, best, score, float(np.nanmax(rounding[open_])), refit)

    def _decided(
        self, mask: Mask, best: int, score: float, rounding: float, refit: Refits
    ) -> float:
        """The score, such that its comparison with the last one and ``tol`` comes out right."""
        if self.tol is None or self.n_features_to_select != "auto" or not self.history_:
            return score
        before = self.history_[-1]["score"]
        if self._rows is not None or abs(score - before - self.tol) > 4 * rounding:
            return score
        last = int(self.history_[-1]["feature"])
        without = mask.copy()
        without[last] = False
        return float(before + (refit(mask, best) - refit(without, last)))

    # --- which way ------------------------------------------------------------------------------

    def _make_scores(
        self, estimator: Any, X: Any, y: Any, cv: Any, params: dict[str, Any]
    ) -> FoldScores | None:
        """Scores from moments, if they mean the same as refitting."""
        try:
            route = self._route(estimator, X, y, cv, params)
            scores = route.scores()
        except NeedsRefits as reason:
            self._way = f"refits: {reason}"
            if self._rows is not None:
                raise _needs_rows(reason) from None
            return None
        self._way = route.words
        return scores

    def _route(self, estimator: Any, X: Any, y: Any, cv: Any, params: dict[str, Any]) -> Route:
        """The way by moments, as far as one can tell without looking at the numbers."""
        split_params = self._split_params(cv, params)
        name = score_name(self.scoring)
        fit_intercept, strength = least_squares(estimator)
        X, y, splits = checked(X if self._rows is None else self._rows, y, cv, split_params)
        # Refits would fail one by one, and leave a choice between no scores.
        assert_all_finite(y, input_name="y", estimator_name=type(self).__name__)
        return Route(X, y, splits, fit_intercept, strength, name)

    def _split_params(self, cv: Any, params: dict[str, Any]) -> dict[str, Any]:
        """The metadata of the splitter; others are for fits."""
        if isinstance(getattr(cv, "random_state", None), np.random.RandomState):
            raise NeedsRefits("the splitter draws new folds from its generator for each candidate")
        if not params or not _routing_enabled():
            return {}
        routed = process_routing(self, "fit", **params)
        if routed.estimator.fit or routed.scorer.score:
            raise NeedsRefits("metadata are routed to the estimator or the scorer")
        return dict(routed.splitter.split)

    def _lines_done(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        sign = "+" if self.direction == "forward" else "-"
        lines = [
            f"scored by  {self._way}",
            f"{'features':>8}  {'score':>12}  {'refits':>6}  change",
        ]
        for step in self.history_:
            j = step["feature"]
            name = f"x{j}" if names is None else names[j]
            lines.append(
                f"{step['n_features']:>8}  {step['score']:>12.8g}  {step['refits']:>6}  "
                f"{sign} {name}"
            )
        return lines

    def _lines_planned(self, X: Any, y: Any) -> list[str]:
        if y is None:
            raise ValueError("explain(X, y) needs the target y beside X.")
        self._validate_params()
        if not isinstance(X, StackedDesign):
            X = check_array(X, accept_sparse="csc", ensure_min_features=2, ensure_all_finite=False)
        d, wanted = X.shape[1], self.n_features_to_select
        if isinstance(self.cv, Iterator):
            way = "the given folds, by moments or by refits: reading the folds would use them up"
        else:
            cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
            try:
                way = self._route(self.estimator, X, y, cv, {}).words
            except NeedsRefits as reason:
                way = f"refits: {reason}"
        if wanted == "auto":
            kept = d - 1 if self.tol is not None else d // 2
        else:
            kept = int(wanted) if isinstance(wanted, Integral) else int(d * wanted)
        steps = kept if wanted == "auto" or self.direction == "forward" else d - kept
        candidates = sum(d - step for step in range(steps))
        open_ended = wanted == "auto" and self.tol is not None
        until = f", ending when the score improves by less than {self.tol:g}" if open_ended else ""
        start = "none" if self.direction == "forward" else "all"
        return [
            f"search     {self.direction}, from {start} of {d} features: "
            f"{'at most ' * open_ended}{counted(steps, 'step')}{until}",
            f"score      {self.scoring or 'the score of the estimator'}; "
            f"{'at most ' * open_ended}{counted(candidates, 'candidate')}",
            f"by         {way}",
        ]
