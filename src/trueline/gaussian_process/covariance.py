"""Covariance matrices of known kernels, and sums of their derivatives, on all threads."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trueline.gaussian_process.pairs import add_covariance, contract
from trueline.gaussian_process.structure import CONSTANT, NOISE, Structure, Term
from trueline.numerics.blas import run_strands

__all__ = ["covariance", "cross_covariance", "diagonal", "gradients"]

Array = NDArray[np.float64]

# Strands of this many pairs take about ten milliseconds each.
_PAIRS = 500_000
_MOST_STRANDS = 16


def _strands(n: int, m: int, triangle: bool) -> list[tuple[int, int]]:
    """Ranges of rows with about equally many pairs; they depend on the sizes alone."""
    pairs = n * m / (2 if triangle else 1)
    count = int(min(max(1, round(pairs / _PAIRS)), _MOST_STRANDS, max(n, 1)))
    share = np.linspace(0.0, 1.0, count + 1)
    edges = np.round(n * (np.sqrt(share) if triangle else share)).astype(int)
    return [(a, b) for a, b in pairwise(edges.tolist()) if b > a]


def _scaled(X: Array, term: Term, theta: Array) -> Array:
    return np.ascontiguousarray(X / term.length_scales(theta))


def _fill(
    structure: Structure, theta: Array, A: Array, B: Array | None, bias: float, out: Array
) -> None:
    triangle = B is None
    known = [term for term in structure.terms if term.family >= 0]
    scaled = [
        (
            term,
            _scaled(A, term, theta),
            np.ascontiguousarray(_scaled(A if B is None else B, term, theta).T),
        )
        for term in known
    ]

    def work(bounds: tuple[int, int]) -> None:
        first, last = bounds
        if triangle:
            out[first:last, :last] = bias
        else:
            out[first:last] = bias
        for term, rows, columns in scaled:
            amplitude, shape = term.amplitude(theta), term.exponent(theta)
            add_covariance(rows, columns, term.family, shape, amplitude, triangle, first, last, out)

    run_strands(work, _strands(len(out), out.shape[1], triangle))


def _constants(structure: Structure, theta: Array, family: int) -> float:
    return sum(term.amplitude(theta) for term in structure.terms if term.family == family)


def covariance(structure: Structure, theta: Array, X: Array, noise: Array, out: Array) -> None:
    """K(X, X) + diag(noise) on and below the diagonal of ``out``; what is above is undefined."""
    _fill(structure, theta, X, None, _constants(structure, theta, CONSTANT), out)
    out.flat[:: len(out) + 1] += noise + _constants(structure, theta, NOISE)


def cross_covariance(structure: Structure, theta: Array, A: Array, B: Array) -> Array:
    """K(A, B): noise is not shared between different sets of rows."""
    out = np.empty((len(A), len(B)))
    _fill(structure, theta, A, B, _constants(structure, theta, CONSTANT), out)
    return out


def diagonal(structure: Structure, theta: Array, noise: bool = True) -> float:
    """The variance of every row, with or without the noise of the kernel."""
    return sum(term.amplitude(theta) for term in structure.terms if noise or term.family != NOISE)


def gradients(
    structure: Structure,
    theta: Array,
    A: Array,
    B: Array | None,
    weight: Array,
    vector: Array | None = None,
) -> tuple[Array, Array]:
    """sum_ij weight_ij dK_ij / d theta for every place in theta, and dK / d theta times a vector.

    Parameters
    ----------
    structure : Structure
    theta : array of shape (p,)
    A, B : arrays of rows
        Without B, rows and columns are A, and weights are symmetric, on and below the diagonal.
    weight : array of shape (len(A), len(B))
    vector : array of shape (len(A),), optional

    Returns
    -------
    sums : array of shape (p,)
    products : array of shape (p, len(A))
        Empty without a vector.
    """
    triangle = B is None
    n, m = weight.shape
    p = structure.size
    sums = np.zeros(p)
    products = np.zeros((p if vector is not None else 0, n))
    given = np.zeros(0) if vector is None else vector
    for term in structure.terms:
        amplitude = term.amplitude(theta)
        if term.family == NOISE:
            if triangle:
                sums[term.factors] += amplitude * float(np.einsum("ii->", weight))
                if vector is not None:
                    products[term.factors] += amplitude * given
            continue
        if term.family == CONSTANT:
            whole = float(weight.sum()) if not triangle else _sum_below(weight)
            sums[term.factors] += amplitude * whole
            if vector is not None:
                products[term.factors] += amplitude * given.sum()
            continue
        by_column = len(term.length_places) > 1
        rows = _scaled(A, term, theta)
        columns = np.ascontiguousarray(_scaled(A if B is None else B, term, theta).T)
        parts = 2 + (len(columns) if by_column else 1)
        work = _contraction(rows, columns, term, theta, by_column, weight, given, triangle, parts)
        results = run_strands(work, _strands(n, m, triangle))
        total = np.sum([result[0] for result in results], axis=0)
        sums[term.factors] += amplitude * total[0]
        if term.shape_place >= 0:
            sums[term.shape_place] += amplitude * total[1]
        if len(term.length_places):
            sums[term.length_places] += amplitude * total[2:]
        if vector is not None:
            product = np.sum([result[1] for result in results], axis=0)
            products[term.factors] += amplitude * product[0]
            if term.shape_place >= 0:
                products[term.shape_place] += amplitude * product[1]
            if len(term.length_places):
                products[term.length_places] += amplitude * product[2:]
    return sums, products


def _contraction(
    rows: Array,
    columns: Array,
    term: Term,
    theta: Array,
    by_column: bool,
    weight: Array,
    vector: Array,
    triangle: bool,
    parts: int,
) -> Callable[[tuple[int, int]], tuple[Array, Array]]:
    shape = term.exponent(theta)

    def work(bounds: tuple[int, int]) -> tuple[Array, Array]:
        total = np.zeros(parts)
        product = np.zeros((parts if len(vector) else 0, len(rows)))
        contract(
            rows,
            columns,
            term.family,
            shape,
            by_column,
            weight,
            vector,
            triangle,
            bounds[0],
            bounds[1],
            total,
            product,
        )
        return total, product

    return work


def _sum_below(weight: Array) -> float:
    """The sum of a symmetric matrix of which the lower triangle is given."""
    lower = np.tril(weight)
    return 2 * float(lower.sum()) - float(np.einsum("ii->", weight))
