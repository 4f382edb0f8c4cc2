"""Newton and proximal Newton: the optimum of losses that bend, proven, on data of any kind."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from trueline import LinearRegressor, LogisticRegression
from trueline.certificates import verify
from trueline.design import as_design
from trueline.losses import Huber, Poisson, Squared, SquaredEpsilonInsensitive, SquaredHinge
from trueline.penalties import L1, L2, Bounded, ElasticNet, NonNegative, NoPenalty
from trueline.planner import make_plan
from trueline.problem import Problem
from trueline.solvers.base import Monitor, Options
from trueline.solvers.iterative import minimise_along
from trueline.solvers.newton.dense import descent
from trueline.solvers.newton.dense.rows import FollowingGram, StandardRows
from trueline.solvers.registry import SOLVERS
from trueline.trace import Trace

LOSSES = [Huber(1.35), Huber(0.1), SquaredEpsilonInsensitive(0.5), Squared()]
QUADRATIC = [NoPenalty(), L2(3.0)]
COORDINATES = [
    L1(5.0),
    ElasticNet(20.0, 0.5),
    NonNegative(L1(5.0)),
    Bounded(L1(1.0), lower=-0.2, upper=0.4),
]


def table(n=300, d=7, seed=0, outliers=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 20, d) + rng.normal(size=d)
    y = X @ (rng.normal(size=d) * (np.arange(d) % 2)) + rng.normal(size=n) + 2
    y[rng.random(n) < outliers] += 30 * rng.standard_cauchy()
    return X, y


def problem_of(X, y, loss, penalty, fit_intercept=True, weights=None):
    return Problem(as_design(X), np.asarray(y)[:, None], loss, penalty, fit_intercept, weights)


def solve(problem, name, **options):
    return SOLVERS[name].solve(problem, Options(**options), Monitor(Trace()))


def fitted(X, y, loss, penalty, name="newton", weights=None, fit_intercept=True):
    solution = solve(problem_of(X, y, loss, penalty, fit_intercept, weights), name)
    check = verify(solution.certificate, X, y, weights)
    assert check, str(check)
    return solution


def size_of(solution):
    return solution.certificate.gap / solution.certificate.objective


# --- the optimum ----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("penalty", QUADRATIC, ids=repr)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_newton_agrees_with_a_general_minimiser(loss, penalty, fit_intercept):
    X, y = table()
    solution = fitted(X, y, loss, penalty, fit_intercept=fit_intercept)
    problem = problem_of(X, y, loss, penalty, fit_intercept)
    scale = X.std(axis=0)

    def value(v):
        return problem.objective((v[:-1] / scale)[:, None], v[-1:] * fit_intercept)

    def slope(v):
        gw, gb, _ = problem.loss_gradient((v[:-1] / scale)[:, None], v[-1:] * fit_intercept)
        gw = (gw + penalty.curvature * (v[:-1] / scale)[:, None])[:, 0] / scale
        return np.append(gw, gb * fit_intercept)

    start = np.append(solution.coef[:, 0] * scale * 0.9, 0.0)
    found = scipy.optimize.minimize(value, start, jac=slope, method="BFGS", options={"gtol": 1e-9})
    assert solution.certificate.objective <= found.fun + 1e-9 * abs(found.fun)
    assert_allclose(solution.coef[:, 0], found.x[:-1] / scale, rtol=1e-4, atol=1e-5)
    assert size_of(solution) <= 1e-9


@pytest.mark.grid(1)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("penalty", COORDINATES, ids=repr)
def test_proximal_newton_agrees_with_proximal_gradient(loss, penalty):
    X, y = table(seed=1)
    solution = fitted(X, y, loss, penalty, "proximal_newton")
    reference = solve(
        problem_of(X, y, loss, penalty), "proximal_gradient", tol=1e-10, max_iter=100_000
    )
    lower = reference.certificate.objective
    assert solution.certificate.objective <= lower * (1 + 1e-12)
    assert_allclose(solution.coef, reference.coef, rtol=1e-4, atol=1e-5)
    assert size_of(solution) <= 1e-7


@pytest.mark.grid(2)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("loss", [Huber(0.1), SquaredEpsilonInsensitive(0.5), Squared()], ids=repr)
def test_more_columns_than_rows_are_fitted_in_the_span_of_the_rows(loss, targets, fit_intercept):
    X, _ = table(n=15, d=40)
    Y = np.stack([table(n=15, d=40, seed=seed)[1] for seed in range(targets)], axis=1)
    weights = np.random.default_rng(1).uniform(0.5, 2, 15)
    problem = Problem(as_design(X), Y, loss, L2(3.0), fit_intercept, weights)
    seen = []
    monitor = Monitor(callbacks=[lambda event: seen.append(event.coef.shape)])
    found = SOLVERS["newton"].solve(problem, Options(tol=1e-10), monitor)
    assert "span of the rows" in found.notes[-1]
    assert set(seen) == {(40, 1)}
    assert found.certificate.gap <= 1e-9 * found.certificate.objective
    assert verify(found.certificate, X, Y, weights)
    # The columns without the rows' span bring nothing: the gradient vanishes in all of them.
    u = weights[:, None] * loss.gradient(Y, X @ found.coef + found.intercept)
    assert_allclose(X.T @ u, -3.0 * found.coef, atol=1e-6 * np.abs(X.T @ Y).max())


def test_zeros_are_exact():
    X, y = table(d=20, seed=2)
    coef = fitted(X, y, Huber(), L1(200.0), "proximal_newton").coef
    assert 0 < np.count_nonzero(coef) < 15


@pytest.mark.parametrize(("name", "penalty"), [("newton", L2(1.0)), ("proximal_newton", L1(3.0))])
def test_several_targets_are_fitted_as_if_alone(name, penalty):
    X, y = table()
    Y = np.stack([y, y[::-1]], axis=1)
    problem = Problem(as_design(X), Y, Huber(), penalty)
    together = solve(problem, name)
    assert verify(together.certificate, X, Y)
    for t in range(2):
        assert_allclose(together.coef[:, [t]], fitted(X, Y[:, t], Huber(), penalty, name).coef)


@pytest.mark.parametrize(("name", "penalty"), [("newton", L2(1.0)), ("proximal_newton", L1(3.0))])
def test_weight_two_is_a_row_twice(name, penalty):
    X, y = table()
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    repeat = weights.astype(int)
    weighted = fitted(X, y, Huber(), penalty, name, weights)
    repeated = fitted(np.repeat(X, repeat, axis=0), np.repeat(y, repeat), Huber(), penalty, name)
    assert_allclose(weighted.coef, repeated.coef, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "penalty"), [("newton", NoPenalty()), ("proximal_newton", L1(3.0))]
)
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
def test_sparse_is_dense(name, penalty, form):
    X, y = table()
    X = np.where(np.abs(X) > 3, X, 0.0)
    dense = fitted(X, y, Huber(), penalty, name)
    assert_allclose(fitted(form(X), y, Huber(), penalty, name).coef, dense.coef, atol=1e-8)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 40),
    d=st.integers(1, 6),
    delta=st.sampled_from([1e-3, 0.3, 1.35, 50.0]),
    alpha=st.sampled_from([0.0, 0.1, 10.0]),
)
def test_every_answer_is_proven(seed, n, d, delta, alpha):
    """Tables of small integers: ties, copies, constant columns and exact fits are common."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, d)).astype(float)
    y = rng.integers(-3, 4, n).astype(float)
    penalty = L2(alpha) if alpha else NoPenalty()
    problem = problem_of(X, y, Huber(delta), penalty)
    solution = solve(problem, "newton")
    assert verify(solution.certificate, X, y)
    size = float(problem.loss.value(problem.target, 0 * problem.target).sum())
    assert solution.certificate.gap <= 1e-6 * (solution.certificate.objective + size) + 1e-12


# --- hostile data ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "alpha"), [("newton", 0.0), ("proximal_newton", 1e-3)])
def test_milliseconds_since_1970(name, alpha):
    """The same slope as in minutes since the first row."""
    minutes = np.arange(500.0)
    milliseconds = 1.7e12 + 60_000 * minutes
    y = 120 * minutes + np.random.default_rng(0).normal(size=500)
    penalty, same = (L1(alpha), L1(alpha / 60_000)) if alpha else (NoPenalty(), NoPenalty())
    solution = fitted(milliseconds[:, None], y, Huber(), penalty, name)
    near = fitted(minutes[:, None], y, Huber(), same, name)
    assert_allclose(solution.coef * 60_000, near.coef, rtol=1e-10)
    assert solution.status.is_final


@pytest.mark.parametrize("factor", [1e-6, 1e3, 1e6])
@pytest.mark.parametrize("penalty", QUADRATIC, ids=repr)
def test_thresholds_far_from_the_size_of_the_residuals(factor, penalty):
    X, y = table(n=400, d=5)
    solution = fitted(X, y * factor, Huber(), penalty)
    assert solution.status.is_final
    assert solution.certificate.relative_gap <= 1e-4


@pytest.mark.parametrize("penalty", QUADRATIC, ids=repr)
def test_data_that_leave_no_room(penalty):
    X, y = table(n=60, d=4)
    exact = X @ np.ones(4)
    cases = {
        "perfect fit": (X, exact),
        "constant target": (X, np.full(60, 3.0)),
        "copied column": (np.c_[X, X[:, 0]], y),
        "constant column": (np.c_[X, np.full(60, 5.0)], y),
        "more columns than rows": (X[:3], y[:3]),
        "one row": (X[:1], y[:1]),
        "rows many times": (np.repeat(X[:6], 10, axis=0), np.repeat(y[:6], 10)),
        "only zeros": (np.zeros((10, 2)), y[:10]),
        "far out in X": (np.r_[X, 1e6 * X[:2]], np.r_[y, y[:2]]),
    }
    for case, (A, b) in cases.items():
        solution = fitted(A, b, Huber(), penalty)
        assert solution.status.is_final or solution.certificate.relative_gap < 1e-3, case


def test_infinite_data_are_an_error():
    X, y = table(n=50)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LinearRegressor(loss="huber").fit(X, y)


def test_columns_of_any_size_and_targets_of_a_size_that_thresholds_make_sense_for():
    X, y = table(n=60, d=2)
    model = LinearRegressor(loss="huber", penalty=None).fit(X, y)
    huge = LinearRegressor(loss="huber", penalty=None).fit(X * np.array([1e150, 1e-150]), y)
    assert_allclose(huge.coef_ * [1e150, 1e-150], model.coef_, rtol=1e-8)
    with pytest.raises(ValueError, match="units of the target"):
        LinearRegressor(loss="huber", penalty=None).fit(X, y * 1e150)


# --- the proof ------------------------------------------------------------------------------------


def test_the_proof_by_curvature_needs_no_radius_and_rejects_tampering():
    X, y = table()
    certificate = fitted(X, y, Huber(), NoPenalty()).certificate
    assert certificate.kind == "curvature"
    assert certificate.relative_gap < 1e-15
    moved = certificate.coef + 1e-3
    witness = certificate.witness
    wrong = {
        "coefficients": replace(certificate, coef=moved),
        "intercept": replace(certificate, intercept=certificate.intercept + 1e-3),
        "gap": replace(certificate, gap=0.0),
        "objective": replace(certificate, objective=certificate.objective * (1 - 1e-9)),
        "reach": replace(certificate, witness={**witness, "reach": 0 * witness["reach"]}),
        "basis": replace(certificate, witness={**witness, "diagonal": -witness["diagonal"]}),
        "shape": replace(certificate, witness={**witness, "diagonal": witness["diagonal"][:-1]}),
        "far reach": replace(certificate, witness={**witness, "reach": witness["reach"] + 1e6}),
    }
    for what, claim in wrong.items():
        assert not verify(claim, X, y), what
    assert not verify(certificate, X, y + 1e-3)


def test_single_precision_is_proven_by_curvature_too():
    X, y = table()
    model = LinearRegressor(loss="huber", penalty=None).fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float32
    assert model.verify(X.astype(np.float32), y)
    assert model.certificate_.relative_gap < 1e-6


@pytest.mark.parametrize("loss", [Huber(0.7), Squared(), SquaredEpsilonInsensitive(0.4)], ids=repr)
def test_least_curvature_is_least(loss):
    y = np.zeros(200)
    z = np.linspace(-3, 3, 200)
    for reach in (0.0, 0.05, 0.5):
        steps = np.linspace(-reach, reach, 51)[:, None]
        least = loss.curvature(y, z + steps).min(axis=0)
        assert (loss.least_curvature(y, z, np.full(200, reach)) <= least).all()


# --- its parts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_standard_rows_are_the_rows(far, fit_intercept):
    X, _y = table(n=50, d=4)
    X = X + 1e6 if far else X
    X = np.c_[X, np.full(50, 2.0)] if fit_intercept else X
    s = np.random.default_rng(0).uniform(0.5, 2, 50)
    design = as_design(X)
    rows = StandardRows.of(design, s, fit_intercept)
    A = rows.gather(slice(None))
    assert rows.count == A.shape[1] == 4 + fit_intercept
    assert_allclose(rows.gram, A.T @ (s[:, None] * A), atol=1e-6)
    h = np.random.default_rng(1).uniform(0, 1, 50)
    some = np.arange(0, 50, 3)
    assert_allclose(rows.gram_of(h), A.T @ (h[:, None] * A), rtol=1e-7, atol=1e-6)
    part = A[some]
    assert_allclose(rows.gram_of(h[some], some), part.T @ (h[some, None] * part), atol=1e-6)
    v = np.random.default_rng(2).normal(size=rows.count)
    assert_allclose(rows.scores(v), A @ v, atol=1e-6)
    assert_allclose(rows.total(h), A.T @ h, atol=1e-6)
    w, b = rows.coefficients(v)
    assert_allclose(rows.standard(w, b), v, atol=1e-6)


def test_the_gram_matrix_follows_its_weights():
    X, _y = table(n=200, d=4)
    design = as_design(X)
    rows = StandardRows.of(design, None, True)
    A, gram = rows.gather(slice(None)), FollowingGram(rows, 1.0)
    rng = np.random.default_rng(0)
    for share in (0.9, 0.85, 0.2, 0.21, 1.0, 0.02):
        h = (rng.random(200) < share).astype(float)
        assert_allclose(gram.follow(h), A.T @ (h[:, None] * A), rtol=1e-9, atol=1e-9)
    assert gram.formed > 0
    assert gram.updated > 0


@given(
    root=st.floats(1e-3, 1e3),
    curvature=st.floats(1e-3, 1e3),
    kink=st.floats(0.1, 10),
    limit=st.sampled_from([np.inf, 1.0, 0.5]),
)
def test_minimise_along_finds_the_root_of_the_slope(root, curvature, kink, limit):
    def slope(t):
        steep = curvature * (1 + 9 * (t > kink))
        return curvature * (min(t, kink) - root) + 10 * curvature * max(t - kink, 0.0), steep

    first = -curvature * root
    t = minimise_along(slope, first, limit)
    assert 0 < t <= limit
    assert abs(slope(t)[0]) <= 0.05 * abs(first) or (t == limit and slope(t)[0] < 0)


@pytest.mark.parametrize("steepness", [1.0, 30.0, 300.0, 1e5])
def test_minimise_along_comes_back_from_the_steep_side_of_an_exponential(steepness):
    """exp(c t) - c t / 2 + ...: at t = 1 slope and curvature overflow, or nearly so."""

    def slope(t):
        with np.errstate(over="ignore"):
            rise = steepness * np.exp(steepness * t)
        return rise - 3 * steepness, steepness * rise

    with np.errstate(all="ignore"):  # as in every fit
        t = minimise_along(slope, slope(0.0)[0])
    assert_allclose(t, np.log(3.0) / steepness, rtol=0.06)


# --- the planner ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("penalty", "chosen"),
    [
        (NoPenalty(), "newton"),
        (L2(1.0), "newton"),
        (L1(1.0), "proximal_newton"),
        (ElasticNet(1.0), "proximal_newton"),
        (NonNegative(L1(1.0)), "proximal_newton"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("shape", [(30, 3), (5000, 50)])
def test_huber_is_fitted_by_newton(penalty, chosen, shape):
    problem = problem_of(np.ones(shape), np.ones(shape[0]), Huber(), penalty)
    assert make_plan(problem).chosen == chosen


def test_wide_sparse_data_are_left_to_first_order_methods():
    X = sp.random_array((500, 5000), density=0.01, format="csr", rng=np.random.default_rng(0))
    for penalty in (L2(1.0), L1(1.0)):
        assert make_plan(problem_of(X, np.ones(500), Huber(), penalty)).chosen == (
            "proximal_gradient"
        )


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
def test_small_absolute_penalties_are_proven_beside_large_targets(alpha):
    """House prices: residuals of 1e5, a threshold of 1.35, and penalties lost among them."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(500, 10))
    X[:, 0] *= 1000
    y = 2e5 + 1e5 * draw.standard_t(3, 500) + X[:, 0] * 100 + X[:, 1] * 2e4
    model = LinearRegressor(loss="huber", penalty="l1", alpha=alpha).fit(X, y)
    assert model.certificate_.relative_gap < 1e-6
    assert model.verify(X, y)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.0])
def test_few_digits_take_few_steps_and_are_proven(fit_intercept, l1_ratio):
    random = np.random.default_rng(0)
    X = random.standard_normal((3000, 12)) * np.geomspace(0.1, 10, 12) + 0.2
    y = X @ (random.standard_normal(12) / np.geomspace(0.1, 10, 12)) > random.logistic(size=3000)
    model = LogisticRegression(l1_ratio=l1_ratio, C=0.05, fit_intercept=fit_intercept, tol=1e-7)
    name = "newton" if l1_ratio == 0 else "proximal_newton"
    best = model.fit(X, y).certificate_.objective
    steps = model.n_iter_[0]
    for tol in (0.3, 0.03, 0.003):
        model.set_params(tol=tol).fit(X, y)
        certificate = model.certificate_
        assert model.solver_ == name
        assert model.n_iter_[0] <= steps
        assert certificate.objective - best <= certificate.gap * (1 + 1e-6)
        assert certificate.gap <= tol**2 * 3000 * np.log(2)
        assert model.verify(X, y)


def test_nothing_is_searched_among_slopes_of_rounding(monkeypatch):
    """Of columns that say nothing of the target the constant is the answer, up to rounding."""
    looks, along = [], descent.derivatives_along
    monkeypatch.setattr(
        descent, "derivatives_along", lambda *given: looks.append(0) or along(*given)
    )
    rng = np.random.default_rng(0)
    counts = rng.uniform(0.1, 9.0, 40)
    signs = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    X, y = np.repeat(signs, 40, axis=0) * [0.1, 0.7] + [0.3, 0.2], np.tile(counts, 4)
    solution = fitted(X, y, Poisson(), L2(1.0))
    assert_allclose(solution.coef, 0.0, atol=1e-15)
    assert_allclose(solution.intercept, np.log(y.mean()), rtol=1e-14)
    assert len(looks) <= 10


def test_many_classes_on_a_small_table_take_compiled_steps():
    """One class after the other is faster than conjugate gradients for all of them."""
    rng = np.random.default_rng(0)
    labels = np.where(np.eye(12)[np.arange(360) % 12] > 0, 1.0, -1.0)
    problem = Problem(as_design(rng.normal(size=(360, 12))), labels, SquaredHinge(), L2(1.0))
    assert make_plan(problem).chosen == "newton"
