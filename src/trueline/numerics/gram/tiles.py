r"""Sums over rows of outer products, in tiles that stay in registers.

A block of rows is copied once into *panels*: as many columns as a vector has lanes, row after row,
aligned, shifted and weighted on the way, with the targets and a column of ones at the end. Then,
for each pair of a panel on the left and three panels on the right, one pass over the rows adds up
lanes x 3 lanes products per row without touching memory for the sums. The panels on the right stay
in the first cache while the panels on the left stream by from the second; meanwhile the next
block is fetched from memory. Only pairs on and below the diagonal are formed. (The scheme is that
of K. Goto and R. A. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM Trans.
Math. Software 34 (2008) 12:1-25; here one packed copy serves both sides.)

Every entry of the result is the same sum in the same order, whatever the number of lanes, the
memory layout or the neighbouring columns: rows of a block one after the other with fused
multiply-adds, blocks of a segment one after the other, then segments, then strands.

Importing this module imports Numba.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from numba.core.registry import cpu_target
from numpy.typing import NDArray

from trueline.numerics.blas import symmetrised
from trueline.numerics.gram.blocks import Sums, fold
from trueline.numerics.gram.vectors import (
    add_one,
    add_three,
    add_two,
    lanes,
    lanes_of,
    load,
    move_scaled,
    store,
)
from trueline.numerics.jit import kernel
from trueline.numerics.threads import run_strands

__all__ = ["host_lanes", "sums_by_tiles"]

Array = NDArray[np.float64]

# Three panels of so many rows fill three quarters of a first cache of 32 kB.
_BLOCK = 128
# Rows after which the sums are added to the strand's: short chains of additions round less.
_SEGMENT = 64 * _BLOCK
# Bytes of a cache line, and of the longest vector.
_LINE = 64
# Other kinds of numbers are converted so many bytes at a time, in whole blocks.
_BUFFER_BYTES = 1 << 19


@kernel
def _pack_rows(
    x: int, x_row: int, shift: int, roots: int, rows: int, d: int, panels: int, apart: int
) -> None:
    """A block of X into panels; the entries of a row are neighbours in memory."""
    width = lanes()
    whole = d // width
    for r in range(rows):
        root = load(roots + 8 * r)
        source, target = x + r * x_row, panels + 8 * width * r
        for p in range(whole):
            move_scaled(target + p * apart, source + 8 * width * p, shift + 8 * width * p, root)
        for j in range(whole * width, d):
            value = (load(source + 8 * j) - load(shift + 8 * j)) * root
            store(target + whole * apart + 8 * (j - whole * width), value)


@kernel
def _pack_columns(
    x: int,
    x_row: int,
    x_column: int,
    shift: int,
    roots: int,
    rows: int,
    d: int,
    panels: int,
    apart: int,
) -> None:
    """A block of X into panels, column by column, whatever the strides."""
    width = lanes()
    for j in range(d):
        source, target = x + j * x_column, panels + j // width * apart + 8 * (j % width)
        centre = load(shift + 8 * j)
        for r in range(rows):
            value = (load(source + r * x_row) - centre) * load(roots + 8 * r)
            store(target + 8 * width * r, value)


@kernel
def _pack_side(
    y: int, roots: int, rows: int, d: int, k: int, ones: int, panels: int, apart: int
) -> None:
    """The targets, and the column of ones, into the panels after X."""
    width = lanes()
    for c in range(k + ones):
        j = d + c
        target = panels + j // width * apart + 8 * (j % width)
        for r in range(rows):
            value = load(y + 8 * (r * k + c)) if c < k else 1.0
            store(target + 8 * width * r, value * load(roots + 8 * r))


@kernel
def _multiply(
    lefts: int, rights: int, rows: int, panels: int, apart: int, sums: int, ahead: int, step: int
) -> None:
    """Add the products of all pairs of panels, left not before right."""
    width = lanes()
    block = 8 * width * width
    for j in range(0, rights, 3):
        right = panels + j * apart
        for i in range(j, lefts):
            left, place = panels + i * apart, sums + (i * rights + j) * block
            count = min(i - j + 1, rights - j)
            if count >= 3:
                add_three(place, left, right, apart, rows, ahead, step)
            elif count == 2:
                add_two(place, left, right, apart, rows, ahead, step)
            else:
                add_one(place, left, right, apart, rows, ahead, step)
            ahead += rows * step


@kernel
def _add_products(
    x: int,
    x_row: int,
    x_column: int,
    y: int,
    weights: int,
    shift: int,
    rows: int,
    d: int,
    k: int,
    ones: int,
    scratch: int,
    sums: int,
) -> None:
    """Add the products of some rows to ``sums``: everything is an address or a number.

    Steps from row to row and column to column are in bytes; ``weights`` may be 0 for none.
    """
    width = lanes()
    lefts, rights = (d + k + ones + width - 1) // width, (d + width - 1) // width
    # One row more than needed: panels must not all begin in the same sets of a cache.
    apart = 8 * width * (_BLOCK + 1)
    roots, panels = scratch, scratch + 8 * _BLOCK
    tiles = 0
    for j in range(0, rights, 3):
        tiles += lefts - j
    in_rows = x_column == 8
    # Spread the next block over the tiles; prefetching never fails, wherever it points.
    step = (x_row + tiles - 1) // tiles if in_rows else 0
    for first in range(0, rows, _BLOCK):
        m = min(_BLOCK, rows - first)
        source = x + first * x_row
        for r in range(m):
            root = math.sqrt(load(weights + 8 * (first + r))) if weights != 0 else 1.0
            store(roots + 8 * r, root)
        if in_rows:
            _pack_rows(source, x_row, shift, roots, m, d, panels, apart)
        else:
            _pack_columns(source, x_row, x_column, shift, roots, m, d, panels, apart)
        _pack_side(y + 8 * k * first, roots, m, d, k, ones, panels, apart)
        _multiply(lefts, rights, m, panels, apart, sums, source + _BLOCK * x_row, step)


@cache
def host_lanes() -> int:
    """Doubles per vector of this machine, as Numba compiles for it; 0 where tiles do not pay."""
    return lanes_of(cpu_target.target_context.codegen().magic_tuple())


def sums_by_tiles(
    X: NDArray[np.floating],
    Y: Array,
    weights: Array | None,
    shift: Array | None,
    strands: Sequence[tuple[int, int]],
    totals: bool = True,
) -> Sums:
    """The sums of :func:`trueline.numerics.gram.second_sums`; ``totals=False`` leaves out one."""
    d, k, ones = X.shape[1], Y.shape[1], int(totals)
    width = host_lanes()
    lefts, rights = -(-(d + k + ones) // width), -(-d // width)
    Y = np.ascontiguousarray(Y, dtype=np.float64)
    s = None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    centre = _aligned(rights * width)
    if shift is not None:
        centre[:d] = shift
    pieces = _as_they_are if _is_plain(X) else _converted

    def work(strand: tuple[int, int]) -> Array:
        scratch = _aligned(_BLOCK + lefts * width * (_BLOCK + 1))
        total = part = _aligned(lefts * rights * width * width)
        for start in range(*strand, _SEGMENT):
            if start > strand[0]:
                part = _aligned(len(total)) if part is total else part
                part[:] = 0.0
            for rows, block in pieces(X, slice(start, min(start + _SEGMENT, strand[1]))):
                _add_products(
                    block.ctypes.data,
                    block.strides[0],
                    block.strides[1],
                    Y[rows].ctypes.data,
                    0 if s is None else s[rows].ctypes.data,
                    centre.ctypes.data,
                    len(block),
                    d,
                    k,
                    ones,
                    scratch.ctypes.data,
                    part.ctypes.data,
                )
            if part is not total:
                total += part
        return total

    blocks = fold(run_strands(work, strands)).reshape(lefts, rights, width, width)
    lower = blocks.transpose(0, 2, 1, 3).reshape(lefts * width, rights * width)
    gram = symmetrised(lower[:d, :d])
    cross = lower[d : d + k, :d].T.copy()
    total = lower[d + k : d + k + ones, :d].ravel()
    return Sums(total, gram, cross, _longest_chain(strands))


def _longest_chain(strands: Sequence[tuple[int, int]]) -> int:
    """How many terms are added one after the other: in a block, a segment, a strand, in all."""
    longest = max(stop - start for start, stop in strands)
    segment = min(longest, _SEGMENT)
    return min(segment, _BLOCK) + -(-segment // _BLOCK) + -(-longest // _SEGMENT) + len(strands)


def _is_plain(X: NDArray[Any]) -> bool:
    return bool(X.dtype == np.float64 and X.dtype.isnative and X.flags.aligned)


def _as_they_are(X: NDArray[Any], rows: slice) -> Iterator[tuple[slice, Array]]:
    yield rows, X[rows]


def _converted(X: NDArray[Any], rows: slice) -> Iterator[tuple[slice, Array]]:
    """Blocks of other kinds of numbers as doubles, in the memory order they have."""
    order: Any = "F" if abs(X.strides[0]) < abs(X.strides[1]) else "C"
    size = _BLOCK * max(1, _BUFFER_BYTES // (8 * _BLOCK * max(1, X.shape[1])))
    buffer = np.empty((min(size, rows.stop - rows.start), X.shape[1]), order=order)
    for start in range(rows.start, rows.stop, size):
        where = slice(start, min(start + size, rows.stop))
        block = buffer[: where.stop - start]
        block[:] = X[where]
        yield where, block


def _aligned(size: int) -> Array:
    """Zeros that begin at a cache line."""
    raw = np.zeros(size + _LINE // 8)
    skip = -raw.ctypes.data % _LINE // 8
    return raw[skip : skip + size]
