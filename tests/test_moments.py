"""Moments against exact rational arithmetic: what they are, how they combine, what they promise.

The promise is in units of the last place and must hold for every data, nasty ones first:

    abs(error of G_ij) <= unit sqrt(size_i size_j)
    abs(error of m_i)  <= mean_unit sqrt(size_i / W)
"""

from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from exact import doubles, fractions, moments
from trueline.design import as_design
from trueline.moments import Moments
from trueline.numerics.gram import _tiles_run_here

EPS = np.finfo(float).eps


def of(X, Y, weights=None, kind=np.asarray):
    return Moments.from_rows(as_design(kind(X)), Y, weights)


def assert_keeps_its_promise(got, exact):
    """All claimed bounds hold against the exact moments; the difference is taken exactly."""
    root_x, root_y = np.sqrt(got.x_size), np.sqrt(got.y_size)
    for name, scale in (
        ("gram", np.outer(root_x, root_x)),
        ("cross", np.outer(root_x, root_y)),
        ("y_square", root_y**2),
    ):
        error = doubles(abs(fractions(getattr(got, name)) - exact[name]))
        assert np.all(error <= got.unit * scale), (name, np.max(error / (got.unit * scale)))
    for axis, root in (("x", root_x), ("y", root_y)):
        mean = fractions(getattr(got, f"{axis}_mean"))
        low = fractions(np.broadcast_to(getattr(got, f"{axis}_mean_low"), mean.shape))
        error = doubles(abs(mean + low - exact[f"{axis}_mean"]))
        bound = got.mean_unit * root / np.sqrt(got.weight)
        assert np.all(error <= bound + EPS**2 * abs(doubles(mean))), (axis, error, bound)
    assert np.all(np.diag(doubles(exact["gram"])) <= got.x_size * (1 + got.unit))


def plain(n=40, d=3, k=2):
    rng = np.random.default_rng(1)
    return rng.standard_normal((n, d)), rng.standard_normal((n, k))


def timestamps():
    rng = np.random.default_rng(2)
    X, Y = plain()
    X[:, 0] = 1e12 + rng.integers(-1, 2, len(X))
    Y[:, 0] = 1e15 + rng.integers(-1, 2, len(X))
    return X, Y


def constants():
    # The sum of a constant rounds in the same direction again and again.
    return np.full((3000, 2), 0.1) * [1.0, 3.0], np.full((3000, 1), 0.7)


def padded():
    # The first rows say nothing about the others.
    X, Y = timestamps()
    return np.vstack([np.zeros((600, 3)), X]), np.vstack([np.zeros((600, 2)), Y])


def collinear():
    X, Y = plain()
    X[:, 1] = X[:, 0] * (1 + 1e-9)
    X[:, 2] = 0.0
    return X, Y


def scales():
    X, Y = plain()
    return X * [1e-140, 1.0, 1e140], Y * [1e-120, 1e120]


NASTY = {f.__name__: f for f in (plain, timestamps, constants, padded, collinear, scales)}
KINDS = {"dense": np.asarray, "sparse": sp.csr_array, "columns": np.asfortranarray}


@pytest.mark.grid(2)
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NASTY)
def test_the_rounding_bounds_hold(name, kind, weighted):
    X, Y = NASTY[name]()
    weights = np.random.default_rng(3).uniform(0.1, 3.0, len(X)) if weighted else None
    assert_keeps_its_promise(of(X, Y, weights, KINDS[kind]), moments(X, Y, weights))


@pytest.mark.grid(1)
@pytest.mark.skipif(not _tiles_run_here(), reason="no compiled vectors here")
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("name", NASTY)
def test_the_rounding_bounds_hold_by_tiles(name, weighted, monkeypatch):
    monkeypatch.setattr("trueline.numerics.gram._tiles_pay", lambda *_: True)
    X, Y = NASTY[name]()
    weights = np.random.default_rng(3).uniform(0.1, 3.0, len(X)) if weighted else None
    assert_keeps_its_promise(of(X, Y, weights), moments(X, Y, weights))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_rounding_bounds_hold_for_long_one_sided_sums(kind):
    # n times the same number: G about zero is n x^2 exactly, and a running sum drifts away from it.
    n, x = 300_000, 0.1
    got = of(np.full((n, 1), x), np.full((n, 1), x), kind=KINDS[kind])
    about = got.about_zero()
    exact = n * fractions([x])[0] ** 2
    error = float(abs(fractions(about.gram)[0, 0] - exact))
    assert error <= about.unit * about.x_size[0]
    assert got.gram[0, 0] <= got.unit * got.x_size[0]  # a constant has no spread


@pytest.mark.parametrize("name", ["plain", "timestamps", "constants", "padded", "scales"])
def test_parts_merge_to_the_whole_within_the_bounds(name):
    X, Y = NASTY[name]()
    weights = np.random.default_rng(3).uniform(0.1, 3.0, len(X))
    cuts = [0, 1, 8, 20, 21, len(X)]
    parts = [of(X[a:b], Y[a:b], weights[a:b]) for a, b in pairwise(cuts)]
    exact = moments(X, Y, weights)
    assert_keeps_its_promise(reduce(add, parts), exact)
    assert_keeps_its_promise(parts[4] + (parts[3] + (parts[2] + (parts[1] + parts[0]))), exact)
    assert_keeps_its_promise((parts[0] + parts[3]) + (parts[4] + (parts[1] + parts[2])), exact)


@pytest.mark.parametrize("name", ["plain", "timestamps", "constants", "scales"])
@pytest.mark.parametrize("share", [0.2, 0.9], ids=["a fold", "nearly all"])
def test_subtracting_a_part_leaves_the_rest_within_the_bounds(name, share):
    X, Y = NASTY[name]()
    cut = int(share * len(X))
    rest = of(X, Y) - of(X[:cut], Y[:cut])
    assert rest.count == len(X) - cut
    assert_keeps_its_promise(rest, moments(X[cut:], Y[cut:]))


@pytest.mark.parametrize("name", ["plain", "timestamps", "padded"])
def test_a_stream_of_single_rows_gives_the_whole(name):
    X, Y = NASTY[name]()
    rows = [of(X[i : i + 1], Y[i : i + 1]) for i in range(len(X))]
    assert_keeps_its_promise(reduce(add, rows), moments(X, Y))


def test_timestamps_lose_no_digits():
    # Means of 1e12 with a spread of one: about zero, G would have no correct digit at all.
    X, Y = timestamps()
    exact = moments(X, Y)
    whole = of(X, Y)
    merged = reduce(add, [of(X[i : i + 5], Y[i : i + 5]) for i in range(0, 40, 5)])
    fold = of(X, Y) - of(X[:8], Y[:8])
    assert_allclose(whole.gram, doubles(exact["gram"]), rtol=0, atol=1e-12)
    assert_allclose(merged.gram, doubles(exact["gram"]), rtol=0, atol=1e-12)
    assert_allclose(merged.cross, doubles(exact["cross"]), rtol=0, atol=1e-12)
    assert_allclose(fold.gram, doubles(moments(X[8:], Y[8:])["gram"]), rtol=0, atol=1e-12)
    assert whole.unit * whole.x_size[0] < 1e-10


@pytest.mark.parametrize("kind", KINDS)
def test_weights_mean_repetition(kind):
    X, Y = plain()
    repeats = np.arange(len(X)) % 4
    weighted = of(X, Y, repeats.astype(float), KINDS[kind])
    repeated = of(np.repeat(X, repeats, axis=0), np.repeat(Y, repeats, axis=0), None, KINDS[kind])
    assert weighted.count == np.count_nonzero(repeats)
    assert weighted.weight == repeated.weight
    for name in ("x_mean", "y_mean", "gram", "cross", "y_square"):
        got, expected = getattr(weighted, name), getattr(repeated, name)
        assert_allclose(got, expected, rtol=0, atol=1e-13 * weighted.weight)


@pytest.mark.parametrize("name", ["plain", "timestamps"])
def test_about_zero_are_the_plain_sums(name):
    X, Y = NASTY[name]()
    got = of(X, Y).about_zero()
    A, B = fractions(X), fractions(Y)
    exact = {
        "gram": A.T @ A,
        "cross": A.T @ B,
        "y_square": (B * B).sum(axis=0),
        "x_mean": 0 * A[0],
        "y_mean": 0 * B[0],
    }
    assert_keeps_its_promise(got, exact)
    assert_array_equal(got.x_mean, np.zeros(3))


@pytest.mark.parametrize("name", NASTY)
def test_gradient_and_residual_square_state_their_rounding(name):
    """G W - c, and h - 2 W.c + W.G W, against the exact residuals of the rows."""
    X, Y = NASTY[name]()
    got, exact = of(X, Y), moments(X, Y)
    rng = np.random.default_rng(0)
    fitted = np.linalg.lstsq(X - X.mean(axis=0), Y - Y.mean(axis=0), rcond=None)[0]
    for W in (np.zeros(fitted.shape), fitted, rng.standard_normal(fitted.shape)):
        w = fractions(W)
        gradient, rounding = got.gradient(W)
        error = doubles(abs(fractions(gradient) - (exact["gram"] @ w - exact["cross"])))
        assert np.all(error <= rounding)
        square, rounding = got.residual_square(W)
        residuals = exact["y_square"] - 2 * (w * exact["cross"]).sum(axis=0)
        residuals = residuals + (w * (exact["gram"] @ w)).sum(axis=0)
        assert np.all(doubles(abs(fractions(square) - residuals)) <= rounding)


sane = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda x: 0.0 if abs(x) < 1e-100 else x)


@st.composite
def tables(draw):
    n, d, k = draw(st.integers(2, 12)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    X, Y = draw(arrays(float, (n, d), elements=sane)), draw(arrays(float, (n, k), elements=sane))
    X = X + draw(st.sampled_from([0.0, 1e3, 1e12]))
    weights = draw(arrays(float, n, elements=st.floats(0.0, 10.0).map(lambda s: round(s, 3))))
    weights[[0, -1]] += 1.0
    return X, Y, weights, draw(st.integers(1, n - 1))


@given(tables())
@settings(deadline=None, max_examples=60)
def test_merging_and_subtracting_keep_the_promise_on_any_table(table):
    X, Y, weights, cut = table
    whole = of(X, Y, weights)
    first, second = of(X[:cut], Y[:cut], weights[:cut]), of(X[cut:], Y[cut:], weights[cut:])
    exact = moments(X, Y, weights)
    assert_keeps_its_promise(whole, exact)
    assert_keeps_its_promise(first + second, exact)
    assert_keeps_its_promise(second + first, exact)
    assert_keeps_its_promise(whole - second, moments(X[:cut], Y[:cut], weights[:cut]))


def test_merging_does_not_change_the_parts():
    X, Y = plain()
    first, second = of(X[:10], Y[:10]), of(X[10:], Y[10:])
    before = first.gram.copy(), second.gram.copy()
    first + second
    first + second - second
    assert_array_equal(first.gram, before[0])
    assert_array_equal(second.gram, before[1])


def test_gram_is_symmetric_to_the_last_bit():
    X, Y = timestamps()
    weights = np.random.default_rng(0).uniform(size=len(X))
    for kind in KINDS.values():
        first, second = of(X[:9], Y[:9], weights[:9], kind), of(X[9:], Y[9:], weights[9:], kind)
        for got in (first, first + second, (first + second) - second, first.about_zero()):
            assert_array_equal(got.gram, got.gram.T)


def test_no_rows_are_the_zero_of_addition():
    X, Y = plain()
    empty, some = of(X[:0], Y[:0]), of(X, Y)
    weightless = of(X, Y, np.zeros(len(X)))
    assert empty.weight == weightless.weight == empty.count == weightless.count == 0
    assert empty.is_finite()
    assert empty + some is some
    assert some + empty is some
    assert some - weightless is some


def test_a_set_of_rows_cannot_lose_more_than_it_has():
    X, Y = plain()
    some = of(X[:5], Y[:5])
    with pytest.raises(ValueError, match="Nothing would be left"):
        some - some
    with pytest.raises(ValueError, match="Nothing would be left"):
        some - of(X, Y)


def test_moments_of_different_columns_do_not_mix():
    X, Y = plain()
    with pytest.raises(ValueError, match="3 features and 2 targets do not go with moments of 2"):
        of(X, Y) + of(X[:, :2], Y)
    with pytest.raises(TypeError):
        of(X, Y) + 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", ["X", "Y", "weights"])
def test_non_finite_input_shows_in_the_moments_without_a_warning(bad, place):
    X, Y = plain()
    data = {"X": X, "Y": Y, "weights": np.ones(len(X))}
    data[place][7] = bad
    assert not of(data["X"], data["Y"], data["weights"]).is_finite()
    assert of(*plain()).is_finite()


def test_overflow_shows_in_the_moments():
    X, Y = plain()
    assert not of(1e200 * X, Y).is_finite()
