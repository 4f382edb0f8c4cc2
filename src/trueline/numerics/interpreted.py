"""Kernels as plain Python, for as long as that takes less time than compiling them.

A loop over a few hundred rows takes milliseconds in Python, the import of Numba 0.6 seconds, and
its compiler seconds. So a kernel is interpreted at first. Every round of a loop and every call of
another kernel is a *step* of as many operations as are written in it; a kernel may take so many
operations in a process. A rule that read a clock would compile now earlier, now later,
and give other last digits; counting gives the same ones in every run.

Counting is written into the function: ``for j in ...: s += x[j]`` becomes ``for j in ...: step(3);
s += x[j]``. When the operations are used up ``step`` raises an exception, which ends any call,
however far it is: nothing needs to be known of how long a kernel will take.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import os
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any, cast

import numpy as np

# An operation takes about a tenth of a microsecond, and to compile a kernel 0.3 to 5 seconds. Who
# pays for both pays at most about twice what compiling at once would have cost.
OPERATIONS = 5_000_000
# To load machine code takes the import of Numba, once for all kernels.
WORTH_IMPORTING = 2_000_000
# With more numbers than this among the arguments the steps would not do: most kernels visit them
# several times.
NUMBERS = 100_000
# Numbers that a kernel with a form for whole arrays may take in a process before it is compiled.
# One takes about ten nanoseconds, for each column of the rows some more: a tenth of an operation.
WHOLE_NUMBERS = 20_000_000
_NAME = "__step__"
# ``from __future__ import annotations`` and its like, as flags of code.
_FUTURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


class Running(threading.local):
    """``step`` of the kernel that is interpreted in this thread, if any."""

    step: Callable[[int], Any] | None = None


class Budget:
    """Operations that a kernel may still take in Python."""

    def __init__(self, operations: float) -> None:
        self.left = operations

    def step(self, operations: int) -> None:
        self.left -= operations
        if self.left < 0:
            raise RuntimeError("to compile takes no longer than to go on")


def counting(function: FunctionType, imported_at: float) -> Callable[..., Any]:
    """The function with one more argument in front, which it calls at every step.

    Raises OSError where the source cannot be read, or was edited after it was imported.
    """
    if os.stat(function.__code__.co_filename).st_mtime > imported_at:
        raise OSError(f"{function.__code__.co_filename} was edited after it was imported")
    lines, first = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    ast.increment_lineno(tree, first - 1)
    definition = cast(ast.FunctionDef, tree.body[0])
    definition.decorator_list = []
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.While | ast.FunctionDef):
            count = _operations(node.body)
            node.body.insert(0, ast.parse(f"{_NAME}({count})").body[0])
    definition.args.args.insert(0, ast.arg(_NAME))
    ast.fix_missing_locations(tree)
    flags = function.__code__.co_flags & _FUTURES
    code = compile(tree, function.__code__.co_filename, "exec", flags=flags, dont_inherit=True)
    names: dict[str, Callable[..., Any]] = {}
    exec(code, function.__globals__, names)
    return names[function.__name__]


_COUNTED = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Call, ast.stmt)


def _operations(nodes: Iterable[ast.AST]) -> int:
    """Operations of one round: of an ``if`` the longer branch; loops inside count their own."""
    total = 0
    for node in nodes:
        total += isinstance(node, _COUNTED)
        if isinstance(node, ast.If):
            total += _operations([node.test])
            total += max(_operations(node.body), _operations(node.orelse))
        elif not isinstance(node, ast.For | ast.While):
            total += _operations(ast.iter_child_nodes(node))
    return total


def arrays_in(arguments: tuple[Any, ...]) -> Iterator[np.ndarray]:
    """The arrays among the arguments, and in tuples among them."""
    for value in arguments:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, tuple):
            yield from arrays_in(value)


def as_compiled(value: Any) -> Any:
    """What machine code would have returned: Python's numbers rather than NumPy's."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        parts = map(as_compiled, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
