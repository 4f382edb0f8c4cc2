"""Forgeries by grammar: what somebody could write into a certificate, or pair it with.

A forgery is a few edits of an honest certificate and its data, drawn at random. Edits know nothing
of the proofs; what a field is worth is seen by perturbing, swapping, reshaping, transplanting and
dropping it. Some start from a lie: coefficients away from the optimum, with the objective that they
really have and a small gap, so that only the witness stands between the lie and its proof.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import numpy as np
import scipy.sparse as sp

from trueline import losses, penalties

from .adapter import ask, proof_kinds
from .truth import reached

__all__ = ["edge", "forge"]

NUMBERS = (
    0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1e-12, 1e-6, 1e300, -1e300, 1.7e308, 5e-324, 2.2e-308, 1e-160,
    1e160, np.inf, -np.inf, np.nan, -5000.0, 5000.0,
)  # fmt: skip


# --- paths into a certificate ---------------------------------------------------------------------


def get(thing, path):
    """What is at the end of a path of names."""
    for name in path:
        thing = thing[name] if isinstance(thing, Mapping) else getattr(thing, name)
    return thing


def put(thing, path, value):
    """A copy with another value at the end of a path."""
    if not path:
        return value
    name, rest = path[0], path[1:]
    if isinstance(thing, Mapping):
        out = dict(thing)
        out[name] = put(thing.get(name), rest, value) if rest else value
        return out
    out = copy.copy(thing)
    own = put(getattr(thing, name), rest, value) if rest else value
    object.__setattr__(out, name, own)
    return out


def drop(thing, path):
    """A copy without what is at the end of a path; attributes become None."""
    if len(path) == 1 and isinstance(thing, Mapping):
        return {key: value for key, value in thing.items() if key != path[0]}
    if len(path) == 1:
        return put(thing, path, None)
    return put(thing, path[:1], drop(get(thing, path[:1]), path[1:]))


def paths(certificate):
    """All paths to fields: of the certificate, its witness, its loss, penalty and kernel."""
    out = []
    for name in names(certificate):
        if name in ("reading",):
            continue
        value = get(certificate, (name,))
        out.append((name,))
        out += [(name, *rest) for rest in _inner(value)]
    return out


def names(certificate):
    if isinstance(certificate, Mapping):
        return list(certificate)
    return [f.name for f in fields(certificate)]


def _inner(value):
    if isinstance(value, Mapping):
        return [(key,) for key in value]
    if isinstance(value, np.ndarray | str | int | float | tuple | list) or value is None:
        return []
    if is_dataclass(value) or hasattr(value, "__dict__"):
        own = []
        for key, inner in vars(value).items():
            if not key.startswith("_"):
                own.append((key,))
                own += [(key, *rest) for rest in _inner(inner)]
        return own
    return []


# --- edits of one value ---------------------------------------------------------------------------


def perturbed(value, rng):
    """A number or an array a little or a lot off."""
    array = np.array(value, dtype=float) if _is_numeric(value) else None
    if array is None or array.size == 0:
        return _other(value, rng)
    everywhere = array.ndim == 0 or rng.random() < 0.4
    where = np.ones(array.shape, dtype=bool)
    if not everywhere:
        where = np.zeros(array.shape, dtype=bool)
        where.flat[rng.integers(array.size)] = True
    how = rng.integers(11)
    with np.errstate(all="ignore"):
        new = [
            lambda a: np.nextafter(a, np.inf),
            lambda a: np.nextafter(a, -np.inf),
            lambda a: a * (1 + 1e-12),
            lambda a: a * (1 - 1e-6),
            lambda a: a + 1e-6 * (1 + np.abs(a)),
            lambda a: a * 10,
            lambda a: a * 1e-6,
            lambda a: -a,
            lambda a: np.full_like(a, NUMBERS[rng.integers(len(NUMBERS))]),
            lambda a: a + rng.normal(size=a.shape),
            lambda a: a * 10.0 ** rng.uniform(-20, 20),
        ][how](array)
    array = np.where(where, new, array)
    return _alike(array, value)


def _is_numeric(value):
    if isinstance(value, bool | str | Mapping) or value is None:
        return False
    try:
        return np.asarray(value).dtype.kind in "fiu"
    except (ValueError, OverflowError):
        return False


def _alike(array, value):
    """An array of numbers as what it was taken from."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "iu" and np.isfinite(array).all() and np.abs(array).max() < 2**62:
            return array.astype(value.dtype) if (array == np.floor(array)).all() else array
        return array
    if isinstance(value, tuple):
        return tuple(array.tolist())
    if isinstance(value, int) and np.isfinite(array) and array == np.floor(array):
        return int(array)
    return float(array) if array.ndim == 0 else array


def _other(value, rng):
    """Something else in place of what is no number."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return str(rng.choice(["", "nonsense", value.upper(), "rbf", "svr", "identity", "none"]))
    return [None, 0.0, "nonsense", np.zeros(0), {}, True][rng.integers(6)]


def reshaped(value, rng):
    """The same numbers, or some of them, in another shape."""
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        return value
    options = [
        lambda a: a.reshape(-1, 1),
        lambda a: a.reshape(1, -1),
        lambda a: a.ravel(),
        lambda a: a.ravel()[:0],
        lambda a: a.T.copy(),
        lambda a: a[None],
        lambda a: a[..., None],
        lambda a: a.ravel()[0] if a.size else a,
        lambda a: a[:-1] if a.ndim else a,
        lambda a: np.concatenate([a, a[:1]]) if a.ndim and len(a) else a,
        lambda a: np.concatenate([a, a]) if a.ndim else np.array([a, a]),
        lambda a: np.broadcast_to(a, (3, *a.shape)).copy(),
        lambda a: a.tolist(),
        lambda a: a[::-1].copy() if a.ndim else a,
        lambda a: a[rng.permutation(len(a))] if a.ndim and len(a) else a,
    ]
    return options[rng.integers(len(options))](array)


def retyped(value, rng):
    """The same thing as another type."""
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        return value
    options = [
        lambda: array.astype(object),
        lambda: array.astype(complex) if array.dtype.kind in "fiub" else array,
        lambda: array.astype(str),
        lambda: array.astype(bool) if array.dtype.kind in "fiub" else array,
        lambda: array.astype(np.float32) if array.dtype.kind in "fiub" else array,
        lambda: array.astype(np.float16) if array.dtype.kind in "fiub" else array,
        lambda: array.astype(np.longdouble) if array.dtype.kind in "fiub" else array,
        lambda: np.nan_to_num(array).astype(np.int64) if array.dtype.kind in "fiub" else array,
        lambda: np.full(array.shape, 2**70, dtype=object),
        lambda: 10**400,
        lambda: [[1.0], [2.0, 3.0]],
        lambda: sp.csr_array(np.atleast_2d(array)) if array.dtype.kind in "fi" else array,
        lambda: "text",
        lambda: b"bytes",
        lambda: None,
        lambda: {"a": 1},
        lambda: {1.0, 2.0},
        lambda: 1j,
        lambda: np.datetime64("2020-01-01"),
        lambda: (x for x in (1.0, 2.0)),
        lambda: lambda *a: 0.0,
        lambda: np.ma.masked_array(array, mask=np.ones(array.shape, dtype=bool)),
        lambda: np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
    ]
    with np.errstate(all="ignore"):
        return options[rng.integers(len(options))]()


# --- edits of a certificate -----------------------------------------------------------------------


def _exponent(seed):
    return float(np.random.default_rng(seed).choice([0, 1, -5000, 5000, -600, 0.5]))


EXTRAS = {
    "column_exponent": lambda c, n: np.full(_sizes(c)[0], _exponent(n)),
    "target_exponent": lambda c, n: np.full(_sizes(c)[1], _exponent(n)),
    "left_out": lambda c, n: np.array(1e-3),
    "coefficient_radius": lambda c, n: np.zeros(_sizes(c)),
    "radius": lambda c, n: np.zeros(_sizes(c)[1]),
    "intercept_radius": lambda c, n: np.zeros(_sizes(c)[1]),
    "centre": lambda c, n: np.full(_sizes(c)[0], 1e8),
    "search_bound": lambda c, n: np.array(1e9),
    "slack": lambda c, n: np.array(1e9),
    "level": lambda c, n: np.zeros(1),
    "extra": lambda c, n: np.zeros(3),
}  # fmt: skip


def _sizes(certificate):
    shape = np.shape(get(certificate, ("coef",))) if "coef" in names(certificate) else (1, 1)
    return shape if len(shape) == 2 else (1, 1)


def _edit_value(how):
    def edit(certificate, data, case, pool, rng):
        path = _choose(certificate, rng)
        value = get(certificate, path)
        return put(certificate, path, how(value, rng)), data, f"{how.__name__} {'.'.join(path)}"

    return edit


def _choose(certificate, rng):
    every = paths(certificate)
    return every[rng.integers(len(every))]


def edit_swap(certificate, data, case, pool, rng):
    a, b = _choose(certificate, rng), _choose(certificate, rng)
    if a[: len(b)] == b or b[: len(a)] == a:
        return certificate, data, "nothing"
    u, v = get(certificate, a), get(certificate, b)
    out = put(put(certificate, a, v), b, u)
    return out, data, f"swap {'.'.join(a)} and {'.'.join(b)}"


def edit_transplant(certificate, data, case, pool, rng):
    other = pool[rng.integers(len(pool))].certificate
    path = _choose(certificate, rng)
    try:
        value = get(other, path)
    except (KeyError, AttributeError, TypeError):
        theirs = _choose(other, rng)
        value = get(other, theirs)
    return put(certificate, path, value), data, f"transplant {'.'.join(path)}"


def edit_transplant_alike(certificate, data, case, pool, rng):
    """From a certificate of the same kind and shape, or of the whole witness."""
    same = [c for c in pool if c.kind == case.kind] or list(pool)
    other = same[rng.integers(len(same))].certificate
    path = _choose(certificate, rng)
    try:
        value = get(other, path)
    except (KeyError, AttributeError, TypeError):
        return certificate, data, "nothing"
    return put(certificate, path, value), data, f"transplant {'.'.join(path)} of its kind"


def edit_drop(certificate, data, case, pool, rng):
    path = _choose(certificate, rng)
    return drop(certificate, path), data, f"drop {'.'.join(path)}"


def edit_add(certificate, data, case, pool, rng):
    if "witness" not in names(certificate) or not isinstance(
        get(certificate, ("witness",)), Mapping
    ):
        return certificate, data, "nothing"
    key = str(rng.choice(list(EXTRAS)))
    value = EXTRAS[key](certificate, int(rng.integers(1000)))
    return put(certificate, ("witness", key), value), data, f"add {key}"


def edit_kind(certificate, data, case, pool, rng):
    if "kind" not in names(certificate):
        return certificate, data, "nothing"
    odd = ["zero-one nonsense", "", "Quadratic", "search ", None, 3, np.array("quadratic"), ["x"]]
    every = [*proof_kinds(), *odd]
    kind = every[rng.integers(len(every))]
    return put(certificate, ("kind",), kind), data, f"kind {kind!r}"


def edit_part(certificate, data, case, pool, rng):
    """Another loss or penalty, some with parameters that no constructor lets pass."""
    have = [name for name in ("loss", "penalty") if name in names(certificate)]
    if not have:
        return certificate, data, "nothing"
    name = have[rng.integers(len(have))]
    if name == "loss":
        every = [
            losses.Squared(), losses.Absolute(), losses.Huber(0.1), losses.Quantile(0.5),
            losses.Logistic(), losses.Hinge(), losses.SquaredHinge(), losses.Poisson(),
            losses.Gamma(), losses.Tweedie(1.5), losses.EpsilonInsensitive(1e3),
            losses.SquaredEpsilonInsensitive(1e3), losses.MaximumError(), losses.Softmax(),
            losses.CrammerSinger(), losses.ZeroOne(), losses.HardMargin(),
            losses.LocalDeviance(3.0), losses.OrderedQuantiles((0.1, 0.9)), losses.Huber(1e-12),
        ]  # fmt: skip
    else:
        every = [
            penalties.NoPenalty(), penalties.L1(1e-9), penalties.L2(1e-9), penalties.L2(1e9),
            penalties.ElasticNet(1.0, 0.5), penalties.NonNegative(), penalties.Group(1.0),
            penalties.Bounded(penalties.NoPenalty(), -1e-3, 1e-3), penalties.MultiTask(1.0),
            penalties.NonNegative(penalties.L2(1.0)), penalties.L2(0.0),
        ]  # fmt: skip
    part = copy.copy(every[rng.integers(len(every))])
    said = f"{name} {part!r}"
    if rng.random() < 0.4:
        keys = [key for key in vars(part) if not key.startswith("_")]
        if keys:
            key = keys[rng.integers(len(keys))]
            odd = [-1.0, 0.0, np.nan, np.inf, "1", None, np.ones(_sizes(certificate)), [1.0], -0.3]
            value = odd[rng.integers(len(odd))]
            object.__setattr__(part, key, value)
            said += f" with {key}={value!r}"
    return put(certificate, (name,), part), data, said


def edit_parameter(certificate, data, case, pool, rng):
    """A parameter of the loss, penalty, kernel or machine set to what it must not be."""
    deep = [p for p in paths(certificate) if len(p) > 1 and p[0] != "witness"]
    if not deep:
        return certificate, data, "nothing"
    path = deep[rng.integers(len(deep))]
    n = np.shape(data[1])
    odd = [-1.0, 0.0, np.nan, np.inf, -np.inf, "1", None, np.ones(n), np.array([0.5]), -0.3, 1e300,
           1e-300, True, 1j, 2, -1]  # fmt: skip
    value = odd[rng.integers(len(odd))]
    return put(certificate, path, value), data, f"{'.'.join(path)} = {value!r}"


def edit_coefficients(certificate, data, case, pool, rng):
    """Other coefficients while everything else stays."""
    if "coef" not in names(certificate):
        return certificate, data, "nothing"
    W = np.array(get(certificate, ("coef",)), dtype=float)
    how = rng.integers(4)
    if how == 0:
        W = np.zeros_like(W)
    elif how == 1:
        W = W + rng.normal(size=W.shape) * (np.abs(W) + 1e-3) * 10.0 ** rng.uniform(-8, 0)
    elif how == 2:
        W = -W
    else:
        W = W[rng.permutation(len(W))] if len(W) else W
    return put(certificate, ("coef",), W), data, "other coefficients"


def edit_lie(certificate, data, case, pool, rng):
    """Coefficients away from the optimum with their true objective, and a gap that is a lie."""
    if "coef" not in names(certificate) or "gap" not in names(certificate):
        return certificate, data, "nothing"
    W = np.array(get(certificate, ("coef",)), dtype=float)
    if W.size == 0 or W.ndim != 2:
        return certificate, data, "nothing"
    honest = certificate
    size = 10.0 ** rng.uniform(-5, 0.5)
    if rng.random() < 0.2:
        W = W * (1 - size)
    else:
        W = W + size * rng.normal(size=W.shape) * (np.abs(W).max() + 1e-12)
    certificate = put(certificate, ("coef",), W)
    b = (
        np.asarray(get(certificate, ("intercept",)), dtype=float)
        if "intercept" in names(certificate)
        else None
    )
    if (
        b is not None
        and b.ndim == 1
        and rng.random() < 0.3
        and get(certificate, ("intercept",)).any()
    ):
        certificate = put(certificate, ("intercept",), b + size * rng.normal(size=b.shape))
    value = reached(certificate, *data)
    if value is None or not np.isfinite(value):
        return honest, data, "nothing"
    certificate = put(certificate, ("objective",), value)
    rounding = float(rng.choice([1e-12, 1e-9, 1e-6])) * abs(value) + 1e-300
    certificate = put(certificate, ("objective_rounding",), rounding)
    gap = get(honest, ("gap",))
    if not np.isfinite(gap):
        return certificate, data, "lie without a gap"
    gap = float(rng.choice([gap, 2 * rounding, 1e-12 * abs(value), 0.0]))
    return put(certificate, ("gap",), gap), data, f"lie of size {size:.1e} with gap {gap:.1e}"


def edit_consistent(certificate, data, case, pool, rng):
    """Objective, rounding and gap changed so that they still agree with each other."""
    if not {"objective", "objective_rounding", "gap"} <= set(names(certificate)):
        return certificate, data, "nothing"
    objective, rounding, gap = (
        get(certificate, (name,)) for name in ("objective", "objective_rounding", "gap")
    )
    if not (_is_numeric(objective) and _is_numeric(rounding) and _is_numeric(gap)):
        return certificate, data, "nothing"
    if np.shape(objective) or np.shape(gap) or np.shape(rounding):
        return certificate, data, "nothing"
    size = max(abs(float(objective)), 1e-300) * 10.0 ** rng.uniform(-14, 0)
    with np.errstate(all="ignore"):
        options = [
            (objective - size, rounding + size, gap),
            (objective - size, rounding + size, max(gap - 2 * size, 0.0)),
            (objective + size, rounding + size, gap * 1e-6),
            (objective - size, rounding, gap),
            (objective, np.inf, gap),
            (objective, rounding, gap * 1e-6),
            (objective, rounding, 0.0),
            (objective, 0.0, gap),
            (0.0, abs(objective) + rounding, 0.0),
            (0.0, 0.0, 0.0),
        ]
    new = options[rng.integers(len(options))]
    for name, value in zip(("objective", "objective_rounding", "gap"), new):
        certificate = put(certificate, (name,), value)
    return certificate, data, f"consistent {tuple(float(v) for v in new)}"


def edit_radii(certificate, data, case, pool, rng):
    """Everything that limits what is compared set to nothing, or to anything."""
    keys = [p for p in paths(certificate) if p[-1] in (
        "radius", "intercept_radius", "coefficient_radius", "reach", "left_out", "basis", "slack",
        "coercivity", "diagonal", "delta", "search_bound", "root_bound", "gamma", "bound", "upper",
        "scale", "noise", "jitter", "variance", "alpha", "threshold", "precision", "k", "theta",
        "columns", "centre", "about",
    )]  # fmt: skip
    if not keys:
        return certificate, data, "nothing"
    said = []
    for path in keys:
        if rng.random() < 0.6:
            value = get(certificate, path)
            with np.errstate(all="ignore"):
                factor = float(rng.choice([0.0, 1e-6, 1e-162, 1e6, 1e162, -1.0, 1e300]))
                if _is_numeric(value):
                    value = _alike(np.asarray(value, dtype=float) * factor, value)
            certificate = put(certificate, path, value)
            said.append(f"{path[-1]}*{factor:g}")
    return certificate, data, " ".join(said)


def edit_mapping(certificate, data, case, pool, rng):
    """The certificate as plain data."""
    if isinstance(certificate, Mapping):
        return certificate, data, "nothing"
    out = {name: getattr(certificate, name) for name in names(certificate) if name != "reading"}
    if "kind" not in out and hasattr(certificate, "kind"):
        out["kind"] = certificate.kind
    for name in ("loss", "penalty"):
        part = out.get(name)
        if part is not None and hasattr(part, "__dict__") and rng.random() < 0.5:
            own = {k: v for k, v in vars(part).items() if not k.startswith("_")}
            if not any(hasattr(v, "capabilities") for v in own.values()):
                out[name] = {"name": part.name, **own}
    return out, data, "as a mapping"


def edit_data(certificate, data, case, pool, rng):
    """Other rows, targets or weights than those of the fit."""
    X, y, weight = data
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    how = int(rng.integers(15))
    order = rng.permutation(n)
    if how == 0 and y is not None:
        y = np.asarray(y)[order]
    elif how == 1:
        X = X * float(rng.choice([2.0, 1 + 1e-9, -1.0, 1e-5]))
    elif how == 2:
        weight = rng.uniform(0.5, 2, size=n)
    elif how == 3:
        weight = None
    elif how == 4:
        X, y = X[:-1], None if y is None else np.asarray(y)[:-1]
        weight = None if weight is None else np.asarray(weight)[:-1]
    elif how == 5 and y is not None and np.asarray(y).dtype.kind == "f":
        y = np.asarray(y) * float(rng.choice([2.0, 1 + 1e-9, -1.0, 0.0]))
    elif how == 6 and not sp.issparse(X) and getattr(X, "ndim", 0) == 2:
        X = X[:, rng.permutation(X.shape[1])]
    elif how == 7 and not sp.issparse(X):
        X = np.array(X, dtype=float)
        X[rng.integers(n)] = float(rng.choice([0.0, np.nan, 1e300, 7.0]))
    elif how == 8 and y is not None and np.asarray(y).dtype.kind in "fi":
        y = np.array(y)
        y[rng.integers(n)] = y[rng.integers(n)]
    elif how == 9:
        X = X[order]
    elif how == 10:
        weight = np.zeros(n)
    elif how == 11:
        weight = -np.ones(n)
    elif how == 12 and y is not None:
        y = np.asarray(y)
        y = y[:, None] if y.ndim == 1 else y[:, :1]
    elif how == 13 and getattr(X, "ndim", 0) == 2:
        X = _split(X)
    else:
        weight = np.where(np.arange(n) < max(2, n // 2), 1.0, 0.0)
    return certificate, (X, y, weight), f"data {how}"


def _split(X):
    """The same matrix, its entries stored as sums of two."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    n, d = X.shape
    rows, columns = np.divmod(np.arange(2 * n * d) // 2, d)
    data = np.repeat(X.ravel(), 2) * np.tile([3.0, -2.0], n * d)
    return sp.csr_array(sp.coo_array((data, (rows, columns)), shape=X.shape).tocsr(copy=False))


_EDITS = (
    (_edit_value(perturbed), 6),
    (_edit_value(reshaped), 2),
    (_edit_value(retyped), 2),
    (edit_swap, 1),
    (edit_transplant, 1),
    (edit_transplant_alike, 2),
    (edit_drop, 1),
    (edit_add, 1),
    (edit_kind, 1),
    (edit_part, 1),
    (edit_parameter, 1.5),
    (edit_coefficients, 1),
    (edit_consistent, 1.5),
    (edit_radii, 2),
    (edit_mapping, 0.5),
    (edit_data, 1.5),
)
_WEIGHTS = np.cumsum([w for _, w in _EDITS]) / sum(w for _, w in _EDITS)


def edge(case, pool, rng):
    """A claim moved as far as the checker lets it go: one number, by bisection.

    Honest, or of coefficients a little off the optimum. Where the checker's own rounding is not
    accounted for, the last claim that it accepts is false.
    """
    certificate, data, said = case.certificate, (case.X, case.y, case.weight), "edge"
    if rng.random() < 0.5:
        certificate, said = _slightly_off(certificate, data, rng)
        if ask(certificate, *data).word != "proven":
            certificate, said = case.certificate, "edge"
    for _ in range(int(rng.integers(1, 4))):
        own = [p for p in paths(certificate) if _is_numeric(get(certificate, p))]
        own = [p for p in own if np.size(get(certificate, p))]
        main = [p for p in own if p[-1] in _CLAIMED]
        if main and rng.random() < 0.7:
            own = main
        if not own:
            break
        path = own[rng.integers(len(own))]
        moved = _farthest(certificate, data, path, rng)
        if moved is not None:
            certificate = moved
            said += f", {'.'.join(path)} to {np.asarray(get(certificate, path)).ravel()[:3]}"
    return certificate, data, said


_CLAIMED = (
    "objective", "objective_rounding", "gap", "margin", "upper_bound", "radius", "slope",
    "residual", "violation", "upper", "bound", "gamma", "slack", "scale",
)  # fmt: skip


def _slightly_off(certificate, data, rng):
    """Coefficients moved a little, their objective exact, a gap that is generous."""
    if not {"coef", "gap", "objective", "objective_rounding"} <= set(names(certificate)):
        return certificate, "edge"
    W = np.array(get(certificate, ("coef",)), dtype=float)
    size = 10.0 ** rng.uniform(-13, -1)
    W = W * (1 + size * rng.normal(size=W.shape))
    out = put(certificate, ("coef",), W)
    value = reached(out, *data)
    if value is None:
        return certificate, "edge"
    out = put(out, ("objective",), value)
    rounding = max(1e-9 * abs(value), get(certificate, ("objective_rounding",)))
    out = put(out, ("objective_rounding",), rounding)
    gap = get(certificate, ("gap",))
    if np.isfinite(gap):
        out = put(out, ("gap",), float(gap + (1e3 * size + 1e-6) * abs(value)))
    return out, f"coefficients off by {size:.1e}, edge"


def _farthest(certificate, data, path, rng):
    """The certificate with one number as far off as the checker accepts; None if it never does."""
    value = get(certificate, path)
    array = np.array(value, dtype=float)
    place = int(rng.integers(array.size))
    start = float(array.flat[place])
    if not np.isfinite(start):
        return None

    def moved(t):
        new = array.copy()
        new.flat[place] = t
        return put(certificate, path, _alike(new, value))

    def holds(t):
        return ask(moved(t), *data).word == "proven"

    if not holds(start):
        return None
    scale = max(abs(start), 1e-300)
    ends = [0.0, start + scale, start - scale, 1e3 * start, -start, start + 1.0, start - 1.0]
    end = float(ends[rng.integers(len(ends))])
    if end == start:
        return None
    if holds(end):
        return moved(end)
    good, bad = start, end
    # Between zero and a positive number by ratios, else by differences.
    for _ in range(48):
        if good > 0 and bad >= 0 and max(good, bad) > 4 * max(min(good, bad), 1e-320):
            middle = float(np.sqrt(max(bad, 1e-320)) * np.sqrt(good))
        else:
            middle = 0.5 * (good + bad)
        if middle in (good, bad):
            break
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return None if good == start else moved(good)


def forge(case, pool, rng):
    """A forgery of a case: certificate, data, and what was done to it."""
    certificate, data, said = case.certificate, (case.X, case.y, case.weight), []
    if rng.random() < 0.4:
        certificate, data, what = edit_lie(certificate, data, case, pool, rng)
        said.append(what)
        many = int(rng.integers(0, 4))
    else:
        many = 1 + int(rng.integers(0, 3))
    for _ in range(many):
        edit = _EDITS[int(np.searchsorted(_WEIGHTS, rng.random()))][0]
        try:
            certificate, data, what = edit(certificate, data, case, pool, rng)
        except Exception:  # an edit of what an earlier edit has spoilt
            what = "nothing"
        said.append(what)
    return certificate, data, ", then ".join(w for w in said if w != "nothing")
