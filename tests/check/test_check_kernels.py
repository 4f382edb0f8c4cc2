"""Kernel values of the checker: within their bounds of the formulas in numbers of fifty digits."""

import numpy as np
import pytest
import scipy.sparse as sp
from mpmath import mp, mpf
from sklearn.gaussian_process import kernels as gp

from trueline import SVC, GaussianProcessRegressor, KernelRidge
from trueline.check.arithmetic import Ball
from trueline.check.kernels import PairwiseKernel, covariance_of, recognised

mp.dps = 50
N = 7


def dot(x, z):
    return mp.fdot(zip(x, z))


def away(x, z):
    return mp.fsum((a - b) ** 2 for a, b in zip(x, z))


GAMMA, COEF0 = 0.37, 0.8
FORMULAS = {
    "linear": dot,
    "cosine": lambda x, z: dot(x, z) / mp.sqrt(dot(x, x) * dot(z, z)) if any(x) and any(z) else 0,
    "poly": lambda x, z: (mpf(GAMMA) * dot(x, z) + mpf(COEF0)) ** 3,
    "sigmoid": lambda x, z: mp.tanh(mpf(GAMMA) * dot(x, z) + mpf(COEF0)),
    "rbf": lambda x, z: mp.exp(-mpf(GAMMA) * away(x, z)),
    "laplacian": lambda x, z: mp.exp(-mpf(GAMMA) * mp.fsum(abs(a - b) for a, b in zip(x, z))),
    "additive_chi2": lambda x, z: -mp.fsum((a - b) ** 2 / (a + b) for a, b in zip(x, z) if a != b),
}
FORMULAS["chi2"] = lambda x, z: mp.exp(mpf(GAMMA) * FORMULAS["additive_chi2"](x, z))


def rows(make):
    """Rows that are not negative, a pair of which is the same and one of which is zero."""
    X = np.abs(np.random.default_rng(3).normal(size=(N, 4)))
    X[2], X[5] = X[4], 0.0
    if make == "offset":
        X = X + 1e5
    if make in ("tiny", "huge"):
        X = X * {"tiny": 1e-9, "huge": 1e9}[make]
    if make == "sparse":
        return sp.csr_array(np.where(X > 1.0, 0.0, X))
    if make == "sums":  # entries that are stored as sums of two that nearly cancel
        place = np.divmod(np.arange(2 * X.size) // 2, X.shape[1])
        data = np.repeat(X.ravel(), 2) * np.tile([2.0**20, 1 - 2.0**20], X.size)
        return sp.csr_array(sp.coo_array((data, place), shape=X.shape).tocsr(copy=False))
    return X


@pytest.mark.grid(1)
@pytest.mark.parametrize("make", ["plain", "offset", "tiny", "huge", "sparse", "sums"])
@pytest.mark.parametrize("name", FORMULAS)
def test_values_lie_within_their_bounds(name, make):
    X = rows(make)
    kernel = {"metric": name, "gamma": GAMMA, "coef0": COEF0, "degree": 3}
    K = PairwiseKernel(kernel, X).whole()
    exact = [[mpf(float(v)) for v in row] for row in (X.toarray() if sp.issparse(X) else X)]
    for i in range(N):
        for j in range(N):
            truth = FORMULAS[name](exact[i], exact[j])
            assert abs(mpf(float(K.mid[i, j])) - truth) <= mpf(float(K.rad[i, j])), (i, j)
    if make in ("plain", "sparse"):
        assert (K.rad <= 1e-13 * (1 + np.abs(K.mid))).all()  # and the bounds say something


def test_matrices_that_are_given_are_symmetric_up_to_what_they_are_not():
    K = np.array([[2.0, 1.0], [1.5, 3.0]])
    ball = PairwiseKernel({"metric": "precomputed"}, K).whole()
    assert (np.abs(K - ball.mid) <= ball.rad).all()
    assert (np.abs(K.T - ball.mid) <= ball.rad).all()
    exact = PairwiseKernel({"metric": "precomputed"}, K + K.T).whole()
    assert not exact.rad.any()


@pytest.mark.parametrize("seed", range(5))
def test_balls_hold_the_sums_products_and_functions_of_what_they_hold(seed):
    generator = np.random.default_rng(seed)
    x, z = generator.normal(size=(2, 50)) * 10.0 ** generator.uniform(-6, 2, (2, 50))
    a, b = Ball(x, 1e-9 * np.abs(x)), Ball(z, 1e-12)
    found = {
        "add": (a + b, lambda u, v: u + v),
        "subtract": (a - b, lambda u, v: u - v),
        "multiply": (a * b, lambda u, v: u * v),
        "exp": (a.exp(), lambda u, v: mp.exp(u)),
        "sqrt": (abs(a).sqrt(), lambda u, v: mp.sqrt(abs(u))),
        "log1p": (abs(a).log1p(), lambda u, v: mp.log1p(abs(u))),
        "tanh": (a.smooth(np.tanh), lambda u, v: mp.tanh(u)),
        "cube": (a.power(3), lambda u, v: u**3),
    }
    for name, (ball, truth) in found.items():
        for i in range(50):
            for one in (-1, 0, 1):
                u = mpf(x[i]) * (1 + one * mpf("0.999e-9"))
                v = mpf(z[i]) + one * mpf("0.999e-12")
                off = abs(truth(u, v) - mpf(float(ball.mid[i])))
                assert off <= mpf(float(ball.rad[i])), (name, i)


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e5, 1e12, 1e60, 1e100])
def test_the_rational_quadratic_kernel_of_a_large_shape_keeps_its_digits(alpha):
    """(1 + s / (2 alpha))^-alpha, which is exp(-s / 2) in the end, and its derivatives."""
    X = np.random.default_rng(0).normal(size=(5, 2))
    kernel = recognised(gp.RationalQuadratic(0.7, alpha, alpha_bounds=(1e-4, 1e101)))
    K, (in_alpha, in_length) = covariance_of(kernel, X, X, np.eye(5))
    mp.dps = 250
    try:
        for i in range(5):
            for j in range(5):
                s = away(map(mpf, X[i]), map(mpf, X[j])) / mpf(0.7) ** 2
                t, p = s / (2 * mpf(alpha)), mpf(alpha)
                k = mp.exp(-p * mp.log1p(t))
                slope = p * k * (t / (1 + t) - mp.log1p(t))
                for ball, truth in ((K, k), (in_alpha, slope), (in_length, s * k / (1 + t))):
                    off = abs(mpf(float(ball.mid[i, j])) - truth)
                    assert off <= mpf(float(ball.rad[i, j]))
                    assert ball.rad[i, j] <= 1e-13
    finally:
        mp.dps = 50


# --- gaps below the errors of kernel values -----------------------------------------------------


def fits():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(12, 2)) + 3e5
    y = np.where(X[:, 0] > X[:, 0].mean(), 1, 0)
    # Distances of sparse rows are made of products, which cancel; filled rows are taken as dense.
    sparse = sp.csr_array(np.hstack([X, np.zeros((12, 30))]))
    yield SVC(kernel="rbf", gamma=0.5), sparse, y
    yield SVC(kernel="poly", degree=2, gamma=1e-10, coef0=1.0), X, y
    yield KernelRidge(kernel="rbf", gamma=0.5, alpha=0.1), sparse, y


@pytest.mark.parametrize("place", range(3))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_gap_is_below_what_the_errors_of_kernel_values_leave(place):
    """The least gap that is accepted is above the errors that the values of the kernel may have."""
    from dataclasses import replace

    model, X, y = list(fits())[place]
    certificate = model.fit(X, y).certificate_
    assert certificate.verify(X, y)
    kernel = certificate.kernel
    K = PairwiseKernel(kernel, X).whole()
    beta = np.zeros(12)
    beta[getattr(certificate, "support", slice(None))] = np.ravel(certificate.coef)
    if isinstance(model, SVC):
        error = np.abs(beta) @ K.rad @ np.abs(beta)
    else:
        error = 0.5 * float(((K.rad @ np.abs(beta)) ** 2).sum())
    assert error > 0
    for share in (0.0, 0.5, 0.9):
        assert not replace(certificate, gap=share * error).verify(X, y)


# --- rows of single precision -------------------------------------------------------------------


class Rough(gp.Kernel):
    """A kernel of one's own that computes in the precision of its rows."""

    def __init__(self, height=1.0):
        self.height = height

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        K = np.exp(-((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2)) * X.dtype.type(self.height)
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X):
        return np.full(len(X), self.height)

    def is_stationary(self):
        return True


def test_kernels_of_ones_own_are_asked_in_double_precision():
    generator = np.random.default_rng(0)
    X, y = (generator.normal(size=s).astype(np.float32) for s in ((15, 2), 15))
    process = GaussianProcessRegressor(Rough(), alpha=0.1, optimizer=None).fit(X, y)
    assert process.verify(X, y), str(process.verify(X, y))
    ridge = KernelRidge(kernel=lambda x, z: np.exp(-((x - z) ** 2).sum()), alpha=1e-3).fit(X, y)
    assert ridge.verify(X, y), str(ridge.verify(X, y))


class Lopsided(Rough):
    def __call__(self, X, Y=None, eval_gradient=False):
        found = super().__call__(X, Y, eval_gradient)
        K = found[0] if eval_gradient else found
        K[np.triu_indices(min(K.shape), 1)] *= 1.001
        return found


def test_a_matrix_that_is_not_symmetric_has_no_likelihood():
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(15, 2)), generator.normal(size=15)
    certificate = (
        GaussianProcessRegressor(Rough(), alpha=0.1, optimizer=None).fit(X, y).certificate_
    )
    object.__setattr__(certificate, "kernel", Lopsided())
    verification = certificate.verify(X, y)
    assert not verification
    assert "not computable" not in str(verification)
