r"""The logistic loss of two classes and of several (softmax): minus the log-likelihood of the
label.

Of two classes, y in {-1, +1}, with the margin m = y z and p = 1 / (1 + exp(m)), the probability
given to the other class,

    l(z)   = log(1 + exp(-m))
    l'(z)  = -y p
    l''(z) = p (1 - p)
    l*(u)  = p log p + (1 - p) log(1 - p)      for u = -y p,  0 <= p <= 1

Nothing overflows: l(z) = max(-m, 0) + log(1 + exp(-abs(m))). The curvature changes slowly,
abs(l''') <= l'', so that l''(z + e) >= exp(-abs(e)) l''(z) (F. Bach, "Self-concordant analysis for
logistic regression", Electron. J. Statist. 4 (2010) 384-414).

In softmax regression the target of a row is one-hot, y_k = 1 for its class; its k scores are
coupled. With p_k = exp(z_k) / sum_l exp(z_l),

    l(z)      = log sum_l exp(z_l) - y.z
    l'(z)     = p - y
    l''(z) t  = p t - p (p.t)
    l*(u)     = sum_k p_k log p_k        for p = u + y in the simplex

A loss per score is asked for: y_k (log sum_l exp(z_l) - z_k), which adds up to l over the classes.
Along a change e of the scores the curvature keeps at least the factor exp(min_k e_k - max_k e_k):
with v_k = t_k - p.t the third derivative is a mean of v_k^2 (e_k - p.e), at most the range of e
times the mean of v_k^2. For two classes it is the logistic loss of z_2 - z_1.

Compiled loops over rows take the derivatives of a loss of margins, l(y, z) = phi(y z), from
:func:`derivatives`; a loss that is there says so by its number,
:attr:`trueline.losses.Loss.compiled`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import xlog1py, xlogy

from trueline.losses.base import Array, Loss, labels_are_signs, rows_are_one_hot
from trueline.losses.noise import BERNOULLI, CATEGORICAL, Noise
from trueline.numerics.jit import kernel


@dataclass(frozen=True)
class Logistic(Loss):
    """The logistic loss: ``log(1 + exp(-y z))`` for labels y in {-1, +1}.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import Logistic
    >>> Logistic().value(np.array([1.0, 1.0, -1.0]), np.array([0.0, 800.0, 800.0])).round(4)
    array([6.931e-01, 0.000e+00, 8.000e+02])
    """

    name: ClassVar[str] = "logistic"
    noise_model: ClassVar[Noise | None] = BERNOULLI
    formula: ClassVar[str] = "log(1 + exp(-y_i z_i))"
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {
            "smooth",
            "curvature",
            "conjugate",
            "dual_entropy",
            "margins",
            "hessian",
            "self_concordant",
            "strictly_convex",
        }
    )

    check_target = labels_are_signs

    @property
    def compiled(self) -> int:
        return 1

    @property
    def curvature_bound(self) -> float:
        return 0.25

    @property
    def least_at_mistake(self) -> float:
        return float(np.log(2.0))  # at equal scores

    @property
    def slope_bound(self) -> float:
        return 1.0

    def value(self, y: Array, z: Array) -> Array:
        margin = y * z
        return np.maximum(-margin, 0.0) + np.log1p(np.exp(-np.abs(margin)))

    def gradient(self, y: Array, z: Array) -> Array:
        small = np.exp(-np.abs(z))
        # The probability of the other class, each branch without cancellation.
        return -y * np.where(y * z >= 0, small, 1.0) / (1.0 + small)

    def curvature(self, y: Array, z: Array) -> Array:
        small = np.exp(-np.abs(y * z))
        return small / (1.0 + small) ** 2

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array]:
        small = np.exp(-np.abs(z))
        share = 1.0 / (1.0 + small)
        return -y * (np.where(y * z >= 0, small, 1.0) * share), small * share * share

    def least_curvature(self, y: Array, z: Array, reach: Array) -> Array:
        # The curvature falls with the distance of the score from zero.
        small = np.exp(-(np.abs(y * z) + reach))
        return small / (1.0 + small) ** 2

    def conjugate(self, y: Array, u: Array) -> Array:
        p = -y * u
        inside = (p >= 0) & (p <= 1)
        p = np.where(inside, p, 0.5)
        return np.where(inside, xlogy(p, p) + xlog1py(1 - p, -p), np.inf)

    def project_dual(self, y: Array, u: Array) -> Array:
        return np.where(y > 0, np.clip(u, -1.0, 0.0), np.clip(u, 0.0, 1.0))

    def least_margin(self, level: float) -> float:
        # log(1 + exp(-m)) <= level; expm1 would overflow where the answer is -level.
        return float(-level - np.log(-np.expm1(-level)))

    def constant(self, y: Array, weights: Array) -> Array:
        positive = weights @ (y > 0)
        return np.log(positive) - np.log(weights.sum() - positive)


@dataclass(frozen=True)
class Softmax(Loss):
    """The multinomial loss: ``log(sum_l exp(z_l)) - z_y`` for the row's class y, one-hot.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import Softmax
    >>> y, z = np.array([[0.0, 1.0, 0.0]]), np.array([[0.0, 800.0, 0.0]])
    >>> Softmax().value(y, z), Softmax().gradient(y, 0 * z).round(3)
    (array([[0., 0., 0.]]), array([[ 0.333, -0.667,  0.333]]))
    """

    name: ClassVar[str] = "softmax"
    noise_model: ClassVar[Noise | None] = CATEGORICAL
    formula: ClassVar[str] = "log(sum_l exp(z_il)) - sum_l y_il z_il"
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"smooth", "coupled", "hessian", "multinomial", "margins", "self_concordant"}
    )

    check_target = rows_are_one_hot

    @property
    def curvature_bound(self) -> float:
        return 0.5

    @property
    def least_at_mistake(self) -> float:
        return float(np.log(2.0))  # at equal scores

    @property
    def slope_bound(self) -> float:
        return 1.0

    def value(self, y: Array, z: Array) -> Array:
        # Taken from the largest score down, logarithms are at least zero: nothing cancels.
        rows, place = np.arange(len(z)), z.argmax(axis=1)
        below = z - z[rows, place][:, None]
        small = np.exp(below)
        small[rows, place] = 0.0
        rest = np.log1p(_sums(small))
        return np.where(y != 0, rest - below, 0.0)

    def probabilities(self, z: Array) -> Array:
        """exp(z_k) / sum_l exp(z_l), row by row."""
        small = np.exp(z - _largest(z))
        return small / _sums(small)

    def gradient(self, y: Array, z: Array) -> Array:
        # p_y - 1 as minus the sum of the others: rows that are well classified keep their digits.
        small = np.exp(z - _largest(z))
        own = y != 0
        others = np.where(own, 0.0, small)
        total, whole = _sums(others), _sums(small)
        return np.where(own, -total, others) / whole

    def gradient_and_terms(self, y: Array, z: Array) -> tuple[Array, Array]:
        p, own = self.probabilities(z), y != 0
        others = np.where(own, 0.0, p)
        return np.where(own, -_sums(others), others), p

    def curvature(self, y: Array, z: Array) -> Array:
        """The diagonal p (1 - p) of the second derivative."""
        p = self.probabilities(z)
        return p * (1.0 - p)

    def hessian_terms(self, y: Array, z: Array) -> Array:
        return self.probabilities(z)

    def hessian_product(self, hessian_terms: Array, change: Array) -> Array:
        along = np.einsum("ij,ij->i", hessian_terms, change)[:, None]
        return hessian_terms * (change - along)

    def hessian_diagonal(self, hessian_terms: Array) -> Array:
        return hessian_terms * (1.0 - hessian_terms)

    def conjugate(self, y: Array, u: Array) -> Array:
        p = u + y
        inside = (p >= 0).all(axis=1) & (np.abs(p.sum(axis=1) - 1) <= 4e-16 * p.shape[1])
        return np.where(inside[:, None], xlogy(p, np.where(p > 0, p, 1.0)), np.inf)

    def project_dual(self, y: Array, u: Array) -> Array:
        """The nearest point whose p is in the simplex (W. Wang, M. Carreira-Perpinan, 2013)."""
        p = u + y
        n, k = p.shape
        down = -np.sort(-p, axis=1)
        share = (1.0 - np.cumsum(down, axis=1)) / np.arange(1, k + 1)
        count = np.count_nonzero(down + share > 0, axis=1)
        return np.maximum(p + share[np.arange(n), count - 1][:, None], 0.0) - y

    def least_margin(self, level: float) -> float:
        # log sum_l exp(z_l) - z_y is at least log(1 + exp(z_l - z_y)) for every other l.
        return float(-level - np.log(-np.expm1(-level)))

    def constant(self, y: Array, weights: Array) -> Array:
        with np.errstate(divide="ignore"):
            logarithms = np.log(weights @ y)
        return logarithms - logarithms.mean()


# NumPy reduces along short rows entry by entry; these take a fifth of the time.


def _largest(z: Array) -> Array:
    return functools.reduce(np.maximum, z.T)[:, None]


def _sums(z: Array) -> Array:
    return np.asarray(np.einsum("ij->i", z))[:, None]


LOGISTIC, SQUARED_HINGE = 1, 2


def derivatives_of_arrays(loss: int, y: Array, z: Array, s: Array, u: Array, h: Array) -> None:
    """s l' and s l'' of some rows, without loops."""
    if loss == LOGISTIC:
        u[:], h[:] = Logistic().derivatives(y, z)
    else:
        short = np.maximum(0.0, 1.0 - y * z)
        u[:], h[:] = -2.0 * y * short, 2.0 * (short > 0.0)
    u *= s
    h *= s


@kernel(reassociate=True, whole=derivatives_of_arrays)
def derivatives(loss: int, y: Array, z: Array, s: Array, u: Array, h: Array) -> None:
    """s l' and s l'' of some rows."""
    if loss == LOGISTIC:
        for i in range(len(z)):
            h[i] = math.exp(-abs(z[i]))
        for i in range(len(z)):
            small = h[i]
            share = 1.0 / (1.0 + small)
            # The probability of the other class, each branch without cancellation.
            u[i] = -y[i] * s[i] * (small if y[i] * z[i] >= 0.0 else 1.0) * share
            h[i] = s[i] * small * share * share
    else:
        for i in range(len(z)):
            short = max(0.0, 1.0 - y[i] * z[i])
            u[i] = -2.0 * y[i] * s[i] * short
            h[i] = 2.0 * s[i] if short > 0.0 else 0.0
