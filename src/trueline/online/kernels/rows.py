"""One row: its product with the weights, its norm, and its addition to the weights.

Small enough that the compiler puts them into the loops that call them; a call for each row would
cost more than the row.
"""

from __future__ import annotations

from typing import Any

from trueline._jit import kernel
from trueline.online.kernels.prefetch import prefetch, prefetch_far

__all__ = [
    "MANY",
    "add_dense",
    "add_sparse",
    "as_weight",
    "ask_for_dense",
    "ask_for_sparse",
    "ask_for_weights",
    "count_rows",
    "dot_dense",
    "dot_of_few",
    "dot_of_many",
    "dot_sparse",
    "finite_after_dense",
    "finite_after_sparse",
    "give_signs",
    "square_dense",
    "square_sparse",
]

# Below this many numbers in a row they are added in the order written, as a reader would do it by
# hand (exact ties between classes then are ties here too); above, in several partial sums, which
# is several times as fast.
MANY = 16
# More weights than this would drive each other out of the first cache.
_WEIGHTS_AT_ONCE = 256


@kernel
def dot_dense(X: Any, i: int, w: Any) -> Any:
    """x_i . w"""
    return dot_of_many(X, i, w) if X.shape[1] >= MANY else dot_of_few(X, i, w)


@kernel
def dot_of_few(X: Any, i: int, w: Any) -> Any:
    """x_i . w, added in the order written."""
    total = 0.0
    for j in range(X.shape[1]):
        total += w[j] * X[i, j]
    return total


@kernel(reassociate=True)
def dot_of_many(X: Any, i: int, w: Any) -> Any:
    """x_i . w, in several partial sums."""
    total = 0.0
    for j in range(X.shape[1]):
        total += w[j] * X[i, j]
    return total


@kernel
def dot_sparse(data: Any, indices: Any, start: int, stop: int, w: Any) -> Any:
    """x . w of the row whose numbers lie from start to stop; unsigned indices are fastest."""
    # In a row of its own, positions are known not to count from the end: a third of the work.
    x, columns = data[start:stop], indices[start:stop]
    count, rest, total = x.shape[0], 0, 0.0
    if count >= MANY:
        rest = count - count % 4
        a = b = c = e = 0.0
        for k in range(0, rest, 4):
            a += w[columns[k]] * x[k]
            b += w[columns[k + 1]] * x[k + 1]
            c += w[columns[k + 2]] * x[k + 2]
            e += w[columns[k + 3]] * x[k + 3]
        total = (a + b) + (c + e)
    for k in range(rest, count):
        total += w[columns[k]] * x[k]
    return total


@kernel
def square_dense(X: Any, i: int) -> Any:
    """||x_i||^2"""
    total = 0.0
    for j in range(X.shape[1]):
        total += float(X[i, j]) * float(X[i, j])
    return total


@kernel
def square_sparse(data: Any, start: int, stop: int) -> Any:
    """||x||^2 of the row whose numbers lie from start to stop."""
    total = 0.0
    for k in range(start, stop):
        total += float(data[k]) * float(data[k])
    return total


@kernel
def add_dense(X: Any, i: int, c: Any, w: Any) -> None:
    """w <- w + c x_i"""
    for j in range(X.shape[1]):
        w[j] += float(X[i, j]) * c


@kernel
def add_sparse(data: Any, indices: Any, start: int, stop: int, c: Any, w: Any) -> None:
    """w <- w + c x"""
    x, columns = data[start:stop], indices[start:stop]
    for k in range(x.shape[0]):
        w[columns[k]] += float(x[k]) * c


@kernel
def finite_after_dense(X: Any, i: int, c: Any, w: Any) -> bool:
    """Whether w + c x_i is finite."""
    total = 0.0
    for j in range(X.shape[1]):
        total += 0.0 * (w[j] + float(X[i, j]) * c)
    return total == 0.0


@kernel
def finite_after_sparse(data: Any, indices: Any, start: int, stop: int, c: Any, w: Any) -> bool:
    """Whether w + c x is finite."""
    total = 0.0
    for k in range(start, stop):
        total += 0.0 * (w[indices[k]] + float(data[k]) * c)
    return total == 0.0


@kernel
def ask_for_dense(X: Any, i: int) -> None:
    """Have row i brought from memory while other rows are worked on."""
    d = X.shape[1]
    for k in range(0, min(d, 128), 8):
        prefetch_far(X, i * d + k)


@kernel
def ask_for_sparse(data: Any, indices: Any, start: int, stop: int) -> None:
    """Have the beginning of a row brought from memory; its rest the processor finds by itself."""
    end = min(stop, start + 128)
    for k in range(start, end, 8):
        prefetch_far(data, k)
    for k in range(start, end, 16):
        prefetch_far(indices, k)
    # Rows begin anywhere in a line of the cache, and may reach into one more.
    prefetch_far(data, end - 1)
    prefetch_far(indices, end - 1)


@kernel
def ask_for_weights(w: Any, indices: Any, start: int, stop: int) -> None:
    """Have the weights of a row brought near: of most rows, some are not in the first cache."""
    columns = indices[start : min(stop, start + _WEIGHTS_AT_ONCE)]
    for k in range(columns.shape[0]):
        prefetch(w, columns[k])


@kernel
def as_weight(w: Any, number: Any) -> Any:
    """A number in the precision of the weights."""
    return w.dtype.type(number)


@kernel
def count_rows(changed: Any, m: int, counts: Any) -> None:
    """Add 1 for each of the first m rows named.

    After the pass rather than in it: these scattered additions wait for nothing, while a visit
    would have to wait for memory.
    """
    for k in range(m):
        counts[changed[k]] += 1


@kernel
def give_signs(columns: Any, values: Any) -> None:
    """Halve each column; where it was even, change the sign of the value."""
    for k in range(columns.shape[0]):
        if columns[k] & 1 == 0:
            values[k] = -values[k]
        columns[k] >>= 1
