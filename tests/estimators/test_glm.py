"""Generalised linear models: scikit-learn's answers, statsmodels' errors, exposures, proofs."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn import linear_model as theirs
from sklearn.exceptions import ConvergenceWarning

from trueline import GammaRegressor, LinearRegressor, PoissonRegressor, TweedieRegressor
from trueline.check import Verdict
from trueline.losses import LocalDeviance

CONVEX = {
    "poisson": PoissonRegressor(),
    "gamma": GammaRegressor(),
    "tweedie 1.5": TweedieRegressor(power=1.5),
    "tweedie 1.9": TweedieRegressor(power=1.9),
    "tweedie 1": TweedieRegressor(power=1),
    "tweedie 2": TweedieRegressor(power=2),
    "normal": TweedieRegressor(power=0),
}
LOCAL = {
    "inverse gaussian": TweedieRegressor(power=3),
    "normal, log": TweedieRegressor(power=0, link="log"),
    "poisson, identity": TweedieRegressor(power=1, link="identity"),
    "gamma, identity": TweedieRegressor(power=2, link="identity"),
    "tweedie 1.5, identity": TweedieRegressor(power=1.5, link="identity"),
    "power -1": TweedieRegressor(power=-1, link="log"),
}


def data(name, n=200, d=4, seed=0):
    """Rows, targets that the model allows, and positive weights."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, size=(n, d))
    mean = np.exp(0.3 + X @ rng.uniform(-1, 1, size=d))
    if name.startswith("poisson") or name == "tweedie 1":
        y = rng.poisson(mean).astype(float)
    elif name.startswith("tweedie 1."):
        y = np.where(rng.random(n) < 0.3, 0.0, mean * rng.gamma(2, 0.5, size=n))
    elif name.startswith("normal"):
        y = mean + 0.1 * rng.normal(size=n)
    else:
        y = mean * rng.gamma(5, 0.2, size=n)
    return X, y, rng.integers(1, 4, size=n).astype(float)


def fitted(model, *args, **kwargs):
    """A fit that says nothing about convergence."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        return model.fit(*args, **kwargs)


@pytest.mark.grid(2)
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", CONVEX)
def test_answers_are_those_of_scikit_learn(name, fit_intercept, weighted, form):
    model = CONVEX[name].__class__(**CONVEX[name].get_params())
    model.set_params(alpha=0.1, fit_intercept=fit_intercept, tol=1e-8)
    X, y, weights = data(name)
    given = weights if weighted else None
    rows = sp.csr_array(X) if form == "sparse" else X
    fitted(model, rows, y, sample_weight=given)
    own = {key: v for key, v in model.get_params().items() if key not in ("trace", "solver")}
    peer = getattr(theirs, type(model).__name__)(**own, solver="newton-cholesky")
    peer.set_params(tol=1e-12, max_iter=1000).fit(X, y, sample_weight=given)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-8)
    assert model.score(X, y, given) == pytest.approx(peer.score(X, y, given), abs=1e-10)
    assert model.verify(rows, y, given)
    assert model.certificate_.relative_gap < 1e-9


@pytest.mark.parametrize("name", [name for name in CONVEX if name != "normal"])
@pytest.mark.parametrize("weighted", [False, True])
def test_standard_errors_are_those_of_statsmodels(name, weighted):
    api = pytest.importorskip("statsmodels.api")
    X, y, weights = data(name)
    model = CONVEX[name].__class__(**CONVEX[name].get_params()).set_params(alpha=0.0, tol=1e-8)
    given = weights if weighted else None
    fitted(model, X, y, sample_weight=given)
    power, log = model._power, api.families.links.Log()
    families = {1.0: api.families.Poisson(), 2.0: api.families.Gamma(log)}
    family = families.get(power, api.families.Tweedie(log, var_power=power))
    result = api.GLM(y, api.add_constant(X), family, freq_weights=given).fit(tol=1e-14, maxiter=100)
    table = model.standard_errors(X, y, sample_weight=given)
    np.testing.assert_allclose(table.coefficients, result.params, rtol=1e-8)
    np.testing.assert_allclose(table.standard_errors, result.bse, rtol=1e-7)
    np.testing.assert_allclose(table.p_values, result.pvalues, rtol=1e-6, atol=1e-300)
    np.testing.assert_allclose(table.confidence_intervals(0.95), result.conf_int(), rtol=1e-6)


@pytest.mark.parametrize("name", ["poisson", "gamma", "tweedie 1.5"])
def test_exposures_are_those_of_statsmodels(name):
    api = pytest.importorskip("statsmodels.api")
    X, y, weights = data(name)
    years = np.random.default_rng(1).uniform(0.2, 3.0, size=len(y))
    y = np.round(y * years) if name == "poisson" else y * years
    model = CONVEX[name].__class__(**CONVEX[name].get_params()).set_params(alpha=0.0, tol=1e-8)
    fitted(model, X, y, sample_weight=weights, exposure=years)
    power, log = model._power, api.families.links.Log()
    families = {1.0: api.families.Poisson(), 2.0: api.families.Gamma(log)}
    family = families.get(power, api.families.Tweedie(log, var_power=power))
    peer = api.GLM(y, api.add_constant(X), family, freq_weights=weights, offset=np.log(years))
    result = peer.fit(tol=1e-14, maxiter=100)
    table = model.standard_errors(X, y, weights, exposure=years)
    np.testing.assert_allclose(table.coefficients, result.params, rtol=1e-8)
    np.testing.assert_allclose(table.standard_errors, result.bse, rtol=1e-7)
    np.testing.assert_allclose(model.predict(X, exposure=years), result.fittedvalues, rtol=1e-8)
    assert model.verify(X, y, weights, exposure=years)
    assert not model.verify(X, y, weights)
    other = fitted(model.__class__(**model.get_params()), X, y, weights, offset=np.log(years))
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-10)


def test_penalised_poisson_with_exposure_minimises_what_is_written():
    X, y, weights = data("poisson")
    years = np.random.default_rng(1).uniform(0.2, 3.0, size=len(y))
    alpha = 0.3

    def objective(v):
        mean = years * np.exp(X @ v[1:] + v[0])
        return weights @ (mean - y * np.log(mean)) / weights.sum() + 0.5 * alpha * v[1:] @ v[1:]

    best = minimize(objective, np.zeros(5), method="BFGS", options={"gtol": 1e-9}).x
    model = fitted(PoissonRegressor(alpha=alpha), X, y, weights, exposure=years)
    np.testing.assert_allclose([model.intercept_, *model.coef_], best, atol=2e-6)


@pytest.mark.grid(2)
@pytest.mark.parametrize("alpha", [1e-6, 1.0])
@pytest.mark.parametrize("orders", [1, 4, 8])
@pytest.mark.parametrize("seed", range(5))
def test_exposures_of_many_orders_of_magnitude(orders, alpha, seed):
    """The slope of the penalised likelihood vanishes, written down with the exposures."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3)) * [0.1, 1.0, 50.0]
    y = rng.poisson(np.exp(rng.normal(size=30))).astype(float)
    exposure = 10.0 ** rng.uniform(-orders, orders, size=30)
    with warnings.catch_warnings():
        if orders == 8:  # the optimum is found; double precision proves less than is asked for
            warnings.simplefilter("ignore", ConvergenceWarning)
        model = PoissonRegressor(alpha=alpha).fit(X, y, exposure=exposure)
    mean = exposure * np.exp(X @ model.coef_ + model.intercept_)
    size = np.abs(X).T @ (mean + y) + y.sum()
    slope = X.T @ (mean - y) + len(y) * alpha * model.coef_
    assert np.all(np.abs(slope) <= 1e-6 * size)
    assert abs((mean - y).sum()) <= 1e-6 * y.sum()
    assert model.verify(X, y, exposure=exposure)


def test_offsets_beyond_what_can_be_added_are_refused():
    with pytest.raises(ValueError, match="Subtract the mean from the offsets"):
        PoissonRegressor().fit(np.eye(3), [1.0, 2.0, 3.0], offset=[0.0, 300.0, -300.0])


def test_an_offset_of_the_identity_is_subtracted():
    X, y, _ = data("normal")
    shift = np.random.default_rng(2).normal(size=len(y))
    with_offset = TweedieRegressor(power=0, alpha=0.1).fit(X, y, offset=shift)
    without = TweedieRegressor(power=0, alpha=0.1).fit(X, y - shift)
    np.testing.assert_allclose(with_offset.coef_, without.coef_, rtol=1e-12)
    np.testing.assert_allclose(with_offset.predict(X, offset=shift), without.predict(X) + shift)


@pytest.mark.parametrize("name", ["poisson", "gamma", "tweedie 1.5"])
def test_weights_are_repetitions_and_zero_leaves_out(name):
    X, y, weights = data(name)
    weights[::5] = 0
    years = np.linspace(0.5, 2, len(y))
    model = CONVEX[name].__class__(**CONVEX[name].get_params()).set_params(alpha=0.1)
    weighted = fitted(model, X, y, weights, exposure=years)
    times = weights.astype(int)
    again = model.__class__(**model.get_params())
    fitted(again, X.repeat(times, 0), y.repeat(times), exposure=years.repeat(times))
    np.testing.assert_allclose(weighted.coef_, again.coef_, rtol=1e-9)
    assert weighted.verify(X, y, weights, exposure=years)


@pytest.mark.grid(1)
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("name", LOCAL)
def test_local_minima_are_stationary_and_said_to_be_local(name, form):
    X, y, weights = data(name)
    model = LOCAL[name].__class__(**LOCAL[name].get_params()).set_params(alpha=0.05)
    y = y + 0.5 if model.link == "identity" else y
    rows = sp.csr_array(X) if form == "sparse" else X
    fitted(model, rows, y, weights)
    loss = LocalDeviance(float(model.power), "log" if model._is_log else "identity")

    def objective(v):
        z = X @ v[1:] + v[0]
        total = weights @ loss.value(y, z) / weights.sum() + 0.025 * v[1:] @ v[1:]
        u = weights * loss.gradient(y, z) / weights.sum()
        return total, np.append(u.sum(), X.T @ u + 0.05 * v[1:])

    start = np.append(model.intercept_, model.coef_)
    value, slope = objective(start)
    assert np.abs(slope).max() < 1e-9
    nearby = minimize(lambda v: objective(v)[0], start, method="Nelder-Mead").fun
    assert value <= nearby + 1e-10
    certificate = model.certificate_
    assert certificate.kind == "local"
    assert "not convex" in certificate.statement
    verification = model.verify(rows, y, weights)
    assert verification.verdict is Verdict.CONDITIONAL
    assert "distance" in verification.conditions[0]
    assert not model.verify(rows, y * 1.01, weights).holds


@pytest.mark.parametrize("name", ["inverse gaussian", "normal, log", "gamma, identity"])
def test_local_minima_are_those_of_scikit_learn(name):
    X, y, _ = data(name)
    model = LOCAL[name].__class__(**LOCAL[name].get_params()).set_params(alpha=0.1)
    peer = theirs.TweedieRegressor(power=model.power, link=model.link, alpha=0.1)
    peer.set_params(tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(fitted(model, X, y).coef_, peer.coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("link", ["log", "identity"])
@pytest.mark.parametrize("power", [-1.0, 0.0, 1.0, 1.5, 2.0, 3.0])
def test_derivatives_of_local_deviances(power, link):
    loss = LocalDeviance(power, link)
    y = np.array([0.2, 1.0, 3.0]) if power > 0 else np.array([-1.0, 0.5, 2.0])
    z = np.array([[-0.5], [0.3], [1.4]]) if link == "log" else np.array([[0.2], [1.0], [2.5]])
    y, z = (part.ravel() for part in np.broadcast_arrays(y, z))
    for below, above in ((loss.value, loss.gradient), (loss.gradient, loss.curvature)):
        difference = (below(y, z + 1e-6) - below(y, z - 1e-6)) / 2e-6
        np.testing.assert_allclose(above(y, z), difference, rtol=1e-6, atol=1e-8)
    for side in (-0.05, 0.0, 0.03, 0.05):
        own_curvature = loss.curvature(y, z + side)
        assert (loss.least_curvature(y, z, np.full_like(z, 0.05)) <= own_curvature).all()
        assert (loss.most_curvature(y, z, np.full_like(z, 0.05)) >= np.abs(own_curvature)).all()


def test_a_claim_about_all_coefficients_is_refused_for_a_loss_that_is_not_convex():
    from dataclasses import replace

    X, y, _ = data("inverse gaussian")
    certificate = fitted(TweedieRegressor(power=3, alpha=0.1), X, y).certificate_
    assert certificate.verify(X, y).holds
    assert not replace(certificate, kind="curvature").verify(X, y).holds


@pytest.mark.parametrize("model", [PoissonRegressor(), GammaRegressor()], ids=str)
def test_single_precision_and_data_frames(model):
    pandas = pytest.importorskip("pandas")
    X, y, _ = data("gamma")
    single = fitted(model.__class__(), X.astype(np.float32), y)
    assert single.coef_.dtype == single.predict(X.astype(np.float32)).dtype == np.float32
    double = fitted(model.__class__(), X, y)
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-4)
    assert single.verify(X.astype(np.float32), y)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    named = fitted(model.__class__(alpha=0), frame, y)
    assert named.standard_errors(frame, y).names == ("intercept", "a", "b", "c", "d")


def test_many_sparse_columns_are_fitted_without_a_hessian():
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 3000), density=0.01, rng=rng, format="csr")
    y = rng.poisson(1.0, size=400)
    model = fitted(PoissonRegressor(alpha=0.01, tol=1e-6), X, y)
    assert model.solver_ == "newton_cg"
    assert model.verify(X, y)
    peer = theirs.PoissonRegressor(alpha=0.01, tol=1e-8, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-5)


def test_scales_of_columns_do_not_matter():
    X, y, _ = data("poisson")
    plain = fitted(PoissonRegressor(alpha=0), X, y)
    far = X * [1e-8, 1.0, 1e6, 1.0] + [0, 1e6, 0, -1e3]
    moved = fitted(PoissonRegressor(alpha=0), far, y)
    np.testing.assert_allclose(moved.coef_ * [1e-8, 1, 1e6, 1], plain.coef_, rtol=1e-6)
    assert moved.verify(far, y)


def test_rare_events_and_large_counts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    rare = (rng.random(5000) < 1e-3).astype(float)
    assert fitted(PoissonRegressor(alpha=0), X, rare).verify(X, rare)
    many = np.round(1e9 * np.exp(X @ [1.0, -1.0, 0.5]))
    model = fitted(PoissonRegressor(alpha=0), X, many)
    np.testing.assert_allclose(model.coef_, [1.0, -1.0, 0.5], atol=1e-6)
    assert model.verify(X, many)


def test_general_regressor_takes_the_new_losses_by_name():
    X, y, _ = data("poisson")
    general = LinearRegressor(loss="poisson", alpha=0.1 * len(y), tol=1e-10).fit(X, y)
    own = PoissonRegressor(alpha=0.1).fit(X, y)
    np.testing.assert_allclose(general.coef_, own.coef_, rtol=1e-8)


@pytest.mark.parametrize(
    ("model", "y", "said"),
    [
        (PoissonRegressor(), [-1.0, 1.0], "not negative"),
        (PoissonRegressor(), [0.0, 0.0], "zero everywhere"),
        (GammaRegressor(), [0.0, 1.0], "positive targets"),
        (TweedieRegressor(power=3), [0.0, 1.0], "positive targets"),
        (TweedieRegressor(power=0.5), [0.0, 1.0], "belongs to no distribution"),
        (PoissonRegressor(), [1.0, 1e200], "power of ten"),
    ],
    ids=str,
)
def test_targets_that_the_model_does_not_allow(model, y, said):
    with pytest.raises(ValueError, match=said):
        model.fit(np.array([[0.0], [1.0]]), np.array(y))


@pytest.mark.parametrize(
    ("model", "y", "advice"),
    [
        (PoissonRegressor(), [1.0, -1.0, 2.0], r"row\(s\) 1\. .*leave them out.*Ridge"),
        (TweedieRegressor(power=1.5), [-2.0, 1.0, -1.0], r"row\(s\) 0, 2\. .*zero or more.*Ridge"),
        (GammaRegressor(), [1.0, 2.0, 0.0], r"row\(s\) 2\. .*PoissonRegressor.*TweedieRegressor"),
        (GammaRegressor(), [1.0, -2.0, 0.0], r"row\(s\) 1, 2\. .*positive.*Ridge"),
        (TweedieRegressor(power=3), [0.0, 2.0, 1.0], r"row\(s\) 0\. .*TweedieRegressor"),
    ],
    ids=str,
)
def test_an_error_of_targets_says_where_and_what_to_do(model, y, advice):
    with pytest.raises(ValueError, match=advice):
        model.fit(np.array([[0.0], [1.0], [2.0]]), np.array(y))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["poisson", "gamma", "tweedie 1.5"])
def test_many_rows_are_fitted_as_exactly_as_few(name, weighted):
    # So many that the first Hessian is that of a sample, and later ones are kept for a step.
    X, y, s = data(name, n=120_000, d=6)
    s = s if weighted else None
    ours = fitted(type(CONVEX[name])(**CONVEX[name].get_params()).set_params(alpha=1e-3), X, y, s)
    assert ours.verify(X, y, s)
    assert ours.certificate_.gap <= 1e-10 * ours.certificate_.objective
    options = {"alpha": 1e-3, "solver": "newton-cholesky", "tol": 1e-11}
    if name.startswith("tweedie"):
        options["power"] = 1.5
    reference = getattr(theirs, type(ours).__name__)(**options).fit(X, y, s)
    np.testing.assert_allclose(ours.coef_, reference.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.intercept_, reference.intercept_, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"exposure": [1.0, 0.0, 1.0]}, "must be positive"),
        ({"exposure": [1.0, 2.0]}, "one number for each"),
        ({"offset": [1.0, np.nan, 2.0]}, "NaN or infinity"),
    ],
    ids=str,
)
def test_exposures_that_are_none(arguments, said):
    with pytest.raises(ValueError, match=said):
        PoissonRegressor().fit(np.eye(3), [1, 2, 3], **arguments)


def test_standard_errors_are_refused_where_they_would_mislead():
    X, y, _ = data("poisson")
    with pytest.raises(ValueError, match="alpha=0"):
        PoissonRegressor().fit(X, y).standard_errors(X, y)
    twice = np.hstack([X, X])
    with pytest.raises(ValueError, match="singular"):
        PoissonRegressor(alpha=0).fit(twice, y).standard_errors(twice, y)


def test_explanation_names_the_objective_and_the_proof():
    X, y, _ = data("poisson")
    text = str(PoissonRegressor().explain(X, y)) + str(PoissonRegressor().fit(X, y).explain())
    assert "exp(z_i)" in text
    assert "curvature" in text
    local = TweedieRegressor(power=3, alpha=0.1).fit(*data("inverse gaussian")[:2])
    assert "not convex" in str(local.explain())


@pytest.mark.parametrize("model", [PoissonRegressor, GammaRegressor])
@pytest.mark.parametrize("seed", range(3))
def test_powers_of_one_column_are_verified(model, seed):
    # Columns in the billions: slopes at the scores lose the digits that the dual point has.
    rng = np.random.default_rng(seed)
    x = rng.uniform(-9.0, -3.0, 82)
    X = np.vander(x, 11, increasing=True)[:, 1:]
    y = 0.85 + 0.05 * np.sin(x) + 0.003 * rng.standard_normal(82)
    fitted = model().fit(X, y)
    assert fitted.verify(X, y), str(fitted.verify(X, y))
