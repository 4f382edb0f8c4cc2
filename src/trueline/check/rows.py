r"""The data as the checker reads them: blocks of rows, targets, weights, classes, exact doubles.

With unknowns g_c of class c, the *inequality* (i, c) of row i against another class c has the value
(g_own - g_c).x_i. Doubles decide its sign where a bound on their error allows: ``block @ W.T`` errs
by at most (p + 8) eps |block| |W|^T (Higham, "Accuracy and Stability of Numerical Algorithms",
section 3.1; W itself may be rounded), and a few units of what underflows.

Gram matrices of some columns: factors, their least curvature, and which columns depend.

*Coercivity.* With X_c the columns about their weighted means (or as they are), S and A diagonal and
A not negative, and a matrix M, the returned nu has ``M^T (X_c^T S X_c + A) M >= nu I``. *Proof.*
With the rows z_i = M^T (x_i - c) about *any* point c and t = sum_i s_i z_i, the matrix is Z^T S Z +
M^T A M - t t^T / sum(s). Rounding, with N = min(n, 2048) + n / 2048 terms added in any order
(Higham, "Accuracy and Stability", section 3.1) and size = trace(Z^T |S| Z + M^T A M):

    Z^T S Z, its lift, t t^T    (2 N + d + 64) eps size    products of columns, Cauchy-Schwarz
    Z itself                    off = (d + 4) eps || |S|^(1/2) |X_c| |M| ||_F, in norm: taken off
                                the square root where S >= 0, else off (2 size^(1/2) + off)
    eigenvalues as computed     16 r eps size              (LAPACK Users' Guide, section 4.7)

*Dependence.* A factor R of the columns, R^T R = X_c^T S X_c up to rounding, suggests columns that
are independent and, for each other column, a combination of them. The suggestion proves nothing.
That a column *is* a combination (up to a constant, where there is an intercept) is decided without
rounding: by elimination in integers where numbers are few; else columns of two numbers a and b,
which are b - a times a column of zeros and ones, and a constant, are replaced by that column,
coefficients are taken to be multiples of 1/1024, and the sums are exact in doubles where all terms
are multiples of a common power of two and small enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from trueline.check.arithmetic import (
    EPS,
    ROWS,
    SMALLEST,
    Array,
    Indices,
    as_integers,
    exact_product,
    fsum,
    null_space,
    residual_doubled,
    sum_units,
)
from trueline.check.verdict import Refused


def as_doubles(values: Any, name: str, finite: bool = True) -> Array:
    """An array of finite doubles that are exactly the given numbers.

    ``finite=False`` leaves it to the caller to look for infinity and NaN.

    Raises
    ------
    Refused
        If they are no numbers, not finite, or no doubles are equal to them.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise Refused(f"{name} holds what is no number: {error}") from None
    if array.dtype.kind not in "fiub":
        raise Refused(f"{name} has the type {array.dtype}")
    doubles = np.asarray(array, dtype=np.float64)
    if finite and not np.isfinite(doubles).all():
        raise Refused(f"{name} is not finite")
    if array.dtype.kind in "iu" and array.size and int(np.abs(array).max()) > 2**53:
        raise Refused(f"{name} holds integers beyond 2^53, which doubles do not all have")
    if array.dtype.itemsize > 8 and (doubles != array).any():
        raise Refused(f"{name} holds numbers that no double is equal to")
    return doubles


def length(X: Any) -> int:
    """The number of rows."""
    try:
        return int(X.shape[0]) if hasattr(X, "shape") and len(X.shape) else len(X)
    except TypeError:
        raise Refused("X has no rows") from None


def as_targets(y: Any, n: int) -> Array:
    """One row of numbers for each of n rows."""
    y = as_doubles(y, "y")
    y = y.reshape(-1, 1) if y.ndim == 1 else y
    if y.ndim != 2 or len(y) != n or n == 0:
        raise Refused(f"X has {n} rows, y the shape {y.shape}")
    return y


def as_matrix(X: Any, finite: bool = True) -> Any:
    """X as an array or CSR matrix of exact, finite doubles."""
    if hasattr(X, "blocks"):
        return X  # rows that are read block by block, and checked then
    if sp.issparse(X):
        matrix = sp.csr_array(X)
        return sp.csr_array(
            (as_doubles(matrix.data, "X"), matrix.indices, matrix.indptr), shape=matrix.shape
        )
    array = as_doubles(X, "X", finite)
    if array.ndim != 2:
        raise Refused(f"X has {array.ndim} dimensions, not two")
    return array


def as_weights(sample_weight: Any, n: int) -> Array:
    """One weight for each row, not negative, not all zero."""
    if sample_weight is None:
        return np.ones(n)
    s = as_doubles(sample_weight, "sample_weight")
    s = np.full(n, float(s)) if s.ndim == 0 else s
    if s.shape != (n,) or (s < 0).any() or not s.any():
        raise Refused(f"sample_weight has the shape {s.shape}, negative numbers or only zeros")
    return s


class Rows:
    """Rows with a positive weight; those of weight zero are absent, whatever they hold.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,) or (n, k)
    sample_weight : array-like of shape (n,), optional
    x_power, y_power : arrays of int of shape (d,) and (k,), optional
        Powers of two by which columns and targets are multiplied, which must be exact.
    finite : bool
        Whether X is searched for infinity and NaN here, which costs a pass over the data.

    Attributes
    ----------
    n, d, k, given : int
        Numbers of rows, columns, targets, and of rows including those of weight zero.
    keep : array of bool of shape (given,)
    y, s : arrays of shape (n, k) and (n,)
    row_terms : int
        The largest number of non-zero entries of a row.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        x_power: Any = None,
        y_power: Any = None,
        finite: bool = True,
    ) -> None:
        # Rows of weight zero may hold NaN: look at the weights first.
        n = length(X)
        s = as_weights(sample_weight, n)
        self.given, self.keep = n, s > 0
        target = np.asarray(y)
        target = target.reshape(-1, 1) if target.ndim == 1 else target
        if target.ndim != 2 or len(target) != n:
            raise Refused(f"X has {n} rows, y the shape {target.shape}")
        self._in_blocks, self._power = hasattr(X, "blocks"), x_power
        if not self.keep.all() and not self._in_blocks:
            X = (sp.csr_array(X) if sp.issparse(X) else np.asarray(X))[self.keep]
        target, s = target[self.keep], s[self.keep]
        self.X, self.y, self.s = as_matrix(X, finite), as_doubles(target, "y"), s
        self.n, self.d = len(s), self.X.shape[1]
        self.k = self.y.shape[1]
        self.is_sparse = sp.issparse(self.X)
        if x_power is not None and not self._in_blocks:
            self.X = _scaled(self.X, x_power)
        if y_power is not None:
            self.y = _scaled(self.y, y_power)
        entries = np.diff(self.X.indptr).max(initial=0) if self.is_sparse else self.d
        self.row_terms = int(entries)
        self.weight = float(self.s.sum())

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        """Consecutive blocks of rows, dense."""
        for where, block in self.blocks():
            yield where, block.toarray() if self.is_sparse else block

    def each(self, make: Callable[..., Any], *by_row: Array, dense: bool = True) -> Iterator[Any]:
        """``make(block, *own)`` of consecutive blocks, with their rows of some arrays.

        Rows may lie on other machines: what is made is a function of these alone.
        """
        if not self._in_blocks:
            for where, block in self if dense else self.blocks():
                yield make(block, *(values[where] for values in by_row))
            return
        given = [self._among_given(values) for values in by_row]
        count = 0
        for made in self.X.each(partial(_of_part, make, self._power), self.keep, *given):
            for size, found in made:
                count += size
                yield found
        if count != self.n:
            raise Refused(f"X has {count} rows that count, y {self.n}")

    def _among_given(self, values: Array) -> Array:
        """Values for all given rows; those of weight zero have none."""
        if self.n == self.given:
            return values
        out = np.zeros((self.given, *values.shape[1:]), values.dtype)
        out[self.keep] = values
        return out

    def some(self, index: Indices) -> Array:
        """Some rows, dense."""
        if not self._in_blocks:
            return dense(self.X[index])
        if self._power is not None or self.n != self.given:
            raise Refused("rows in batches are neither scaled nor left out for this proof")
        return dense(as_doubles(self.X.take(index).toarray(), "X"))

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Consecutive blocks of rows, sparse if they are."""
        if self._in_blocks:
            yield from self._read_blocks()
            return
        for start in range(0, self.n, ROWS):
            where = slice(start, min(start + ROWS, self.n))
            yield where, self.X[where]

    def _read_blocks(self) -> Iterator[tuple[slice, Array]]:
        start = 0
        for where, block in self.X.blocks(ROWS):
            part = as_doubles(block, "X")[self.keep[where]]
            part = part if self._power is None else _scaled(part, self._power)
            yield slice(start, start + len(part)), part
            start += len(part)
        if start != self.n:
            raise Refused(f"X has {start} rows that count, y {self.n}")

    def scores(
        self, W: Array, b: Array, minus: Any = None, centre: Any = None, doubled: bool = False
    ) -> tuple[Array, Array, Array]:
        """X W + b less what is subtracted, as z + low, and bounds on the errors.

        Columns are counted from a centre, if there is one, where z is a double alone (low is zero).
        """
        minus = np.zeros((self.n, W.shape[1])) if minus is None else minus
        centre = np.zeros(self.d) if centre is None else centre
        if centre.any():
            high, low = exact_product(centre[:, None], W)
            if not np.isfinite(low).all():
                raise Refused("scores leave the range of doubles")
            b = np.array([fsum(column) for column in np.vstack([b, high, low]).T])
        units = sum_units(self.d + 2) if doubled else (self.row_terms + 6) * EPS
        made = self.each(partial(_scored, W, b, centre, units, doubled), minus, dense=doubled)
        z, low, off = (np.concatenate(part) for part in zip(*made))
        return z, low, off

    def varying_columns(self, intercept: bool) -> Indices:
        """Columns that are not zero, or with an intercept not constant."""
        varies, first = np.zeros(self.d, dtype=bool), np.zeros((1, self.d))
        for where, block in self:
            if intercept and where.start == 0:
                first = block[:1]
            varies |= (block != first).any(axis=0)
        return np.flatnonzero(varies)

    @property
    def floor(self) -> float:
        """What underflow may hide in a sum over the rows."""
        return 1e-305 * self.n

    def kept(self, values: Array) -> Array:
        """Values for rows with a positive weight, from values for these or for all given rows."""
        if len(values) not in (self.n, self.given):
            raise Refused(f"a witness has {len(values)} rows, the data {self.n}")
        return values if len(values) == self.n else values[self.keep]


def _of_part(
    make: Callable[..., Any], power: Any, part: Any, keep: Any, *own: Array
) -> list[tuple[int, Any]]:
    """The sizes of the blocks of a part, and what is made of them."""
    out = []
    for where, block in part.blocks(ROWS):
        kept = keep[where]
        rows = as_doubles(block, "X")[kept]
        rows = rows if power is None else _scaled(rows, power)
        out.append((len(rows), make(rows, *(values[where][kept] for values in own))))
    return out


def _scaled(numbers: Any, powers: Any) -> Any:
    """Numbers times powers of two by column; refused unless that is exact."""
    powers = np.asarray(powers, dtype=np.int64)
    if sp.issparse(numbers):
        own = powers[numbers.indices]
        data = np.ldexp(numbers.data, own)
        exact, out = (np.ldexp(data, -own) == numbers.data), numbers.copy()
        out.data = data
    else:
        out = np.ldexp(numbers, powers)
        exact = np.ldexp(out, -powers) == numbers
    if not exact.all():
        raise Refused("the stated powers of two do not multiply the data exactly")
    return out


def dense(block: Any) -> Array:
    """A block of rows as an array."""
    return np.asarray(block.toarray() if sp.issparse(block) else block)


def _scored(
    W: Array, b: Array, centre: Array, units: float, doubled: bool, block: Any, minus: Array
) -> tuple[Array, Array, Array]:
    """Scores less what is subtracted, in one or two doubles, and bounds on their error."""
    z, low = np.empty_like(minus), np.zeros_like(minus)
    if not doubled:
        block = block - centre if centre.any() else block
        z = (np.asarray(block @ W) + b) - minus
    size = np.asarray(abs(block) @ np.abs(W)) + np.abs(b) + np.abs(minus)
    for t in range(W.shape[1] if doubled else 0):
        z[:, t], low[:, t] = residual_doubled(block, W[:, t], float(b[t]), minus[:, t])
    return z, low, units * size + (len(W) + 4) * SMALLEST


def centre(rows: Rows, wanted: bool) -> Array:
    """About the weighted means of the columns; zero without an intercept."""
    parts = rows.each(lambda block, s: s @ block, rows.s, dense=False) if wanted else ()
    return np.asarray(sum(parts, np.zeros(rows.d)) / rows.weight)


# A column of which less than this is left after the others counts as dependent.
_LEAST = 1e-9
_GRID = 1024.0
# Tables of so few numbers are decided by exact elimination.
_FEW = 1500


class Table:
    """Some columns about a centre, and a column of ones if asked for."""

    def __init__(
        self, rows: Rows, centre: Array, columns: Any = None, constant: bool = False
    ) -> None:
        self.rows, self.n, self.constant = rows, rows.n, int(constant)
        self.columns = np.arange(rows.d) if columns is None else columns
        self.centre = centre[self.columns]
        self.d = len(self.columns) + self.constant

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        for where, block in self.rows:
            yield where, _about(block, self.columns, self.centre, self.constant)

    def each(self, make: Callable[..., Any], *by_row: Array) -> Iterator[Any]:
        """``make(block, *own)`` of consecutive blocks of the table."""
        columns, centre, constant = self.columns, self.centre, self.constant
        return self.rows.each(
            lambda block, *own: make(_about(block, columns, centre, constant), *own), *by_row
        )


def reached(M: Array, block: Array) -> Array:
    """How far a step of length one in the metric M moves each score at the most."""
    return np.asarray(np.abs(block) @ M)


def _about(block: Array, columns: Indices, centre: Array, constant: int) -> Array:
    part = block[:, columns] - centre
    return np.hstack([part, np.ones((len(part), constant))])


def factor(table: Table, weights: Array | None = None, lift: Array | None = None) -> Array:
    """A triangular R with R^T R = sum_i weights_i a_i a_i^T + diag(lift), up to rounding."""
    R: Array = np.zeros((0, table.d)) if lift is None else np.diag(np.sqrt(lift))
    weights = table.rows.s if weights is None else weights
    for own in table.each(_triangle, weights):
        R = np.asarray(np.linalg.qr(np.vstack([R, own]), mode="r"))
    return R


def _triangle(block: Array, weights: Array) -> Array:
    return np.asarray(np.linalg.qr(block * np.sqrt(weights)[:, None], mode="r"))


def inverse(R: Array) -> Array | None:
    """The inverse of a square factor, whatever the scale of its columns; None if there is none."""
    if len(R) < R.shape[1]:
        return None
    scale = 1.0 / np.abs(R).max(axis=0, initial=0.0)
    try:
        return scale[:, None] * np.linalg.inv(R * scale)
    except np.linalg.LinAlgError:
        return None


def inverse_basis(
    table: Table, centred: bool, lift: Array | None = None
) -> tuple[float, float, Array]:
    """nu, the longest row and M, the inverse of a factor; nu is zero where it has none."""
    M = inverse(factor(table, lift=lift))
    if M is None:
        return 0.0, 0.0, np.zeros((table.d, 0))
    return *coercivity(table, M, centred, lift), M


def coercivity(
    table: Table,
    M: Array,
    centred: bool = False,
    lift: Array | None = None,
    weights: Array | None = None,
) -> tuple[float, float]:
    """A number nu >= 0 with M^T (X_c^T S X_c + A) M >= nu I, and the longest row of X M.

    nu is zero where it is not known.

    Parameters
    ----------
    table : Table
        The columns, about any point.
    M : array of shape (d,) or (d, r)
        One dimension means a diagonal matrix.
    centred : bool
        Whether columns are counted from their weighted means (there is an intercept).
    lift : array of shape (d,), optional
        The diagonal of A.
    weights : array of shape (n,), optional
        The diagonal of S, if not the weights of the rows; negative ones only if not centred.
    """
    s, m, r = table.rows.s if weights is None else weights, table.d, M.shape[-1]
    if r == 0:
        return 1.0, 0.0

    def sums(block: Array, s: Array) -> tuple[Array, Array, float, float, float]:
        Z = block * M if M.ndim == 1 else block @ M
        own = s[:, None] * Z
        size = drift = float(np.abs(own * Z).sum())
        far = float((Z * Z).sum(axis=1).max(initial=0.0))
        if M.ndim == 2:
            P = np.abs(block) @ np.abs(M)
            drift = float(((np.abs(s)[:, None] * P) * P).sum())
            far = far + ((m + 4) * EPS) ** 2 * float((P * P).sum(axis=1).max(initial=0.0))
        return own.T @ Z, own.sum(axis=0), size, drift, far

    a = np.zeros(m) if lift is None else np.sqrt(lift)
    half = np.diag(a * M) if M.ndim == 1 else a[:, None] * M
    gram, total, size, drift, far = half.T @ half, np.zeros(r), float((half**2).sum()), 0.0, 0.0
    for own in table.each(sums, s):
        gram, total, size, drift = gram + own[0], total + own[1], size + own[2], drift + own[3]
        far = max(far, own[4])
    longest = float(np.sqrt(2 * far))  # |a + b|^2 <= 2 (|a|^2 + |b|^2)
    gram -= np.outer(total, total) / (s.sum() or 1.0) * float(centred)
    if not (np.isfinite(gram).all() and np.isfinite(size + drift)):
        return 0.0, longest
    terms = 2 * (min(table.n, ROWS) + table.n / ROWS) + m + 16 * r + 64
    least, off = float(np.linalg.eigvalsh(gram)[0]), (m + 4) * EPS * float(np.sqrt(drift))
    least -= terms * EPS * size + 1e-290
    if (s >= 0).all():
        root = max(float(np.sqrt(max(least, 0.0))) - off, 0.0)
        return root**2 * (1 - 8 * EPS), longest
    return max(least - off * (2 * float(np.sqrt(size)) + off), 0.0), longest


def independent_columns(
    rows: Rows, columns: Indices, centre: Array, constant: bool
) -> tuple[Indices, Indices, bool]:
    """Columns that look independent, the others, and whether those are exact combinations.

    ``constant`` allows combinations to be off by the same number in all rows.
    """
    R = factor(Table(rows, centre, columns, constant))
    if constant:  # what rounding of the centre leaves is no direction of its own
        R = np.asarray(np.linalg.qr(np.roll(R, 1, axis=1), mode="r"))[1:, 1:]
    squares = rows.each(lambda block, s: s @ block[:, columns] ** 2, rows.s)
    norms = sum(squares, np.zeros(len(columns)))
    kept = _independent(R, np.sqrt(norms))
    rest = np.setdiff1d(np.arange(len(columns)), kept)
    C: Array = np.zeros((0, len(rest)))
    if len(kept) and len(rest):
        C = np.asarray(np.linalg.lstsq(R[:, kept], R[:, rest], rcond=None)[0])
    low, high = _levels(rows, constant) if len(rest) else (np.zeros(rows.d), np.zeros(rows.d))
    unit = np.where(low < high, high - low, 1.0)[columns]
    exact = all(
        _is_combination(
            rows,
            int(columns[j]),
            columns[kept],
            C[:, i] * unit[kept] / unit[j],
            constant,
            low,
            high,
        )
        for i, j in enumerate(rest)
    )
    return columns[kept], columns[rest], exact


def _independent(R: Array, sizes: Array) -> Indices:
    """Places of columns of R that are independent, found greedily.

    ``sizes`` are the norms of the columns before they were centred: what is below rounding of
    these is zero.
    """
    left, chosen = R.copy(), []
    start = np.linalg.norm(R, axis=0)
    start = np.where(start > 1e-12 * sizes, start, np.inf)
    for _ in range(min(R.shape)):
        share = np.linalg.norm(left, axis=0) / start
        best = int(np.argmax(share))
        if not share[best] > _LEAST:
            break
        chosen.append(best)
        unit = left[:, best] / np.linalg.norm(left[:, best])
        for _ in range(2):
            left = left - np.outer(unit, unit @ left)
        left[:, best] = 0.0
    return np.sort(np.array(chosen, dtype=np.intp))


def _levels(rows: Rows, constant: bool) -> tuple[Array, Array]:
    """The two numbers that a column is made of, low and high; equal for other columns.

    Without a constant the low one is zero.
    """
    low, high = np.full(rows.d, np.inf), np.full(rows.d, -np.inf)
    for _, block in rows:
        low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
    is_level = (low < high) & (constant | (low == 0))
    for _, block in rows:
        is_level &= ((block == low) | (block == high)).all(axis=0)
    return np.where(is_level, low, 0.0), np.where(is_level, high, 0.0)


def _is_combination(
    rows: Rows,
    column: int,
    others: Indices,
    coefficients: Array,
    constant: bool,
    low: Array,
    high: Array,
) -> bool:
    """Whether a column is exactly this combination of others, rounded to a grid.

    ``constant`` allows for the same number in all rows. Columns of two numbers, low and high, count
    as zeros and ones: they are these times a number, and a constant.
    """
    if rows.n * (len(others) + 2) <= _FEW:  # by elimination without rounding
        table = np.concatenate([block[:, np.append(others, column)] for _, block in rows])
        ones = np.ones((rows.n, int(constant)))
        return bool(null_space(as_integers(np.hstack([ones, table]))[0]))
    c = np.rint(coefficients * _GRID)
    if not np.allclose(c / _GRID, coefficients, rtol=1e-6, atol=1e-6) or (np.abs(c) > 2**20).any():
        return False
    used, c = np.append(others[c != 0], column), np.append(c[c != 0], -_GRID)
    is_alone = constant and len(used) == 1
    first = _with_levels(next(iter(rows))[1][:1], used, low, high) if is_alone else 0.0
    value = 0.0 if not constant or len(used) == 1 else None
    for _, block in rows:
        part = _with_levels(block, used, low, high) - first
        top = float(np.abs(part).max(initial=0.0))
        # Multiples of one unit, so few of them that sums are whole numbers below 2^53.
        unit = np.ldexp(1.0, int(np.frexp(top)[1]) - 52 + int(np.ceil(np.log2(np.abs(c).sum()))))
        whole = part / unit
        if (whole != np.rint(whole)).any():
            return len(used) == 2 and _is_copy(rows, used, c)
        total = (whole @ c) * unit
        value = total[0] if value is None else value
        if (total != value).any():
            return False
    return True


def _with_levels(block: Array, used: Indices, low: Array, high: Array) -> Array:
    """Some columns, those of two numbers as zeros and ones."""
    high, own = high[used], block[:, used]
    return np.where(low[used] < high, own == high, own)


def _is_copy(rows: Rows, used: Indices, c: Array) -> bool:
    """Whether a column is a power of two times another one."""
    ratio = -c[0] / c[1]
    if np.frexp(abs(ratio))[0] != 0.5:
        return False
    return all((block[:, used[1]] == ratio * block[:, used[0]]).all() for _, block in rows)
