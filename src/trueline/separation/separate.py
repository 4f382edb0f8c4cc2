"""From data to the verdict on separability, with witnesses in whole numbers and in doubles."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.special.separation import Combination, SeparationCertificate
from trueline.separation.decide import Split, decide
from trueline.separation.exact import in_floats
from trueline.separation.lifting import Integers, as_integers, exact_products
from trueline.separation.result import Separability, hyperplanes_of
from trueline.separation.rows import ContrastRows, Rows, SignedRows

__all__ = ["separate"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# So much is taken off a margin that doubles can confirm it for most rows.
_SAFETY = Fraction(1, 10**12)
# More rows than this at the least distance are not multiplied out.
_FEW = 2000


def separate(
    X: Any, codes: Indices, classes: Any, fit_intercept: bool, feature_names: tuple[str, ...]
) -> Separability:
    """Decide and prove the separability of classes.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
        float64, finite.
    codes : array of shape (n,)
        Positions in ``classes``; every one occurs.
    classes : array of shape (k,)
    fit_intercept : bool
    feature_names : tuple of str
    """
    k = len(classes)
    rows: Rows
    if k == 2:
        rows = SignedRows(X, np.where(codes == 1, 1.0, -1.0), fit_intercept)
    else:
        rows = ContrastRows(X, codes, k, fit_intercept)
    split = decide(rows)
    is_boundary = split.boundary.reshape(rows.n, k - 1)
    if split.direction is None:
        verdict = "not separable"
    else:
        verdict = "quasi-separable" if split.boundary.any() else "separable"
    certificate = _certificate(verdict, rows, split, codes, classes)
    touching = is_boundary.any(axis=1)
    coef, intercept = hyperplanes_of(certificate)
    used, weights = certificate.common.rows, _weights(rows, certificate.common, codes)
    point = np.zeros(0)
    if k == 2 and fit_intercept and len(used):
        above = codes[used] == 1
        point = np.asarray(weights[above] @ X[used[above]]).ravel()
    return Separability(
        verdict=verdict,
        classes=classes,
        fit_intercept=fit_intercept,
        coef=coef,
        intercept=intercept,
        margin=certificate.margin,
        strict=np.logical_not(touching),
        boundary=np.flatnonzero(touching),
        rows=used,
        weights=weights,
        own=codes[used],
        against=certificate.common.against,
        common_point=point,
        feature_names=feature_names,
        certificate=certificate,
    )


def _certificate(
    verdict: str, rows: Rows, split: Split, codes: Indices, classes: Any
) -> SeparationCertificate:
    """The witnesses in whole numbers."""
    k = len(classes)
    direction: tuple[tuple[int, ...], ...] = ()
    if split.direction is not None:
        blocks = [tuple(int(v) for v in b) for b in split.direction.reshape(-1, rows.width)]
        zero = (0,) * rows.width
        direction = (zero, *blocks) if k == 2 else (*blocks, zero)
    boundary = np.flatnonzero(split.boundary) if verdict == "quasi-separable" else np.zeros(0, int)
    row, other = _places(boundary, codes, k)
    return SeparationCertificate(
        kind=verdict,
        classes=classes,
        fit_intercept=rows.fit_intercept,
        n_features=rows.d,
        direction=direction,
        margin=_margin(rows, split.direction, k) if verdict == "separable" else 0.0,
        boundary_rows=row,
        boundary_against=other,
        common=_combination(split.common, codes, k),
        spanning=_combination(split.spanning, codes, k),
    )


def _places(ids: Indices, codes: Indices, k: int) -> tuple[Indices, Indices]:
    """The row of each inequality, and the class that it is held against."""
    row, t = np.divmod(ids, k - 1)
    return row, t + (t >= codes[row])


def _combination(multipliers: dict[int, Fraction], codes: Indices, k: int) -> Combination:
    ids = np.array(sorted(multipliers), dtype=np.intp)
    whole = as_integers([multipliers[int(i)] for i in ids])
    return Combination(*_places(ids, codes, k), tuple(int(v) for v in whole))


def _weights(rows: Rows, combination: Combination, codes: Indices) -> Array:
    """Multipliers as shares: of each class's sum, or of the sum of all."""
    whole = combination.multipliers
    if not whole:
        return np.zeros(0)
    total = sum(whole)
    if isinstance(rows, SignedRows) and rows.fit_intercept:
        total = sum(m for m, i in zip(whole, combination.rows, strict=True) if codes[i] == 1)
    return np.array([float(Fraction(m, total)) for m in whole])


def _margin(rows: Rows, g: Integers | None, k: int) -> float:
    """The least z_i.g over the norm of the weights in g, on the safe side."""
    assert g is not None
    least = _least(rows, g)
    blocks = g.reshape(-1, rows.width)[:, : rows.d]
    squares = Fraction(int((blocks**2).sum()))
    if k > 2:
        # Over all classes, of which the last is zero, and with the mean taken off.
        total = blocks.sum(axis=0)
        squares -= Fraction(int((total**2).sum()), k)
    ceiling = -(-squares.numerator // squares.denominator)
    norm = Fraction(isqrt(ceiling << 128) + 1, 1 << 64)
    return float(least / norm * (1 - _SAFETY))


def _least(rows: Rows, g: Integers) -> Fraction:
    """A lower bound on the least z_i.g, exact if few rows attain it."""
    b = in_floats(rows, g)
    margins = rows.margins(b)
    lowest, error = margins.min(), 2 * rows.reach(b)
    near = np.flatnonzero(margins <= lowest + 2 * error)
    if len(near) > _FEW and lowest > 1e6 * error:
        top = max(int(v).bit_length() - int(e) for v, e in zip(g, rows.exponent, strict=True) if v)
        unit = Fraction(2) ** top
        return Fraction(float(lowest - error)) * unit
    whole, exponent = rows.integers(near)
    values = exact_products(whole, g)
    return min(
        Fraction(int(v)) * Fraction(2) ** int(e) for v, e in zip(values, exponent, strict=True)
    )
