"""Sums over rows: what they are, in which order they are added, who adds them.

The tiles add every entry in one order, which :func:`in_the_stated_order` repeats in rational
arithmetic, rounding where the tiles round: blocks of 128 rows by fused multiply-adds, up to 64
blocks to a segment, segments to strands, strands to the whole.
"""

import json
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

import trueline.numerics.gram as gram
from trueline.numerics.blas import symmetrised
from trueline.numerics.gram import row_strands, second_sums, sums_by_blocks, weighted_gram

EPS = np.finfo(float).eps
needs_tiles = pytest.mark.skipif(not gram._tiles_run_here(), reason="no compiled vectors here")
ENGINES = ["blocks", pytest.param("tiles", marks=needs_tiles)]


def engine_named(name):
    if name == "blocks":
        return sums_by_blocks
    from trueline.numerics.gram_tiles import sums_by_tiles

    return sums_by_tiles


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def unaligned(X):
    raw = np.zeros(X.nbytes + 1, dtype=np.uint8)
    out = raw[1:].view(np.float64).reshape(X.shape)
    out[:] = X
    return out


# Ways to hold the same numbers, all of them representable in single precision.
LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "part of wider rows": lambda X: np.hstack([X, X + 1.0])[:, : X.shape[1]],
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "unaligned": unaligned,
    "other byte order": lambda X: X.astype(X.dtype.newbyteorder()),
    "single precision": lambda X: X.astype(np.float32),
    "single precision by columns": lambda X: np.asfortranarray(X, dtype=np.float32),
}


def data(n, d, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32).astype(np.float64)
    return X, rng.standard_normal((n, k)), rng.uniform(0.0, 2.0, n), rng.standard_normal(d)


def assert_sums(got, X, Y, weights, shift):
    """Within the stated rounding of sums in extended precision."""
    s = np.ones(len(X)) if weights is None else weights
    V = X.astype(np.longdouble) - (0.0 if shift is None else shift)
    sV = s[:, None] * V
    unit = (got.terms / 2 + 16) * EPS
    size = np.sqrt((sV * V).sum(axis=0))
    for value, exact, scale in (
        (got.gram, sV.T @ V, np.outer(size, size)),
        (got.cross, sV.T @ Y, np.outer(size, np.sqrt((s[:, None] * Y * Y).sum(axis=0)))),
        (got.total, sV.sum(axis=0), size * np.sqrt(s.sum())),
    ):
        assert value.dtype == np.float64
        assert np.all(np.abs(value - exact) <= unit * scale)
    assert_array_equal(got.gram, got.gram.T)


@pytest.mark.grid(2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shifted", [False, True], ids=["", "shifted"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_whatever_the_layout(layout, weighted, shifted, engine):
    X, Y, s, c = data(300, 37)
    weights, shift = s if weighted else None, c if shifted else None
    got = engine_named(engine)(LAYOUTS[layout](X), Y, weights, shift, [(0, 130), (130, 300)])
    assert_sums(got, X, Y, weights, shift)


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 400),
    d=st.integers(1, 70),
    k=st.integers(0, 30),
    weighted=st.booleans(),
    by_columns=st.booleans(),
)
def test_sums_whatever_the_shape(engine, n, d, k, weighted, by_columns):
    X, Y, s, c = data(n, d, k, seed=n)
    weights = s if weighted else None
    got = engine_named(engine)(np.asfortranarray(X) if by_columns else X, Y, weights, c, [(0, n)])
    assert_sums(got, X, Y, weights, c)


def rounded_fma(a, b, c):
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def in_the_stated_order(a, b, strands, block=128, segment=64 * 128):
    """sum a_i b_i as the tiles add it."""

    def over(start, stop):
        total = 0.0
        for i in range(start, stop):
            total = rounded_fma(float(a[i]), float(b[i]), total)
        return total

    def folded(parts):
        total = 0.0
        for part in parts:
            total += part
        return total

    return folded(
        folded(
            folded(
                over(i, min(i + block, first + segment, stop))
                for i in range(first, min(first + segment, stop), block)
            )
            for first in range(start, stop, segment)
        )
        for start, stop in strands
    )


@needs_tiles
@pytest.mark.parametrize("strands", [[(0, 8600)], [(0, 129), (129, 8600)]], ids=["one", "two"])
def test_tiles_add_in_the_stated_order(strands):
    X, Y, s, _ = data(8600, 9, 1)
    got = engine_named("tiles")(X, Y, s, None, strands)
    root = np.sqrt(s)
    V, z = X * root[:, None], Y[:, 0] * root
    for i, j in ((0, 0), (8, 1), (5, 2)):
        assert got.gram[i, j] == in_the_stated_order(V[:, i], V[:, j], strands)
    assert got.cross[3, 0] == in_the_stated_order(V[:, 3], z, strands)
    assert got.total[8] == in_the_stated_order(V[:, 8], root, strands)


@needs_tiles
@pytest.mark.parametrize(
    ("strands", "terms"),
    [
        ([(0, 50)], 50 + 1 + 1 + 1),  # in a block, blocks, segments, strands
        ([(0, 1000)], 128 + 8 + 1 + 1),
        ([(0, 20_000), (20_000, 40_000)], 128 + 64 + 3 + 2),
    ],
)
def test_tiles_count_the_terms_they_add_one_after_the_other(strands, terms):
    X, Y, _, _ = data(strands[-1][1], 2)
    assert engine_named("tiles")(X, Y, None, None, strands).terms == terms


@needs_tiles
@pytest.mark.parametrize("layout", LAYOUTS)
def test_tiles_give_the_same_bits_whatever_the_layout(layout):
    X, Y, s, c = data(700, 45)
    strands = row_strands(*X.shape, 10**9)
    plain = engine_named("tiles")(X, Y, s, c, strands)
    for got, expected in zip(
        engine_named("tiles")(LAYOUTS[layout](X), Y, s, c, strands), plain, strict=True
    ):
        assert_array_equal(got, expected)


@needs_tiles
def test_tiles_give_the_same_bits_whatever_the_neighbours():
    X, Y, s, _ = data(500, 60)
    whole = engine_named("tiles")(X, Y, s, None, [(0, 500)])
    part = engine_named("tiles")(X[:, 7:20], Y[:, 1:], s, None, [(0, 500)])
    assert_array_equal(part.gram, whole.gram[7:20, 7:20])
    assert_array_equal(part.cross, whole.cross[7:20, 1:])
    assert_array_equal(part.total, whole.total[7:20])


@pytest.mark.parametrize("engine", ENGINES)
def test_sums_do_not_depend_on_threads(engine):
    X, Y, s, c = data(30_000, 40)
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            results.append(engine_named(engine)(X, Y, s, c, row_strands(*X.shape, 10**9)))
    for one, two in zip(*results, strict=True):
        assert_array_equal(one, two)


@needs_tiles
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("column", [0, 11, 20])
def test_tiles_keep_what_is_not_finite_to_its_row_and_column(value, column):
    X, Y, s, _ = data(200, 21)
    X[150, column] = value
    got = engine_named("tiles")(X, Y, s, None, [(0, 200)]).gram
    touched = np.zeros((21, 21), dtype=bool)
    touched[column] = touched[:, column] = True
    assert_array_equal(~np.isfinite(got), touched)


@needs_tiles
def test_tiles_do_not_write_to_their_arguments():
    X, Y, s, c = data(300, 20)
    before = [array.copy() for array in (X, Y, s, c)]
    engine_named("tiles")(X, Y, s, c, [(0, 300)])
    for array, copy in zip((X, Y, s, c), before, strict=True):
        assert_array_equal(array, copy)


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch):
    """The public functions, with one or the other way to the sums."""
    monkeypatch.setattr(gram, "_tiles_pay", lambda *_: request.param == "tiles")


@pytest.mark.grid(2)
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("d", [1, 8, 30])
def test_weighted_gram_is_the_weighted_sum_of_outer_products(layout, d):
    X, _, s, _ = data(1000, d)
    s[::7] = 0.0
    expected = sum(
        s_i * np.outer(x, x) for s_i, x in zip(s.astype(np.longdouble), X, strict=True)
    ).astype(float)
    got = weighted_gram(LAYOUTS[layout](X), s)
    assert_array_equal(got, got.T)
    root = np.sqrt(expected.diagonal())
    assert np.all(np.abs(got - expected) <= 200 * EPS * np.outer(root, root))


@needs_tiles
def test_weighted_gram_of_equal_weights_is_a_multiple_of_the_gram_matrix(monkeypatch):
    monkeypatch.setattr(gram, "_tiles_pay", lambda *_: True)
    X, Y, _, _ = data(5000, 24)
    plain = second_sums(X, Y, None, None).gram
    assert_array_equal(weighted_gram(X, np.full(5000, 4.0)), 4.0 * plain)  # the root is exact


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("shape", [(0, 5), (4, 0), (1, 1)])
def test_empty_and_tiny(shape):
    X, Y, s, c = data(*shape)
    got = second_sums(X, Y, s, c)
    V = X - c
    assert_allclose(got.gram, (s[:, None] * V).T @ V, rtol=1e-14)
    assert_allclose(weighted_gram(X, s), (s[:, None] * X).T @ X, rtol=1e-14)


def test_symmetrised_reads_the_lower_triangle_only():
    lower = np.array([[1.0, np.nan], [2.0, 3.0]])
    assert_array_equal(symmetrised(lower), [[1.0, 2.0], [2.0, 3.0]])


@pytest.mark.parametrize(
    ("target", "lanes"),
    [
        (("x86_64-unknown-linux-gnu", "skylake-avx512", "+avx2,+avx512f,+fma"), 8),
        (("x86_64-unknown-linux-gnu", "haswell", "+avx2,+fma"), 4),
        (("x86_64-unknown-linux-gnu", "ivybridge", "+avx,-avx2,-fma,-avx512f"), 0),
        (("x86_64-unknown-linux-gnu", "generic", ""), 0),
        (("arm64-apple-darwin23.0.0", "apple-m1", ""), 4),
        (("aarch64-unknown-linux-gnu", "neoverse-n1", "+neon"), 4),
        (("powerpc64le-unknown-linux-gnu", "pwr9", ""), 0),
    ],
)
def test_lanes_follow_the_processor(target, lanes):
    from trueline.numerics.gram_tiles import lanes_of

    assert lanes_of(target) == lanes


@pytest.mark.parametrize(
    ("shape", "once", "repeatedly", "compiled"),
    [
        ((1_000, 10), False, False, False),
        ((10_000, 20), False, False, True),
        ((100_000, 100), False, True, True),
        ((1_000_000, 100), True, True, True),
        ((200_000, 500), True, True, True),
        ((10**10, 2), False, False, False),  # too narrow to fill a tile
        ((10_000, 2_000), False, False, False),  # too wide for the caches
    ],
    ids=str,
)
def test_tiles_are_for_large_work(shape, once, repeatedly, compiled):
    n, d = shape
    assert gram._tiles_pay(d, n * d * d, gram._LARGE_WORK) == once
    assert gram._tiles_pay(d, n * d * d, gram._LARGE_REPEATED_WORK) == repeatedly
    assert gram._tiles_pay(d, n * d * d, gram._ANY_WORK) == compiled


@needs_tiles
def test_large_work_goes_to_the_tiles(monkeypatch):
    from trueline.numerics import gram_tiles as tiles

    shapes = []
    original = tiles.sums_by_tiles

    def recorded(X, *args, **options):
        shapes.append(X.shape)
        return original(X, *args, **options)

    monkeypatch.setattr(tiles, "sums_by_tiles", recorded)
    monkeypatch.setattr(gram, "_LARGE_WORK", 1000 * 16 * 17)
    X, Y, s, _ = data(1000, 16, 1)
    second_sums(X[:999], Y[:999], s[:999], None)
    assert_sums(second_sums(X, Y, s, None), X, Y, s, None)
    assert shapes == [(1000, 16)]


@pytest.mark.parametrize("reason", ["pure Python", "Numba switched off", "narrow vectors"])
def test_blas_takes_over_where_tiles_do_not_run(reason, monkeypatch):
    import numba

    from trueline.numerics import gram_tiles as tiles

    monkeypatch.delenv("TRUELINE_PURE_PYTHON", raising=False)
    if reason == "pure Python":
        monkeypatch.setenv("TRUELINE_PURE_PYTHON", "1")
    elif reason == "Numba switched off":
        monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    else:
        monkeypatch.setattr(tiles, "host_lanes", lambda: 0)
    assert not gram._tiles_run_here.__wrapped__()


def run(script, **environment):
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_small_fits_do_not_import_numba():
    script = """
import json, sys
import numpy as np
from trueline import LinearRegression
X = np.random.default_rng(0).standard_normal((20_000, 20))
LinearRegression().fit(X, X[:, 0])
print(json.dumps("numba" in sys.modules))
"""
    assert run(script) is False


@needs_tiles
@pytest.mark.slow
def test_narrower_vectors_give_the_same_bits():
    script = """
import json
import numpy as np
from trueline.numerics.gram_tiles import host_lanes, sums_by_tiles
rng = np.random.default_rng(0)
X, Y, s = rng.standard_normal((999, 61)), rng.standard_normal((999, 3)), rng.random(999)
sums = sums_by_tiles(X, Y, s, X[0], [(0, 400), (400, 999)])
numbers = np.concatenate([np.ravel(part) for part in sums[:3]])
print(json.dumps([host_lanes(), [value.hex() for value in numbers.tolist()]]))
"""
    lanes, native = run(script)
    if lanes == 8:
        narrow = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma"}
        assert run(script, **narrow) == [4, native]
