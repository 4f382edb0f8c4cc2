"""Sines and cosines: for what repeats, and with random frequencies for a kernel.

Random ones make a kernel an inner product, and it is said how far that is from the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.utils import check_random_state

from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.features.base import FeatureMap


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


Array = NDArray[np.float64]


def pair_bound(n_frequencies: int, confidence: float, pairs: float = 1.0) -> float:
    """An error that one pair of points, or each of so many pairs, exceeds with small probability.

    phi(x).phi(y) is the mean of m independent cos(omega.(x - y)) in [-1, 1], so that Hoeffding's
    inequality gives P(error >= e) <= 2 exp(-m e^2 / 2), times the number of pairs.
    """
    return min(2.0, float(np.sqrt(2.0 / n_frequencies * np.log(2.0 * pairs / (1.0 - confidence)))))


def uniform_bound(
    n_frequencies: int, n_columns: int, spread: float, diameter: float, confidence: float
) -> float:
    """An error that no pair of points in a set of this diameter exceeds, with this probability.

    Proposition 1 of D. Sutherland and J. Schneider, On the error of random Fourier features (UAI
    2015), with alpha = 1, which sharpens the constants of Claim 1 of A. Rahimi and B. Recht (NIPS
    2007); m frequencies, spread^2 = E ||omega||^2:

        P(sup error >= e) <= beta_d (spread diameter / e)^(2 d / (d + 2)) exp(-m e^2 / (4 (d + 2)))
    """
    d = float(n_columns)
    beta = ((d / 2) ** (-d / (d + 2)) + (d / 2) ** (2 / (d + 2))) * 2 ** ((6 * d + 2) / (d + 2))
    scale = spread * diameter
    if scale == 0.0:
        return 0.0  # one point: k(x, x) = 1 is met exactly

    def excess(e: float) -> float:  # decreasing in e
        tail = np.log(beta) + 2 * d / (d + 2) * np.log(scale / e)
        return float(tail - n_frequencies * e**2 / (4 * (d + 2)) - np.log(1.0 - confidence))

    # The difference of two numbers in [-1, 1] is at most 2: a larger bound says nothing more.
    return 2.0 if excess(2.0) >= 0.0 else float(brentq(excess, 1e-12, 2.0, xtol=1e-12))


@parameters()
class RandomFourierFeatures(FeatureMap):
    """Sines and cosines of random projections, whose inner products approximate a kernel.

    phi(x) = (cos(omega_j.x), sin(omega_j.x)) / sqrt(m), j = 1..m, with omega_j drawn from the
    Fourier transform of the kernel, so that phi(x).phi(y) has the mean k(x, y). A linear model on
    2 m features then stands for a kernel method at a cost linear in the rows. How far the kernel
    was missed at most is known (:meth:`error_bound`).

    Parameters
    ----------
    n_frequencies : int, default=100
        m, half the number of features.
    kernel : {"gaussian", "laplace"}, default="gaussian"
        k(x, y) = exp(-gamma ||x - y||^2) or exp(-gamma sum_j abs(x_j - y_j)).
    gamma : {"scale"} or float, default="scale"
        "scale" is 1 / (d Var(X)), as in scikit-learn's support vector machines.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    frequencies_ : array of shape (d, m)
    gamma_ : float
    n_samples_seen_ : int
        The number of rows seen by ``fit``.
    diameter_ : float
        Of the smallest box around the rows seen by ``fit``.
    error_bound_ : float
        ``error_bound(0.95)``.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import RandomFourierFeatures
    >>> X = np.random.default_rng(0).uniform(size=(50, 2))
    >>> features = RandomFourierFeatures(2000, gamma=1.0, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    >>> bool(np.abs(Z @ Z.T - K).max() < features.error_bound_ < 0.3)
    True
    """

    n_frequencies: int = given(100, "int [1, inf)")
    _: KW_ONLY
    kernel: str = given("gaussian", one_of("gaussian", "laplace"))
    gamma: Any = given("scale", one_of("scale"), "(0, inf)")
    random_state: Any = given(None, "random_state")
    _takes_sparse = True

    def _learn(self, X: Any, y: Any) -> None:
        d, count = X.shape[1], self.n_frequencies
        self.gamma_ = _scale(X) if isinstance(self.gamma, str) else float(self.gamma)
        random = check_random_state(self.random_state)
        if self.kernel == "gaussian":
            self.frequencies_ = np.sqrt(2.0 * self.gamma_) * random.standard_normal((d, count))
        else:
            self.frequencies_ = self.gamma_ * random.standard_cauchy((d, count))
        self.n_samples_seen_ = X.shape[0]
        self.diameter_ = _box_diagonal(X)
        self.error_bound_ = self.error_bound()

    def error_bound(self, confidence: float = 0.95, over: str | None = None) -> float:
        """The largest error of the kernel that is to be expected.

        Parameters
        ----------
        confidence : float, default=0.95
            The probability, over the draw of the frequencies, with which the bound holds.
        over : {"box", "rows", "pair"}, optional
            Which pairs of points: all in the smallest box around the rows seen by ``fit``
            (Sutherland and Schneider, 2015; the Gaussian kernel only), all pairs of those rows
            (Hoeffding's inequality and a union over pairs), or one pair. By default the smaller of
            those that hold for all rows.

        Returns
        -------
        bound : float
            At most 2, which says nothing.
        """
        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}.")
        if over not in (None, "box", "rows", "pair"):
            raise ValueError(f"over must be 'box', 'rows' or 'pair', got {over!r}.")
        if over == "pair":
            return pair_bound(self.n_frequencies, confidence)
        pairs = max(1.0, self.n_samples_seen_ * (self.n_samples_seen_ - 1) / 2)
        rows = pair_bound(self.n_frequencies, confidence, pairs)
        if over == "rows":
            return rows
        if self.kernel == "laplace":
            if over is None:
                return rows
            raise ValueError(
                "The Laplace kernel has a kink, and frequencies without variance: there is no "
                "bound over a box. over='rows' bounds the error on the rows of fit."
            )
        d = self.n_features_in_
        spread = float(np.sqrt(2.0 * self.gamma_ * d))  # E ||omega||^2 = 2 gamma d
        box = uniform_bound(self.n_frequencies, d, spread, self.diameter_, confidence)
        return box if over == "box" else min(box, rows)

    def _map(self, X: Any) -> Any:
        angles = np.asarray(X @ self.frequencies_)  # double: high frequencies have large angles
        scale = 1.0 / np.sqrt(self.n_frequencies)
        features = np.empty((X.shape[0], 2 * self.n_frequencies), dtype=X.dtype)
        features[:, 0::2], features[:, 1::2] = np.cos(angles) * scale, np.sin(angles) * scale
        return features

    def _names(self, inputs: Sequence[str]) -> list[str]:
        return [f"{wave}(w{j}.x)" for j in range(self.n_frequencies) for wave in ("cos", "sin")]

    def _details(self) -> list[str]:
        return [
            f"map        random waves of the {self.kernel} kernel, gamma = {self.gamma_:.4g}",
            f"error      at most {self.error_bound_:.3g} on the kernel of all rows, with "
            "probability 0.95",
        ]


def _scale(X: Any) -> float:
    mean = X.mean()
    square = X.multiply(X).mean() if hasattr(X, "multiply") else float(np.mean(np.square(X - mean)))
    variance = float(square - mean**2) if hasattr(X, "multiply") else square
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def _box_diagonal(X: Any) -> float:
    ranges = X.max(axis=0) - X.min(axis=0)
    ranges = ranges.toarray() if hasattr(ranges, "toarray") else ranges
    return float(np.linalg.norm(np.asarray(ranges, dtype=np.float64)))
