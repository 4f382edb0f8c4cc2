r"""Kernels by their formulas, with bounds on the rounding of every value.

    linear           x.z                              poly       (gamma x.z + coef0)^degree
    cosine           x.z / (|x| |z|)                  sigmoid    tanh(gamma x.z + coef0)
    rbf              exp(-gamma |x - z|^2)            laplacian  exp(-gamma sum_j |x_j - z_j|)
    additive_chi2    -sum_j (x_j - z_j)^2 / (x_j + z_j)     chi2 exp(gamma additive_chi2)

gamma is 1 / (number of columns) if it is absent. Positive semi-definite by formula (B. Schoelkopf,
A. J. Smola, "Learning with Kernels", 2002, chapter 13): linear, cosine, rbf, laplacian and chi2
with gamma >= 0, and poly with gamma >= 0, coef0 >= 0 and a whole degree >= 0.

Covariances of Gaussian processes by their formulas, and their derivatives in the logarithms.

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

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from trueline.check.arithmetic import EPS, SMALLEST, Array, Ball
from trueline.check.rows import as_doubles, as_matrix, length
from trueline.check.schema import Field, parameters, read, shape_of
from trueline.check.verdict import Refused, told

_VALUES = 1_000_000  # kernel values at a time
_FILLED = 0.1  # sparse rows of which more is filled are taken as dense
_DEFINITE = ("linear", "cosine", "rbf", "laplacian", "chi2")
_FIELDS = {
    "name": Field(kind="text"),
    "gamma": Field(low=0.0, optional=True),
    "degree": Field(low=0.0, high=1000.0, optional=True),
    "coef0": Field(optional=True),
}


def differences(A: Array, B: Array) -> Iterable[Array]:
    """x_j - z_j of all pairs of rows, column by column; each errs by half a unit."""
    return (A[:, j, None] - B[None, :, j] for j in range(A.shape[1]))


def total(terms: Iterable[Array], m: int) -> Ball:
    """The sum of m terms >= 0, each of which errs by at most 6 units."""
    added = sum(terms)
    return Ball.rounded(added, (m + 8) * EPS * added + m * SMALLEST)


def _terms(A: Any, B: Any) -> int:
    """The largest number of terms in a row."""
    counts = (np.diff(M.indptr).max(initial=0) if sp.issparse(M) else M.shape[1] for M in (A, B))
    return int(max(counts))


def _dense(M: Any) -> Any:
    return M.toarray() if sp.issparse(M) else M


def _squared_lengths(A: Any) -> Array:
    return np.asarray((A * A).sum(axis=1)).reshape(-1, 1)


def products(A: Any, B: Any) -> Ball:
    """x.z of all pairs of rows."""
    P, size, m = _dense(A @ B.T), _dense(abs(A) @ abs(B).T), _terms(A, B)
    return Ball.rounded(P, (m + 2) * EPS * size + m * SMALLEST)


def _distances(A: Any, B: Any, gamma: float) -> Ball:
    """|x - z|^2: by products where that is accurate enough for gamma, or rows are sparse."""
    a, b, m = A, B, _terms(A, B)
    if not sp.issparse(A):
        # Any shift keeps distances; x - shift is rounded relative to itself.
        shift = B.mean(axis=0) if len(B) else 0.0
        a, b = A - shift, B - shift
    own, other = _squared_lengths(a), _squared_lengths(b)
    worst = own.max(initial=0.0) + other.max(initial=0.0)
    if not sp.issparse(A) and not gamma * (4 * m + 32) * EPS * worst < 1e-11:
        return total((d**2 for d in differences(A, B)), m)
    size = own + other.T
    rad = (2 * m + 16) * EPS * size + 4 * (m + 1) * SMALLEST
    return Ball.rounded(np.maximum(size - 2 * _dense(a @ b.T), 0.0), rad)


class PairwiseKernel:
    """Blocks of the matrix of one of the named kernels, a given matrix, or a function.

    Parameters
    ----------
    kernel : object with the attributes, or mapping with the keys, name or metric, gamma, degree,
        coef0; mapping with a function of two rows as its metric, and its options; or a function of
        two matrices
    X : array-like or sparse matrix
        Rows, or their kernel matrix ("precomputed").

    Attributes
    ----------
    n : int
    is_definite : bool
        Whether the formula is known to be positive semi-definite.
    said : str
        How the statement names it.
    """

    def __init__(self, kernel: Any, X: Any) -> None:
        given = {"name": None} if callable(kernel) else parameters(kernel)
        metric = given.pop("metric", given["name"])
        if callable(kernel) or callable(metric):
            rows, said = _called(kernel, metric, given, X)
            self.name, self.said = "precomputed", f"the kernel as {said} itself computes it"
        else:
            if set(given) - set(_FIELDS):
                raise Refused("the kernel holds what is no name, gamma, degree or coef0")
            self.own, rows = read({**given, "name": metric}, _FIELDS, {}, {}), as_matrix(X)
            self.name, self.said = self.own.name, f"the kernel {self.own.name!r}"
        self.X: Any = rows
        self.n, self.K, self.is_definite = length(X), None, False
        if self.name == "precomputed":
            if rows.shape != (self.n, self.n):
                raise Refused(f"the kernel matrix of {self.n} rows has the shape {rows.shape}")
            self.K = Ball.symmetric(_dense(rows))
            return
        if sp.issparse(rows):  # entries may be stored as sums of several
            self.X = rows.copy()
            self.X.sum_duplicates()
            if self.X.nnz > _FILLED * self.X.shape[0] * self.X.shape[1]:
                self.X = self.X.toarray()
        own, is_power = self.own, self.name in ("poly", "polynomial")
        own.gamma = 1.0 / max(self.X.shape[1], 1) if own.gamma is None else own.gamma
        if (is_power or self.name == "sigmoid") and None in (own.coef0, own.degree):
            raise Refused("the kernel lacks a parameter")
        whole = is_power and own.degree == int(own.degree) and own.coef0 >= 0
        self.is_definite = whole or self.name in _DEFINITE

    def block(self, rows: Any, columns: Any) -> Ball:
        """Values of some rows with others."""
        if self.K is not None:
            return self.K[rows][:, columns]
        A, B, name, gamma = self.X[rows], self.X[columns], self.name, self.own.gamma
        if name == "linear":
            return products(A, B)
        if name == "cosine":
            return _cosine(A, B)
        if name in ("poly", "polynomial", "sigmoid"):
            inner = products(A, B) * gamma + self.own.coef0
            return inner.smooth(np.tanh) if name == "sigmoid" else inner.power(self.own.degree)
        if name == "rbf":
            away = _distances(A, B, gamma)
        elif name == "laplacian":
            away = total(map(np.abs, differences(_dense(A), _dense(B))), A.shape[1])
        elif name in ("chi2", "additive_chi2"):
            away = _chi2(_dense(A), _dense(B))
        else:
            raise Refused(f"the kernel {name!r} is not known")
        return -away if name == "additive_chi2" else (away * -gamma).exp()

    def whole(self) -> Ball:
        """The matrix."""
        step = max(1, _VALUES // max(1, self.n))
        every = range(0, self.n, step)
        return Ball.stack(self.block(slice(i, i + step), slice(None)) for i in every)

    def scores(self, rows: Any, columns: Any, coef: Array) -> Ball:
        """K[rows, columns] @ coef."""
        step = max(1, _VALUES // max(1, len(columns)))
        every = range(0, max(len(rows), 1), step)
        return Ball.stack(self.block(rows[i : i + step], columns).dot(coef) for i in every)


def _chi2(A: Array, B: Array) -> Ball:
    if (A < 0).any() or (B < 0).any():
        raise Refused("chi2 is for numbers that are not negative")
    both = (A[:, j, None] + B[None, :, j] for j in range(A.shape[1]))
    pairs = zip(map(np.abs, differences(A, B)), both)
    return total((d * (d / np.where(d > 0, sums, 1.0)) for d, sums in pairs), A.shape[1])


def _cosine(A: Any, B: Any) -> Ball:
    sizes = [_dense(abs(M).max(axis=1)).reshape(-1, 1) for M in (A, B)]
    if any(((size > 0) & ~((size > 1e-140) & (size < 1e140))).any() for size in sizes):
        raise Refused("rows whose squares leave the range of doubles")
    both = np.sqrt(_squared_lengths(A)) * np.sqrt(_squared_lengths(B)).T
    K = products(A, B).mid / np.where(both > 0, both, 1.0)
    return Ball(K, (4 * _terms(A, B) + 16) * EPS)


def _called(kernel: Any, metric: Any, options: dict[str, Any], X: Any) -> tuple[Array, str]:
    """The matrix of a function of two matrices, or of two rows, as it computes it; its name."""
    options = {key: value for key, value in options.items() if key != "name"}
    try:
        function = kernel if callable(kernel) else metric
        said = f"the function {getattr(function, '__name__', type(function).__name__)!s:.80}"
        if function is kernel:
            return as_matrix(_dense(kernel(X, X))), said
        X = as_matrix(X)
        rows = [X[[i], :] if sp.issparse(X) else X[i] for i in range(X.shape[0])]
        K = np.empty((len(rows), len(rows)))
        for i, x in enumerate(rows):
            for j in range(i + 1):  # it is symmetric
                K[i, j] = K[j, i] = np.asarray(metric(rows[j], x, **options)).item()
        return as_doubles(K, "the kernel matrix"), said
    except Exception as error:
        raise Refused(f"the kernel function fails: {told(error)}") from None


def definite_shift(K: Ball) -> float:
    """How much on the diagonal makes a symmetric matrix positive semi-definite, for certain.

    Eigenvalues err by at most 4 n eps ||K||_F and the norm of the error of K.
    """
    if not np.isfinite(K.mid).all():
        return np.inf
    rad = np.linalg.norm(K.rad) + 4 * len(K.mid) * EPS * np.linalg.norm(K.mid)
    return max(0.0, float(rad - np.linalg.eigvalsh(K.mid)[0])) * (1 + 8 * EPS)


# --- covariances of Gaussian processes ---------------------------------------------------------

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
        _, s = _scaled_distances(A, B, np.ones(1))
        u = s.sqrt() * (np.pi / k.values[1][0]) * Ball(1.0, 2 * EPS)
        q = u.smooth(np.sin) * (1 / p[0]) * Ball(1.0, EPS)
        K = (q * q * -2.0).exp()
        in_period = u * u.smooth(np.cos) * q * K * (4 / p[0]) * Ball(1.0, EPS)
        return K, [[q * q * K * 4.0], [in_period]]
    parts, s = _scaled_distances(A, B, k.values[-1])
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


def _scaled_distances(A: Array, B: Array, lengths: Array) -> tuple[list[Ball], Ball]:
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
