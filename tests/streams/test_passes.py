"""How often the rows of a fit are read: as often as explain() says before, and no more."""

import numpy as np
import pytest
from sklearn.base import clone

import trueline
from trueline import (
    GammaRegressor,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    TweedieRegressor,
)
from trueline.design import DenseDesign
from trueline.design.stacked import sums_at

N, D = 30_000, 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)) * np.arange(1, D + 1) + [0, 0, 10, 0, -1, 0]
SCORE = 0.2 * (X - X.mean(axis=0)) @ RNG.standard_normal(D)
TARGETS = {
    "kind": np.where(SCORE + RNG.logistic(size=N) > 0, "yes", "no"),
    "count": RNG.poisson(np.exp(0.5 * SCORE)),
    "cost": np.exp(0.5 * SCORE) * RNG.gamma(2.0, 1.0, N),
}
MODELS = [
    (LogisticRegression(), "kind"),
    (LogisticRegression(C=np.inf), "kind"),
    (LogisticRegression(C=1e-3, fit_intercept=False), "kind"),
    (LinearSVC(), "kind"),
    (LinearSVC(C=100.0), "kind"),
    (PoissonRegressor(), "count"),
    (GammaRegressor(alpha=0.1), "cost"),
    (TweedieRegressor(power=1.5), "cost"),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("model", "target"), MODELS, ids=str)
def test_newton_reads_the_rows_a_few_times(model, target, dtype):
    y = TARGETS[target]
    rows = trueline.open(X.astype(dtype), target=y, memory="1MB")
    model = clone(model)
    said = next(line for line in str(model.explain(rows)).splitlines() if line.startswith("cost"))
    assert "cost       7 passes over the data" in said
    before = rows.passes
    model.fit(rows)
    assert rows.passes - before <= 8
    whole = clone(model).set_params(tol=1e-14).fit(X.astype(dtype), y)
    assert model.certificate_.relative_gap <= 1e-8
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-6)
    assert model.verify(rows)
    assert model.verify(X.astype(dtype), y)


def test_rows_that_mislead_the_sample_cost_a_few_passes_more():
    """Every step is a line search still: heavy rows that the sample has not seen."""
    Z, y = X.copy(), np.where(TARGETS["kind"] == "yes", 1, -1)
    far = np.arange(17, N, 1500)
    Z[far] *= 200.0
    y[far] = -np.sign(SCORE[far])
    rows = trueline.open(Z, target=y, memory="1MB")
    model = LogisticRegression(C=0.1).fit(rows)
    whole = LogisticRegression(C=0.1, tol=1e-14).fit(Z, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-7, atol=1e-10)
    assert rows.passes <= 20
    assert model.verify(rows)


def test_scores_are_kept_during_a_fit_alone():
    rows = trueline.open(X, target=SCORE, memory="1MB")
    W = RNG.standard_normal((D, 1))
    rows.remember(is_fit=True)
    first, passes = rows.matvec(W), rows.passes
    np.testing.assert_array_equal(rows.matvec(W[:, 0]), first[:, 0])
    assert rows.passes == passes
    rows.remember(is_fit=False)
    np.testing.assert_array_equal(rows.matvec(W), first)
    rows.matvec(W)
    assert rows.passes == passes + 2


@pytest.mark.parametrize("rows_each", ["64KB", "1MB", "1GB"])
def test_sums_of_one_pass_are_those_of_three(rows_each):
    rows = trueline.open(X, target=SCORE, memory=rows_each)
    w = RNG.standard_normal(D)

    def derive(z, y):
        return z - y, np.abs(z)

    z, pulled, gram, total = sums_at(rows, w, derive, SCORE)
    h = np.abs(X @ w)
    np.testing.assert_allclose(z, X @ w, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(pulled, X.T @ (X @ w - SCORE), rtol=1e-10)
    np.testing.assert_allclose(gram, (X.T * h) @ X, rtol=1e-10)
    np.testing.assert_allclose(total, X.T @ h, rtol=1e-9, atol=1e-6)
    for one, other in zip(sums_at(DenseDesign(X), w, derive, SCORE), (z, pulled, gram, total)):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-6)


def test_the_first_pass_sees_the_ends_of_the_columns_and_some_rows():
    rows = trueline.open(X, target=SCORE, memory="1MB")
    np.testing.assert_array_equal(rows.column_largest(), np.abs(X).max(axis=0))
    assert rows.passes == 1
    shift = X.mean(axis=0)
    assert rows.farthest(shift) >= np.square(X - shift).sum(axis=1).max()
    places = rows.sample(100)
    np.testing.assert_array_equal(rows.take(places).toarray(), X[places])
    assert rows.passes == 1
    assert (np.diff(places) > 0).all()
    np.testing.assert_array_equal(
        rows[:, [1, 3]].column_largest(), np.abs(X[:, [1, 3]]).max(axis=0)
    )
