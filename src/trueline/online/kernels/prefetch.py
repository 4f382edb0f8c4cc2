"""Ask memory for a number before it is needed.

Rows visited in random order are found by no hardware prefetcher; asking for a row a few visits
ahead halves the time of a shuffled pass. The order is known in advance, so that this is easy.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

__all__ = ["prefetch", "prefetch_far"]


class _Prefetch:
    """Callable from compiled code as ``prefetch(array, position)``, the position in memory order.

    In plain Python it does nothing. Like a kernel, it imports Numba only when something that uses
    it is compiled.

    Parameters
    ----------
    locality : int
        3 for all caches; 2 for all but the first, whose few open requests then stay free.
    """

    def __init__(self, locality: int) -> None:
        self.locality = locality

    def __call__(self, array: Any, position: int) -> None:
        """Nothing: plain Python has no such instruction."""

    @cached_property
    def _intrinsic(self) -> Any:
        from llvmlite import ir
        from numba.core import cgutils, types
        from numba.extending import intrinsic

        locality = self.locality

        def read_soon(typing_context: Any, array: Any, position: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
                byte, integer = ir.IntType(8).as_pointer(), ir.IntType(32)
                place = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
                kind = ir.FunctionType(ir.VoidType(), [byte, integer, integer, integer])
                name = "llvm.prefetch.p0i8" if _typed_pointers(byte) else "llvm.prefetch.p0"
                function = cgutils.get_or_insert_function(builder.module, kind, name)
                # To be read, kept in so many caches, data rather than instructions.
                flags = [ir.Constant(integer, value) for value in (0, locality, 1)]
                builder.call(function, [place, *flags])
                return context.get_dummy_value()

            return types.void(array, position), generate

        return intrinsic(read_soon)

    @property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target

        context = cpu_target.typing_context
        function = self._intrinsic
        context.refresh()  # has the new function entered in the tables
        return context.resolve_value_type(function)


def _typed_pointers(pointer: Any) -> bool:
    return not getattr(pointer, "is_opaque", False)


def _do_nothing(array: Any, position: int) -> None:
    """Stands for the instruction where kernels are plain functions."""


pure = os.environ.get("TRUELINE_PURE_PYTHON", "0") not in ("", "0")
#: For what is needed at the next visit.
prefetch: Any = _do_nothing if pure else _Prefetch(3)
#: For what is needed some visits later.
prefetch_far: Any = _do_nothing if pure else _Prefetch(2)
