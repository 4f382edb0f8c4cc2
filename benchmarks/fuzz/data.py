"""Random designs, weights and targets, with everything that real tables do to a solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["as_given", "design", "shape", "targets", "weights"]

Array = NDArray[np.float64]
Rng = np.random.Generator


def shape(rng: Rng, rows: int = 14, columns: int = 14) -> tuple[int, int]:
    """Small sizes: wide, square, one row more than columns, or tall."""
    d = int(rng.integers(1, columns + 1))
    n = {
        "wide": int(rng.integers(2, max(3, d))),
        "square": max(2, d),
        "one more": d + 1,
        "two more": d + 2,
        "tall": d + int(rng.integers(2, rows + 1)),
    }[str(rng.choice(["wide", "wide", "square", "one more", "two more", "tall", "tall"]))]
    return n, d


def design(
    rng: Rng,
    n: int,
    d: int,
    is_sparse: bool = False,
    fit_intercept: bool = True,
    is_mild: bool = False,
) -> tuple[Array, str]:
    """A dense matrix and what was done to it: units, offsets, constants, copies.

    Columns depend on each other exactly or by far more than the rounding of their entries: whether
    a dependence that rounding has blurred is one is a matter of definition, not of right and wrong.
    Without an intercept an offset makes columns dependent to as many digits as it has: it is small.
    Mild data have units and offsets that references in double precision can live with.
    """
    notes = [f"{n} x {d}"]
    kind = str(rng.choice(["normal", "normal", "integers", "levels"]))
    width = float(rng.choice([0, 0, 1] if is_mild else [0, 0, 1, 3, 8]))
    scale = 10.0 ** rng.uniform(-width, width, size=d)
    if kind == "normal":
        X = rng.standard_normal((n, d))
    else:
        least, most = (-4, 5) if kind == "integers" else (0, 2)
        X = rng.integers(least, most, size=(n, d)).astype(float)
        notes.append(kind)
        scale = 2.0 ** np.round(np.log2(scale))  # multiples and sums stay exact
    if is_sparse:
        X *= rng.random((n, d)) < rng.choice([0.2, 0.5, 1.0])
    offset = float(rng.choice([0, 0, 1, 10, 100, 1e4, 1e6, 1e8]))
    how = str(rng.choice(["units", "some", "numbers"]))
    if not fit_intercept:
        offset, how = min(offset, 100.0), "units"
    if is_mild:
        offset = min(offset, 100.0)
    if width:
        notes.append(f"scales 1e+-{width:g}")
    if offset:
        notes.append(f"offset {offset:g} ({how})")
    moved = offset * (rng.random(d) < (0.5 if how == "some" else 1.0))
    X = X * scale + moved if how == "numbers" and kind == "normal" else (X + moved) * scale
    for j in np.flatnonzero(rng.random(d) < rng.choice([0.0, 0.0, 0.2])):
        X[:, j] = rng.choice([0.0, 1.0, 0.1, -7e5])
        notes.append("constant column")
    if d > 1 and rng.random() < 0.4:
        notes += _copy_columns(rng, X)
    return X, ", ".join(notes)


def _copy_columns(rng: Rng, X: Array) -> list[str]:
    """Make columns equal to others or to multiples of them, exactly or nearly."""
    n, d = X.shape
    notes = []
    for _ in range(int(rng.integers(1, d))):
        i, j = rng.choice(d, 2, replace=False)
        near = float(rng.choice([0.0, 0.0, 1e-3, 1e-6, 1e-9]))
        X[:, j] = X[:, i]
        if near:
            X[:, j] += near * np.abs(X[:, i]).max() * rng.standard_normal(n)
        X[:, j] *= float(rng.choice([1.0, -2.0, 0.5]))
        notes.append(f"copy up to {near:g}" if near else "copy")
    return notes


def weights(rng: Rng, n: int) -> tuple[Array | None, str]:
    """None, or weights: ordinary ones, zeros among them, or of very different sizes."""
    kind = str(rng.choice(["none", "none", "ordinary", "zeros", "orders", "zeros and orders"]))
    if kind == "none":
        return None, ""
    s = rng.uniform(0.1, 3.0, n)
    if "orders" in kind:
        s = 10.0 ** rng.uniform(-8, 8, n)
    if "zeros" in kind:
        s[rng.random(n) < 0.3] = 0.0
        s[rng.integers(n)] = 1.0
    return s, f"weights: {kind}"


def targets(rng: Rng, X: Array, k: int) -> tuple[Array, str]:
    """Noise, a linear function, or one with noise; of any size and level."""
    n, d = X.shape
    kind = str(rng.choice(["noise", "noise", "line", "both"]))
    spread = np.abs(X - X.mean(axis=0)).max(axis=0)
    W = rng.standard_normal((d, k)) / np.where(spread > 0, spread, 1.0)[:, None]
    Y = np.zeros((n, k))
    if kind != "noise":
        Y += (X - X.mean(axis=0)) @ W
    if kind != "line" or not Y.any():
        Y += rng.standard_normal((n, k)) * float(rng.choice([1.0, 1e-3]))
    size, level = float(rng.choice([1, 1, 1e-6, 1e6])), float(rng.choice([0, 0, 1, 1e4]))
    return size * (Y + level), f"{k} targets: {kind} times {size:g}, level {level:g}"


def as_given(rng: Rng, X: Array, is_sparse: bool) -> tuple[Any, Array, str]:
    """The design as it is handed over, the numbers in it, and how it is held."""
    is_single = rng.random() < 0.25
    held: Any = X.astype(np.float32) if is_single else X
    numbers = np.asarray(held, dtype=np.float64)
    note = "float32" if is_single else ""
    if is_sparse:
        note = f"{note} {'csr' if rng.random() < 0.5 else 'csc'}".strip()
        held = sp.csr_array(held) if "csr" in note else sp.csc_array(held)
    elif rng.random() < 0.2:
        held = np.asfortranarray(held)
    return held, numbers, note
