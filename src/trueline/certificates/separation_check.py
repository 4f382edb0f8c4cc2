r"""The independent check of a verdict on separability.

Everything is decided for the exact numbers that the doubles stand for: by double precision where a
bound on its error allows (Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1),
by Python's integers where not. Nothing is shared with what made the claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.checking import Check, Verification
from trueline.certificates.separation import Combination, SeparationCertificate

__all__ = ["EPS", "ClassifiedRows", "dense", "scores_with_error", "verify_separation"]

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

EPS = float(np.finfo(np.float64).eps)
_ROWS = 4096
_PRIME = 2**31 - 1


def verify_separation(certificate: SeparationCertificate, X: Any, y: Any) -> Verification:
    """Check a verdict on separability against the data it is about.

    Parameters
    ----------
    certificate : SeparationCertificate
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,)

    Returns
    -------
    verification : Verification
    """
    try:
        data = ClassifiedRows(
            X, y, certificate.classes, certificate.n_features, certificate.fit_intercept
        )
    except ValueError as error:
        return Verification((Check("data fit the claim", "yes", str(error), False),))
    checks = [Check("data fit the claim", "yes", "yes", True)]
    kinds = {"separable", "quasi-separable", "not separable"}
    if certificate.kind not in kinds:
        return Verification((*checks, Check("kind of proof", certificate.kind, "unknown", False)))
    boundary = np.full((data.n, data.k), certificate.kind == "not separable")
    if certificate.kind == "quasi-separable":
        trouble = data.misplaced(certificate.boundary_rows, certificate.boundary_against)
        checks.append(Check("rows of the boundary", "in the data", trouble or "yes", not trouble))
        if trouble:
            return Verification(tuple(checks))
        boundary[certificate.boundary_rows, certificate.boundary_against] = True
    boundary[np.arange(data.n), data.codes] = False
    if certificate.kind != "not separable":
        checks += _check_direction(certificate, data, boundary)
    if certificate.kind != "separable":
        checks += _check_combinations(certificate, data, boundary)
    return Verification(tuple(checks))


class ClassifiedRows:
    """Rows as doubles with the constant feature, and the class of each."""

    def __init__(self, X: Any, y: Any, classes: Any, n_features: int, fit_intercept: bool) -> None:
        self.X: Any = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        labels, codes = np.unique(np.asarray(y).ravel(), return_inverse=True)
        self.codes: Codes = codes.ravel()
        self.k = len(labels)
        if self.X.ndim != 2 or self.X.shape != (len(self.codes), n_features):
            raise ValueError(f"X {self.X.shape}, y {self.codes.shape}")
        if len(labels) != len(classes) or not all(labels == classes):
            raise ValueError(f"the labels are {labels.tolist()}")
        self.n, self.d = len(self.codes), n_features
        self.fit_intercept = bool(fit_intercept)
        self.p = self.d + int(self.fit_intercept)
        values = self.X.data if sp.issparse(self.X) else self.X
        doubles = np.asarray(values, dtype=np.float64)
        if not np.isfinite(doubles).all():
            raise ValueError("X is not finite")
        if np.asarray(values).dtype.kind in "iuO" and (doubles.astype(object) != values).any():
            raise ValueError("X holds integers that no double is equal to")

    def rows(self, where: Any) -> Array:
        """Some rows, dense."""
        part = self.X[where]
        part = np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)
        return np.hstack([part, np.ones((len(part), 1))]) if self.fit_intercept else part

    def __iter__(self) -> Iterator[tuple[slice, Any]]:
        for start in range(0, self.n, _ROWS):
            where = slice(start, min(start + _ROWS, self.n))
            yield where, self._stored(where)

    def _stored(self, where: slice) -> Any:
        """Some rows, sparse if they are."""
        if not sp.issparse(self.X):
            return self.rows(where)
        part = self.X[where].astype(np.float64)
        ones = np.ones((part.shape[0], int(self.fit_intercept)))
        return sp.csr_array(sp.hstack([part, ones], format="csr"))

    def misplaced(self, rows: NDArray[Any], against: NDArray[Any]) -> str | None:
        """What is wrong with these inequalities, or None."""
        if rows.shape != against.shape or rows.ndim != 1:
            return "rows and classes of different lengths"
        if len(rows) == 0:
            return None
        if rows.min() < 0 or rows.max() >= self.n or against.min() < 0 or against.max() >= self.k:
            return "rows or classes that do not exist"
        if (self.codes[rows] == against).any():
            return "rows against their own class"
        return None


def _dot(row: Array, g: list[int]) -> Fraction:
    """x.g without rounding."""
    total = Fraction(0)
    for value, factor in zip(row.tolist(), g, strict=True):
        if value and factor:
            numerator, denominator = value.as_integer_ratio()
            total += Fraction(numerator * factor, denominator)
    return total


def _zero(block: Array, g: list[int]) -> NDArray[np.bool_]:
    """Which rows have x.g = 0, exactly: in words if everything is small, else one by one."""
    used = [j for j, value in enumerate(g) if value]
    part, factors = block[:, used], [g[j] for j in used]
    largest = np.abs(part).max(axis=0, initial=0.0)
    total = sum(Fraction(float(a)) * abs(b) for a, b in zip(largest, factors, strict=True))
    if (part == np.rint(part)).all() and total < 2**62 and all(abs(b) < 2**62 for b in factors):
        return np.asarray(part.astype(np.int64) @ np.array(factors, dtype=np.int64) == 0)
    return np.array([_dot(row, factors) == 0 for row in part], dtype=bool)


# --- directions -----------------------------------------------------------------------------------


def _check_direction(
    certificate: SeparationCertificate, data: ClassifiedRows, boundary: NDArray[np.bool_]
) -> list[Check]:
    """d > 0 off the boundary, d = 0 on it, and the margin."""
    G = [[int(v) for v in row] for row in certificate.direction]
    if len(G) != data.k or any(len(row) != data.p for row in G):
        return [Check("direction", f"{data.k} x {data.p} integers", "of another shape", False)]
    wrong = sum(_wrong_in_block(data, G, where, block, boundary) for where, block in data)
    strict = int((~boundary).sum()) - data.n
    sides = f"{strict} inequalities positive, {int(boundary.sum())} zero"
    found = "yes" if wrong == 0 else f"{wrong} are not"
    if certificate.kind == "quasi-separable":
        checks = [Check("sides of the hyperplanes", sides, found, wrong == 0)]
        return [*checks, Check("some row strictly on its side", "yes", str(strict), strict > 0)]
    checks = [Check("sides of the hyperplanes", sides, found, wrong == 0)]
    if wrong == 0:
        checks.append(_check_margin(certificate, data, G))
    return checks


def _in_doubles(G: list[list[int]]) -> Array:
    """Integers as doubles, the largest of magnitude about one."""
    top = max((abs(v) for row in G for v in row), default=0) or 1
    return np.array([[float(Fraction(v, top)) for v in row] for row in G])


def dense(block: Any) -> Array:
    """A block of rows as an array."""
    return np.asarray(block.toarray() if sp.issparse(block) else block)


def scores_with_error(block: Any, W: Array) -> tuple[Array, Array]:
    """Scores of all classes, and a bound on their error (infinite where something overflows)."""
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.asarray(block @ W.T)
        magnitudes = abs(block)
        size = np.asarray(magnitudes @ np.abs(W).T)
        tiny = 1e-320 * block.shape[1] + 1e-322 * np.asarray(magnitudes.sum(axis=1)).reshape(-1, 1)
        error = (block.shape[1] + 8) * EPS * size + tiny
    error[~np.isfinite(scores) | ~np.isfinite(error)] = np.inf
    scores[~np.isfinite(scores)] = 0.0
    return scores, error


def _wrong_in_block(
    data: ClassifiedRows,
    G: list[list[int]],
    where: slice,
    block: Any,
    boundary: NDArray[np.bool_],
) -> int:
    """The number of inequalities that are not positive off the boundary or not zero on it."""
    scores, error = scores_with_error(block, _in_doubles(G))
    own, every = data.codes[where], np.arange(len(scores))
    gap = scores[every, own][:, None] - scores
    doubt = error[every, own][:, None] + error
    inside = boundary[where]
    others = np.ones(gap.shape, dtype=bool)
    others[every, own] = False
    wrong = 0
    uncertain = others & ~inside & ~(gap > 1.01 * doubt)
    for i, c in zip(*np.nonzero(uncertain), strict=True):
        g = [a - b for a, b in zip(G[own[i]], G[c], strict=True)]
        wrong += _dot(dense(block[[i]])[0], g) <= 0
    for a in range(data.k):
        for c in range(data.k):
            places = np.flatnonzero(inside[:, c] & (own == a))
            if a != c and len(places):
                g = [u - v for u, v in zip(G[a], G[c], strict=True)]
                wrong += int((~_zero(dense(block[places]), g)).sum())
    return wrong


def _check_margin(
    certificate: SeparationCertificate, data: ClassifiedRows, G: list[list[int]]
) -> Check:
    """d >= margin ||g||, in doubles where they tell, exactly for the lowest rows where not."""
    claimed = certificate.margin
    size = _norm(G, data.d)
    top = max((abs(v) for row in G for v in row), default=0) or 1
    goal = Fraction(claimed) * size if np.isfinite(claimed) and claimed >= 0 else None
    if goal is None:
        return Check("margin", f"{claimed:.6g}", "not a margin", False)
    W, level, wrong = _in_doubles(G), float(goal / top), 0
    for where, block in data:
        scores, error = scores_with_error(block, W)
        own, every = data.codes[where], np.arange(len(scores))
        gap = scores[every, own][:, None] - scores
        doubt = error[every, own][:, None] + error + 4 * EPS * level + 1e-322
        sure = gap - 1.01 * doubt > level
        sure[every, own] = True
        for i, c in zip(*np.nonzero(~sure), strict=True):
            g = [a - b for a, b in zip(G[own[i]], G[c], strict=True)]
            wrong += _dot(dense(block[[i]])[0], g) < goal
    found = "no row is nearer" if wrong == 0 else f"{wrong} are nearer"
    return Check("margin", f"at least {claimed:.6g}", found, wrong == 0)


def _norm(G: list[list[int]], d: int) -> Fraction:
    """Not below the norm of the weights; of their difference, for two classes."""
    if len(G) == 2:
        squares = sum((a - b) ** 2 for a, b in zip(G[0][:d], G[1][:d], strict=True))
    else:
        # Adding one vector to the weights of all classes changes nothing: the mean goes.
        k = len(G)
        means = [Fraction(sum(column), k) for column in zip(*(row[:d] for row in G), strict=True)]
        parts = ((v - m) ** 2 for row in G for v, m in zip(row[:d], means, strict=True))
        total = sum(parts, Fraction(0))
        squares = -(-total.numerator // total.denominator)
    # With 64 more digits than the integer part has.
    return Fraction(isqrt(squares << 128) + 1, 1 << 64)


# --- combinations ---------------------------------------------------------------------------------


def _check_combinations(
    certificate: SeparationCertificate, data: ClassifiedRows, boundary: NDArray[np.bool_]
) -> list[Check]:
    """Both vanish; the first is on few rows; the second spans the boundary."""
    checks = []
    most = data.p * (data.k - 1) + 1
    common = certificate.common
    found = _vanishes(data, common)
    checks.append(Check("combination vanishes", f"{len(common.rows)} rows", found, found == "yes"))
    if len(common.rows) == 0 or len(common.rows) > most:
        checks.append(Check("rows of it", f"1 to {most}", f"{len(common.rows)}", False))
    spanning = certificate.spanning
    if len(spanning.rows):
        found = _vanishes(data, spanning)
        name = "combination of spanning rows vanishes"
        checks.append(Check(name, f"{len(spanning.rows)} rows", found, found == "yes"))
    if all(check.holds for check in checks):
        found = _spans(data, spanning, boundary)
        checks.append(Check("they span the boundary", "yes", found, found == "yes"))
    return checks


def _contrasts(data: ClassifiedRows, combination: Combination) -> list[list[Fraction]]:
    """The inequalities as vectors: blocks of all classes but the last."""
    out = []
    X = data.rows(np.asarray(combination.rows, dtype=np.intp))
    for x, i, c in zip(X.tolist(), combination.rows, combination.against, strict=True):
        exact = [Fraction(v) for v in x]
        blocks = [[Fraction(0)] * data.p for _ in range(data.k)]
        blocks[data.codes[i]] = exact
        blocks[c] = [-v for v in exact]
        out.append([v for block in blocks[:-1] for v in block])
    return out


def _vanishes(data: ClassifiedRows, combination: Combination) -> str:
    """Whether the multipliers are positive and the combination is zero."""
    rows, against = combination.rows, combination.against
    if trouble := data.misplaced(rows, against):
        return trouble
    if len(combination.multipliers) != len(rows):
        return "rows and multipliers of different lengths"
    if not all(isinstance(m, int) and m > 0 for m in combination.multipliers):
        return "multipliers that are not positive integers"
    vectors = _contrasts(data, combination)
    for column in zip(*vectors, strict=True):
        total = sum((v * m for v, m in zip(column, combination.multipliers, strict=True) if v), 0)
        if total != 0:
            return "no"
    return "yes"


def _spans(data: ClassifiedRows, combination: Combination, boundary: NDArray[np.bool_]) -> str:
    """Whether every inequality of the boundary is a combination of these, in exact arithmetic."""
    rest = boundary.copy()
    rest[combination.rows, combination.against] = False
    if not rest.any():
        return "yes"
    size = data.p * (data.k - 1)
    vectors = [_whole(vector) for vector in _contrasts(data, combination)]
    if _rank_modulo(vectors) == size:
        return "yes"  # a minor that is not zero modulo a prime is not zero
    echelon = _Echelon(vectors, size)
    if rest.sum() <= size - len(echelon.pivots):
        rows, against = np.nonzero(rest)
        few = _contrasts(data, Combination(rows, against, (1,) * len(rows)))
        return "yes" if all(echelon.contains(_whole(vector)) for vector in few) else "no"
    for normal in echelon.normals():
        G = [normal[c * data.p : (c + 1) * data.p] for c in range(data.k - 1)]
        G.append([0] * data.p)
        if not _all_orthogonal(data, G, rest):
            return "no"
    return "yes"


def _all_orthogonal(data: ClassifiedRows, G: list[list[int]], wanted: NDArray[np.bool_]) -> bool:
    """Whether all wanted inequalities are zero for G."""
    for a in range(data.k):
        for c in range(data.k):
            g = [u - v for u, v in zip(G[a], G[c], strict=True)]
            if a == c or not any(g):
                continue
            places = np.flatnonzero(wanted[:, c] & (data.codes == a))
            for start in range(0, len(places), _ROWS):
                if not _zero(data.rows(places[start : start + _ROWS]), g).all():
                    return False
    return True


def _whole(vector: list[Fraction]) -> list[int]:
    """A positive multiple that is made of integers; denominators are powers of two."""
    common = max((v.denominator for v in vector), default=1)
    return [int(v * common) for v in vector]


def _rank_modulo(vectors: list[list[int]]) -> int:
    """A lower bound on the rank: that of the residues modulo a prime."""
    if not vectors:
        return 0
    M = np.array([[v % _PRIME for v in vector] for vector in vectors], dtype=np.int64)
    rank = 0
    for column in range(M.shape[1]):
        place = np.flatnonzero(M[rank:, column])
        if len(place) == 0:
            continue
        M[[rank, rank + place[0]]] = M[[rank + place[0], rank]]
        M[rank] = M[rank] * pow(int(M[rank, column]), -1, _PRIME) % _PRIME
        below = M[rank + 1 :]
        factors = below[:, column].copy()
        M[rank + 1 :] = (below - factors[:, None] * M[rank]) % _PRIME
        rank += 1
        if rank == len(M):
            break
    return rank


class _Echelon:
    """The span of vectors, reduced by Gauss and Jordan."""

    def __init__(self, vectors: list[list[int]], size: int) -> None:
        self.size = size
        self.reduced: list[list[Fraction]] = []
        self.pivots: list[int] = []
        for vector in vectors:
            row = self._rest(vector)
            column = next((j for j, v in enumerate(row) if v), None)
            if column is None:
                continue
            row = [v / row[column] if v else v for v in row]
            for i, known in enumerate(self.reduced):
                if factor := known[column]:
                    self.reduced[i] = [
                        a - factor * b if b else a for a, b in zip(known, row, strict=True)
                    ]
            self.reduced.append(row)
            self.pivots.append(column)

    def _rest(self, vector: list[int]) -> list[Fraction]:
        """What is left of a vector when its components along the span are taken off."""
        row = [Fraction(v) for v in vector]
        for pivot, known in zip(self.pivots, self.reduced, strict=True):
            if factor := row[pivot]:
                row = [a - factor * b if b else a for a, b in zip(row, known, strict=True)]
        return row

    def contains(self, vector: list[int]) -> bool:
        """Whether a vector is in the span."""
        return not any(self._rest(vector))

    def normals(self) -> Iterator[list[int]]:
        """Integer vectors that span all directions orthogonal to the span."""
        for free in sorted(set(range(self.size)) - set(self.pivots)):
            values = {
                pivot: -row[free] for pivot, row in zip(self.pivots, self.reduced) if row[free]
            }
            scale = 1
            for v in values.values():
                scale *= (v * scale).denominator
            normal = [0] * self.size
            normal[free] = scale
            for pivot, v in values.items():
                normal[pivot] = int(v * scale)
            yield normal
