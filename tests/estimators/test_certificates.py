"""A wrong claim is a bug of the worst kind.

Claims are compared with the optimum in rational arithmetic, on data of every kind of nastiness:

    claimed gap                >=  objective at the coefficients - optimum        always
    abs(claimed objective - objective)  <=  claimed rounding                      always
    verify accepts             every certificate of a fit
    verify accepts             no certificate that claims less than the truth
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rational import Quadratic

from trueline import LinearRegression, LinearRegressor, PolynomialRegression, Ridge, RidgeCV
from trueline.certificates import Certificate
from trueline.penalties import L2, NonNegative, NoPenalty

# --- data ---------------------------------------------------------------------------------------


def scaled_columns(X, y, rng):
    return X * 10.0 ** rng.integers(-90, 90, X.shape[1]), y * 10.0 ** rng.integers(-90, 90)


def scaled_rows(X, y, rng):
    scale = 10.0 ** rng.integers(-15, 16, len(y))
    return X * scale[:, None], y * scale


def scaled_entries(X, y, rng):
    scale, y_scale = 10.0 ** rng.integers(-30, 31, X.shape), 10.0 ** rng.integers(-30, 31, len(y))
    return X * scale, y * y_scale


def beyond_squares(X, y, rng):
    return X * 10.0 ** rng.integers(-290, 290, X.shape[1]), y * 10.0 ** rng.integers(-290, 290)


def nearly_collinear(X, y, rng):
    X[:, -1] = X[:, 0] + 10.0 ** -rng.integers(3, 17) * X[:, -1]
    return X, y


def small_integers(X, y, rng):
    return np.round(2 * X), np.round(3 * y)


def perfect_fit(X, y, rng):
    X = np.round(2 * X)
    return X, X @ np.round(2 * rng.standard_normal(X.shape[1])) + 2.0


NASTY = {
    "plain": lambda X, y, rng: (X, y),
    "small integers": small_integers,
    "perfect fit": perfect_fit,
    "nearly perfect fit": lambda X, y, rng: (X, X @ rng.standard_normal(X.shape[1])),
    "nearly collinear": nearly_collinear,
    "duplicated column": lambda X, y, rng: (X[:, [0] * X.shape[1]], y),
    "constant column": lambda X, y, rng: (np.where(np.arange(X.shape[1]) == 0, 0.1, X), y),
    "offset columns": lambda X, y, rng: (X + 10.0 ** rng.integers(3, 16, X.shape[1]), y),
    "offset target": lambda X, y, rng: (X, y + 10.0 ** rng.integers(3, 16)),
    "columns of any scale": scaled_columns,
    "rows of any scale": scaled_rows,
    "entries of any scale": scaled_entries,
    "squares overflow or vanish": beyond_squares,
    "single precision": lambda X, y, rng: (X.astype(np.float32), y),
    "tiny target": lambda X, y, rng: (X, y * 10.0 ** rng.integers(-300, -90)),
}

MODELS = {
    "least squares": LinearRegression(),
    "least squares without intercept": LinearRegression(fit_intercept=False),
    "QR": LinearRegression(solver="qr"),
    "SVD": LinearRegression(solver="svd", fit_intercept=False),
    "conjugate gradients, no penalty": LinearRegression(solver="conjugate_gradient"),
    "conjugate gradients": Ridge(solver="conjugate_gradient"),
    "gradient descent, stopped early": Ridge(solver="gradient_descent", max_iter=5),
    "ridge": Ridge(),
    "hardly any ridge": Ridge(alpha=1e-9),
    "strong ridge without intercept": Ridge(alpha=1e7, fit_intercept=False),
    "ridge, kernel": Ridge(solver="kernel"),
    "nonnegative": LinearRegression(positive=True),
    "nonnegative ridge": Ridge(alpha=1e-3, positive=True),
}


def draw_data(kind, seed):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 9), rng.integers(1, 4)
    X, y = NASTY[kind](rng.standard_normal((n, d)), rng.standard_normal(n), rng)
    weights = None
    if rng.random() < 0.5:
        weights = rng.choice([0.0, 1.0, 2.0, 0.3, 1e-3], n)
        weights = weights if weights.any() else None
    return X, y, weights


# --- the truth ----------------------------------------------------------------------------------


def stated_problem(certificate, X, y, weights):
    """The problem in the units that the certificate speaks of, in fractions."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    if "column_exponent" in certificate.witness:
        X = np.ldexp(X, certificate.witness["column_exponent"].astype(int))
        y = np.ldexp(y, int(certificate.witness["target_exponent"][0]))
    alpha = np.broadcast_to(certificate.penalty.curvature, (X.shape[1], 1))[:, 0]
    return Quadratic(X, y, weights, alpha, certificate.fit_intercept)


def true_gap(certificate, problem):
    """By how much the objective is above the least one of all coefficients, without rounding."""
    w, b = certificate.coef[:, 0], certificate.intercept[0]
    if "nonnegative" in certificate.penalty.capabilities:
        return problem.value(problem.point(w, b)) - problem.nonnegative_minimum()[0]
    return problem.gap(w, b)


def fitted(model, X, y, weights):
    """The model, or None if it refuses the data with a reason."""
    try:
        return model.fit(X, y, sample_weight=weights)
    except ValueError as error:
        if "power of ten" in str(error) or "standardise the columns" in str(error):
            return None
        raise


quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def assert_claims_are_true_and_verified(name, kind, seed):
    X, y, weights = draw_data(kind, seed)
    model = fitted(MODELS[name], X, y, weights)
    if model is None:
        return
    certificate = model.certificate_
    problem = stated_problem(certificate, X, y, weights)
    objective = problem.value(problem.point(certificate.coef[:, 0], certificate.intercept[0]))
    claimed, rounding = Fraction(certificate.objective), Fraction(certificate.objective_rounding)
    assert abs(claimed - objective) <= rounding
    verification = model.verify(X, y, weights)
    # Rows that are lost in the rounding of others are not seen by any fit in double precision.
    is_lost = kind in ("rows of any scale", "entries of any scale", "offset columns")
    assert verification.holds or is_lost, str(verification)
    assert verification or certificate.kind in ("row space", "bounded") or is_lost
    if verification:
        assert certificate.gap >= true_gap(certificate, problem)


@pytest.mark.grid(1)
@quiet
@pytest.mark.parametrize("kind", NASTY)
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_claims_are_true_and_verified(name, kind, seed):
    assert_claims_are_true_and_verified(name, kind, seed)


@quiet
@pytest.mark.slow
@pytest.mark.parametrize("kind", NASTY)
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_claims_are_true_and_verified_more_often(name, kind, seed):
    assert_claims_are_true_and_verified(name, kind, seed)


@quiet
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=10, deadline=None)
@given(
    kind=st.sampled_from(sorted(NASTY)),
    seed=st.integers(0, 2**32 - 1),
    share=st.sampled_from([0.0, 0.5, 0.999, 1 - 1e-9, 1 - 2**-52]),
)
def test_no_claim_below_the_truth_is_accepted(name, kind, seed, share):
    """The gap is claimed to be a little less than it is, everything else is right."""
    X, y, weights = draw_data(kind, seed)
    model = fitted(MODELS[name], X, y, weights)
    assume(model is not None)
    rng = np.random.default_rng(seed)
    certificate = model.certificate_
    nudge = certificate.coef * (1 + rng.choice([0.0, 1e-15, 1e-9, 1e-3], certificate.coef.shape))
    nudged = replace(certificate, coef=nudge)
    problem = stated_problem(nudged, X, y, weights)
    gap = true_gap(nudged, problem)
    assume(gap > 0)
    claim = float(gap * Fraction(share))
    claim = np.nextafter(claim, 0.0) if claim >= gap else claim
    false = replace(nudged, gap=float(claim))
    assert Fraction(false.gap) < gap
    assert not false.verify(X, y, weights)


# --- tampering ----------------------------------------------------------------------------------


def regression(n=30, d=4, k=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    Y = X @ rng.uniform(1.0, 2.0, (d, k)) + rng.standard_normal((n, k)) + 5.0
    return X, Y[:, 0] if k == 1 else Y, rng.uniform(0.5, 2.0, n)


TAMPERED = {
    "least squares": LinearRegression(),
    "ridge": Ridge(alpha=2.0),
    "ridge, iterative": Ridge(solver="conjugate_gradient", tol=1e-9),
    "nonnegative": LinearRegression(positive=True),
    "lasso": LinearRegressor(penalty="l1", alpha=0.5, tol=1e-9),
    "Huber": LinearRegressor(loss="huber", alpha=1.0, tol=1e-9),
    "polynomial": PolynomialRegression(degree=2),
    "chosen by cross-validation": RidgeCV(),
}


@pytest.fixture(params=TAMPERED)
def case(request):
    X, y, weights = regression()
    model = TAMPERED[request.param].fit(X, y, sample_weight=weights)
    assert model.verify(X, y, weights)
    return model, X, y, weights


@pytest.mark.grid(1)
@pytest.mark.parametrize("change", [1e-6, -1e-6, 1e-3])
def test_a_changed_coefficient_is_noticed(case, change):
    model, X, y, weights = case
    for j in range(len(model.coef_)):
        kept = model.coef_.copy()
        model.coef_[j] *= 1 + change
        assert not model.verify(X, y, weights)
        model.coef_ = kept
    assert model.verify(X, y, weights)


def test_a_changed_intercept_is_noticed(case):
    model, X, y, weights = case
    kept = model.intercept_
    model.intercept_ = kept * (1 + 1e-6)
    assert not model.verify(X, y, weights)
    model.intercept_ = kept


@pytest.mark.grid(1)
@pytest.mark.parametrize("what", ["X", "y", "weights", "a row less", "a row twice", "no weights"])
def test_other_data_are_noticed(case, what):
    model, X, y, weights = case
    X, y, weights = X.copy(), y.copy(), weights.copy()
    if what == "X":
        X[3, 1] += 1e-4
    elif what == "y":
        y[3] += 1e-4
    elif what == "weights":
        weights[3] *= 1.001
    elif what == "no weights":
        weights = None
    else:
        rows = np.arange(1, len(y)) if what == "a row less" else np.append(np.arange(len(y)), 0)
        X, y, weights = X[rows], y[rows], weights[rows]
    assert not model.verify(X, y, weights)


def test_shapes_that_do_not_fit_are_told(case):
    model, X, y, weights = case
    if isinstance(model, PolynomialRegression):
        return
    assert not model.certificate_.verify(X[:, :-1], y, weights)
    assert not model.certificate_.verify(X, np.column_stack([y, y]), weights)
    assert not model.certificate_.verify(np.where(X > 1, np.nan, X), y, weights)


def test_a_smaller_gap_or_another_objective_is_noticed(case):
    model, X, y, weights = case
    certificate = model.certificate_
    step = 1e-6 * certificate.objective
    for changed in (
        replace(certificate, objective=certificate.objective + step),
        replace(certificate, objective=certificate.objective - step),
        replace(certificate, gap=0.0),
        replace(certificate, gap=-1.0),
        replace(certificate, gap=np.nan),
        replace(certificate, objective=np.nan),
        replace(certificate, objective=-step, objective_rounding=step, gap=0.0),
        replace(certificate, kind="magic"),
        replace(certificate, fit_intercept=False),
    ):
        assert not changed.verify(X, y, weights), changed


def test_a_gap_larger_than_proven_is_still_true(case):
    model, X, y, weights = case
    modest = replace(model.certificate_, gap=10 * model.certificate_.gap)
    assert modest.verify(X, y, weights)


@pytest.mark.parametrize("penalty", [L2(1.0), NoPenalty(), NonNegative(NoPenalty())])
def test_another_penalty_is_noticed(case, penalty):
    model, X, y, weights = case
    certificate = model.certificate_
    if certificate.penalty == penalty:
        return
    forged = replace(certificate, penalty=penalty)
    holds = forged.verify(X, y, weights)
    # Positive coefficients that minimise under either of these two minimise under the other.
    unpenalised = (NoPenalty(), NonNegative(NoPenalty()))
    is_true = penalty in unpenalised and certificate.penalty in unpenalised
    assert not holds or (is_true and (certificate.coef > 0).all())


# --- forged witnesses ---------------------------------------------------------------------------


def forge(certificate, **witness):
    return replace(certificate, witness={**certificate.witness, **witness})


def far_from_optimal():
    """Coefficients that are off by one, and the certificate of the true ones."""
    X, y, _ = regression()
    certificate = LinearRegression().fit(X, y).certificate_
    off = replace(certificate, coef=certificate.coef + 1.0)
    objective = 0.5 * np.sum((y - X @ off.coef[:, 0] - off.intercept) ** 2)
    return replace(off, objective=objective, objective_rounding=1e-9 * objective), X, y


def test_the_honest_certificate_of_a_bad_point_has_a_large_gap():
    certificate, X, y = far_from_optimal()
    gap = Quadratic(X, y).gap(certificate.coef[:, 0], certificate.intercept[0])
    assert replace(certificate, gap=1.5 * float(gap)).verify(X, y)
    assert not replace(certificate, gap=0.9 * float(gap)).verify(X, y)


@pytest.mark.parametrize("kind", ["quadratic", "row space"])
def test_a_forged_basis_proves_nothing(kind):
    certificate, X, y = far_from_optimal()
    certificate = replace(certificate, kind=kind, gap=1e-6)
    d = X.shape[1]
    for basis in (
        np.zeros((d, d)),
        np.zeros(d),
        np.zeros((d, 0)),
        np.eye(d)[:, :1],
        1e-12 * np.eye(d),
        np.full((d, d), 1.0),
        np.eye(d + 1),
        np.full((d, d), np.nan),
    ):
        for nu in (0.0, 1e-300, 1.0, 1e300, np.inf, np.nan, -1.0):
            forged = forge(certificate, basis=basis, coercivity=np.array(nu))
            assert not forged.verify(X, y), (basis, nu)


def test_a_row_space_that_leaves_out_what_matters_is_noticed():
    certificate, X, y = far_from_optimal()
    few = np.linalg.svd(X - X.mean(axis=0))[2][:1].T / 10
    forged = forge(replace(certificate, kind="row space", gap=1e-6), basis=few, left_out=1e-9)
    assert not forged.verify(X, y).holds


@pytest.mark.parametrize("nu", [1.01, 1e300, 5e-324])
def test_a_stated_coercivity_proves_nothing(nu):
    certificate, X, y = far_from_optimal()
    assert not forge(replace(certificate, gap=1e-6), coercivity=np.array(nu)).verify(X, y).holds


@pytest.mark.parametrize("offset", [0.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weights", ["equal", "orders", "zeros"])
def test_nonnegative_gaps_are_of_second_order_in_rounding(offset, fit_intercept, weights):
    """No offset, weight, constant column or second target makes the claim looser than 1e-9."""
    rng = np.random.default_rng(int(offset) % 97 + 2 * fit_intercept)
    X = np.round(3 * rng.standard_normal((24, 8))) + offset
    X[:, 5], X[:, 6] = 7.0, 0.0
    Y = rng.standard_normal((24, 2)) + (X - offset) @ np.abs(rng.standard_normal((8, 2)))
    s = {"equal": None, "orders": 10.0 ** rng.integers(-8, 8, 24), "zeros": rng.integers(0, 3, 24)}
    model = LinearRegression(positive=True, fit_intercept=fit_intercept)
    model.fit(X, Y, sample_weight=s[weights])
    certificate = model.certificate_
    assert certificate.gap <= 1e-9 * certificate.objective
    assert model.verify(X, Y, s[weights])


@pytest.mark.parametrize("name", ["radius", "intercept_radius", "coefficient_radius"])
@pytest.mark.parametrize("value", [0.0, -1.0, 1e300, np.nan, np.inf])
def test_a_radius_is_no_part_of_a_witness(name, value):
    X, y, _ = regression()
    X = np.column_stack([X, X[:, 0]])
    certificate = LinearRegression(positive=True).fit(X, y).certificate_
    assert certificate.kind == "bounded"
    assert certificate.verify(X, y)
    assert not forge(certificate, **{name: np.full((5, 1), value)}).verify(X, y).holds


def test_a_forged_dual_point_proves_only_what_it_proves():
    X, y, _ = regression()
    model = LinearRegressor(loss="absolute", penalty="l1", alpha=0.5).fit(X, y)
    certificate = model.certificate_
    assert certificate.kind == "duality"
    dual = certificate.witness["dual"]
    for forged in (0.99 * dual, dual + 1e-3, np.zeros_like(dual), -dual, dual[::-1], 10 * dual):
        assert not forge(certificate, dual=forged).verify(X, y)
    assert not forge(certificate, dual=np.full_like(dual, np.nan)).verify(X, y)


# --- the grid of fits ---------------------------------------------------------------------------

GRID = [
    *MODELS.values(),
    LinearRegressor(penalty="l1", alpha=0.1),
    LinearRegressor(penalty="elastic_net", alpha=0.1, positive=True),
    LinearRegressor(loss="huber", penalty=None),
    LinearRegressor(loss="huber", penalty="l1", alpha=0.1),
    LinearRegressor(loss="huber", penalty="l2", positive=True),
    RidgeCV(),
    RidgeCV(cv=3),
]


@pytest.mark.grid(2)
@quiet
@pytest.mark.parametrize("model", GRID, ids=str)
@pytest.mark.parametrize(
    ("shape", "k", "storage"),
    [
        ((40, 5), 1, "dense"),
        ((40, 5), 3, "sparse"),
        ((40, 5), 3, "single"),
        ((5, 12), 1, "single"),
        ((5, 12), 3, "dense"),
        ((5, 12), 3, "sparse"),
        ((2500, 3), 1, "dense"),
    ],
)
def test_every_fit_verifies(model, shape, k, storage):
    if isinstance(model, RidgeCV) and model.cv and shape[0] < 6:
        pytest.skip("a test fold of one row has no R^2")
    X, Y, weights = regression(*shape, k=k)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    X = {"dense": X, "sparse": sp.csr_array(X), "single": X.astype(np.float32)}[storage]
    model.fit(X, Y, sample_weight=weights)
    verification = model.verify(X, Y, weights)
    assert verification, str(verification)
    assert np.isfinite(model.certificate_.gap)


@pytest.mark.grid(1)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("model", [LinearRegression(), Ridge(), Ridge(positive=True)], ids=str)
def test_incremental_fits_verify_on_all_rows(model, seed):
    X, y, weights = regression(seed=seed)
    model = type(model)(**model.get_params())
    for rows in np.array_split(np.arange(len(y)), 4):
        model.partial_fit(X[rows], y[rows], weights[rows])
    assert model.verify(X, y, weights)
    problem = stated_problem(model.certificate_, X, y, weights)
    assert model.certificate_.gap >= true_gap(model.certificate_, problem)


def test_a_failed_check_says_what_was_claimed_and_found():
    X, y, _ = regression()
    model = LinearRegression().fit(X, y)
    model.coef_ = model.coef_ + 1e-3
    verification = model.verify(X, y)
    assert "does NOT hold" in str(verification)
    with pytest.raises(ValueError, match="objective: claimed .* found"):
        verification.raise_if_false()


def test_certificates_speak_in_sentences():
    X, y, _ = regression()
    certificate = LinearRegression().fit(X, y).certificate_
    assert isinstance(certificate, Certificate)
    assert "no coefficients give an objective lower" in certificate.statement
    assert "proven within" in str(certificate)
    assert certificate.lower_bound <= certificate.objective
    assert certificate.relative_gap == certificate.gap / certificate.objective


def test_the_relative_gap_of_a_constant_target_is_zero():
    assert LinearRegression().fit([[1.0], [2.0]], [0.0, 0.0]).certificate_.relative_gap == 0.0
