"""Vector instructions for Numba kernels: fetch, scale, multiply-add on whole registers.

Numba turns loops into vector code where LLVM finds a way; the inner loop of a matrix product, with
its two dozen running sums in registers, it does not find. Here the few operations are written down
as LLVM instructions on vectors of :func:`lanes` doubles, which LLVM maps to the registers of the
machine: AVX-512, AVX2, or pairs of NEON registers.

All of them work on addresses (plain integers), as BLAS does, so that a kernel is compiled once and
serves every array, read-only or strided.

Importing this module imports Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["add_one", "add_three", "add_two", "lanes", "lanes_of", "load", "move_scaled", "store"]

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
