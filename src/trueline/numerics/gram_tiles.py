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

Numba turns loops into vector code where LLVM finds a way; the inner loop of a matrix product, with
its two dozen running sums in registers, it does not find. Here the few operations are written down
as LLVM instructions on vectors of :func:`lanes` doubles, which LLVM maps to the registers of the
machine: AVX-512, AVX2, or pairs of NEON registers.

All of them work on addresses (plain integers), as BLAS does, so that a kernel is compiled once and
serves every array, read-only or strided.

Importing this module imports Numba.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numpy.typing import NDArray

from trueline.numerics.blas import run_strands, symmetrised
from trueline.numerics.gram import Sums, fold
from trueline.numerics.jit import kernel

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


_DOUBLE, _INT, _INT32 = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_BYTES = 8


def lanes_of(target: tuple[str, str, str]) -> int:
    """Doubles per vector for a target (triple, processor, features); 0 where it does not pay.

    A tile needs lanes x 3 registers for its sums, and four more. AVX-512 has 32 of eight doubles,
    AVX2 16 of four; NEON has 32 of two, taken in pairs.
    """
    triple, _, features = target
    if triple.startswith(("aarch64", "arm64")):
        return 4
    have = set(features.split(","))
    if "+avx512f" in have:
        return 8
    return 4 if {"+avx2", "+fma"} <= have else 0


def _lanes(context: Any) -> int:
    return lanes_of(context.codegen().magic_tuple())


def _pointer(builder: Any, address: Any, offset: int = 0, kind: Any = _DOUBLE) -> Any:
    if offset:
        address = builder.add(address, ir.Constant(_INT, offset))
    return builder.inttoptr(address, kind.as_pointer())


def _declared(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """A function that LLVM itself provides."""
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(result, arguments), name)


def _broadcast(builder: Any, value: Any, vector: Any) -> Any:
    undefined, first = ir.Constant(vector, ir.Undefined), ir.Constant(_INT32, 0)
    single = builder.insert_element(undefined, value, first)
    mask = ir.Constant(ir.VectorType(_INT32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(single, undefined, mask)


@intrinsic
def lanes(typing: Any) -> Any:
    """Doubles per vector, a constant of the compiled code."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(_INT, _lanes(context))

    return types.intp(), generate


@intrinsic
def load(typing: Any, address: Any) -> Any:
    """The double at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(builder, arguments[0]))

    return types.float64(types.intp), generate


@intrinsic
def store(typing: Any, address: Any, value: Any) -> Any:
    """Write a double to an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[1], _pointer(builder, arguments[0]))
        return context.get_dummy_value()

    return types.void(types.intp, types.float64), generate


@intrinsic
def move_scaled(typing: Any, target: Any, source: Any, shift: Any, factor: Any) -> Any:
    """target = factor (source - shift), one vector; target and shift are aligned."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(_DOUBLE, _lanes(context))
        whole = _BYTES * vector.count
        target, source, shift = (_pointer(builder, a, kind=vector) for a in arguments[:3])
        value = builder.fsub(builder.load(source, align=_BYTES), builder.load(shift, align=whole))
        value = builder.fmul(value, _broadcast(builder, arguments[3], vector))
        builder.store(value, target, align=whole)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp, types.float64), generate


def _tile(width: int) -> Callable[..., None]:
    """The tile of ``width`` panels: lanes x width running sums, each in a register."""

    @intrinsic
    def add(
        typing: Any, sums: Any, left: Any, right: Any, apart: Any, rows: Any, ahead: Any, step: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            sums, left, right, apart, rows, ahead, step = arguments
            vector = ir.VectorType(_DOUBLE, _lanes(context))
            whole = _BYTES * vector.count
            fma = _declared(builder, f"llvm.fma.v{vector.count}f64", vector, [vector] * 3)
            byte = ir.IntType(8).as_pointer()
            hint = [byte, _INT32, _INT32, _INT32]
            prefetch = _declared(builder, "llvm.prefetch.p0", ir.VoidType(), hint)

            def fetch(address: Any, writing: int, nearness: int) -> None:
                codes = [ir.Constant(_INT32, code) for code in (writing, nearness, 1)]
                builder.call(prefetch, [builder.inttoptr(address, byte), *codes])

            # The sums of a wide matrix wait far away: on their way while the rows go by.
            for place in range(vector.count * width):
                fetch(builder.add(sums, ir.Constant(_INT, place * whole)), 1, 3)
            before = builder.block
            loop, after = builder.append_basic_block("rows"), builder.append_basic_block("sums")
            builder.branch(loop)
            builder.position_at_end(loop)
            counter = builder.phi(_INT)
            counter.add_incoming(ir.Constant(_INT, 0), before)
            running = [[builder.phi(vector) for _ in range(width)] for _ in range(vector.count)]

            # Rows of the next block, into the second cache: the first one is full.
            fetch(builder.add(ahead, builder.mul(counter, step)), 0, 2)
            down = builder.mul(counter, ir.Constant(_INT, whole))
            x, z = builder.add(left, down), builder.add(right, down)
            across = []
            for _ in range(width):
                across.append(builder.load(_pointer(builder, z, kind=vector), align=whole))
                z = builder.add(z, apart)
            following = []
            for i, row in enumerate(running):
                entry = builder.load(_pointer(builder, x, i * _BYTES))
                entry = _broadcast(builder, entry, vector)
                following.append([builder.call(fma, [entry, b, s]) for b, s in zip(across, row)])

            advanced = builder.add(counter, ir.Constant(_INT, 1))
            counter.add_incoming(advanced, loop)
            for row, row_following in zip(running, following):
                for total, next_total in zip(row, row_following):
                    total.add_incoming(ir.Constant(vector, [0.0] * vector.count), before)
                    total.add_incoming(next_total, loop)
            builder.cbranch(builder.icmp_signed("<", advanced, rows), loop, after)

            builder.position_at_end(after)
            for i, row in enumerate(following):
                for j, total in enumerate(row):
                    place = _pointer(builder, sums, (j * vector.count + i) * whole, vector)
                    total = builder.fadd(builder.load(place, align=whole), total)
                    builder.store(total, place, align=whole)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 7), generate

    return add


# add_w(sums, left, right, apart, rows, ahead, step): for one panel on the left and w panels
# on the right, ``apart`` bytes from each other, add the sums over the rows of
#     left[row, i] * right[row, j]
# to w square blocks at ``sums``, while fetching memory from ``ahead`` on, ``step`` bytes per row.
add_one, add_two, add_three = (_tile(width) for width in (1, 2, 3))
