"""Losses, penalties and objectives in as many digits as are asked for, from their formulas alone.

Nothing of the library is used but the names and parameters of the parts. Rows are lists of
``mpmath`` numbers, whose exponents have no end.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from mpmath import mp, mpf

__all__ = ["Data", "Meaningless", "number", "numbers", "objective", "parts", "penalty_value"]

mp.dps = 50


class Meaningless(Exception):
    """What is claimed is no claim: shapes or numbers that have no meaning here."""


def number(value):
    """A finite number, exactly."""
    array = np.asarray(value)
    if array.shape != () or array.dtype.kind not in "fiub":
        raise Meaningless(f"{value!r} is no number")
    if array.dtype.kind == "f" and not np.isfinite(array):
        raise Meaningless(f"{value!r} is not finite")
    return mpf(int(array)) if array.dtype.kind in "iub" else mpf(float(array))


def numbers(values, shape=None):
    """Nested lists of finite numbers, exactly."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise Meaningless(f"an array of type {array.dtype}")
    if shape is not None and array.shape != tuple(shape):
        raise Meaningless(f"shape {array.shape} where {tuple(shape)} is meant")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise Meaningless("numbers that are not finite")
    if array.ndim == 0:
        return number(array)
    return [numbers(row) for row in array] if array.ndim > 1 else [number(v) for v in array]


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


class Data:
    """Rows of positive weight, exactly; ``place`` says which of the given rows they are."""

    def __init__(self, X, y, weight=None):
        X = dense(X)
        n = len(X)
        s = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
        s = np.broadcast_to(s, (n,))
        self.place = np.flatnonzero(s > 0)
        Y = np.asarray(y)
        Y = Y.reshape(-1, 1) if Y.ndim == 1 else Y
        if X.ndim != 2 or Y.ndim != 2 or len(Y) != n:
            raise Meaningless("rows and targets of other shapes")
        self.array, self.targets, self.weights = (
            np.asarray(X[self.place], dtype=float),
            np.asarray(Y[self.place], dtype=float),
            s[self.place].astype(float),
        )
        self.X, self.y, self.s = numbers(self.array), numbers(self.targets), numbers(self.weights)
        self.n, self.d, self.k = len(self.X), X.shape[1], Y.shape[1]

    def scaled(self, x_power, y_power):
        """The same with columns and targets multiplied by powers of two, which must be exact."""
        if x_power is None and y_power is None:
            return self
        x_power = np.zeros(self.d) if x_power is None else np.asarray(x_power, dtype=float)
        y_power = np.zeros(self.k) if y_power is None else np.asarray(y_power, dtype=float)
        if x_power.shape != (self.d,) or y_power.shape != (self.k,):
            raise Meaningless("powers of two of another shape")
        whole = (x_power == np.round(x_power)).all() and (y_power == np.round(y_power)).all()
        if not whole:
            raise Meaningless("powers of two that are not whole")
        with np.errstate(all="ignore"):
            X = np.ldexp(self.array, x_power.astype(int))
            Y = np.ldexp(self.targets, y_power.astype(int))
            same = np.ldexp(X, -x_power.astype(int)) == self.array
            same_y = np.ldexp(Y, -y_power.astype(int)) == self.targets
        if not (same.all() and same_y.all()):
            raise Meaningless("powers of two that lose digits")
        return Data(X, Y, self.weights)

    def scores(self, W, b):
        return [
            [mp.fdot(zip(row, column)) + b[t] for t, column in enumerate(zip(*W))] if W else list(b)
            for row in self.X
        ]


# --- losses ---------------------------------------------------------------------------------------


def parts(part):
    """Name and parameters of a loss, a penalty or a kernel."""
    if isinstance(part, dict):
        return dict(part)
    own = {} if not hasattr(part, "__dict__") else dict(vars(part))
    return {"name": getattr(part, "name", None), **own}


def _of_target(value, t):
    """A parameter that each target may have its own of."""
    array = np.asarray(value)
    if array.ndim > 1 or array.dtype.kind not in "fiub":
        raise Meaningless(f"parameter {value!r}")
    return number(array[t] if array.ndim else array)


def _sign(y):
    if abs(y) != 1:
        raise Meaningless("labels other than -1 and +1")
    return y


def _positive(value):
    if not value > 0:
        raise Meaningless("a parameter that must be positive")
    return value


def piece(loss, t, y, z):
    """(value, slope, curvature, kink) of the loss of one score; the kink next to z, or None."""
    name = loss["name"]
    r = z - y
    if name == "squared":
        return r * r / 2, r, mpf(1), None
    if name == "absolute":
        return abs(r), mp.sign(r), mpf(0), y
    if name in ("quantile", "ordered_quantiles"):
        q = _of_target(loss["q"], t)
        if not 0 < q < 1:
            raise Meaningless("a quantile beyond 0 and 1")
        return (1 - q) * r if r > 0 else -q * r, (1 - q) if r > 0 else -q, mpf(0), y
    if name == "huber":
        delta = _positive(number(loss["delta"]))
        if abs(r) <= delta:
            return r * r / 2, r, mpf(1), None
        return delta * (abs(r) - delta / 2), delta * mp.sign(r), mpf(0), None
    if name in ("epsilon_insensitive", "squared_epsilon_insensitive"):
        epsilon = number(loss["epsilon"])
        if epsilon < 0:
            raise Meaningless("a negative width")
        beyond = max(abs(r) - epsilon, mpf(0))
        if name == "epsilon_insensitive":
            kink = y + epsilon if r > 0 else y - epsilon
            return beyond, mp.sign(r) if beyond > 0 else mpf(0), mpf(0), kink
        return beyond**2, 2 * beyond * mp.sign(r), mpf(2 if beyond > 0 else 0), None
    if name in ("hinge", "squared_hinge"):
        c = _positive(_of_target(loss.get("positive", 1.0), t)) if _sign(y) > 0 else mpf(1)
        short = max(1 - y * z, mpf(0))
        if name == "hinge":
            return c * short, -y * c if short > 0 else mpf(0), mpf(0), y
        return c * short**2, -2 * y * c * short, 2 * c if short > 0 else mpf(0), None
    if name == "logistic":
        m = _sign(y) * z
        p = 1 / (1 + mp.exp(m)) if m < 700 else mp.exp(-m)
        value = max(-m, mpf(0)) + mp.log1p(mp.exp(-abs(m)))
        return value, -y * p, p * (1 - p), None
    if name in ("poisson", "gamma", "tweedie"):
        power = {"poisson": mpf(1), "gamma": mpf(2)}.get(name)
        power = number(loss["power"]) if power is None else power
        if not 1 <= power <= 2:
            raise Meaningless("a power that is not convex")
        return _log_deviance(power, y, z)
    if name == "deviance":
        return _deviance(number(loss["power"]), loss["link"], y, z)
    raise Meaningless(f"the loss {name!r}")


def _log_deviance(power, y, z):
    if y < 0 or (y == 0 and power == 2):
        raise Meaningless("a target that the deviance does not have")
    a, c = 2 - power, power - 1
    rising = mp.exp(a * z) if a > 0 else mpf(1)
    falling = y * mp.exp(-c * z)
    slope, curvature = rising - falling, a * rising + c * falling
    if y == 0:
        return mp.exp(a * z) / a, slope, curvature, None
    r = z - mp.log(y)
    value = mpf(0)
    if a > 0:
        value += (mp.expm1(a * r) - a * r) / a
    if c > 0:
        value += (mp.expm1(-c * r) + c * r) / c
    return y**a * value, slope, curvature, None


def _deviance(p, link, y, z):
    if link not in ("log", "identity") or 0 < p < 1:
        raise Meaningless("a deviance that there is not")
    if (p >= 2 and y <= 0) or (p >= 1 and y < 0):
        raise Meaningless("a target that the deviance does not have")
    if link == "identity" and z <= 0:
        return mp.inf, mpf(0), mpf(0), None
    m = mp.exp(z) if link == "log" else z
    a, q = 2 - p, 1 - p
    if y > 0:
        r = mp.log(m / y)
        first = (mp.expm1(a * r) - a * r) / a if a != 0 else mpf(0)
        second = (mp.expm1(q * r) - q * r) / q if q != 0 else mpf(0)
        value = y**a * (first - second)
    else:
        value = m**a / a - (y * m**q / q if q != 0 else y * mp.log(m))
        value += y * y / 2 if p == 0 else 0
    if link == "log":
        return value, m**a - y * m**q, a * m**a - q * y * m**q, None
    return value, m**q - y * m**-p, q * m**-p + p * y * m ** (-p - 1), None


def _row_loss(loss, y, z):
    """The loss of one row, its scores coupled or not."""
    name = loss["name"]
    if name in ("softmax", "crammer_singer"):
        if sorted(y) != [0] * (len(y) - 1) + [1]:
            raise Meaningless("rows that are not one-hot")
        own = mp.fdot(zip(y, z))
        if name == "softmax":
            top = max(z)
            return top + mp.log(mp.fsum(mp.exp(v - top) for v in z)) - own
        return max(v + 1 - one for v, one in zip(z, y)) - own
    return mp.fsum(piece(loss, t, y[t], z[t])[0] for t in range(len(y)))


# --- penalties ------------------------------------------------------------------------------------


def _strengths(penalty, d, k):
    """Factors of |w| and of w^2 / 2 for every coefficient, and the ends of its interval."""
    name = penalty["name"]
    low, high = [[-mp.inf] * k for _ in range(d)], [[mp.inf] * k for _ in range(d)]
    if name in ("nonnegative", "bounded"):
        linear, curvature, low, high = _strengths(parts(penalty["base"]), d, k)
        ends = (0.0, np.inf) if name == "nonnegative" else (penalty["lower"], penalty["upper"])
        try:
            ends = [np.broadcast_to(np.asarray(end, dtype=float), (d, k)) for end in ends]
        except (ValueError, TypeError):
            raise Meaningless("bounds of another shape") from None
        if np.isnan(ends[0]).any() or np.isnan(ends[1]).any() or (ends[0] > ends[1]).any():
            raise Meaningless("bounds that leave no room")
        low = [[max(mpf(float(v)), o) for v, o in zip(*pair)] for pair in zip(ends[0], low)]
        high = [[min(mpf(float(v)), o) for v, o in zip(*pair)] for pair in zip(ends[1], high)]
        return linear, curvature, low, high
    if name == "none":
        alpha, ratio = np.zeros((d, k)), np.zeros((d, k))
    elif name in ("l1", "l2", "elastic_net"):
        ratio = {"l1": 1.0, "l2": 0.0}.get(name, penalty.get("l1_ratio"))
        alpha, ratio = (_of_each(value, d, k) for value in (penalty["alpha"], ratio))
    else:
        raise Meaningless(f"the penalty {name!r}")
    if not ((alpha >= 0).all() and (ratio >= 0).all() and (ratio <= 1).all()):
        raise Meaningless("a negative strength")
    rows = [list(zip(*pair)) for pair in zip(alpha, ratio)]
    linear = [[mpf(float(v)) * mpf(float(r)) for v, r in row] for row in rows]
    curvature = [[mpf(float(v)) * (1 - mpf(float(r))) for v, r in row] for row in rows]
    return linear, curvature, low, high


def _of_each(value, d, k):
    """A strength, or a share of one, for each coefficient."""
    given = np.asarray(value)
    if given.dtype.kind not in "fiub" or not np.isfinite(given.astype(float)).all():
        raise Meaningless("a strength that is no number")
    try:
        return np.broadcast_to(given.astype(float), (d, k))
    except ValueError:
        raise Meaningless("strengths of another shape") from None


def _blocks(penalty, d, k):
    """Groups of coefficients as lists of places, the factor of each norm, and that of squares."""
    alpha = np.asarray(penalty["alpha"], dtype=float)
    if not (np.isfinite(alpha).all() and (alpha >= 0).all()):
        raise Meaningless("a negative strength")
    if penalty["name"] == "multi_task":
        r = number(penalty["l1_ratio"])
        a = number(penalty["alpha"])
        if not 0 <= r <= 1:
            raise Meaningless("a ratio beyond 0 and 1")
        return [([(j, t) for t in range(k)], a * r) for j in range(d)], a * (1 - r)
    l2 = number(penalty["l2"])
    if l2 < 0:
        raise Meaningless("a negative strength")
    groups = penalty.get("groups")
    labels = np.arange(d) if groups is None else np.asarray(groups)
    if labels.dtype.kind == "f" and (labels == np.floor(labels)).all():
        labels = labels.astype(int)  # the same groups, written otherwise
    if labels.shape != (d,) or labels.dtype.kind not in "iu":
        raise Meaningless("groups of another shape")
    weights = penalty.get("weights")
    blocks = []
    for t in range(k):
        for g in range(int(labels.max(initial=-1)) + 1):
            places = [(int(j), t) for j in np.flatnonzero(labels == g)]
            own = mp.sqrt(len(places)) if groups is not None else mpf(1)
            if weights is not None and groups is not None:
                own = number(np.asarray(weights)[g])
            if own < 0:
                raise Meaningless("a negative weight")
            blocks.append((places, own * _of_target(alpha, t)))
    return blocks, l2


def penalty_value(penalty, W):
    """p(W); infinite outside its domain."""
    d, k = len(W), len(W[0]) if W else 0
    if penalty["name"] in ("group", "multi_task"):
        blocks, l2 = _blocks(penalty, d, k)
        norms = mp.fsum(
            factor * mp.sqrt(mp.fsum(W[j][t] ** 2 for j, t in places)) for places, factor in blocks
        )
        return norms + l2 / 2 * mp.fsum(v * v for row in W for v in row)
    linear, curvature, low, high = _strengths(penalty, d, k)
    total = mpf(0)
    for j in range(d):
        for t in range(k):
            w = W[j][t]
            if w < low[j][t] or w > high[j][t]:
                return mp.inf
            total += linear[j][t] * abs(w) + curvature[j][t] * w * w / 2
    return total


def objective(loss, penalty, data, W, b):
    """sum_i s_i loss + penalty, or the sum over the targets of the largest errors."""
    Z = data.scores(W, b)
    if loss["name"] == "maximum_error":
        if penalty["name"] != "none":
            raise Meaningless("a largest error with a penalty")
        return mp.fsum(max(abs(z[t] - y[t]) for y, z in zip(data.y, Z)) for t in range(data.k))
    total = mp.fsum(s * _row_loss(loss, y, z) for s, y, z in zip(data.s, data.y, Z))
    return total + penalty_value(penalty, W)
