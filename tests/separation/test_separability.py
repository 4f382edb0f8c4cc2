"""Separability: brute force, linear programs, every kind of input, and what cannot be forged."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from halfspace_reference import boundary, inequalities, verdict_by_highs
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from trueline import LogisticRegression, separability
from trueline.persistence.codec import Decoder, Encoder
from trueline.separation.decide import decide
from trueline.separation.inequalities import SignedRows
from trueline.separation.nearby import boundary_of

CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
VERDICTS = ("separable", "quasi-separable", "not separable")


def _grid_problem(draw, classes, columns, most):
    d = draw(st.integers(1, columns))
    side = draw(st.integers(1, 3))
    row = st.tuples(*[st.integers(-side, side)] * d)
    rows = draw(st.lists(st.tuples(row, st.integers(0, classes - 1)), min_size=2, max_size=most))
    X = np.array([x for x, _ in rows], dtype=float)
    codes = np.array([c for _, c in rows])
    codes[:classes] = np.arange(classes)[: len(codes)]  # every class occurs
    return X, codes, draw(st.booleans())


@st.composite
def two_classes(draw):
    return _grid_problem(draw, 2, 3, 8)


@st.composite
def three_classes(draw):
    X, codes, fit_intercept = _grid_problem(draw, 3, 2, 5)
    X = np.vstack([X, np.zeros((max(0, 3 - len(X)), X.shape[1]))])
    codes = np.concatenate([codes, np.arange(len(codes), len(X))])
    return X, codes, fit_intercept


def _agrees_with_enumeration(X, codes, k, fit_intercept):
    answer = separability(X, codes, fit_intercept=fit_intercept)
    vectors = inequalities(X, codes, k, fit_intercept)
    inside = boundary(vectors)
    expected = "quasi-separable"
    if len(inside) in (0, len(vectors)):
        expected = "not separable" if inside else "separable"
    assert answer.verdict == expected
    touching = sorted({i // (k - 1) for i in inside})
    assert answer.boundary.tolist() == touching
    assert np.flatnonzero(~answer.strict).tolist() == touching
    answer.verify(X, codes).raise_if_false()


@settings(max_examples=300, deadline=None)
@given(two_classes())
def test_two_classes_on_a_grid_agree_with_enumeration(problem):
    X, codes, fit_intercept = problem
    _agrees_with_enumeration(X, codes, 2, fit_intercept)


@settings(max_examples=60, deadline=None)
@given(three_classes())
def test_three_classes_on_a_grid_agree_with_enumeration(problem):
    X, codes, fit_intercept = problem
    _agrees_with_enumeration(X, codes, 3, fit_intercept)


@pytest.mark.slow
@settings(max_examples=3000, deadline=None)
@given(two_classes())
def test_thousands_of_grids_agree_with_enumeration(problem):
    X, codes, fit_intercept = problem
    _agrees_with_enumeration(X, codes, 2, fit_intercept)


@pytest.mark.grid(1)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_medium_problems_agree_with_highs(seed, fit_intercept):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(30, 120)), int(rng.integers(2, 9))
    X = rng.integers(-2, 3, size=(n, d)) if seed % 2 else rng.standard_normal((n, d))
    w = rng.integers(-2, 3, size=d)
    y = np.where(X @ w + 0.5 * fit_intercept > 0, 1.0, -1.0)
    if seed % 3 == 0:
        y[: seed // 3] *= -1
    y[:2] = -1.0, 1.0
    answer = separability(X, y, fit_intercept=fit_intercept)
    assert answer.verdict == verdict_by_highs(X.astype(float), y, fit_intercept)
    answer.verify(X, y).raise_if_false()


# --- the parts of an answer -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["AND", "OR"])
def test_gates_that_are_separable(name):
    y = CORNERS.min(axis=1) if name == "AND" else CORNERS.max(axis=1)
    answer = separability(CORNERS, y)
    assert answer.is_separable
    signs = np.where(y > 0, 1.0, -1.0)
    values = signs * (CORNERS @ answer.coef + answer.intercept)
    assert (values > 0).all()
    distance = values.min() / np.linalg.norm(answer.coef)
    assert answer.margin <= distance
    assert answer.margin == pytest.approx(distance, rel=1e-11)
    assert len(answer.rows) == 0
    assert answer.diverging == ("x0", "x1")


def test_exclusive_or_is_impossible_and_becomes_possible_with_a_product():
    y = np.array([0, 1, 1, 0])
    answer = separability(CORNERS, y)
    assert answer.verdict == "not separable"
    assert answer.rows.tolist() == [0, 1, 2, 3]
    assert answer.weights.tolist() == [0.5] * 4
    assert answer.common_point.tolist() == [0.5, 0.5]
    assert np.isnan(answer.coef).all()
    assert answer.diverging == ()
    mapped = np.column_stack([CORNERS, CORNERS.prod(axis=1)])
    assert separability(mapped, y).is_separable


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_the_rows_that_exclude_a_separation_are_few_and_their_combination_vanishes(
    seed, fit_intercept
):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((60, 4)), rng.choice([-1, 1], 60)
    answer = separability(X, y, fit_intercept=fit_intercept)
    assert answer.verdict == "not separable"
    assert len(answer.rows) <= 4 + 1 + fit_intercept
    assert (answer.weights > 0).all()
    total = np.zeros(4)
    for i, weight in zip(answer.rows, answer.weights, strict=True):
        total += weight * y[i] * X[i]
    np.testing.assert_allclose(total, 0, atol=1e-14)
    multipliers = answer.certificate.common.multipliers
    exact = [
        sum(Fraction(m) * int(y[i]) * Fraction(X[i, j]) for i, m in zip(answer.rows, multipliers))
        for j in range(4)
    ]
    assert exact == [0] * 4
    if fit_intercept:
        for sign in (-1, 1):
            assert answer.weights[y[answer.rows] == sign].sum() == pytest.approx(1)
        point = answer.weights[y[answer.rows] == -1] @ X[answer.rows[y[answer.rows] == -1]]
        np.testing.assert_allclose(answer.common_point, point, atol=1e-14)


def test_quasi_separation_names_direction_and_boundary():
    frame = pd.DataFrame(
        {"age": [1.0, 4.0, 2.0, 6.0, 2.0, 6.0, 3.0], "income": [1.0, 2.0, 1.0, 2.0, 1.5, 3.0, 3.0]}
    )
    y = ["no", "no", "yes", "yes", "no", "yes", "no"]
    answer = separability(frame, y)
    assert answer.verdict == "quasi-separable"
    assert answer.coef.tolist() == [1.0, -2.0]
    assert answer.intercept == 0.0
    assert answer.boundary.tolist() == [1, 2, 5]
    assert answer.strict.tolist() == [True, False, False, True, True, False, True]
    assert answer.diverging == ("age", "income")
    assert answer.statement.startswith(
        "Quasi-separable: age - 2 income is at least 0 for every row of 'yes' and at most 0 for "
        "every row of 'no'; it is 0 for rows 1, 2 and 5. No hyperplane separates them strictly: "
        "the convex hulls of rows 2 and 5 of 'yes' and of row 1 of 'no' meet, at (4, 2)."
    )
    answer.verify(frame, y).raise_if_false()


def test_three_classes_that_are_separable_but_not_one_against_the_rest():
    X = np.array([[-2.0], [-1.0], [0.0], [0.5], [1.0], [3.0]])
    y = np.array(["a", "a", "b", "b", "c", "c"])
    answer = separability(X, y)
    assert answer.is_separable
    scores = X @ answer.coef.T + answer.intercept
    assert (answer.classes[scores.argmax(axis=1)] == y).all()
    assert separability(X, y == "b").verdict == "not separable"
    answer.verify(X, y).raise_if_false()


# --- any input ------------------------------------------------------------------------------------


@pytest.mark.grid(2)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "form", ["float64", "float32", "int8", "bool", "fortran", "csr", "csc", "list"]
)
@pytest.mark.parametrize("kind", VERDICTS)
def test_forms_of_the_same_data_give_the_same_verdict(kind, form, fit_intercept):
    X = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1], [0, 1, 1]], dtype=np.int8)
    y = {
        "separable": [1, 1, 1, 0, 0, 0],
        "quasi-separable": [1, 0, 1, 0, 0, 0],
        "not separable": [1, 1, 0, 1, 0, 0],
    }[kind]
    reference = separability(X.astype(float), y, fit_intercept=fit_intercept)
    converted = {
        "fortran": np.asfortranarray(X.astype(float)),
        "csr": sp.csr_array(X.astype(float)),
        "csc": sp.csc_matrix(X.astype(np.float32)),
        "list": X.tolist(),
    }
    data = converted[form] if form in converted else X.astype(form)
    answer = separability(data, y, fit_intercept=fit_intercept)
    assert answer.verdict == reference.verdict
    np.testing.assert_array_equal(answer.boundary, reference.boundary)
    answer.verify(data, y).raise_if_false()


@pytest.mark.parametrize(
    "labels",
    [("no", "yes"), (False, True), (-1, 1), (3.0, 7.0), (np.str_("a"), np.str_("b"))],
)
def test_labels_of_any_type(labels):
    y = np.array([labels[0]] * 2 + [labels[1]] * 2)
    answer = separability([[0.0], [1.0], [2.0], [3.0]], y)
    assert answer.is_separable
    assert answer.classes.tolist() == list(labels)
    assert answer.coef[0] > 0
    assert repr(np.array(labels)[1].item()) in answer.statement


def test_one_class_is_an_error():
    with pytest.raises(ValueError, match="at least two classes, but y holds one class only"):
        separability([[0.0], [1.0]], ["a", "a"])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[np.nan], [1.0]], "NaN"),
        ([[np.inf], [1.0]], "infinity"),
        (np.array([[2**53 + 1], [0]]), "no double is equal to"),
        (np.zeros((2, 0)), "0 feature"),
    ],
)
def test_data_that_cannot_be_used_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        separability(X, [0, 1])


def test_integers_beyond_two_to_the_53_that_doubles_hold_are_fine():
    X = np.array([[2**60], [2**60 + 2**10], [2**60 + 2**11]])
    assert separability(X, [0, 0, 1]).is_separable
    assert separability(X, [0, 1, 0]).verdict == "not separable"


def test_contradictory_duplicates_are_found_among_continuous_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = (X @ [1.0, -1.0, 2.0] > 0).astype(int)
    margin = np.abs(X @ [1.0, -1.0, 2.0])
    # On the edge of the cloud their class still has a supporting hyperplane through them.
    twin = int(margin.argmin())
    X, y = np.vstack([X, X[twin]]), np.append(y, 1 - y[twin])
    answer = separability(X, y)
    assert answer.verdict != "separable"
    answer.verify(X, y).raise_if_false()
    if answer.verdict == "quasi-separable":
        assert {twin, 40} <= set(answer.boundary.tolist())


def test_zero_rows_are_on_every_hyperplane_through_zero():
    X, y = [[0.0, 0.0], [1.0, 2.0], [-1.0, 0.0]], [0, 1, 0]
    answer = separability(X, y, fit_intercept=False)
    assert answer.verdict == "quasi-separable"
    assert answer.boundary.tolist() == [0]
    assert "row 0 is zero" in answer.statement
    answer.verify(X, y).raise_if_false()
    assert separability(X, y).is_separable


def test_only_zero_rows():
    X, y = np.zeros((3, 2)), [0, 1, 0]
    for fit_intercept in (True, False):
        answer = separability(X, y, fit_intercept=fit_intercept)
        assert answer.verdict == "not separable"
        answer.verify(X, y).raise_if_false()


def test_constant_and_repeated_columns_change_nothing():
    rng = np.random.default_rng(1)
    X = rng.integers(-2, 3, size=(30, 2)).astype(float)
    for y in (
        X[:, 0] > 0,
        X[:, 0] + (X[:, 0] == 0) * (rng.random(30) > 0.5) > 0,
        rng.random(30) > 0.5,
    ):
        wide = np.column_stack([X, np.full(30, 7.0), X[:, 0], X[:, 0] - 3 * X[:, 1]])
        plain, other = separability(X, y), separability(wide, y)
        assert plain.verdict == other.verdict
        np.testing.assert_array_equal(plain.boundary, other.boundary)
        other.verify(wide, y).raise_if_false()


def test_more_columns_than_rows_in_general_position_are_separable():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((20, 30)), rng.integers(0, 2, 20)
    answer = separability(X, y)
    assert answer.is_separable
    answer.verify(X, y).raise_if_false()


@pytest.mark.grid(1)
@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("kind", VERDICTS)
def test_units_do_not_matter(kind, scale):
    X = np.vstack([CORNERS, CORNERS[-1]])
    y = {
        "separable": [0, 0, 0, 1, 1],
        "quasi-separable": [0, 0, 0, 1, 0],
        "not separable": [0, 1, 1, 0, 0],
    }[kind]
    for units in (np.array([scale, scale]), np.array([scale, 1.0])):
        answer = separability(X * units, y)
        assert answer.verdict == kind
        answer.verify(X * units, y).raise_if_false()


def test_signs_that_double_precision_cannot_tell():
    """Rows on a line, one of them off it by one unit in the last place."""
    t = np.array([1.0, 2.0, 4.0, 8.0])
    X = np.column_stack([t, t / 3, np.ones(4)])
    for place in range(4):
        for direction in (np.inf, -np.inf):
            moved = X.copy()
            moved[place, 1] = np.nextafter(moved[place, 1], direction)
            for codes in ([0, 1, 0, 1], [0, 1, 1, 0], [0, 0, 1, 0]):
                vectors = inequalities(moved, codes, 2, True)
                inside = boundary(vectors)
                answer = separability(moved, codes)
                assert answer.boundary.tolist() == sorted(inside)
                answer.verify(moved, codes).raise_if_false()


def test_the_same_rows_in_another_order_have_the_same_verdict():
    rng = np.random.default_rng(3)
    X = rng.integers(-2, 3, size=(25, 3))
    y = (X[:, 0] + 0.5 * rng.standard_normal(25) > 0).astype(int)
    answer, order = separability(X, y), rng.permutation(25)
    other = separability(X[order], y[order])
    assert other.verdict == answer.verdict
    assert sorted(order[other.boundary].tolist()) == answer.boundary.tolist()


@pytest.mark.parametrize("kind", ["few wrong", "barely", "overlap"])
def test_many_rows(kind):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((20_000, 10))
    score = X @ rng.standard_normal(10)
    y = score > 0
    if kind == "few wrong":
        y[np.argsort(np.abs(score))[2000:2003]] ^= True
    elif kind == "overlap":
        y ^= rng.random(len(y)) < 0.1
    answer = separability(X, y)
    assert answer.verdict == ("separable" if kind == "barely" else "not separable")
    answer.verify(X, y).raise_if_false()


# --- what cannot be forged ------------------------------------------------------------------------


def _cases():
    grid = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [2.0, 1.0], [1.0, 3.0], [0.0, 2.0]])
    yield "separable", grid, np.array([0, 1, 1, 1, 1, 0])
    yield "quasi-separable", grid, np.array([0, 0, 1, 1, 1, 0])
    yield "not separable", grid, np.array([0, 0, 1, 1, 0, 1])


def _forgeries(certificate):
    """Certificates that claim what does not hold."""
    common, spanning = certificate.common, certificate.spanning
    if certificate.direction:
        turned = tuple(tuple(-v for v in row) for row in certificate.direction)
        yield "direction turned", replace(certificate, direction=turned)
        flat = tuple((0,) * len(row) for row in certificate.direction)
        yield "no direction", replace(certificate, direction=flat)
        yield "short direction", replace(certificate, direction=certificate.direction[:1])
    if certificate.kind == "separable":
        yield "margin", replace(certificate, margin=1.001 * certificate.margin)
        yield "infinite margin", replace(certificate, margin=np.inf)
    else:
        bigger = (common.multipliers[0] + 1, *common.multipliers[1:])
        yield "multiplier", replace(certificate, common=replace(common, multipliers=bigger))
        negative = tuple(-m for m in common.multipliers)
        yield "signs", replace(certificate, common=replace(common, multipliers=negative))
        none = replace(common, rows=common.rows[:0], against=common.against[:0], multipliers=())
        yield "no multipliers", replace(certificate, common=none)
        yield "no spanning rows", replace(certificate, spanning=none)
        moved = replace(spanning, rows=(spanning.rows + 1) % 6)
        yield "other rows", replace(certificate, spanning=moved)
        own = replace(common, against=1 - common.against)
        yield "own class", replace(certificate, common=own)
        outside = replace(common, rows=common.rows + 100)
        yield "rows that are not there", replace(certificate, common=outside)
    if certificate.kind == "quasi-separable":
        yield (
            "boundary too small",
            replace(
                certificate,
                boundary_rows=certificate.boundary_rows[1:],
                boundary_against=certificate.boundary_against[1:],
            ),
        )
        yield "called separable", replace(certificate, kind="separable")
        yield "called not separable", replace(certificate, kind="not separable")
    if certificate.kind == "not separable":
        yield "called separable", replace(certificate, kind="separable")
        yield "called quasi-separable", replace(certificate, kind="quasi-separable")
    yield "unknown kind", replace(certificate, kind="certain")
    yield "columns", replace(certificate, n_features=3)
    yield "intercept", replace(certificate, fit_intercept=False)
    yield "labels", replace(certificate, classes=np.array([0, 2]))


@pytest.mark.parametrize(("kind", "X", "y"), list(_cases()), ids=VERDICTS)
def test_forged_certificates_are_rejected(kind, X, y):
    answer = separability(X, y)
    assert answer.verdict == kind
    assert answer.verify(X, y)
    for name, forged in _forgeries(answer.certificate):
        assert not forged.verify(X, y), name


@pytest.mark.parametrize(("kind", "X", "y"), list(_cases()), ids=VERDICTS)
def test_certificates_do_not_hold_for_other_data(kind, X, y):
    certificate = separability(X, y).certificate
    assert not certificate.verify(np.full_like(X, np.nan), y)
    assert not certificate.verify(X, y[:-1])
    assert not certificate.verify(X, np.zeros(len(y)))
    moved = X.copy()
    moved[certificate.common.rows[0] if kind != "separable" else 0] += [100.0, 50.0]
    assert not certificate.verify(moved, y)


@pytest.mark.parametrize(("kind", "X", "y"), list(_cases()), ids=VERDICTS)
def test_models_may_hold_an_answer(kind, X, y):
    """Model files keep it, with integers of any length."""
    answer = separability(X + 0.1, y)
    encoder = Encoder()
    header = json.loads(json.dumps(encoder.encode(answer)))
    again = Decoder(encoder.arrays).decode(header)
    assert again.statement == answer.statement
    assert again.certificate.direction == answer.certificate.direction
    again.verify(X + 0.1, y).raise_if_false()


def _on_the_boundary(seed: int, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Levels of a category of which each second one has a single class, and overlap in the others.

    The others have numbers of their own, so that the boundary consists of many small simplices.
    """
    rng = np.random.default_rng(seed)
    level = np.repeat(np.arange(groups), 12)
    y = np.where(level % 2 == 0, 1.0, rng.integers(2, size=len(level)))
    own = np.eye(groups)[level] * rng.normal(size=(len(level), 1))
    return np.hstack([np.eye(groups)[level], np.where(level % 2 == 1, 1, 0)[:, None] * own]), y


@pytest.mark.parametrize("seed", range(4))
def test_the_boundary_is_found_from_where_a_fit_has_ended(seed):
    """The same rows as without a start, and a proof of them; wrong starts do no harm."""
    X, y = _on_the_boundary(seed, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=np.inf).fit(X, y)
    signs = np.where(y == 1, 1.0, -1.0)
    plain = decide(SignedRows(X, signs, True))
    assert plain.boundary.any()
    assert not plain.boundary.all()
    rows = SignedRows(X, signs, True)
    start = np.append(model.coef_[0], model.intercept_)
    found = boundary_of(rows, rows.basis(), start)
    assert found is not None
    assert set(found) <= set(np.flatnonzero(plain.boundary).tolist())
    assert len(found) <= 2 * rows.size
    assert min(found.values()) > 0
    total = [
        sum(value * Fraction(float(z)) for value, z in zip(found.values(), column, strict=True))
        for column in rows.exact(np.array(list(found))).T
    ]
    assert not any(total)
    assert (decide(SignedRows(X, signs, True), start).boundary == plain.boundary).all()
    wrong = np.random.default_rng(seed).normal(size=len(start))
    assert (decide(SignedRows(X, signs, True), wrong).boundary == plain.boundary).all()
    assert model.separability_.verify(X, y)
