"""Sequential feature selection as scikit-learn does it, without refitting least squares."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SequentialFeatureSelector as _Refitting
from sklearn.model_selection import cross_val_score
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.metadata_routing import _routing_enabled, process_routing
from sklearn.utils.validation import check_is_fitted

from trueline.design import as_design
from trueline.estimators.linear_regression import LinearRegression
from trueline.estimators.ridge import Ridge
from trueline.losses import Squared
from trueline.penalties import NoPenalty
from trueline.problem import Problem
from trueline.selection.stepwise.folds import fold_tableaux
from trueline.selection.stepwise.scores import SCORES, FoldScores
from trueline.threads import single_threaded_blas

__all__ = ["SequentialFeatureSelector"]

Mask = NDArray[np.bool_]

# Solvers that give the least-squares answer to rounding; iterative ones stop at a tolerance.
_DIRECT = {"auto", "cholesky", "svd", "qr", "kernel"}
# Tableaux of more bytes than this are not made: scikit-learn's way needs no memory.
_MOST_BYTES = 2 << 30


class SequentialFeatureSelector(_Refitting):
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
        For each step the ``feature`` that came in (or went out), the ``score`` of the model then,
        and ``n_features``.
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

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Choose the features.

        Ctrl-C ends the search; the features chosen so far are kept.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, k), optional
        **params
            Routed to the estimator, the splitter and the scorer, if metadata routing is enabled.

        Returns
        -------
        self : object
        """
        self._steps: list[dict[str, Any]] = []
        self._way = ""
        self._scores: FoldScores | None = None
        self._mask: Mask | None = None
        try:
            super().fit(X, y, **params)
        except KeyboardInterrupt:
            self._keep_what_was_found()
        finally:
            self._scores, self._mask = None, None
        changed = int(self.support_.sum())
        changed = changed if self.direction == "forward" else len(self.support_) - changed
        self.history_ = self._steps[:changed]  # the last try may not have been worth it
        del self._steps
        return self

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
            stacklevel=3,
        )

    # --- one step -------------------------------------------------------------------------------

    def _get_best_new_feature_score(
        self, estimator: Any, X: Any, y: Any, cv: Any, current_mask: Mask, **params: Any
    ) -> tuple[int, float]:
        """The feature whose exchange scores best: scikit-learn's hook for one step."""
        self._mask = current_mask.copy()  # complete so far
        if not self._steps:
            self._scores = self._make_scores(estimator, X, y, cv, params)
        refit = _Refits(self, estimator, X, y, cv, params)
        best = None if self._scores is None else self._from_moments(current_mask, refit)
        if best is None:
            best = super()._get_best_new_feature_score(estimator, X, y, cv, current_mask, **params)
        feature, score = int(best[0]), float(best[1])
        size = int(current_mask.sum()) + 1
        size = size if self.direction == "forward" else len(current_mask) - size
        self._steps.append({"feature": feature, "score": score, "n_features": size})
        return feature, score

    def _from_moments(self, mask: Mask, refit: _Refits) -> tuple[int, float] | None:
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
        if len(close) == 1:
            best, score = int(close[0]), float(values[close[0]])
        else:
            again = {int(j): refit(mask, int(j)) for j in close}
            best = max(again, key=again.__getitem__)
            score = again[best]
        return best, self._decided(mask, best, score, float(np.nanmax(rounding[open_])), refit)

    def _decided(
        self, mask: Mask, best: int, score: float, rounding: float, refit: _Refits
    ) -> float:
        """The score, such that its comparison with the last one and ``tol`` comes out right."""
        if self.tol is None or self.n_features_to_select != "auto" or not self._steps:
            return score
        before = self._steps[-1]["score"]
        if abs(score - before - self.tol) > 4 * rounding:
            return score
        last = int(self._steps[-1]["feature"])
        without = mask.copy()
        without[last] = False
        return float(before + (refit(mask, best) - refit(without, last)))

    # --- which way ------------------------------------------------------------------------------

    def _make_scores(
        self, estimator: Any, X: Any, y: Any, cv: Any, params: dict[str, Any]
    ) -> FoldScores | None:
        """Scores from moments, if they mean the same as refitting."""
        model = _least_squares(estimator)
        name = "r2" if self.scoring is None else self.scoring
        if isinstance(model, str):
            self._way = f"refits: {model}"
        elif not isinstance(name, str) or name not in SCORES:
            self._way = f"refits: scoring={self.scoring!r} is not a function of squared errors"
        elif not isinstance(X, np.ndarray) or sp.issparse(X):
            self._way = "refits: X is not a dense array"
        elif isinstance(getattr(cv, "random_state", None), np.random.RandomState):
            self._way = "refits: the splitter draws new folds from its generator for each candidate"
        else:
            return self._checked_scores(model, name, X, y, cv, params)
        return None

    def _checked_scores(
        self, model: tuple[bool, float], name: str, X: Any, y: Any, cv: Any, params: dict[str, Any]
    ) -> FoldScores | None:
        fit_intercept, strength = model
        split_params: dict[str, Any] = {}
        if params and _routing_enabled():
            routed = process_routing(self, "fit", **params)
            split_params = dict(routed.splitter.split)
            if routed.estimator.fit or routed.scorer.score:
                self._way = "refits: metadata are routed to the estimator or the scorer"
                return None
        try:
            # What scikit-learn would complain about in every fit is left to it.
            y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
            check_consistent_length(X, y)
            splits = list(cv.split(X, y, **split_params))
            dtype = X.dtype if X.dtype == np.float32 else np.float64
            design = as_design(np.ascontiguousarray(X, dtype=dtype))
            Y = y.reshape(len(y), -1)
            size = 16 * len(splits) * (X.shape[1] + Y.shape[1]) ** 2
            if y.ndim > 2 or not splits or size > _MOST_BYTES:
                self._way = "refits: too many columns and folds to keep their Gram matrices"
                return None
            problem = Problem(design, Y, Squared(), NoPenalty(), fit_intercept)
            with np.errstate(over="ignore", invalid="ignore"):
                tableaux, helds, total = fold_tableaux(problem, splits, strength)
        except (ValueError, TypeError, IndexError) as error:
            self._way = f"refits: {error}"
            return None
        ordinary = total.is_finite() and max(total.x_size.max(), total.y_size.max()) < 1e200
        unit = 64 * float(np.finfo(dtype).eps) if dtype == np.float32 else 0.0
        scores = FoldScores(tableaux, helds, name, unit)
        if not ordinary or not scores.is_usable:
            self._way = "refits: the target of a fold does not vary, or numbers are too large"
            return None
        self._way = f"moments of {len(splits)} folds: no refits except between near ties"
        return scores

    def explain(self) -> str:
        """Say which way the features were scored, and what each step chose.

        Returns
        -------
        text : str
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        sign = "+" if self.direction == "forward" else "-"
        lines = [f"scored by  {self._way}", f"{'features':>8}  {'score':>12}  change"]
        for step in self.history_:
            j = step["feature"]
            name = f"x{j}" if names is None else names[j]
            lines.append(f"{step['n_features']:>8}  {step['score']:>12.8g}  {sign} {name}")
        return "\n".join(lines)


class _Refits:
    """Scores a candidate by cross-validation with refits, as scikit-learn does."""

    def __init__(self, owner: Any, estimator: Any, X: Any, y: Any, cv: Any, params: Any) -> None:
        self.owner, self.estimator, self.cv, self.params = owner, estimator, cv, params
        self.X, self.y = X, y

    def __call__(self, mask: Mask, feature: int) -> float:
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


def _least_squares(estimator: Any) -> tuple[bool, float] | str:
    """Intercept and strength of an estimator whose answer is least squares; else why not."""
    from sklearn import linear_model

    kind = type(estimator)
    plain = kind in (LinearRegression, linear_model.LinearRegression)
    if not plain and kind not in (Ridge, linear_model.Ridge):
        return f"{kind.__name__} is not least squares"
    alpha = 0.0 if plain else estimator.alpha
    if estimator.positive or getattr(estimator, "solver", "auto") not in _DIRECT:
        return "coefficients are bounded, or a solver stops at a tolerance"
    if not isinstance(alpha, Real) or not 0 <= float(alpha) < np.inf:
        return f"alpha={alpha!r} is not one strength"
    if getattr(estimator, "_skl_callbacks", None):
        return "callbacks watch the fits"
    return bool(estimator.fit_intercept), float(alpha)
