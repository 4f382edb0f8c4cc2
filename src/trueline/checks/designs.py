"""The laws of designs: every product against the plain array, to the rounding of plain products.

A sum of m products rounds by at most m eps sum abs(products), whatever the order of summation.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueline.checks.book import EPS, LawBook, assert_at_most, assert_close
from trueline.design import Design

Array = NDArray[np.float64]

DESIGN_LAWS = LawBook("design")


@dataclass(frozen=True)
class DesignPoints:
    """The plain array, and what it is multiplied with.

    Attributes
    ----------
    X, magnitude : arrays of shape (n, d)
        The entries, and how large the numbers are that they were computed from.
    w, W : arrays of shape (d,) and (d, 3)
    u, U : arrays of shape (n,) and (n, 3)
    weights : array of shape (n,)
        Zeros among them.
    shift : array of shape (d,)
    """

    X: Array
    magnitude: Array
    w: Array
    W: Array
    u: Array
    U: Array
    weights: Array
    shift: Array

    @classmethod
    def of(cls, design: Design, magnitude: ArrayLike | None = None) -> DesignPoints:
        """The points for one design."""
        n, d = design.shape
        X = design.toarray()
        rng = np.random.default_rng(0)
        weights = rng.uniform(0.5, 2.0, n)
        weights[1::5] = 0.0
        return cls(
            X=X,
            magnitude=np.abs(X) if magnitude is None else np.asarray(magnitude, dtype=float),
            w=rng.standard_normal(d),
            W=rng.standard_normal((d, 3)),
            u=rng.standard_normal(n),
            U=rng.standard_normal((n, 3)),
            weights=weights,
            shift=np.abs(X).mean(axis=0) if n else np.zeros(d),
        )

    def sums(self) -> Iterator[tuple[Array | None, Array | None, Array, Array, Array]]:
        """Weights and shift, given or not; factor, centred rows and their magnitudes."""
        for weights in (None, self.weights):
            for shift in (None, self.shift):
                factor = np.ones(len(self.X)) if weights is None else weights
                centred = self.X if shift is None else self.X - shift
                size = self.magnitude + (0.0 if shift is None else np.abs(self.shift))
                yield weights, shift, factor, centred, size


def _unit(terms: int) -> float:
    return (terms + 16) * EPS


@DESIGN_LAWS.law()
def facts_are_true(design: Design, points: DesignPoints) -> None:
    """shape, dtype, number of nonzeros and sparsity describe the array."""
    assert design.shape == points.X.shape
    assert all(type(size) is int for size in design.shape), f"shape is {design.shape!r}"
    assert design.dtype in (np.float32, np.float64), f"dtype is {design.dtype!r}"
    assert isinstance(design.is_sparse, bool)
    assert np.isfinite(points.X).all(), "the laws need finite entries"
    assert isinstance(design.nonzeros, int), f"nonzeros is a {type(design.nonzeros)}"


@DESIGN_LAWS.law()
def matvec_is_the_product(design: Design, points: DesignPoints) -> None:
    """matvec(W) = X W, for one column and for several, in double precision."""
    for W in (points.w, points.W, points.W[:, :0], np.asfortranarray(points.W)):
        got = design.matvec(W)
        assert got.dtype == np.float64, f"dtype {got.dtype}"
        slack = _unit(design.shape[1]) * (points.magnitude @ np.abs(W))
        assert_close(got, points.X @ W, slack)


@DESIGN_LAWS.law()
def rmatvec_is_the_product_with_the_transpose(design: Design, points: DesignPoints) -> None:
    """rmatvec(U) = X^T U, for one column and for several, in double precision."""
    for U in (points.u, points.U, points.U[:, :0], np.asfortranarray(points.U)):
        got = design.rmatvec(U)
        assert got.dtype == np.float64, f"dtype {got.dtype}"
        slack = _unit(2 * design.shape[0]) * (points.magnitude.T @ np.abs(U))
        assert_close(got, points.X.T @ U, slack)


@DESIGN_LAWS.law()
def products_are_adjoint(design: Design, points: DesignPoints) -> None:
    """<X w, u> = <w, X^T u>."""
    left, right = design.matvec(points.w) @ points.u, points.w @ design.rmatvec(points.u)
    size = np.abs(points.u) @ points.magnitude @ np.abs(points.w)
    assert_close(left, right, _unit(sum(design.shape)) * size)


@DESIGN_LAWS.law()
def second_moments_are_sums_over_rows(design: Design, points: DesignPoints) -> None:
    """total = sum s v, gram = sum s v v^T, cross = sum s v y^T with v = x - c."""
    for weights, shift, factor, V, size in points.sums():
        got = design.second_moments(points.U, weights, shift)
        unit, s = _unit(2 * design.shape[0]), factor[:, None]
        assert_close(got.total, factor @ V, unit * (factor @ size))
        assert_close(got.gram, (s * V).T @ V, unit * ((s * size).T @ size))
        assert_close(got.cross, (s * V).T @ points.U, unit * ((s * size).T @ np.abs(points.U)))
        assert np.array_equal(got.gram, got.gram.T), "gram is not symmetric to the last bit"


@DESIGN_LAWS.law()
def second_moments_state_their_rounding(design: Design, points: DesignPoints) -> None:
    """abs(error of gram_ij) <= (terms/2 + 16) eps sqrt(size_i size_j), size_i >= gram_ii."""
    for weights, shift, factor, _, _ in points.sums():
        got = design.second_moments(points.U, weights, shift)
        # Extended precision where the machine has it; the centred rows must not round first.
        V = points.X.astype(np.longdouble) - (0 if shift is None else shift)
        exact = (factor[:, None] * V).T @ V
        root = np.sqrt(got.size)
        slack = (got.terms / 2 + 16) * EPS * np.outer(root, root)
        assert_at_most(got.gram.diagonal(), got.size, 8 * EPS * got.size)
        assert_at_most(np.abs(got.gram - exact), 0.0, slack + 1e-300)


@DESIGN_LAWS.law()
def kernel_is_the_product_of_the_rows(design: Design, points: DesignPoints) -> None:
    """kernel = V V^T with v_i = sqrt(s_i) (x_i - c)."""
    for weights, shift, factor, centred, size in points.sums():
        root = np.sqrt(factor)[:, None]
        V, A = root * centred, root * size
        got = design.kernel(weights, shift)
        assert_close(got, V @ V.T, _unit(2 * design.shape[1]) * (A @ A.T))
        assert np.array_equal(got, got.T), "the kernel is not symmetric to the last bit"


@DESIGN_LAWS.law()
def column_means_are_weighted_means(design: Design, points: DesignPoints) -> None:
    """column_means = sum s x / sum s."""
    for weights in (None, points.weights):
        factor = np.ones(len(points.X)) if weights is None else weights
        slack = _unit(2 * design.shape[0]) * (factor @ points.magnitude) / factor.sum()
        assert_close(design.column_means(weights), factor @ points.X / factor.sum(), slack)


@DESIGN_LAWS.law()
def column_largest_is_the_largest_magnitude(design: Design, points: DesignPoints) -> None:
    """column_largest = max_i abs(x_ij)."""
    expected = np.abs(points.X).max(axis=0, initial=0.0)
    assert_close(
        design.column_largest(), expected, 4 * EPS * points.magnitude.max(axis=0, initial=0)
    )


@DESIGN_LAWS.law()
def column_squares_are_sums_of_squares(design: Design, points: DesignPoints) -> None:
    """column_squares = sum_i s_i (x_ij - c_j)^2."""
    for weights, shift, factor, V, size in points.sums():
        slack = _unit(2 * design.shape[0]) * (factor @ size**2)
        assert_close(design.column_squares(weights, shift), factor @ V**2, slack)


@DESIGN_LAWS.law()
def row_squares_are_sums_of_squares(design: Design, points: DesignPoints) -> None:
    """row_squares = sum_j (x_ij - c_j)^2."""
    for shift in (None, points.shift):
        V = points.X if shift is None else points.X - shift
        size = points.magnitude + (0.0 if shift is None else np.abs(points.shift))
        slack = _unit(2 * design.shape[1]) * np.sum(size**2, axis=1)
        assert_close(design.row_squares(shift), np.sum(V**2, axis=1), slack)


@DESIGN_LAWS.law()
def accuracy_bounds_the_rounding(design: Design, points: DesignPoints) -> None:
    """The errors of X W and X^T U stay below what accuracy() states.

    abs(error of (X W)_i) <= row_terms eps sum_j a_ij abs(w_j), and the same for columns.
    """
    exact = points.X.astype(np.longdouble)
    stated = design.accuracy(None)
    slack = stated.row_terms * EPS * (points.magnitude @ np.abs(points.w))
    assert_at_most(np.abs(design.matvec(points.w) - exact @ points.w), 0.0, slack)
    slack = stated.column_terms * EPS * (points.magnitude.T @ np.abs(points.u))
    assert_at_most(np.abs(design.rmatvec(points.u) - exact.T @ points.u), 0.0, slack)
    for weights in (None, points.weights):
        factor = np.ones(len(points.X)) if weights is None else weights
        largest = design.accuracy(weights).magnitude
        assert_at_most(np.sqrt(factor @ points.X**2), largest, 4 * EPS * largest)


@DESIGN_LAWS.law()
def blocks_cover_the_rows_in_order(design: Design, points: DesignPoints) -> None:
    """blocks(r) are consecutive rows, r of them in each block but the last, dense and double."""
    n = design.shape[0]
    for rows in (1, 3, max(1, n), n + 7):
        seen = 0
        for where, block in design.blocks(rows):
            assert (where.start, where.stop) == (seen, min(seen + rows, n)), f"{where} after {seen}"
            assert isinstance(block, np.ndarray)
            assert block.dtype == np.float64
            assert_close(block, points.X[where], 0.0)
            seen = where.stop
        assert seen == n, f"{seen} of {n} rows"


@DESIGN_LAWS.law()
def take_and_row_pick_rows(design: Design, points: DesignPoints) -> None:
    """take(rows) is the design of X[rows], repetitions included; row(i) is X[i]."""
    n = design.shape[0]
    for rows in (np.array([n - 1, 0, 0]), np.arange(0, n, 2), np.array([], dtype=np.intp)):
        part = design.take(rows)
        assert part.shape == (len(rows), design.shape[1])
        assert part.dtype == design.dtype, f"take has dtype {part.dtype}, not {design.dtype}"
        assert part.is_sparse == design.is_sparse
        assert_close(part.toarray(), points.X[rows], 0.0)
    for i in (0, n // 2, n - 1):
        row = design.row(i)
        assert row.dtype == np.float64
        assert_close(row, points.X[i], 0.0)


@DESIGN_LAWS.law()
def results_do_not_depend_on_threads(design: Design, points: DesignPoints) -> None:
    """The same bits with one thread and with two."""
    from threadpoolctl import threadpool_limits

    results = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            results.append(_all_products(design, points))
    for name, single in results[0].items():
        double = results[1][name]
        assert np.array_equal(single, double), (
            f"{name} differs by {np.max(np.abs(single - double))!r} between one thread and two"
        )


@DESIGN_LAWS.law()
def nothing_is_modified(design: Design, points: DesignPoints) -> None:
    """The products write neither into the matrix nor into what it is multiplied with."""
    given = [points.w, points.W, points.u, points.U, points.weights, points.shift]
    before = [array.copy() for array in given]
    _all_products(design, points)
    for array, copy in zip(given, before):
        assert np.array_equal(array, copy), "an argument was written into"
    assert np.array_equal(design.toarray(), points.X), "the matrix was written into"


@DESIGN_LAWS.law()
def design_survives_pickling(design: Design, points: DesignPoints) -> None:
    """pickle gives a design with the same entries back: designs travel to other processes."""
    again = pickle.loads(pickle.dumps(design))
    assert np.array_equal(again.toarray(), points.X)


def _all_products(design: Design, points: DesignPoints) -> dict[str, Array]:
    moments = design.second_moments(points.U, points.weights, points.shift)
    results = {
        "matvec": design.matvec(points.W),
        "matvec of a vector": design.matvec(points.w),
        "rmatvec": design.rmatvec(points.U),
        "rmatvec of a vector": design.rmatvec(points.u),
        "total": moments.total,
        "gram": moments.gram,
        "cross": moments.cross,
        "plain gram": design.second_moments(points.U, None, None).gram,
        "column_means": design.column_means(points.weights),
        "column_squares": design.column_squares(points.weights, points.shift),
        "row_squares": design.row_squares(points.shift),
        "column_largest": design.column_largest(),
        "magnitude": design.accuracy(points.weights).magnitude,
    }
    if design.shape[0] <= 4000:  # the kernel has as many entries as pairs of rows
        results["kernel"] = design.kernel(points.weights, points.shift)
    return results


def check_design(design: Design, magnitude: ArrayLike | None = None) -> list[str]:
    """Check every operation of a design against its ``toarray()``.

    Parameters
    ----------
    design : Design
        With at least one row and finite entries, small enough to be held as a dense array.
    magnitude : array-like of shape (n, d), optional
        How large the numbers are that each entry is computed from, by default ``abs(X)``. A
        design that centres implicitly cancels digits: give what it cancels from,
        ``(abs(x) + abs(offset)) * scale``.

    Returns
    -------
    names : list of str
        The laws that were checked.

    Raises
    ------
    AssertionError
        The first law that is broken, with its formula and the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.checks import check_design
    >>> from trueline.design import as_design
    >>> "results do not depend on threads" in check_design(as_design(np.ones((5, 2))))
    True
    """
    return DESIGN_LAWS.check(design, DesignPoints.of(design, magnitude))
