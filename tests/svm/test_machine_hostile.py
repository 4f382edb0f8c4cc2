"""Input that would break a careless machine: a right answer, or a sentence that helps."""

import numpy as np
import pytest
import scipy.sparse as sp
from machines import labelled, smooth
from numpy.testing import assert_allclose
from sklearn.base import clone

from trueline import SVC, SVR, NuSVC, OneClassSVM


def test_one_class_alone_is_an_error():
    with pytest.raises(ValueError, match="at least two classes, but y holds one class only"):
        SVC().fit([[0.0], [1.0]], [1, 1])


def test_weights_that_leave_one_class_are_an_error():
    X, y = labelled(20)
    with pytest.raises(ValueError, match="belong to the same class"):
        SVC().fit(X, y, (y == 1).astype(float))
    with pytest.raises(ValueError, match="zero or negative weights"):
        SVR().fit(X, y, np.zeros(20))


@pytest.mark.parametrize("C", [1e-300, 1e-20, 1e6, 1e12, 1e300])
def test_extreme_prices_are_solved_or_said_to_be_short(C):
    X, y = labelled(40)
    model = SVC(C=C, gamma=1.0).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.verify(X, y)


def test_an_infinite_price_is_the_hard_margin():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0], [3.0, 1.0]])
    y = [0, 0, 1, 1]
    model = SVC(kernel="linear", C=np.inf).fit(X, y)
    assert_allclose(model.coef_, [[1.0, 1.0]], atol=1e-8)
    assert_allclose(model.decision_function(X)[1:3], [-1.0, 1.0], atol=1e-8)
    assert model.verify(X, y)
    assert model.certificate_.objective == pytest.approx(1.0, rel=1e-11)
    assert model.certificate_.gap <= 1e-11


def test_contradictory_rows_are_all_at_the_price():
    X, y = np.zeros((6, 2)), [0, 1, 0, 1, 0, 1]
    model = SVC(C=2.0).fit(X, y)
    assert model.verify(X, y)
    assert_allclose(model.certificate_.objective, 2.0 * 6, rtol=1e-9)


def test_duplicated_rows_keep_the_optimum():
    X, y = labelled(30)
    twice = SVC(gamma=0.5, C=0.5).fit(np.vstack([X, X]), np.tile(y, 2))
    once = SVC(gamma=0.5, C=1.0).fit(X, y)
    assert_allclose(twice.decision_function(X), once.decision_function(X), atol=1e-7)
    assert twice.verify(np.vstack([X, X]), np.tile(y, 2))


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_wild_scales_are_the_same_problem(scale):
    X, y = labelled(40)
    model, plain = SVC().fit(X * scale, y), SVC().fit(X, y)
    assert_allclose(model.decision_function(X * scale), plain.decision_function(X), atol=1e-6)
    assert model.verify(X * scale, y)


def test_rows_far_from_the_origin_keep_their_distances():
    X, y = labelled(40)
    far = np.round(X, 3) + 2.0**40
    model = SVC(gamma=0.5).fit(far, y)
    assert model.verify(far, y)
    distances = ((far[:, None] - far[None]) ** 2).sum(axis=2)
    b = np.zeros(40)
    b[model.support_] = model.dual_coef_[0]
    expected = np.exp(-0.5 * distances) @ b + model.intercept_[0]
    assert_allclose(model.decision_function(far), expected, atol=1e-9)


def test_a_constant_target_needs_no_function():
    X, _ = smooth(20)
    model = SVR().fit(X, np.full(20, 3.0))
    assert_allclose(model.predict(X), 3.0, atol=0.1 + 1e-9)
    assert len(model.support_) == 0
    assert model.verify(X, np.full(20, 3.0))
    assert_allclose(model.certificate_.objective, 0.0, atol=1e-12)


def test_a_matrix_that_is_not_square_is_an_error():
    with pytest.raises(ValueError, match="square"):
        SVC(kernel="precomputed").fit(np.ones((4, 3)), [0, 1, 0, 1])
    with pytest.raises(TypeError, match="Sparse precomputed"):
        SVC(kernel="precomputed").fit(sp.eye(4).tocsr(), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="must return one of shape"):
        SVC(kernel=lambda A, B: np.ones((len(A), 1))).fit(np.ones((4, 3)), [0, 1, 0, 1])


def test_an_indefinite_matrix_is_said_not_crashed():
    g = np.random.default_rng(0)
    K = g.standard_normal((30, 30))
    K = K + K.T
    y = g.integers(2, size=30)
    model = SVC(kernel="precomputed").fit(K, y)
    assert model.certificate_.kind == "kernel stationarity"
    assert model.verify(K, y)
    assert "local" in str(model.certificate_)


def test_an_infeasible_share_says_which_is_feasible():
    X, y = labelled(30)
    y[:] = 0
    y[:3] = 1
    with pytest.raises(ValueError, match="specified nu is infeasible.*Lower nu to 0.2"):
        NuSVC(nu=0.9).fit(X, y)
    assert NuSVC(nu=0.2).fit(X, y).verify(X, y)


def test_a_limit_on_steps_warns_with_the_violation():
    from sklearn.exceptions import ConvergenceWarning

    X, y = labelled(60)
    with pytest.warns(ConvergenceWarning, match="violation"):
        model = SVC(max_iter=2).fit(X, y)
    assert model.fit_status_ == 1
    assert model.n_iter_[0] == 2
    assert model.verify(X, y)
    assert model.certificate_.gap > 0.1


def test_every_row_supports_where_the_share_is_one():
    X, _ = smooth(20)
    model = OneClassSVM(nu=1.0).fit(X)
    assert len(model.support_) == 20
    assert model.verify(X)


def test_the_textbook_has_one_threshold():
    X, y = labelled(20)
    with pytest.raises(ValueError, match="one threshold"):
        NuSVC(solver="textbook_smo", nu=0.2).fit(X, y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_an_error(bad):
    X, y = labelled(20)
    X[3, 1] = bad
    with pytest.raises(ValueError, match="NaN|infinity"):
        SVC().fit(X, y)
    with pytest.raises(ValueError, match="NaN or infinity"):
        SVC().fit(np.ones((20, 2)), y, np.full(20, bad))


@pytest.mark.parametrize("machine", [SVC(), SVR(), NuSVC(nu=0.3), OneClassSVM()], ids=str)
def test_hardly_any_memory_takes_longer_and_gives_the_same_answer(machine):
    X, y = labelled(60)
    plenty = clone(machine).fit(X, y).certificate_
    scarce = clone(machine).set_params(cache_size=1e-9).fit(X, y)
    assert scarce.fit_status_ == 0
    assert scarce.verify(X, y)
    excess = scarce.certificate_.objective - plenty.objective
    assert -plenty.gap <= excess <= scarce.certificate_.gap <= 1e-2


@pytest.mark.parametrize("machine", [SVC, SVR])
def test_two_values_for_one_pair_of_rows_are_said(machine):
    X, y = labelled(20)
    K = X @ X.T
    K[3, 7] += 1.0
    says = r"not symmetric: k\(x_3, x_7\) is .* \(K \+ K.T\) / 2"
    with pytest.raises(ValueError, match=says):
        machine(kernel="precomputed").fit(K, y)
    with pytest.raises(ValueError, match=says):
        machine(kernel=lambda a, b: K).fit(X, y)


def test_a_kernel_function_that_gives_nan_is_said():
    X, y = labelled(20)
    with pytest.raises(ValueError, match="kernel matrix contains NaN or infinity"):
        SVC(kernel=lambda a, b: np.full((len(a), len(b)), np.nan)).fit(X, y)


@pytest.mark.parametrize("machine", [SVC(), SVR(), NuSVC(), OneClassSVM()], ids=str)
def test_long_steps_between_portions_lead_to_the_same_answer(machine, monkeypatch):
    from trueline.solvers.smo import engine

    X, y = labelled(200)
    at_once = clone(machine).fit(X, y)
    monkeypatch.setattr(engine, "_PORTION", 0)
    monkeypatch.setattr(engine, "_LEAST_PORTION", 7)
    portions = clone(machine).fit(X, y)
    assert portions.fit_status_ == 0
    assert_allclose(portions.dual_coef_, at_once.dual_coef_, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("model", [SVC(), NuSVC(), SVR(), OneClassSVM()], ids=str)
def test_places_of_64_bits_are_taken_like_those_of_32(model, container):
    X, y = labelled(30)
    short, long = container(X), container(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    fitted = clone(model).fit(long, y)
    assert fitted.verify(long, y)
    assert long.indices.dtype == np.int64  # the caller's matrix is as it was
    np.testing.assert_array_equal(fitted.predict(long), clone(model).fit(short, y).predict(short))
