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

and sums, products and whole powers of these. A kernel is read once, as plain numbers between 1e-100
and 1e100, so that nothing overflows or underflows unseen; any other kernel is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.check.formulas.kernels import Ball, differences, products, total
from trueline.check.numbers.arithmetic import EPS, SMALLEST
from trueline.check.schema import Field, read, shape_of
from trueline.check.verdict import Refused

__all__ = ["ProcessKernel", "covariance_of", "noise_and_rest", "recognised"]

Array = NDArray[np.float64]

#: The parameters of each kernel, in the order of their derivatives.
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "ConstantKernel": ("constant_value",),
    "WhiteKernel": ("noise_level",),
    "DotProduct": ("sigma_0",),
    "RBF": ("length_scale",),
    "Matern": ("length_scale",),
    "RationalQuadratic": ("alpha", "length_scale"),
    "ExpSineSquared": ("length_scale", "periodicity"),
    **dict.fromkeys(("Sum", "Product", "Exponentiation"), ()),
}
_INNER = {"Sum": ("k1", "k2"), "Product": ("k1", "k2"), "Exponentiation": ("kernel",)}
_MOST = 200  # kernels in a sum or product


class ProcessKernel(NamedTuple):
    """A kernel as plain data: its parameters, those that are free, the kernels it is made of."""

    name: str
    values: list[Array]
    free: list[Array]  # rows of value, lower and upper bound; none of what is fixed
    inner: list[ProcessKernel]
    order: float  # nu of Matern, the exponent of a power

    def all_free(self) -> Array:
        """Value and bounds of the free parameters, in the order of the derivatives."""
        return np.vstack([np.empty((0, 3)), *self.free, *(part.all_free() for part in self.inner)])


def recognised(kernel: Any, room: Iterator[int] | None = None) -> ProcessKernel | None:
    """A kernel as plain data; None if it, or a part of it, has no formula here."""
    room = iter(range(_MOST)) if room is None else room
    if next(room, None) is None:
        raise Refused("the kernel has too many parts")
    name, home = type(kernel).__name__, type(kernel).__module__
    if name not in _PARAMETERS or home != "sklearn.gaussian_process.kernels":
        return None
    found = [recognised(vars(kernel).get(part), room) for part in _INNER.get(name, ())]
    inner, order = [part for part in found if part is not None], np.inf
    if name in ("Matern", "Exponentiation"):
        order = _numbers(kernel, "nu" if name == "Matern" else "exponent", finite=False)
        is_whole = 1 <= order <= 1000 and order == int(order)
        if not (order in (0.5, 1.5, 2.5, np.inf) if name == "Matern" else is_whole):
            return None
    if len(inner) < len(found):
        return None
    own = [_parameter(kernel, parameter) for parameter in _PARAMETERS[name]]
    return ProcessKernel(name, [v for v, _ in own], [free for _, free in own], inner, order)


def _numbers(kernel: Any, name: str, **limits: Any) -> Any:
    """An attribute of a kernel, as numbers of the shape that it has."""
    value = vars(kernel).get(name)
    shape = tuple("abc"[: len(shape_of(value))])
    return getattr(read({name: value}, {name: Field(shape, **limits)}, {}, {}), name)


def _parameter(kernel: Any, name: str) -> tuple[Array, Array]:
    """A positive parameter as numbers, and those of them that are free, with their bounds."""
    values = np.atleast_1d(_numbers(kernel, name, low=1e-100, high=1e100))
    one = type(kernel).__name__ not in ("RBF", "Matern")
    if values.ndim != 1 or len(values) == 0 or (one and len(values) > 1):
        raise Refused(f"the kernel's {name} is no number, or there are too many")
    bounds = vars(kernel).get(f"{name}_bounds")
    if type(bounds) is str and bounds == "fixed":
        return values, np.empty((0, 3))
    limits = np.atleast_2d(_numbers(kernel, f"{name}_bounds", low=SMALLEST))
    if limits.shape not in ((1, 2), (len(values), 2)):
        raise Refused(f"the bounds of the kernel's {name} are not pairs of numbers")
    return values, np.column_stack([values, np.broadcast_to(limits, (len(values), 2))])


def covariance_of(k: ProcessKernel, A: Array, B: Array, same: Array) -> tuple[Ball, list[Ball]]:
    """k(A, B) and its derivatives; ``same`` is one where a row of A is that row of B."""
    if not k.inner:
        K, each = _leaf(k, A, B, same)
        return K, [slope for own, free in zip(each, k.free) if len(free) for slope in own]
    one, slopes = covariance_of(k.inner[0], A, B, same)
    if k.name == "Exponentiation":
        outer = k.order * one.power(k.order - 1)
        return one.power(k.order), [slope * outer for slope in slopes]
    two, others = covariance_of(k.inner[1], A, B, same)
    if k.name == "Sum":
        return one + two, slopes + others
    return one * two, [slope * two for slope in slopes] + [one * slope for slope in others]


def _leaf(k: ProcessKernel, A: Array, B: Array, same: Array) -> tuple[Ball, list[list[Ball]]]:
    """A kernel that is made of no others, and for each parameter its derivatives."""
    p, ones = k.values[0], np.ones((len(A), len(B)))
    if k.name in ("ConstantKernel", "WhiteKernel"):
        K = Ball(p[0] * (same if k.name == "WhiteKernel" else ones))
        return K, [[K]]
    if k.name == "DotProduct":
        square = Ball(p[0] * ones).power(2)
        return products(A, B) + square, [[2.0 * square]]
    if k.name == "ExpSineSquared":
        _, s = _distances(A, B, np.ones(1))
        u = s.sqrt() * (np.pi / k.values[1][0]) * Ball(1.0, 2 * EPS)
        q = u.smooth(np.sin) * (1 / p[0]) * Ball(1.0, EPS)
        K = (q * q * -2.0).exp()
        in_period = u * u.smooth(np.cos) * q * K * (4 / p[0]) * Ball(1.0, EPS)
        return K, [[q * q * K * 4.0], [in_period]]
    parts, s = _distances(A, B, k.values[-1])
    if k.name == "RationalQuadratic":
        t = s * (0.5 / p[0]) * Ball(1.0, EPS)
        logarithm = t.log1p()
        K, inverse = (logarithm * -p[0]).exp(), (-logarithm).exp()  # 1 / (1 + t)
        return K, [[K * (t * inverse - logarithm) * p[0]], [s * K * inverse]]
    K, slope = _stationary(s, k.order, A.shape[1])
    return K, [[slope * part for part in parts]]


def _stationary(s: Ball, nu: float, d: int) -> tuple[Ball, Ball]:
    """RBF or Matern, and what d_j^2 is multiplied by in the derivative."""
    if nu == np.inf:
        K = (s * -0.5).exp()
        return K, K
    v = (s * (2 * nu)).sqrt()
    decay = (-v).exp()
    if nu == 1.5:
        return (v + 1.0) * decay, 3.0 * decay
    if nu == 2.5:
        third = Ball(5 / 3, EPS)
        return (s * third + v + 1.0) * decay, (v + 1.0) * decay * third
    # d_j^2 / r <= r with r within so many units of itself; below 1e-140 it is left to the error.
    inverse, tiny = 1 / np.maximum(v.mid, 1e-140), v.mid <= 1e-140
    rad = np.where(tiny, 1.0, (d + 8) * EPS) * inverse
    return decay, decay * Ball(np.where(tiny, 0.0, inverse), rad)


def _distances(A: Array, B: Array, lengths: Array) -> tuple[list[Ball], Ball]:
    """d_j^2, or s if there is one length, each within 5 units; and s."""
    if len(lengths) not in (1, A.shape[1]):
        raise Refused(f"{len(lengths)} length scales for {A.shape[1]} columns")
    scales = np.broadcast_to(lengths, A.shape[1])
    parts = [(away / scale) ** 2 for away, scale in zip(differences(A, B), scales)]
    s = total(parts, len(parts))
    return ([s] if len(lengths) == 1 else [total([part], 1) for part in parts]), s


def noise_and_rest(k: ProcessKernel) -> tuple[list[float], list[ProcessKernel]]:
    """A sum of kernels as variances of noise and other terms, whose variance is constant."""
    if k.name == "WhiteKernel":
        return [float(k.values[0][0])], []
    parts = [noise_and_rest(part) for part in k.inner]
    if k.name == "Sum":
        return parts[0][0] + parts[1][0], parts[0][1] + parts[1][1]
    for constant, (noise, rest) in zip(k.inner[::-1], parts):
        if k.name == "Product" and constant.name == "ConstantKernel":
            c = float(constant.values[0][0])
            return [c * level for level in noise], [k._replace(inner=[constant, r]) for r in rest]
    if k.name == "DotProduct" or any(noise for noise, _ in parts):
        raise Refused("noise is multiplied by another kernel, or the variance is not constant")
    return [], [k]
