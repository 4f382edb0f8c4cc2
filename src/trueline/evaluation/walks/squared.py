r"""Least squares and ridge regression from fold moments, all strengths from one decomposition.

The moments of the training rows are those of all rows minus those of the test rows
(:mod:`trueline.selection.folds`), so that the data are read once, whatever the number of folds and
strengths. Wide data take one kernel matrix for each fold.

Least squares without a penalty needs the directions in which the training rows vary. They are told
from the moments where no eigenvalue e is doubtful: each is above 1e-6 or below 1e-12 of the
largest, so that coefficients keep ten digits and what is left out is rounding. Otherwise the rows
are factored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from trueline.evaluation.task import FoldRows, Task
from trueline.evaluation.walks.base import Fits, Walk
from trueline.evaluation.walks.refit import Refit
from trueline.guard import Verdict
from trueline.moments import Moments
from trueline.selection.spectrum import Spectrum

__all__ = ["LeastSquaresWalk", "RidgeWalk"]

Array = NDArray[np.float64]

_KEPT, _LOST = 1e-6, 1e-12
# The gap, relative to half the square of the target, up to which a fit counts as solved.
_CLOSE = 1e-6


class RidgeWalk(Walk):
    """Ridge regression of numbers or of signs, for all strengths."""

    @property
    def route(self) -> str:  # type: ignore[override]
        return "exact from fold moments: one decomposition for each fold serves all strengths"

    def fit(self, fold: FoldRows) -> Fits:
        moments = fold.task.moment_folds(bool(self.model.fit_intercept))
        alphas = np.array([float(alpha) for alpha in self.values("alpha")])
        W, b = moments.folds[fold.number].coefficients(moments.total, alphas)
        W, judged = np.moveaxis(W, 2, 1), list[Verdict]()
        if moments.total is not None:
            train = moments.folds[fold.number].training_moments(moments.total)
            judged = _judge(train, W, alphas, bool(self.model.fit_intercept))
        return self.as_linear(fold, W, b.T, judged)


def _judge(train: Moments, W: Array, alphas: Array, fit_intercept: bool) -> list[Verdict]:
    """||g||^2 / (2 alpha) for W of shape (d, m, k), from the moments of the training rows."""
    about = train if fit_intercept else train.about_zero()
    d, m, k = W.shape
    g = (about.gram @ W.reshape(d, m * k)).reshape(W.shape) - about.cross[:, None]
    g += alphas[:, None] * W
    gaps = 0.5 * (g**2).sum(axis=(0, 2)) / alphas
    allowed = _CLOSE * 0.5 * float(about.y_square.sum()) + 1e-280
    return [Verdict(bool(gap <= allowed), float(gap), allowed) for gap in gaps]


class LeastSquaresWalk(Walk):
    """Least squares without a penalty; there are no settings."""

    route = "exact from fold moments"

    def fit(self, fold: FoldRows) -> Fits:
        found = _from_spectrum(fold.task, fold.number, bool(self.model.fit_intercept))
        if found is None:
            return Refit(clone(self.model), self.settings).fit(fold)
        W, b, verdict = found
        count = len(self.settings)
        W, b = np.repeat(W[:, None], count, 1), np.repeat(b[None], count, 0)
        return self.as_linear(fold, W, b, [verdict] * count)


def _from_spectrum(
    task: Task, number: int, fit_intercept: bool
) -> tuple[Array, Array, Verdict] | None:
    """Coefficients of least norm and what is proven of them, unless a direction is doubtful."""
    moments = task.moment_folds(fit_intercept)
    if moments.total is None:
        return None
    train = moments.folds[number].training_moments(moments.total)
    spectrum = Spectrum.from_moments(train, fit_intercept)
    share = spectrum.values / max(float(spectrum.values.max(initial=0.0)), 1e-300)
    kept = share > _KEPT
    if (share[~kept] > _LOST).any() or not train.is_ordinary():
        return None
    assert spectrum.directions is not None
    Q, e = spectrum.directions[:, kept], spectrum.values[kept]
    W = Q @ (spectrum.projected[kept] / e[:, None])
    about = train if fit_intercept else train.about_zero()
    g = (Q.T @ (about.gram @ W - about.cross)) / np.sqrt(e)[:, None]
    gap, allowed = 0.5 * float((g**2).sum()), _CLOSE * 0.5 * float(about.y_square.sum()) + 1e-280
    return W, spectrum.y_mean - spectrum.x_mean @ W, Verdict(gap <= allowed, gap, allowed)
