"""The group lasso against independent references: proximal gradients, the lasso, least squares."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.utils.estimator_checks import parametrize_with_checks

from trueline import GroupLasso, Lasso, LinearRegressor, MultiTaskLasso
from trueline.penalties import Group, MultiTask

SHAPES = {"tall": (120, 12), "wide": (30, 60)}


def data(shape="tall", seed=0):
    n, d = SHAPES[shape]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.5, 2.0, d) + rng.standard_normal(d)
    X[rng.random((n, d)) > 0.8] = 0.0
    w = np.zeros(d)
    w[:6] = [3.0, -2.0, 1.0, 0.5, -0.25, 2.0]
    return X, X @ w + 1.5 + 0.3 * rng.standard_normal(n), rng.integers(0, 3, n).astype(float)


def proximal_gradient(X, y, groups, alpha, weights, l2=0.0, s=None, intercept=True):
    """Plain proximal gradient steps with momentum, written from the definition."""
    s = np.ones(len(y)) if s is None else s
    s = s / s.sum()
    if intercept:
        x_mean, y_mean = s @ X, s @ y
    else:
        x_mean, y_mean = np.zeros(X.shape[1]), 0.0
    Xc, yc = X - x_mean, y - y_mean
    H, c = Xc.T @ (s[:, None] * Xc) + l2 * np.eye(X.shape[1]), Xc.T @ (s * yc)
    step = 1 / np.linalg.eigvalsh(H)[-1]
    w = v = np.zeros(X.shape[1])
    t = 1.0
    for _ in range(20_000):
        z = v - step * (H @ v - c)
        norms = np.sqrt(np.bincount(groups, z**2)) + 1e-300
        new = z * np.maximum(1 - step * alpha * weights / norms, 0.0)[groups]
        if (v - new) @ (new - w) > 0:  # momentum points uphill
            t = 1.0
        following = (1 + np.sqrt(1 + 4 * t * t)) / 2
        change = np.abs(new - w).max()
        v, w, t = new + (t - 1) / following * (new - w), new, following
        if change <= 1e-15:
            break
    return w, y_mean - x_mean @ w


CASES = {
    "pairs": (np.repeat(np.arange(6), 2), None, 0.0),
    "unequal": (np.array([0, 0, 0, 1, 2, 2, 2, 2, 3, 3, 0, 1]), None, 0.0),
    "weights": (np.repeat(np.arange(4), 3), np.array([0.5, 2.0, 1.0, 3.0]), 0.0),
    "a group without a penalty": (np.repeat(np.arange(4), 3), np.array([1.0, 0.0, 1.0, 1.0]), 0.0),
    "ridge": (np.repeat(np.arange(4), 3), None, 0.2),
    "one group": (np.zeros(12, dtype=int), None, 0.0),
}


@pytest.mark.grid(2)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_answer_is_that_of_proximal_gradients(case, shape, weighted, intercept):
    X, y, s = data(shape)
    groups, factors, l2 = CASES[case]
    repeats = X.shape[1] // 12
    groups = np.concatenate([groups + i * (groups.max() + 1) for i in range(repeats)])
    factors = None if factors is None else np.tile(factors, repeats)
    weights = s if weighted else None
    model = GroupLasso(0.1, groups, weights=factors, l2=l2, fit_intercept=intercept)
    model.fit(X, y, weights)
    explicit = np.sqrt(np.bincount(groups)) if factors is None else factors
    w, b = proximal_gradient(X, y, groups, 0.1, explicit, l2, weights, intercept)
    np.testing.assert_allclose(model.coef_, w, atol=2e-6)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-5)
    assert model.verify(X, y, weights), str(model.verify(X, y, weights))
    assert model.certificate_.gap <= 1e-7 * model.certificate_.objective


def test_the_smooth_part_of_the_answer_is_a_minimum_for_scipy():
    X, y, _ = data()
    groups = np.repeat(np.arange(4), 3)
    model = GroupLasso(0.3, groups).fit(X, y)
    used = np.flatnonzero(model.coef_)

    def objective(parameters):
        w, b = parameters[:-1], parameters[-1]
        norms = [np.linalg.norm(w[groups[used] == g]) for g in np.unique(groups[used])]
        return 0.5 * np.mean((y - X[:, used] @ w - b) ** 2) + 0.3 * np.sqrt(3) * np.sum(norms)

    at = np.append(model.coef_[used], model.intercept_)
    found = minimize(objective, at + 0.1, method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(objective(at), found.fun, rtol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_groups_of_one_column_are_the_lasso(shape):
    X, y, s = data(shape)
    np.testing.assert_allclose(
        GroupLasso(0.1).fit(X, y, s).coef_, Lasso(0.1).fit(X, y, s).coef_, atol=1e-8
    )


def test_without_any_penalty_the_answer_is_least_squares():
    X, y, _ = data()
    model = GroupLasso(1.0, 6, weights=[0.0, 0.0]).fit(X, y)
    design = np.column_stack([X, np.ones(len(X))])
    expected = np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), expected, rtol=1e-9)
    assert model.verify(X, y)


@pytest.mark.parametrize("form", [np.asfortranarray, sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_every_form_of_data_gives_the_same_answer(form):
    X, y, s = data("wide")
    model = GroupLasso(0.1, 5).fit(form(X), y, s)
    np.testing.assert_allclose(model.coef_, GroupLasso(0.1, 5).fit(X, y, s).coef_, atol=1e-9)
    assert model.verify(form(X), y, s)


def test_groups_may_be_labels_lists_or_a_size():
    X, y, _ = data()
    expected = GroupLasso(0.2, np.repeat(np.arange(4), 3)).fit(X, y).coef_
    lists = [[0, 1, 2], [3, 4, 5], [6, 7, 8], (9, 10, 11)]
    for groups in (3, list("aaabbbcccddd"), lists, np.repeat([7.5, 8.5, 9.5, 11.0], 3)):
        np.testing.assert_array_equal(GroupLasso(0.2, groups).fit(X, y).coef_, expected)


def test_a_group_is_used_as_a_whole_and_named():
    X, y, _ = data()
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    names = ["size"] * 6 + ["place"] * 3 + ["time"] * 3
    model = GroupLasso(0.5, names).fit(frame, y)
    assert model.group_names_ == ["place", "size", "time"]
    assert model.active_groups_ == ["size"]
    assert (model.coef_[:6] != 0).all()
    assert model.feature_names_in_[0] == "c0"


def test_several_targets_are_fitted_one_by_one():
    X, y, s = data("wide")
    Y = np.column_stack([y, np.cos(y), -y])
    model = GroupLasso(0.1, 5).fit(X, Y, s)
    for t in range(3):
        alone = GroupLasso(0.1, 5).fit(X, Y[:, t], s)
        np.testing.assert_allclose(model.coef_[t], alone.coef_, atol=1e-9)
    assert model.verify(X, Y, s)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_any_small_problem_is_solved_and_proven(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 30)), int(rng.integers(1, 15))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-2, 3, d)
    X[:, rng.random(d) < 0.2] = 1.0
    y = rng.standard_normal(n) + 3
    groups = np.unique(rng.integers(0, 4, d), return_inverse=True)[1]
    model = GroupLasso(10.0 ** rng.uniform(-3, 0), groups, l2=float(rng.choice([0.0, 0.1])))
    model.fit(X, y)
    assert model.verify(X, y), str(model.verify(X, y))
    assert model.certificate_.gap <= 1e-6 * 0.5 * ((y - y.mean()) ** 2).sum()


def test_a_warm_start_ends_at_the_same_point():
    X, y, _ = data("wide")
    cold = GroupLasso(0.05, 5).fit(X, y)
    warm = GroupLasso(0.2, 5, warm_start=True).fit(X, y).set_params(alpha=0.05).fit(X, y)
    np.testing.assert_allclose(warm.coef_, cold.coef_, atol=1e-7)


def test_the_trace_ends_with_the_proven_gap():
    X, y, _ = data("wide")
    model = GroupLasso(0.05, 5, trace=True).fit(X, y)
    assert model.trace_["gap"][-1] == model.certificate_.gap


def test_other_solvers_and_losses_take_the_penalty_too():
    X, y, _ = data()
    penalty = Group(0.2 * len(y), np.repeat(np.arange(4), 3))
    expected = GroupLasso(0.2, 3).fit(X, y).coef_
    for solver in ("block_descent", "proximal_gradient"):
        model = LinearRegressor(penalty=penalty, solver=solver, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(model.coef_, expected, atol=1e-4)
    robust = LinearRegressor(loss="huber", penalty=penalty).fit(X, y)
    assert robust.verify(X, y)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0, 1], "one label for each of the 12 columns"),
        (5, "do not divide the 12 columns"),
        ([[0, 1], [1, 2]], "already in a group"),
        ([[0, 12]], "does not have"),
        ([[0, 1, 2]], "9 columns of X are in no group"),
        ([[0, 0]], "already in a group"),
        ([np.nan] * 12, "NaN or infinity"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups, message):
    X, y, _ = data()
    with pytest.raises(ValueError, match=message):
        GroupLasso(groups=groups).fit(X, y)


@pytest.mark.parametrize("weights", [[1.0], [-1.0, 1.0, 1.0, 1.0], [np.nan] * 4])
def test_weights_that_make_no_sense_are_refused(weights):
    X, y, _ = data()
    with pytest.raises(ValueError, match="weights must"):
        GroupLasso(groups=3, weights=weights).fit(X, y)


@pytest.mark.slow  # others of the same base are in the fast run
@parametrize_with_checks([GroupLasso(), GroupLasso(l2=0.1, fit_intercept=False)])
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("targets", [1, 2])
def test_a_target_of_zeros_is_proven(targets):
    X, y = np.random.default_rng(0).standard_normal((60, 4)), np.zeros((60, targets))
    for model in (GroupLasso(), MultiTaskLasso()):
        model.fit(X, y)
        assert not model.coef_.any()
        assert model.verify(X, y)


@pytest.mark.filterwarnings("ignore:.*stopped short")
def test_what_is_proven_of_a_strength_of_nearly_nothing_holds():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 4)), rng.standard_normal((60, 2))
    assert MultiTaskLasso(alpha=1e-300).fit(X, Y).verify(X, Y)


@pytest.mark.parametrize("penalty", [Group(1.0, np.array([0, 0, 1, 1])), MultiTask(1.0)])
def test_errors_along_a_block_add_up_to_the_norm_of_any_error(penalty):
    rng = np.random.default_rng(0)
    V, E = rng.standard_normal((4, 2)), rng.uniform(size=(4, 2))
    norm = penalty.value  # the sum of the norms: weights of two columns are the same for both
    assert norm(np.abs(V) + penalty.along(V, E)) == pytest.approx(norm(V) + norm(E), rel=1e-14)


@pytest.mark.parametrize("n", [30, 300])
def test_proofs_from_moments_hold_where_the_columns_of_a_block_round_differently(n):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 6)) * np.array([1.0, 1e-2, 1e2, 1.0, 1e2, 1e-1])
    y = X @ np.array([1.0, 50.0, 0.02, 0.5, 0.01, 1.0]) + rng.standard_normal(n)
    model = GroupLasso(1e-3, 3).fit(X, y)
    assert model.verify(X, y)
    assert "moments" in str(model.explain())
    assert model.certificate_.gap <= 1e-6 * 0.5 * ((y - y.mean()) ** 2).sum()


@pytest.mark.filterwarnings("ignore:.*stopped short")
def test_near_copies_far_from_zero_whose_products_are_not_definite_by_rounding():
    X = np.array(
        [
            [
                -999999.8843186316,
                -1000000.0123968832,
                2000000.0164045214,
                333333.2947728772,
                2000000.0247937664,
                2000017.0089628764,
                1000000.0123968832,
            ],
            [
                -1000000.7766181307,
                -999999.9965282653,
                2000000.0011037241,
                333333.59220604354,
                1999999.9930565306,
                2000009.369747777,
                999999.9965282653,
            ],
        ]
    )
    Y = np.array(
        [
            [99000.00113383272, 98979.17759548913, 99001.08951257638],
            [99000.00039970705, 98998.58224705012, 99000.14821816096],
        ]
    )
    model = GroupLasso(251.52751008247677, [1, 3, 0, 2, 2, 2, 0], weights=[0.0, 1000.0, 1e-09, 1.0])
    assert model.fit(sp.csr_array(X), Y).verify(sp.csr_array(X), Y)
