"""The checker of Gaussian processes: formulas, honest fits, forgeries, faults of the prover."""

import copy
import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Kernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

import trueline.estimators.kernel.gaussian_process as estimator
import trueline.estimators.kernel.sparse_process as sparse_estimator
from trueline import GaussianProcessRegressor, SparseGaussianProcessRegressor
from trueline.check import Verdict, verify
from trueline.check.kernels import covariance_of, recognised

LEAVES = [
    RBF(0.7),
    RBF([0.7, 1.3]),
    Matern(0.8, nu=0.5),
    Matern([0.8, 1.5], nu=0.5),
    Matern(0.8, nu=1.5),
    Matern([0.8, 1.5], nu=1.5),
    Matern(0.8, nu=2.5),
    Matern([0.8, 1.5], nu=2.5),
    Matern(0.8, nu=np.inf),
    RationalQuadratic(0.9, 0.4),
    ExpSineSquared(1.2, 0.8),
    DotProduct(0.6),
]
TREES = [
    *LEAVES,
    2.0 * RBF(0.7) + WhiteKernel(0.3),
    ConstantKernel(0.5) * Matern(0.8, nu=1.5) * ExpSineSquared(1.2, 0.8) + DotProduct(0.6),
    DotProduct(0.6) ** 3 + ConstantKernel(0.5, "fixed"),
    RBF(0.7, "fixed") * RationalQuadratic(0.9, 0.4, alpha_bounds="fixed"),
]


def rows(n=40, targets=1, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-2, 2, size=(n, 2))
    Y = np.sin(2 * X[:, :1] * np.arange(1, targets + 1)) + 0.3 * X[:, 1:] ** 2
    Y = Y + 0.1 * generator.normal(size=Y.shape)
    return X, Y[:, 0] if targets == 1 else Y


# --- formulas -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", TREES, ids=str)
def test_formulas_are_those_of_scikit_learn(kernel):
    """Values and derivatives within the bounds that the checker states, up to its own units."""
    X = rows(12)[0]
    X[5] = X[3]
    expected, slopes = kernel(X, eval_gradient=True)
    known = recognised(kernel)
    K, derivatives = covariance_of(known, X, X, np.eye(12))
    np.testing.assert_allclose(K.mid, expected, rtol=1e-12, atol=1e-13)
    assert (np.abs(K.mid - expected) <= K.rad + 64 * 2.3e-16 * np.abs(expected)).all()
    assert len(derivatives) == len(known.all_free()) == kernel.n_dims
    ours = np.stack([slope.mid for slope in derivatives], axis=2)
    np.testing.assert_allclose(ours, slopes, rtol=1e-11, atol=1e-12)
    logs = sorted(np.log(known.all_free()[:, 0]))
    np.testing.assert_allclose(logs, sorted(kernel.theta))


def test_the_errors_of_the_formulas_are_bounded():
    """Against the same formulas in numbers of fifty digits."""
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 50
    x, z = (mpmath.mpf(float(v)) for v in (1e5 + 0.3, 1e5 - 1.7))
    s, r = ((x - z) / mpmath.mpf(0.7)) ** 2, abs(x - z)
    turns = mpmath.sin(mpmath.pi * r / mpmath.mpf(0.01)) / mpmath.mpf(0.7)
    truths = [
        (RBF(0.7), mpmath.exp(-s / 2)),
        (Matern(0.7, nu=0.5), mpmath.exp(-mpmath.sqrt(s))),
        (RationalQuadratic(0.7, 1e5), (1 + s / mpmath.mpf(2e5)) ** -mpmath.mpf(1e5)),
        (ExpSineSquared(0.7, 0.01), mpmath.exp(-2 * turns**2)),
    ]
    for kernel, truth in truths:
        one, two = np.array([[float(x)]]), np.array([[float(z)]])
        K, _ = covariance_of(recognised(kernel), one, two, np.zeros((1, 1)))
        off = abs(mpmath.mpf(float(K.mid[0, 0])) - truth)
        assert off <= float(np.max(K.rad)), kernel
        assert float(np.max(K.rad)) < 1e-8, kernel


# --- honest fits --------------------------------------------------------------------------------


@pytest.mark.grid(1)
@pytest.mark.parametrize("kernel", [1.0 * leaf + WhiteKernel(0.1) for leaf in LEAVES], ids=str)
@pytest.mark.parametrize("optimizer", ["fmin_l_bfgs_b", None])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_honest_fits_hold(kernel, optimizer):
    X, Y = rows(30, targets=2)
    X = X[:, :1] if "ExpSine" in str(kernel) else X  # of one column it is a covariance
    for target, normalize in ((Y, False), (1e8 * Y, True), (Y[:, 0], True)):
        model = GaussianProcessRegressor(kernel, optimizer=optimizer, normalize_y=normalize)
        model.fit(X, target)
        verification = model.certificate_.verify(X, target)
        assert verification.verdict is Verdict.PROVEN, str(verification)
        assert "nothing about other parameters" in verification.statement


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_slope_of_which_nothing_is_claimed_holds():
    # Equal rows with different targets, and hardly any noise: no digit of the slope is known.
    x = np.repeat([0.2, 10.1, 118.2, 226.5, 337.4, 448.6, 558.9, 666.3, 777.0, 884.6], 4)
    X, y = x[:, None], 0.3 * np.resize([0.0, 1.0, -1.0], len(x)) + x
    model = GaussianProcessRegressor().fit(X, y)
    assert model.certificate_.slope == np.inf
    assert model.verify(X, y), str(model.verify(X, y))
    # Whoever claims a number has to prove it.
    assert not replace(model.certificate_, slope=1e300).verify(X, y)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_wild_scales_hold(scale):
    X, y = rows(30)
    kernel = 1.0 * RBF(scale, (1e-2 * scale, 1e2 * scale)) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel).fit(scale * X, y)
    assert model.verify(scale * X, y), str(model.verify(scale * X, y))
    assert model.certificate_.slope < 0.1
    sparse = SparseGaussianProcessRegressor(kernel, n_inducing=10).fit(scale * X, y)
    assert sparse.verify(scale * X, y), str(sparse.verify(scale * X, y))


def test_single_precision_is_fitted_in_double():
    X, y = (part.astype(np.float32) for part in rows(30))
    model = GaussianProcessRegressor(1.0 * RBF() + WhiteKernel(0.1), normalize_y=True).fit(X, y)
    assert model.verify(X, y)
    assert model.certificate_.residual < 1e-9


class Overlap(Kernel):
    """A kernel of words: letters in common."""

    requires_vector_input = False

    def __init__(self, height=1.0):
        self.height = height

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        K = np.array([[self.height * len(set(x) & set(z)) for z in Y] for x in X], dtype=float)
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X):
        return np.array([self.height * len(set(x)) for x in X], dtype=float)

    def is_stationary(self):
        return False


def test_kernels_of_ones_own_are_named_in_the_statement():
    words = ["line", "plane", "point", "curve", "angle"]
    y = np.arange(5.0)
    model = GaussianProcessRegressor(Overlap(), alpha=0.5, optimizer=None).fit(words, y)
    verification = model.verify(words, y)
    assert verification, str(verification)
    assert "as the kernel Overlap itself computes it" in verification.statement
    X, y = rows(20)
    called = GaussianProcessRegressor(Matern(nu=0.9) + WhiteKernel(0.1), optimizer=None).fit(X, y)
    assert "itself computes it" in called.verify(X, y).statement


def test_the_value_is_that_of_the_definition():
    X, y = rows(25)
    kernel = 1.3 * RBF(0.7) + WhiteKernel(0.2)
    certificate = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y).certificate_
    K = kernel(X) + 1e-10 * np.eye(25)
    expected = -0.5 * (y @ np.linalg.solve(K, y) + np.linalg.slogdet(K)[1] + 25 * np.log(2 * np.pi))
    assert abs(-certificate.objective - expected) <= certificate.objective_rounding + 1e-10
    assert certificate.objective_rounding < 1e-8


# --- forgeries ----------------------------------------------------------------------------------


def forgeries(c, y):
    w = c.witness
    yield "level of the shape of y", replace(c, witness={**w, "level": y[:, None]})
    yield "level y", replace(c, witness={**w, "level": y})
    for name in ("level", "scale"):
        for value in (w[name] + 0.1, 0 * w[name], -w[name] - 1, np.ones(3), math.nan, None, "1"):
            if not np.array_equal(value, w[name]):
                yield f"{name} {value}", replace(c, witness={**w, name: value})
    for value in (w["noise"] + 0.1, -w["noise"] - 1.0, np.ones(3), np.ones((40, 40)), None):
        yield f"noise {value}", replace(c, witness={**w, "noise": value})
    yield "radius", replace(c, witness={**w, "radius": 0.0})
    yield "gap", replace(c, gap=1.0)
    yield "objective", replace(c, objective=c.objective - 1e-3)
    yield "rounding", replace(c, objective_rounding=0.0)
    moved = c.kernel.clone_with_theta(c.kernel.theta + 0.05)
    yield "kernel", replace(c, kernel=moved)
    for value in (None, "RBF", 3, object(), {"name": "rbf"}):
        yield f"kernel {value}", replace(c, kernel=value)
    for name, value in [
        *[("k1__k2__length_scale", -1.0), ("k1__k2__length_scale", np.ones(5))],
        *[("k1__k2__length_scale", "long"), ("k1__k2__length_scale_bounds", (1, 2, 3))],
        *[("k2__noise_level", math.nan), ("k1__k1__constant_value", None)],
    ]:
        kernel = copy.deepcopy(c.kernel)
        kernel.set_params(**{name: value})
        yield f"{name} {value}", replace(c, kernel=kernel)


@pytest.mark.parametrize("normalize", [True, False])
def test_forgeries_are_not_proven(normalize):
    X, y = rows()
    kernel = 1.0 * RBF() + WhiteKernel(0.1)
    certificate = GaussianProcessRegressor(kernel, normalize_y=normalize).fit(X, y).certificate_
    assert verify({**asdict(certificate), "kernel": certificate.kernel}, X, y)
    more = {
        "coef": replace(certificate, coef=certificate.coef * (1 + 1e-6)),
        "coef of another shape": replace(certificate, coef=certificate.coef[:, 0]),
        "residual": replace(certificate, residual=0.0),
        "slope": replace(certificate, slope=0.5 * certificate.slope - 1e-9),
        "negative slope": replace(certificate, slope=-1.0),
    }
    for name, forged in [*forgeries(certificate, y), *more.items()]:
        verification = verify(forged, X, y)
        assert not verification, name
        assert "not computable" not in str(verification), name


def test_a_slope_is_free_only_within_the_bounds():
    X, y = rows()
    kernel = ConstantKernel(1.0, (1.0, 1.0001)) * RBF(1.0) + WhiteKernel(0.1)
    with pytest.warns(Warning, match="bound"):
        certificate = GaussianProcessRegressor(kernel).fit(X, y).certificate_
    assert certificate.verify(X, y)
    wider = copy.deepcopy(certificate.kernel)
    wider.set_params(k1__k1__constant_value_bounds=(1e-5, 1e5))
    assert not replace(certificate, kernel=wider).verify(X, y)
    outside = copy.deepcopy(certificate.kernel)
    outside.set_params(k1__k1__constant_value_bounds=(2.0, 3.0))
    assert not replace(certificate, kernel=outside).verify(X, y)


@pytest.mark.parametrize(
    "kernel", [1.0 * RBF() + WhiteKernel(0.1), 2.0 * Matern() + WhiteKernel(0.2)]
)
def test_the_evidence_lies_between_the_bounds_and_forgeries_are_not_proven(kernel):
    X, y = rows(80)
    model = SparseGaussianProcessRegressor(kernel, n_inducing=12).fit(X, y)
    certificate = model.certificate_
    exact = GaussianProcessRegressor(model.kernel_, optimizer=None).fit(X, y)
    value = exact.log_marginal_likelihood_value_
    assert certificate.verify(X, y), str(certificate.verify(X, y))
    assert -certificate.objective - certificate.objective_rounding <= value
    assert certificate.witness["upper"] >= value
    w, upper = certificate.witness, certificate.witness["upper"]
    crossed = replace(certificate, objective=-upper - 1.0, witness={**w, "upper": upper})
    false = {
        "crossed": crossed,
        "both beyond": replace(
            certificate, objective=-value - 50, witness={**w, "upper": value + 60}
        ),
        "upper below": replace(certificate, witness={**w, "upper": value - 1.0}),
        "lower above": replace(certificate, objective=-value - 1.0),
        "coefficients of points": replace(certificate, witness={**w, "points": w["points"][:, :1]}),
        "no points": replace(certificate, witness={**w, "points": w["points"][:0]}),
        "fewer points": replace(certificate, witness={**w, "points": w["points"][:2]}),
        "points that are not finite": replace(
            certificate, witness={**w, "points": w["points"] * np.nan}
        ),
        "jitter": replace(certificate, witness={**w, "jitter": 1.0}),
        "variance": replace(certificate, witness={**w, "variance": 1.0}),
        "noise": replace(certificate, witness={**w, "noise": 0.5}),
        "negative noise": replace(certificate, witness={**w, "noise": -0.05}),
        "level": replace(certificate, witness={**w, "level": y}),
        "no noise": replace(certificate, kernel=certificate.kernel.k1, witness={**w, "noise": 0.0}),
        "gap": replace(certificate, gap=0.0),
    }
    for name, forged in false.items():
        verification = verify(forged, X, y)
        assert not verification, name
        assert "not computable" not in str(verification), name


# --- faults in the prover -----------------------------------------------------------------------


def mutations():
    def slope(certify, *given):
        found = certify(*given)
        return replace(found, slope=1e-6 * found.slope)

    def wrong_coefficient(certify, kernel, X, Y, noise, coef, *rest):
        changed = coef.copy()
        changed[0] *= 1.001
        return replace(certify(kernel, X, Y, noise, coef, *rest), coef=changed)

    def skipped_row(certify, kernel, X, Y, noise, coef, value, *rest):
        keep = np.arange(len(X)) != 3
        K = kernel(X[keep]) + np.diag(noise[keep])
        a = np.linalg.solve(K, Y[keep])
        fit = -0.5 * (Y[keep] * a).sum() - 0.5 * np.linalg.slogdet(K)[1]
        value = fit - 0.5 * len(a) * math.log(2 * math.pi)
        found = certify(kernel, X[keep], Y[keep], noise[keep], a, value, *rest)
        return replace(found, coef=coef, witness={**found.witness, "noise": noise})

    def value(certify, *given):
        found = certify(*given)
        return replace(found, objective=found.objective + 1e-3)

    return [slope, wrong_coefficient, skipped_row, value]


@pytest.mark.parametrize("mutation", mutations(), ids=lambda f: f.__name__)
def test_faults_of_the_prover_are_noticed(mutation, monkeypatch):
    X, y = rows()
    certify = estimator.certify_process
    monkeypatch.setattr(estimator, "certify_process", lambda *given: mutation(certify, *given))
    model = GaussianProcessRegressor(1.0 * RBF() + WhiteKernel(0.1)).fit(X, y)
    verification = model.certificate_.verify(X, y)
    assert not verification, str(verification)
    assert "not computable" not in str(verification)


@pytest.mark.parametrize("fault", ["trace", "rows", "factor"])
def test_faults_of_the_bounds_are_noticed(fault, monkeypatch):
    X, y = rows(80)
    bound = sparse_estimator.InducingBound

    class Faulty(bound):
        def _trace(self, theta, v, B):
            found = super()._trace(theta, v, B)
            return 1e-6 * found if fault == "trace" else found

        def fit(self, theta):
            if fault == "rows":
                part = bound(self.structure, self.X[1:], self.y[1:], self.noise, self.points)
                return part.fit(theta)
            found = super().fit(theta)
            return replace(found, upper=found.lower + 1e-3) if fault == "factor" else found

    monkeypatch.setattr(sparse_estimator, "InducingBound", Faulty)
    model = SparseGaussianProcessRegressor(
        1.0 * RBF() + WhiteKernel(0.1), n_inducing=5, optimizer=None
    ).fit(X, y)
    verification = model.certificate_.verify(X, y)
    assert not verification, str(verification)
