"""The largest margin: known ones, support vector machines, and bounds that cannot be forged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from trueline import maximum_margin, separability


def _separable(n, d, seed, fit_intercept=True, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if classes > 2:
        return X, (X @ rng.standard_normal((d, classes))).argmax(axis=1)
    return X, X @ rng.standard_normal(d) + 0.3 * fit_intercept > 0


def test_the_margin_of_two_points_is_half_their_distance():
    best = maximum_margin([[0.0, 0.0], [3.0, 4.0]], ["a", "b"])
    assert best.margin == pytest.approx(2.5, rel=1e-15)
    np.testing.assert_allclose(best.coef, [0.24, 0.32], rtol=1e-15)
    assert best.intercept == pytest.approx(-1.0)
    assert best.support.tolist() == [0, 1]


def test_without_an_intercept_it_is_the_distance_of_the_hull_from_zero():
    # Reflected, the rows are (1, 2) and (3, 1): the nearest point of the segment is the first.
    best = maximum_margin([[1.0, 2.0], [-3.0, -1.0]], [1, 0], fit_intercept=False)
    assert best.margin == pytest.approx(np.sqrt(5), rel=1e-15)
    assert best.support.tolist() == [0]
    assert best.intercept == 0.0
    assert best.radius == pytest.approx(np.sqrt(10))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "d"), [(10, 1), (40, 2), (200, 5), (500, 12), (15, 20)])
def test_both_bounds_agree_and_verify(n, d, fit_intercept):
    X, y = _separable(n, d, n + d, fit_intercept)
    best = maximum_margin(X, y, fit_intercept=fit_intercept)
    assert 0 < best.margin <= best.upper_bound
    assert best.relative_gap < 1e-11
    best.verify(X, y).raise_if_false()
    signs = np.where(y, 1.0, -1.0)
    values = signs * (X @ best.coef + best.intercept)
    assert values.min() == pytest.approx(1, rel=1e-9)
    assert values.min() / np.linalg.norm(best.coef) == pytest.approx(best.margin, rel=1e-9)
    np.testing.assert_allclose(values[best.support], 1, rtol=1e-9)
    assert (best.weights > 0).all()
    assert best.weights.sum() == pytest.approx(1 + fit_intercept)
    assert best.margin >= separability(X, y, fit_intercept=fit_intercept).margin


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_support_vector_machine_with_a_hard_margin(seed):
    X, y = _separable(60, 3, seed)
    best = maximum_margin(X, y)
    machine = SVC(kernel="linear", C=1e8, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(best.coef, machine.coef_[0], rtol=1e-4)
    np.testing.assert_allclose(best.intercept, machine.intercept_[0], rtol=1e-3, atol=1e-3)
    # The machine's weights cannot have a larger margin.
    scores = np.where(y, 1.0, -1.0) * (X @ machine.coef_[0])
    middle = (scores[y].min() + scores[~y].min()) / 2
    assert middle / np.linalg.norm(machine.coef_) <= best.upper_bound


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(2, 12), st.booleans())
def test_grids_with_ties(seed, d, n, fit_intercept):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(n, d)).astype(float)
    y = X @ rng.integers(-2, 3, size=d) + 0.5 * rng.integers(-1, 2) * fit_intercept > 0
    y[:2] = True, False
    if separability(X, y, fit_intercept=fit_intercept).is_separable:
        best = maximum_margin(X, y, fit_intercept=fit_intercept)
        assert best.relative_gap < 1e-12
        best.verify(X, y).raise_if_false()
    else:
        with pytest.raises(ValueError, match="There is no margin"):
            maximum_margin(X, y, fit_intercept=fit_intercept)


@pytest.mark.parametrize("classes", [3, 5])
def test_several_classes(classes):
    X, y = _separable(200, 4, classes, classes=classes)
    best = maximum_margin(X, y, fit_intercept=False)
    assert best.coef.shape == (classes, 4)
    np.testing.assert_allclose(best.coef.sum(axis=0), 0, atol=1e-9 * np.abs(best.coef).max())
    scores = X @ best.coef.T
    own = scores[np.arange(200), y]
    scores[np.arange(200), y] = -np.inf
    least = (own - scores.max(axis=1)).min()
    assert least / np.linalg.norm(best.coef) == pytest.approx(best.margin, rel=1e-9)
    assert best.relative_gap < 1e-11
    best.verify(X, y).raise_if_false()
    with pytest.raises(ValueError, match="fit_intercept=False"):
        maximum_margin(X, y)


@pytest.mark.parametrize("form", ["float32", "csr", "fortran"])
def test_forms_of_the_same_data_have_the_same_margin(form):
    X, y = _separable(80, 4, 1)
    X = X.astype(np.float32).astype(float)
    forms = {"csr": sp.csr_array, "fortran": np.asfortranarray, "float32": np.float32}
    best = maximum_margin(forms[form](X), y)
    assert best.margin == pytest.approx(maximum_margin(X, y).margin, rel=1e-13)
    best.verify(forms[form](X), y).raise_if_false()


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e100, 1e300])
def test_the_margin_is_in_the_units_of_the_data(scale):
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 1.0]]), [0, 0, 1]
    best, scaled = maximum_margin(X, y), maximum_margin(X * scale, y)
    assert scaled.margin == pytest.approx(best.margin * scale, rel=1e-14)
    scaled.verify(X * scale, y).raise_if_false()


def test_a_margin_that_is_tiny_beside_the_rows():
    X, y = np.array([[1e6, 1.0], [1e6, 1.0 + 2**-20], [-1e6, 0.5]]), [0, 1, 0]
    best = maximum_margin(X, y)
    assert best.margin == pytest.approx(2**-21, rel=1e-6)
    assert best.relative_gap < 1e-6
    best.verify(X, y).raise_if_false()


def test_forged_bounds_are_rejected():
    X, y = _separable(50, 3, 2)
    certificate = maximum_margin(X, y).certificate
    assert certificate.verify(X, y)
    forgeries = {
        "margin": replace(certificate, margin=certificate.margin * (1 + 1e-9)),
        "upper bound": replace(certificate, upper_bound=certificate.upper_bound * (1 - 1e-9)),
        "coef": replace(certificate, coef=-certificate.coef),
        "intercept": replace(certificate, intercept=certificate.intercept + 1.0),
        "weights": replace(certificate, weights=certificate.weights[::-1]),
        "negative weights": replace(certificate, weights=-certificate.weights),
        "no weights": replace(certificate, weights=np.zeros(len(certificate.weights))),
        "rows": replace(certificate, rows=(certificate.rows + 1) % 50),
        "classes": replace(certificate, classes=np.array([0, 1, 2])),
        "without intercept": replace(certificate, fit_intercept=False),
        "radius": replace(certificate, radius=certificate.radius * 0.9),
        "not a number": replace(certificate, margin=np.nan),
    }
    for name, forged in forgeries.items():
        assert not forged.verify(X, y), name


def test_a_margin_that_double_precision_cannot_find_is_an_error():
    X, y = np.array([[1e10, 1.0], [1e10, 1.0 + 2**-30], [-1e10, 3.0], [0.0, -1e10]]), [0, 1, 1, 0]
    assert separability(X, y).is_separable
    with pytest.raises(ValueError, match="double precision"):
        maximum_margin(X, y)
