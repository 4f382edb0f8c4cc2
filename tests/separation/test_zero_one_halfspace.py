"""ZeroOneHalfspace: what it finds, what it proves, and how it takes its data."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.svm import LinearSVC

from trueline import ZeroOneHalfspace, load, save

XOR = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def noisy(n, d, seed=0):
    generator = np.random.default_rng([seed, n, d])
    X = generator.standard_normal((n, d))
    y = X @ generator.standard_normal(d) + 0.3 > 0
    y[generator.choice(n, n // 10, replace=False)] ^= True
    return X, y.astype(int)


X, Y = noisy(120, 3)


@pytest.fixture(scope="module")
def model():
    return ZeroOneHalfspace().fit(X, Y)


def test_errors_are_those_of_predict(model):
    wrong = np.flatnonzero(model.predict(X) != Y)
    assert np.array_equal(model.errors_, wrong)
    assert model.n_errors_ == len(wrong) == model.error_weight_ == model.lower_bound_
    assert model.proven_
    assert np.array_equal(model.decision_function(X) > 0, model.predict(X) == 1)


def test_certificate_holds_and_is_about_this_model(model):
    assert model.verify(X, Y)
    assert model.certificate_.gap == 0
    assert model.certificate_.kind in ("zero-one packing", "zero-one search")


@pytest.mark.parametrize("scale", [5e-324 * 2**40, 1e-310, 1e-300, 1e300])
def test_columns_of_any_size_give_the_same_errors(model, scale):
    other = ZeroOneHalfspace().fit(np.ldexp(X, int(np.log2(scale))), Y)
    assert np.isfinite(other.coef_).all()
    # The smallest columns are rounded to what is left of their digits.
    assert other.n_errors_ <= model.n_errors_ + 3
    assert other.verify(np.ldexp(X, int(np.log2(scale))), Y)


def tampered(certificate, **witness):
    return replace(certificate, witness={**certificate.witness, **witness})


@pytest.mark.parametrize(
    "what", ["coefficients", "labels", "members", "charges", "bound", "errors"]
)
def test_tampering_is_found(model, what):
    certificate, y = model.certificate_, np.where(Y == 1, 1.0, -1.0)
    witness = certificate.witness
    if what == "coefficients":
        certificate = replace(certificate, coef=-certificate.coef)
    elif what == "labels":
        y = -y
    elif what == "members":
        certificate = tampered(certificate, members=np.roll(witness["members"], 1))
    elif what == "charges":
        certificate = tampered(certificate, charges=2 * witness["charges"])
    elif what == "bound":
        certificate = replace(certificate, gap=-1.0)
    else:
        certificate = replace(certificate, objective=certificate.objective - 1)
    assert not certificate.verify(X, y)


def test_a_packing_may_not_claim_what_its_conflicts_do_not_give(model):
    witness = {**model.certificate_.witness}
    fewer = tampered(
        replace(model.certificate_, kind="zero-one packing"),
        members=witness["members"][: int(witness["ends"][0])],
        ends=witness["ends"][:1],
        charges=witness["charges"][:1],
    )
    assert not fewer.verify(X, np.where(Y == 1, 1.0, -1.0))


def test_separable_data_have_no_errors_and_a_margin():
    y = X @ [1.0, -2.0, 0.5] > 0.2
    model = ZeroOneHalfspace().fit(X, y)
    assert (model.n_errors_, model.lower_bound_, model.certificate_.kind) == (
        0,
        0,
        "zero-one packing",
    )
    assert model.verify(X, y)
    assert np.abs(model.decision_function(X)).min() > 1e-3


def test_exclusive_or_costs_one_error():
    model = ZeroOneHalfspace().fit(XOR, [0, 1, 1, 0])
    assert (model.n_errors_, model.certificate_.kind) == (1, "zero-one packing")
    assert model.verify(XOR, [0, 1, 1, 0])


def test_a_row_on_the_boundary_is_an_error():
    # Without an intercept, zero is on every boundary, and of opposite rows one is wrong.
    rows = np.array([[0.0, 0.0], [1.0, 2.0], [-2.0, -4.0], [3.0, 1.0]])
    model = ZeroOneHalfspace(fit_intercept=False).fit(rows, [0, 1, 1, 1])
    assert model.n_errors_ == model.lower_bound_ == 2
    assert 0 in model.errors_
    assert model.intercept_.tolist() == [0.0]
    assert model.verify(rows, [0, 1, 1, 1])


def test_contradictory_rows_cost_the_lighter_label():
    rows = np.array([[1.0], [1.0], [1.0], [2.0], [2.0]])
    labels, weights = ["a", "b", "b", "a", "b"], [5.0, 1.0, 1.0, 1.0, 3.0]
    model = ZeroOneHalfspace().fit(rows, labels, sample_weight=weights)
    assert model.error_weight_ == model.lower_bound_ == 3.0
    assert model.predict([[1.0], [2.0]]).tolist() == ["a", "b"]
    assert model.verify(rows, labels, sample_weight=weights)
    every = ZeroOneHalfspace().fit(np.ones((4, 1)), [0, 1, 0, 1])
    assert (every.n_errors_, every.lower_bound_) == (2, 2)


def test_weights_mean_copies_and_zero_means_absent():
    weights = np.random.default_rng(3).integers(0, 3, len(Y))
    weighted = ZeroOneHalfspace().fit(X, Y, sample_weight=weights)
    copies = ZeroOneHalfspace().fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    assert weighted.error_weight_ == copies.n_errors_ == weighted.lower_bound_
    assert (weights[weighted.errors_] > 0).all()
    assert weighted.verify(X, Y, sample_weight=weights)
    assert not weighted.verify(X, Y)


def test_class_weights_multiply():
    heavy = ZeroOneHalfspace(class_weight={0: 50, 1: 1}).fit(X, Y)
    assert (Y[heavy.errors_] == 1).mean() > 0.9
    assert heavy.verify(X, Y)
    balanced = ZeroOneHalfspace(class_weight="balanced").fit(X, Y)
    assert balanced.proven_
    assert balanced.verify(X, Y)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix, pd.DataFrame, np.float32, list])
def test_containers(model, container):
    if container is list:
        data = X.tolist()
    elif container is np.float32:
        data = X.astype(np.float32)
    elif container is pd.DataFrame:
        data = pd.DataFrame(X, columns=["a", "b", "c"])
    else:
        data = container(X)
    other = ZeroOneHalfspace().fit(data, Y)
    assert other.n_errors_ == model.n_errors_ == np.sum(other.predict(data) != Y)
    assert other.verify(data, Y)


@pytest.mark.parametrize("solver", ["local_search", "highs"])
def test_solvers_by_name(model, solver):
    few, labels = X[:60], Y[:60]
    best = ZeroOneHalfspace().fit(few, labels)
    other = ZeroOneHalfspace(solver=solver).fit(few, labels)
    assert other.solver_ == solver
    assert other.lower_bound_ <= best.n_errors_ <= other.n_errors_
    assert other.verify(few, labels)
    if solver == "highs":
        assert other.n_errors_ == best.n_errors_
        assert "HiGHS reports a bound" in str(other.explain())


@pytest.mark.parametrize(("n", "d"), [(300, 2), (200, 5), (100, 10), (100, 20)])
def test_no_worse_than_the_usual_classifiers(n, d):
    rows, labels = noisy(n, d)
    ours = ZeroOneHalfspace().fit(rows, labels)
    assert ours.proven_
    others = [LogisticRegression(), LinearSVC(max_iter=10_000), Perceptron()]
    fewest = min(np.sum(other.fit(rows, labels).predict(rows) != labels) for other in others)
    assert ours.n_errors_ <= fewest


def test_time_limit_warns_and_the_bound_is_honest():
    generator = np.random.default_rng(0)
    rows, labels = generator.standard_normal((80, 10)), generator.integers(0, 2, 80)
    with pytest.warns(ConvergenceWarning, match="none has less than"):
        short = ZeroOneHalfspace(time_limit=0.05).fit(rows, labels)
    assert not short.proven_
    assert 0 < short.lower_bound_ < short.n_errors_
    assert short.verify(rows, labels)
    with pytest.warns(ConvergenceWarning):
        none = ZeroOneHalfspace(time_limit=0).fit(rows, labels)
    assert none.lower_bound_ <= short.lower_bound_
    assert none.verify(rows, labels)


def test_wide_data_are_separated():
    rows = np.random.default_rng(0).standard_normal((20, 50))
    labels = np.arange(20) % 2
    model = ZeroOneHalfspace().fit(rows, labels)
    assert model.n_errors_ == 0
    assert model.verify(rows, labels)


def test_more_than_two_classes_are_refused_with_advice():
    with pytest.raises(ValueError, match=r"two classes, but y has 3.*OneVsRest"):
        ZeroOneHalfspace().fit(X, np.arange(len(Y)) % 3)


def test_trace_and_explanation(model):
    assert model.trace_["gap"][-1] == 0 if len(model.trace_) else True
    text = str(model.explain())
    assert "branch_and_bound" in text
    assert "proven" in text
    assert "branch_and_bound" in str(ZeroOneHalfspace().explain(X, Y))


def test_files(model, tmp_path):
    again = load(save(model, tmp_path / "m.trueline"))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.verify(X, Y)
