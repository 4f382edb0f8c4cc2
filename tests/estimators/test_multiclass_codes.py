"""Code books, decoding and coupling: the mathematics of the multiclass schemes."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from trueline.estimators.multiclass.output_code import (
    DECODINGS,
    check_book,
    class_scores,
    design_book,
    least_distance,
)
from trueline.estimators.shared.coupling import (
    agreeing,
    couple_least_squares,
    couple_likelihood,
)


def pair_book(k):
    book = np.zeros((k, k * (k - 1) // 2))
    for column, (i, j) in enumerate(combinations(range(k), 2)):
        book[i, column], book[j, column] = -1, 1
    return book


def consistent(p, book):
    """The probabilities of the side +1 that classes of probability p have."""
    plus, minus = p @ (book > 0), p @ (book < 0)
    return plus / (plus + minus)


# --- code books -----------------------------------------------------------------------------------


def distance_by_definition(book):
    return min(np.sum((1 - a * b) / 2) for a, b in combinations(book, 2))


@pytest.mark.grid(1)
@pytest.mark.parametrize("k", range(3, 13))
@pytest.mark.parametrize("design", ["dense", "sparse", "exhaustive", "hadamard"])
def test_designed_books_have_sides_and_no_column_twice(design, k):
    book = design_book(design, k, 1.5, np.random.RandomState(k))
    assert_array_equal(check_book(book, k), book)
    assert set(np.unique(book)) <= ({-1, 0, 1} if design == "sparse" else {-1, 1})
    oriented = book * book[(book != 0).argmax(axis=0), np.arange(book.shape[1])]
    assert len(np.unique(oriented, axis=1).T) == book.shape[1]
    assert least_distance(book) == distance_by_definition(book)


@pytest.mark.parametrize("k", range(3, 12))
def test_the_exhaustive_code_has_all_columns(k):
    book = design_book("exhaustive", k, 1.5)
    assert book.shape == (k, 2 ** (k - 1) - 1)
    assert least_distance(book) == 2 ** (k - 2)


@pytest.mark.parametrize("k", range(3, 40))
def test_the_hadamard_code_reaches_plotkins_bound(k):
    book = design_book("hadamard", k, 1.5)
    order = 2 ** int(np.ceil(np.log2(k)))
    assert book.shape == (k, order - 1)
    distances = [np.sum(a != b) for a, b in combinations(book, 2)]
    assert set(distances) == {order // 2}


@pytest.mark.parametrize("k", [5, 10, 26])
def test_search_beats_chance(k):
    coins = [
        least_distance(np.random.RandomState(s).choice([-1.0, 1.0], size=(k, int(1.5 * k))))
        for s in range(20)
    ]
    book = design_book("dense", k, 1.5, np.random.RandomState(0))
    assert book.shape == (k, int(1.5 * k))
    assert least_distance(book) > max(coins) or least_distance(book) > np.mean(coins) + 1


def test_the_automatic_sizes_are_those_of_the_paper():
    assert design_book("dense", 10, "auto", np.random.RandomState(0)).shape == (10, 34)
    assert design_book("sparse", 10, "auto", np.random.RandomState(0)).shape == (10, 50)


@pytest.mark.parametrize("design", ["dense", "sparse"])
def test_the_same_seed_gives_the_same_book(design):
    books = [design_book(design, 7, 2.0, np.random.RandomState(5)) for _ in range(2)]
    assert_array_equal(*books)


@pytest.mark.parametrize("design", ["dense", "sparse", "exhaustive", "hadamard"])
def test_two_classes_need_one_column(design):
    assert_array_equal(design_book(design, 2, 3.0), [[-1], [1]])


@pytest.mark.parametrize(
    ("book", "says"),
    [
        ([[1, -1]], "one row for each of the 3 classes"),
        ([1, -1, 1], "one row for each of the 3 classes"),
        ([[1, 2], [-1, 1], [1, -1]], "nothing else"),
        ([[1, np.nan], [-1, 1], [1, -1]], "nothing else"),
        ([[1, 1], [-1, 1], [1, 0]], "Column 1 of the code book has no class on one of its sides"),
        ([[1], [-1], [1]], "rows 0 and 2 on different sides"),
        ([[1, 1], [-1, 1], [0, -1], [-1, -1]][:3] * 2, "one row for each of the 3 classes"),
    ],
)
def test_books_that_cannot_work_are_refused(book, says):
    with pytest.raises(ValueError, match=says):
        check_book(book, 3)


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="131071 columns"):
        design_book("exhaustive", 18, 1.5)
    with pytest.raises(ValueError, match="choose a smaller code_size"):
        design_book("sparse", 3, 10.0, np.random.RandomState(0))
    assert_array_equal(design_book("dense", 3, 10.0), design_book("exhaustive", 3, 1.5))


# --- decoding -------------------------------------------------------------------------------------

LOSSES = {
    "hamming": lambda t: (1 - np.sign(t)) / 2,
    "hinge": lambda t: max(0.0, 1 - t),
    "squared": lambda t: (1 - t) ** 2,
    "logistic": lambda t: np.log1p(np.exp(-2 * t)),
    "exponential": lambda t: np.exp(-t),
    "linear": lambda t: -t,
}


@pytest.mark.parametrize("decoding", DECODINGS)
@pytest.mark.parametrize("design", ["hadamard", "sparse"])
def test_scores_are_minus_the_distance(design, decoding):
    book = design_book(design, 5, 2.0, np.random.RandomState(0))
    scores = np.random.default_rng(0).normal(size=(7, book.shape[1]))
    found = class_scores(scores, book, decoding)
    for i, c in np.ndindex(7, 5):
        if decoding == "euclidean":
            distance = np.sum((book[c] - scores[i]) ** 2)
        else:
            distance = sum(LOSSES[decoding](m * f) for m, f in zip(book[c], scores[i]))
        assert_allclose(found[i, c], -distance, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("decoding", DECODINGS)
def test_half_the_distance_in_wrong_bits_is_mended(decoding):
    book = design_book("exhaustive", 5, 1.5)
    wrong = int((least_distance(book) - 1) // 2)
    rng = np.random.default_rng(0)
    for c in range(5):
        for _ in range(20):
            bits = book[c].copy()
            bits[rng.choice(len(bits), wrong, replace=False)] *= -1
            assert class_scores(bits[None], book, decoding).argmax() == c


def test_scores_of_any_size_are_decoded():
    book = design_book("hadamard", 4, 1.5)
    for decoding in DECODINGS:
        assert class_scores(1e4 * book, book, decoding).argmax(axis=1).tolist() == [0, 1, 2, 3]


# --- coupling -------------------------------------------------------------------------------------

BOOKS = {
    "pairs of 3": pair_book(3),
    "pairs of 6": pair_book(6),
    "one against the rest": 2 * np.eye(4) - 1,
    "hadamard": design_book("hadamard", 6, 1.5),
    "sparse": design_book("sparse", 5, 3.0, np.random.RandomState(1)),
}


@pytest.mark.parametrize("name", BOOKS)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_probabilities_that_fit_together_are_found(name, seed):
    book = BOOKS[name]
    p = np.random.default_rng(seed).dirichlet(np.ones(len(book)), size=3) * 0.9 + 0.1 / len(book)
    assert_allclose(couple_likelihood(consistent(p, book), book), p, atol=1e-6)
    if name.startswith("pairs"):
        assert_allclose(couple_least_squares(consistent(p, book), len(book)), p, atol=1e-10)


def simplex_optimum(objective, k):
    """The minimum of a function of probabilities, by SciPy from several starts."""
    best = None
    for start in [np.zeros(k), *np.random.default_rng(0).normal(size=(3, k))]:
        found = minimize(
            lambda t: objective(np.exp(t) / np.exp(t).sum()),
            start,
            method="BFGS",
            options={"gtol": 1e-10},
        )
        p = np.exp(found.x - found.x.max())
        p /= p.sum()
        if best is None or objective(p) < objective(best):
            best = p
    return best


@pytest.mark.parametrize("k", [3, 4, 5])
def test_contradictory_pairs_by_least_squares(k):
    r = np.random.default_rng(k).uniform(0.05, 0.95, size=k * (k - 1) // 2)

    def objective(p):
        pairs = zip(r, combinations(range(k), 2))
        return sum((second * p[i] - (1 - second) * p[j]) ** 2 for second, (i, j) in pairs)

    assert_allclose(couple_least_squares(r[None], k)[0], simplex_optimum(objective, k), atol=1e-5)


@pytest.mark.parametrize("name", BOOKS)
def test_contradictory_problems_by_likelihood(name):
    book = BOOKS[name]
    r = np.random.default_rng(0).uniform(0.1, 0.9, size=book.shape[1])

    def objective(p):
        q = consistent(p, book)
        return -np.sum(r * np.log(q) + (1 - r) * np.log1p(-q))

    expected = simplex_optimum(objective, len(book))
    assert_allclose(couple_likelihood(r[None], book)[0], expected, atol=1e-5)


@settings(max_examples=50, deadline=None)
@given(r=hnp.arrays(float, (4, 10), elements=st.one_of(st.floats(0, 1), st.sampled_from([0, 1.0]))))
def test_coupled_probabilities_are_probabilities(r):
    for p in (couple_least_squares(r, 5), couple_likelihood(r, pair_book(5))):
        assert np.isfinite(p).all()
        assert (p >= 0).all()
        assert_allclose(p.sum(axis=1), 1.0, rtol=1e-9)


def test_problems_without_a_side_tell_nothing():
    book = np.array([[1.0, 1.0, -1.0], [1.0, -1.0, -1.0]])
    p = couple_likelihood(np.array([[1.0, 0.3, 0.0]]), book)
    assert_allclose(p, [[0.3, 0.7]], atol=1e-9)
    assert_allclose(couple_likelihood(np.array([[1.0]]), np.ones((4, 1))), np.full((1, 4), 0.25))


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(2, 6))
def test_agreement_is_the_nearest_that_can_be(seed, k):
    rng = np.random.default_rng(seed)
    p, chosen = rng.dirichlet(np.ones(k), size=5), rng.integers(0, k, 5)
    found = agreeing(p, chosen)
    assert_array_equal(found.argmax(axis=1), chosen)
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-9)
    assert_array_equal(found[p.argmax(axis=1) == chosen], p[p.argmax(axis=1) == chosen])
    # Optimality of the projection: no feasible point lies in the direction of what was given.
    for a, b, c in zip(p, found, chosen):
        feasible = rng.dirichlet(np.ones(k), size=50)
        rows = np.arange(50)
        top = feasible.argmax(axis=1)
        feasible[rows, top], feasible[rows, c] = feasible[rows, c].copy(), feasible[rows, top]
        assert ((feasible - b) @ (a - b)).max() <= 1e-9
