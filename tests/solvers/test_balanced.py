"""Columns of any size: classifiers reach the optimum, and prove it where digits allow."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning

from trueline import LogisticRegression

# Years, incomes, seconds and milliseconds since 1970: size and mean of the first column.
COLUMNS = {"year": (10.0, 2e3), "income": (3e4, 5e4), "second": (1e7, 1.6e9), "ms": (1e10, 1.6e12)}
PROVEN = {"year": 1e-6, "income": 2e-5}  # of three classes; of two, everything is
L1_RATIOS = [1.0, 0.5, 0.0]


def rows(classes, n=200, seed=0):
    generator = np.random.default_rng(seed)
    base = generator.normal(size=(n, 4))
    scores = base @ generator.normal(size=(4, 3)) + generator.gumbel(size=(n, 3))
    label = np.argmax(scores, axis=1)
    return base, label if classes == 3 else (label > 0).astype(int)


def least_objective(base, label, size, l1_ratio):
    """By SciPy in coordinates in which all columns are alike, signs apart.

    Two classes have one score; three have one each.
    """
    d, classes = base.shape[1], label.max() + 1
    k = classes if classes > 2 else 1
    t = np.ones(d)
    t[0] = size
    hot = np.eye(classes)[label]

    def value(flat):
        up, down, b = flat[: d * k], flat[d * k : 2 * d * k], flat[2 * d * k :]
        v = (up - down).reshape(d, k)
        z = base @ v + b
        z = z if k > 1 else np.hstack([-z / 2, z / 2])
        log_p = log_softmax(z, axis=1)
        residual = np.exp(log_p) - hot
        residual = residual if k > 1 else residual[:, 1:]
        price, curvature = l1_ratio / t[:, None], (1 - l1_ratio) / t[:, None] ** 2
        total = -(hot * log_p).sum() + (curvature / 2 * v**2).sum()
        total += (price * (up + down).reshape(d, k)).sum()
        slope = base.T @ residual + curvature * v
        gradient = [(slope + price).ravel(), (price - slope).ravel(), residual.sum(axis=0)]
        return total, np.concatenate(gradient)

    bounds = [(0, None)] * (2 * d * k) + [(None, None)] * k
    options = {"maxiter": 10_000, "ftol": 1e-15, "gtol": 1e-9, "maxfun": 100_000}
    return scipy.optimize.minimize(
        value, np.zeros(len(bounds)), jac=True, bounds=bounds, options=options
    ).fun


@pytest.mark.grid(2)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("l1_ratio", L1_RATIOS)
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.filterwarnings("ignore:LogisticRegression stopped short")
def test_columns_of_any_size_lead_to_the_optimum(name, l1_ratio, classes):
    base, y = rows(classes)
    size, mean = COLUMNS[name]
    X = base.copy()
    X[:, 0] = size * X[:, 0] + mean
    model = LogisticRegression(l1_ratio=l1_ratio).fit(X, y)
    # X has rounded away some digits of the base, as many as its mean has more than its size.
    best = least_objective(base, y, size, l1_ratio)
    assert_allclose(model.certificate_.objective, best, rtol=1e-6)
    assert model.certificate_.verify(X, y)
    if classes == 2 or name in PROVEN:
        assert model.certificate_.relative_gap <= PROVEN.get(name, 1e-6)


def test_sparse_columns_of_any_size():
    base, y = rows(3)
    base[np.abs(base) < 0.5] = 0.0
    X = base * [3e4, 1.0, 1.0, 1e-3]
    sparse_model = LogisticRegression(l1_ratio=1.0, fit_intercept=False).fit(sp.csr_array(X), y)
    dense_model = LogisticRegression(l1_ratio=1.0, fit_intercept=False).fit(X, y)
    assert sparse_model.certificate_.verify(X, y)
    assert_allclose(
        sparse_model.certificate_.objective, dense_model.certificate_.objective, rtol=1e-7
    )
    assert_allclose(
        sparse_model.coef_ * [3e4, 1, 1, 1e-3], dense_model.coef_ * [3e4, 1, 1, 1e-3], atol=1e-4
    )


def test_the_trace_ends_at_the_answer():
    base, y = rows(3)
    X = base * [3e4, 1.0, 1.0, 1.0] + [5e4, 0, 0, 0]
    model = LogisticRegression(trace=True).fit(X, y)
    assert_allclose(model.trace_["objective"][-1], model.certificate_.objective, rtol=1e-9)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_the_proof_by_curvature_of_absolute_values_rejects_tampering(l1_ratio):
    base, y = rows(2)
    X = base * [1e10, 1.0, 1.0, 1.0] + [1.6e12, 0, 0, 0]
    X = np.hstack([X, np.random.default_rng(1).normal(size=(len(X), 3))])
    certificate = LogisticRegression(l1_ratio=l1_ratio, C=0.05).fit(X, y).certificate_
    assert certificate.kind == "curvature"
    assert (certificate.coef == 0).any()
    assert certificate.verify(X, y)
    moved = certificate.coef.copy()
    moved[1] += 1e-3
    zero = np.flatnonzero(certificate.coef[:, 0] == 0)[0]
    raised = certificate.coef.copy()
    raised[zero] = 1e-3
    nearer = {"reach": certificate.witness["reach"] * 1e-9}
    for forged in (
        replace(certificate, coef=moved),
        replace(certificate, coef=raised),
        replace(certificate, gap=0.0),
        replace(certificate, witness={**certificate.witness, **nearer}),
    ):
        assert not forged.verify(X, y)


def test_what_cannot_be_proven_is_said():
    base, y = rows(3)
    X = base * [1e12, 1.0, 1.0, 1.0]
    with pytest.warns(ConvergenceWarning, match="stopped short"):
        LogisticRegression(l1_ratio=1.0).fit(X, y)
