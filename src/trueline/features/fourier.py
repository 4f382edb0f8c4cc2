"""Sines and cosines for what repeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.features.base import FeatureMap

__all__ = ["FourierFeatures"]


@parameters()
class FourierFeatures(FeatureMap):
    """Periodic functions of each column: sin(2 pi k x / period), cos(2 pi k x / period), k = 1..m.

    Hours of the day (period 24), days of the year (365.25), angles (360): the value at the end of a
    period meets the value at its beginning.

    Parameters
    ----------
    period : float or array-like of shape (d,), default=1.0
        After how much a column repeats, one for all or one each.
    harmonics : int, default=1
        How many waves fit into a period at most: the detail of the curve.

    Attributes
    ----------
    period_ : array of shape (d,)
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import FourierFeatures
    >>> waves = FourierFeatures(period=24.0)
    >>> waves.fit_transform([[0.0], [6.0], [24.0]]).round(12)
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    >>> list(waves.get_feature_names_out(["hour"]))
    ['sin(2pi hour/24)', 'cos(2pi hour/24)']
    """

    period: Any = given(1.0, "(0, inf)", "array-like")
    _: KW_ONLY
    harmonics: int = given(1, "int [1, inf)")

    def _learn(self, X: Any, y: Any) -> None:
        period = np.asarray(self.period, dtype=np.float64)
        if period.ndim > 1 or (period.ndim == 1 and len(period) != X.shape[1]):
            raise ValueError(
                f"period must be one number or one per column ({X.shape[1]}), "
                f"got shape {period.shape}."
            )
        if not (np.isfinite(period).all() and (period > 0).all()):
            raise ValueError(f"Periods must be positive and finite, got {self.period!r}.")
        self.period_ = np.broadcast_to(period, X.shape[1]).copy()

    def _map(self, X: Any) -> Any:
        n, d = X.shape
        # The remainder is exact; reducing 2 pi k x instead would round x's phase at large x.
        phase = np.remainder(X.astype(np.float64, copy=False), self.period_) / self.period_
        features = np.empty((n, d, self.harmonics, 2))
        for k in range(1, self.harmonics + 1):
            angle = 2.0 * np.pi * np.remainder(k * phase, 1.0)
            features[:, :, k - 1, 0], features[:, :, k - 1, 1] = np.sin(angle), np.cos(angle)
        return features.reshape(n, -1).astype(X.dtype, copy=False)

    def _names(self, inputs: Sequence[str]) -> list[str]:
        return [
            f"{wave}({2 * k}pi {name}/{period:g})"
            for name, period in zip(inputs, self.period_)
            for k in range(1, self.harmonics + 1)
            for wave in ("sin", "cos")
        ]

    def _details(self) -> list[str]:
        periods = ", ".join(f"{period:g}" for period in self.period_[:6])
        return [
            f"map        sin and cos of 2 pi k x / period, k = 1..{self.harmonics}",
            f"period     {periods}",
        ]
