r"""Covariances of Gaussian processes by their formulas, and their derivatives in the logarithms.

With d_j = (x_j - z_j) / l_j, s = sum_j d_j^2 and r = sqrt(s), scikit-learn's kernels are

    Constant c              c                                       in c    c
    White c                 c I                                     in c    c I
    DotProduct c            x.z + c^2                               in c    2 c^2
    RBF, Matern inf         exp(-s/2)                               in l_j  d_j^2 k
    Matern 1/2              exp(-r)                                 in l_j  d_j^2 k / r
    Matern 3/2              (1 + v) exp(-v),  v = sqrt(3) r         in l_j  3 d_j^2 exp(-v)
    Matern 5/2              (1 + v + v^2/3) exp(-v),  v = sqrt(5) r
                                                        in l_j  5/3 d_j^2 (1 + v) exp(-v)
    RationalQuadratic a     (1 + t)^-a,  t = s / (2 a)              in l    s k / (1 + t)
                                                        in a    a k (t / (1 + t) - log(1 + t))
    ExpSineSquared p        exp(-2 q^2),  q = sin(u) / l,  u = pi |x - z| / p
                                                        in l    4 q^2 k,  in p  4 u cos(u) q k / l

and sums, products and powers of these. Any other kernel is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS, SMALLEST
from trueline.check.kernels import Ball, squares
from trueline.check.rows import as_doubles
from trueline.check.verdict import Refused

__all__ = ["Covariance", "Parameter", "covariance_of", "is_known", "noise_and_rest"]

Array = NDArray[np.float64]


class Parameter(NamedTuple):
    """One free parameter: its value and its bounds."""

    value: float
    low: float
    high: float


class Covariance(NamedTuple):
    """A block of the matrix, its derivatives, and their parameters."""

    K: Ball
    slopes: list[Ball]
    free: list[Parameter]


def _get(kernel: Any, name: str) -> Any:
    return getattr(kernel, name, None)


def _numbers(kernel: Any, name: str, most: int = 1) -> tuple[Array, list[Parameter]]:
    """A positive parameter as numbers; one for each of them that is free."""
    values = as_doubles(np.atleast_1d(_get(kernel, name)), f"the kernel's {name}")
    if values.ndim != 1 or len(values) not in (1, most) or not (values > 0).all():
        raise Refused(f"the kernel's {name} is not positive, or has another size than the rows")
    bounds = _get(kernel, f"{name}_bounds")
    if isinstance(bounds, str):
        return values, []
    limits = as_doubles(np.atleast_2d(bounds), f"the bounds of the kernel's {name}")
    if limits.shape not in ((1, 2), (len(values), 2)) or not (limits[:, 0] > 0).all():
        raise Refused(f"the bounds of the kernel's {name} are not pairs of positive numbers")
    limits = np.broadcast_to(limits, (len(values), 2))
    return values, [Parameter(*map(float, (v, *two))) for v, two in zip(values, limits)]


def covariance_of(kernel: Any, A: Array, B: Array, same: Any) -> Covariance:
    """k(A, B) of a kernel that is known; ``same`` is one where a row of A is that row of B."""
    name = type(kernel).__name__
    if name in ("Sum", "Product"):
        one, two = (covariance_of(part, A, B, same) for part in (kernel.k1, kernel.k2))
        free = one.free + two.free
        if name == "Sum":
            return Covariance(one.K + two.K, one.slopes + two.slopes, free)
        slopes = [slope * two.K for slope in one.slopes] + [one.K * slope for slope in two.slopes]
        return Covariance(one.K * two.K, slopes, free)
    if name == "Exponentiation":
        inner, p = covariance_of(kernel.kernel, A, B, same), float(kernel.exponent)
        outer = p * inner.K.power(p - 1)
        return Covariance(inner.K.power(p), [slope * outer for slope in inner.slopes], inner.free)
    return _LEAVES[name](kernel, A, B, same)


def _inner(kernel: Any) -> list[Any]:
    """The kernels that a sum, product or power is made of."""
    names = {"Sum": ("k1", "k2"), "Product": ("k1", "k2"), "Exponentiation": ("kernel",)}
    return [getattr(kernel, name) for name in names.get(type(kernel).__name__, ())]


def is_known(kernel: Any) -> bool:
    """Whether all parts of a kernel are scikit-learn's, and have a formula here."""
    if not type(kernel).__module__.startswith("sklearn.gaussian_process.kernels"):
        return False
    parts, name = _inner(kernel), type(kernel).__name__
    if name == "Matern" and getattr(kernel, "nu", None) not in (0.5, 1.5, 2.5, np.inf):
        return False
    power = getattr(kernel, "exponent", 1.0) if name == "Exponentiation" else 1.0
    return bool(parts or name in _LEAVES) and power >= 1 and all(map(is_known, parts))


def _amplitude(name: str) -> Callable[[Any, Array, Array, Array], Covariance]:
    def leaf(kernel: Any, A: Array, B: Array, same: Array) -> Covariance:
        (value,), free = _numbers(kernel, name)
        K = Ball(value * (same if name == "noise_level" else np.ones((len(A), len(B)))))
        return Covariance(K, [K] * len(free), free)

    return leaf


def _dot_product(kernel: Any, A: Array, B: Array, same: Array) -> Covariance:
    (value,), free = _numbers(kernel, "sigma_0")
    size = (A.shape[1] + 2) * (EPS * (np.abs(A) @ np.abs(B).T) + SMALLEST)
    square = Ball(value * np.ones((len(A), len(B)))).power(2)
    return Covariance(Ball(A @ B.T, size) + square, [2.0 * square] * len(free), free)


def _distances(A: Array, B: Array, lengths: Array) -> tuple[list[Ball], Ball]:
    """d_j^2, each within 5 units, and their sum, within as many more as it has terms."""
    parts = list(squares(A, B, lengths))
    total, units = sum(parts), (len(parts) + 6) * EPS
    whole = Ball.rounded(total, units * total + len(parts) * SMALLEST)
    if len(lengths) == 1:
        return [whole], whole
    return [Ball.rounded(part, 5 * EPS * part + SMALLEST) for part in parts], whole


def _stationary(kernel: Any, A: Array, B: Array, same: Array) -> Covariance:
    """RBF and Matern."""
    lengths, free = _numbers(kernel, "length_scale", A.shape[1])
    parts, s = _distances(A, B, lengths)
    nu = float(getattr(kernel, "nu", np.inf))
    if nu == np.inf:
        K = (s * -0.5).exp()
        slope = K
    else:
        v = (s * (2 * nu)).sqrt()
        decay = (v * -1.0).exp()
        if nu == 0.5:
            K = decay
            inverse = np.where(v.mid > 0, 1 / np.where(v.mid > 0, v.mid, 1.0), 0.0)
            # d_j^2 / r with r within so many units of itself; zero where r is.
            slope = decay * Ball(inverse, (A.shape[1] + 8) * EPS * inverse)
        elif nu == 1.5:
            K, slope = (v + 1.0) * decay, 3.0 * decay
        else:
            K, slope = (s * (5 / 3) + v + 1.0) * decay, (v + 1.0) * decay * (5 / 3)
    return Covariance(K, [slope * part for part in parts] if free else [], free)


def _rational(kernel: Any, A: Array, B: Array, same: Array) -> Covariance:
    lengths, free_length = _numbers(kernel, "length_scale")
    (a,), free_a = _numbers(kernel, "alpha")
    _, s = _distances(A, B, lengths)
    t = s * (0.5 / a) * Ball(1.0, EPS)
    logarithm = t.log1p()
    K = (logarithm * -a).exp()
    inverse = (logarithm * -1.0).exp()  # 1 / (1 + t)
    in_a = K * (t * inverse + logarithm * -1.0) * a
    in_length = s * K * inverse
    slopes = [in_a] * len(free_a) + [in_length] * len(free_length)
    return Covariance(K, slopes, free_a + free_length)


def _periodic(kernel: Any, A: Array, B: Array, same: Array) -> Covariance:
    (length,), free_length = _numbers(kernel, "length_scale")
    (period,), free_period = _numbers(kernel, "periodicity")
    _, s = _distances(A, B, np.ones(1))
    u = s.sqrt() * (np.pi / period) * Ball(1.0, 2 * EPS)
    q = u.smooth(np.sin) * (1 / length) * Ball(1.0, EPS)
    K = (q * q * -2.0).exp()
    in_length = q * q * K * 4.0
    in_period = u * u.smooth(np.cos) * q * K * (4 / length) * Ball(1.0, EPS)
    slopes = [in_length] * len(free_length) + [in_period] * len(free_period)
    return Covariance(K, slopes, free_length + free_period)


_LEAVES: dict[str, Callable[[Any, Array, Array, Array], Covariance]] = {
    "ConstantKernel": _amplitude("constant_value"),
    "WhiteKernel": _amplitude("noise_level"),
    "DotProduct": _dot_product,
    "RBF": _stationary,
    "Matern": _stationary,
    "RationalQuadratic": _rational,
    "ExpSineSquared": _periodic,
}


def noise_and_rest(kernel: Any) -> tuple[list[float], list[Any]]:
    """A sum of kernels as variances of noise and other terms, whose variance is constant."""
    if not is_known(kernel) or type(kernel).__name__ == "DotProduct":
        raise Refused("a part of the kernel is not known, or its variance is not constant")
    parts, name = [noise_and_rest(part) for part in _inner(kernel)], type(kernel).__name__
    if name == "Sum":
        return parts[0][0] + parts[1][0], parts[0][1] + parts[1][1]
    if name == "WhiteKernel":
        return [float(_numbers(kernel, "noise_level")[0][0])], []
    for constant, (noise, rest) in zip(_inner(kernel)[::-1], parts):
        if name == "Product" and type(constant).__name__ == "ConstantKernel" and not rest:
            value = float(_numbers(constant, "constant_value")[0][0])
            return [value * level for level in noise], []
    return [], [kernel]
