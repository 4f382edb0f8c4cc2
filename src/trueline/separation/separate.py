"""From data to the verdict on separability, with witnesses in whole numbers and in doubles.

The verdict is a record for other parts, and plain sentences for people.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.special.separation import Combination, SeparationCertificate
from trueline.check import Check, Verification
from trueline.separation.decide import Split, decide
from trueline.separation.exact import in_floats
from trueline.separation.inequalities import ContrastRows, Rows, SignedRows
from trueline.separation.lifting import Integers, as_integers, exact_products
from trueline.wording import Readable, counted

Array = NDArray[np.float64]


def hyperplanes_of(certificate: SeparationCertificate) -> tuple[Array, Any]:
    """Weights and intercepts as doubles: the integers themselves where doubles can hold them."""
    k, d = len(certificate.classes), certificate.n_features
    width = d + int(certificate.fit_intercept)
    W = np.full((k, width), np.nan)
    if certificate.direction:
        top = max((v.bit_length() for row in certificate.direction for v in row), default=0)
        unit = 1 if top <= 53 else 2**top
        W = np.array([[v / unit for v in row] for row in certificate.direction])
        W = W.reshape(k, width)
    b = W[:, d] if certificate.fit_intercept else np.where(np.isnan(W).any(axis=1), np.nan, 0.0)
    coef = W[:, :d]
    return (coef.copy(), b.copy()) if k > 2 else (coef[1].copy(), float(b[1]))


@dataclass(frozen=True, repr=False)
class Separability(Readable):
    """Whether classes can be separated by hyperplanes, and what proves it.

    Attributes
    ----------
    verdict : {"separable", "quasi-separable", "not separable"}
    classes : array of shape (k,)
        The labels, sorted; with two of them the second one is the positive side.
    fit_intercept : bool
    coef : array of shape (d,), or (k, d) for more than two classes
        The hyperplane; if quasi-separable, the direction that no row is on the wrong side of; of
        NaN if there is none. The exact numbers are integers in ``certificate.direction``; these
        are the nearest doubles up to a power of two (and equal to them in all but rare cases).
        With more than two classes the last row is zero.
    intercept : float, or array of shape (k,)
    margin : float
        The distance of the nearest row from this hyperplane, proven as a lower bound; 0 if not
        separable. With more than two classes it is the least difference of the own score to
        another one, divided by the norm of all weights (with mean zero over the classes). It is
        not the largest margin possible: that is :func:`~trueline.maximum_margin`.
    strict : boolean array of shape (n,)
        Rows that are strictly on their own side (with more classes: against all others).
    boundary : array of int
        The other rows, counted from 0: they are on every hyperplane that has no row on a wrong
        side. All rows if not separable.
    rows, weights : arrays
        The few rows that exclude a strict separation, and their weights. For two classes with an
        intercept, the weights of each class sum to one, and both combinations are the same point;
        otherwise all weights sum to one. Empty if separable.
    own, against : arrays of int
        The class of each of these rows and the class that it is held against, as positions in
        ``classes``.
    common_point : array of shape (d,)
        For two classes with an intercept, the point that both convex hulls share; otherwise empty.
    feature_names : tuple of str
    certificate : SeparationCertificate
        All of this in whole numbers.

    Examples
    --------
    >>> from trueline import separability
    >>> answer = separability([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "low"])
    >>> answer.verdict, answer.rows.tolist(), answer.common_point.tolist()
    ('not separable', [0, 2, 3], [2.0])
    """

    verdict: str
    classes: Any
    fit_intercept: bool
    coef: Array
    intercept: Any
    margin: float
    strict: NDArray[np.bool_]
    boundary: NDArray[np.integer]
    rows: NDArray[np.integer]
    weights: Array
    own: NDArray[np.integer]
    against: NDArray[np.integer]
    common_point: Array
    feature_names: tuple[str, ...]
    certificate: SeparationCertificate

    @property
    def is_separable(self) -> bool:
        """Whether all rows can be strictly on their own side."""
        return self.verdict == "separable"

    @property
    def diverging(self) -> tuple[str, ...]:
        """Features whose coefficients an unpenalised logistic regression drives to infinity.

        Those of the direction: along it the likelihood rises without end. Other directions may
        exist, too.
        """
        if self.verdict == "not separable":
            return ()
        used = np.any(np.atleast_2d(self.coef) != 0, axis=0)
        return tuple(name for name, moves in zip(self.feature_names, used, strict=True) if moves)

    @property
    def statement(self) -> str:
        """The verdict and what proves it, in plain sentences; rows are counted from 0."""
        return plain_statement(self)

    def verify(self, X: Any, y: Any) -> Verification:
        """Check every claim against the data in exact arithmetic, independently of the search.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)

        Returns
        -------
        verification : Verification
            True in a boolean context if everything holds; prints as a table of checks.
        """
        own, coef, intercept = self.certificate, *hyperplanes_of(self.certificate)
        same = (self.verdict, self.margin, self.fit_intercept) == (
            own.kind,
            own.margin,
            own.fit_intercept,
        )
        pairs = [(self.coef, coef), (self.intercept, intercept)]
        same = same and all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)
        pairs = [(self.rows, own.common.rows), (self.against, own.common.against)]
        same = same and all(np.array_equal(a, b) for a, b in [*pairs, (self.classes, own.classes)])
        found = own.verify(X, y)
        tie = Check("answer as proven", "yes", "yes" if same else "changed", bool(same))
        return replace(found, checks=(tie, *found.checks))

    def __str__(self) -> str:
        return self.statement


_MOST_TERMS = 6
_MOST_ROWS = 8


def expression(coef: Any, intercept: float, names: tuple[str, ...]) -> str:
    """A linear function with the names of its features.

    Examples
    --------
    >>> from trueline.separation.separate import expression
    >>> expression([1.0, -2.0, 0.0], 3.0, ("age", "income", "height"))
    'age - 2 income + 3'
    """
    terms = [(float(c), name) for c, name in zip(coef, names, strict=True) if c != 0]
    left_out = len(terms) - _MOST_TERMS
    if left_out > 0:
        largest = sorted(terms, key=lambda term: -abs(term[0]))[:_MOST_TERMS]
        terms = [term for term in terms if term in largest][:_MOST_TERMS]
    text = ""
    for value, name in terms:
        size = "" if abs(value) == 1 else f"{abs(value):.4g} "
        text += _signed(value, f"{size}{name}", first=not text)
    if left_out > 0:
        text += f" + ... ({counted(left_out, 'smaller term')})"
    if intercept or not text:
        text += _signed(intercept, f"{abs(intercept):.4g}", first=not text)
    return text


def _signed(value: float, text: str, first: bool) -> str:
    if first:
        return f"-{text}" if value < 0 else text
    return f" - {text}" if value < 0 else f" + {text}"


def _rows(rows: Any) -> str:
    rows = [int(row) for row in rows]
    if len(rows) == 1:
        return f"row {rows[0]}"
    shown = ", ".join(str(row) for row in rows[:_MOST_ROWS])
    more = len(rows) - _MOST_ROWS
    if more > 0:
        return f"rows {shown} and {counted(more, 'other')}"
    head, _, last = shown.rpartition(", ")
    return f"rows {head} and {last}"


def _label(label: Any) -> str:
    return repr(label.item() if isinstance(label, np.generic) else label)


def _function(answer: Separability) -> str:
    return expression(answer.coef, float(answer.intercept), answer.feature_names)


def plain_statement(answer: Separability) -> str:
    """The sentences of :attr:`Separability.statement`."""
    if len(answer.classes) > 2:
        return _of_several(answer)
    negative, positive = (_label(label) for label in answer.classes)
    if answer.verdict == "separable":
        return (
            f"Separable: {_function(answer)} is positive for every row of {positive} and negative "
            f"for every row of {negative}, and no row is nearer to zero than {answer.margin:.4g}."
        )
    meet = f"No hyperplane separates them strictly: {_meeting(answer)}."
    if answer.verdict == "quasi-separable":
        return (
            f"Quasi-separable: {_function(answer)} is at least 0 for every row of {positive} and "
            f"at most 0 for every row of {negative}; it is 0 for {_rows(answer.boundary)}. {meet}"
        )
    return f"Not separable. {meet} No direction separates them even weakly."


def _meeting(answer: Separability) -> str:
    """Which rows exclude a strict separation."""
    if not answer.fit_intercept:
        if len(answer.rows) == 1:
            return f"{_rows(answer.rows)} is zero, and so on every hyperplane through zero"
        return (
            f"{_rows(answer.rows)}, those of {_label(answer.classes[0])} reflected at zero, have "
            "zero in their convex hull"
        )
    sides = []
    for own in (1, 0):
        # A row is held against the class that is not its own.
        mine = answer.rows[answer.against != own]
        sides.append(f"{_rows(mine)} of {_label(answer.classes[own])}")
    where = ""
    if len(answer.common_point) <= 4:
        numbers = ", ".join(f"{value:.4g}" for value in answer.common_point)
        where = f", at ({numbers})"
    if len(answer.rows) == 2:
        return f"{sides[0]} and {sides[1]} are the same point{where}"
    return f"the convex hulls of {sides[0]} and of {sides[1]} meet{where}"


def _of_several(answer: Separability) -> str:
    """For more than two classes."""
    k = len(answer.classes)
    if answer.verdict == "separable":
        return (
            f"Separable: of the {k} scores, one for each class, the own one is the largest for "
            f"every row, with margin {answer.margin:.4g}."
        )
    names = {_label(answer.classes[c]) for c in (*answer.own.tolist(), *answer.against.tolist())}
    where = f"{_rows(np.unique(answer.rows))} of the classes {', '.join(sorted(names))}"
    meet = f"No scores have the own class strictly first for all rows: {where} exclude it."
    if answer.verdict == "quasi-separable":
        return (
            f"Quasi-separable: of the {k} scores, one for each class, none is larger than the own "
            f"one for any row; some are equal for {_rows(answer.boundary)}. {meet}"
        )
    return f"Not separable. {meet} No scores have it first even weakly, but for all equal ones."


Indices = NDArray[np.intp]

# So much is taken off a margin that doubles can confirm it for most rows.
_SAFETY = Fraction(1, 10**12)
# More rows than this at the least distance are not multiplied out.
_FEW = 2000


def separate(
    X: Any,
    codes: Indices,
    classes: Any,
    fit_intercept: bool,
    feature_names: tuple[str, ...],
    start: Array | None = None,
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
    start : array of shape (d,) or (d + 1,), optional
        Of two classes: a hyperplane that may separate them, with its intercept if there is one.
    """
    k = len(classes)
    rows: Rows
    if k == 2:
        rows = SignedRows(X, np.where(codes == 1, 1.0, -1.0), fit_intercept)
    else:
        rows = ContrastRows(X, codes, k, fit_intercept)
    split = decide(rows, start if k == 2 else None)
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
    lowest_bit = int(exponent.min())
    shifts = (exponent - lowest_bit).tolist()
    values = exact_products(whole, g).tolist()
    least = min(v << shift for v, shift in zip(values, shifts, strict=True))
    return least * Fraction(2) ** lowest_bit
