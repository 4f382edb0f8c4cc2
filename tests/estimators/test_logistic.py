"""Logistic and softmax regression: scikit-learn's answers, proven."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.utils.estimator_checks import parametrize_with_checks

from trueline import LogisticRegression, LogisticRegressionCV, load, save, separability
from trueline.estimators.classification import logistic
from trueline.estimators.shared.classifier import encode_labels

PENALTIES = ({}, {"C": 30.0}, {"l1_ratio": 1.0}, {"l1_ratio": 0.4, "C": 0.3})
CHOICE = {"l1_ratios": (0,), "scoring": "neg_log_loss", "use_legacy_attributes": False}


def classes(k: int = 2, n: int = 200, d: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    Z = X @ random.normal(size=(d, k)) + random.gumbel(size=(n, k)) + np.arange(k)
    return X, Z.argmax(axis=1)


def objective(model, X, y, weights=1.0):
    """What is minimised, written down once more."""
    strength = 1.0 / model.C
    p = np.clip(model.predict_proba(X), 1e-300, None)
    own = p[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    coef = model.coef_
    penalty = model.l1_ratio * np.abs(coef).sum() + (1 - model.l1_ratio) / 2 * (coef**2).sum()
    return float(-(weights * np.log(own)).sum() + strength * penalty)


@parametrize_with_checks([LogisticRegression()])
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        LogisticRegression(l1_ratio=1.0),
        LogisticRegression(solver="liblinear"),
        LogisticRegressionCV(Cs=3, cv=3, **CHOICE),
    ]
)
def test_contract_with_more_settings(estimator, check):
    check(estimator)


@pytest.mark.grid(2)
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.05, 1.0, 50.0])
def test_probabilities_agree_with_scikit_learn(k, fit_intercept, C):
    X, y = classes(k)
    options = {"C": C, "fit_intercept": fit_intercept}
    ours = LogisticRegression(**options, tol=1e-6).fit(X, y)
    peer = Peer(**options, solver="newton-cholesky", tol=1e-12, max_iter=500).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-4)
    assert ours.coef_.shape == peer.coef_.shape
    assert ours.intercept_.shape == peer.intercept_.shape


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_penalties_with_absolute_values_agree_with_scikit_learn(k, l1_ratio):
    X, y = classes(k)
    options = {"C": 0.1, "l1_ratio": l1_ratio}
    ours = LogisticRegression(**options, tol=1e-6).fit(X, y)
    peer = Peer(**options, solver="saga", tol=1e-12, max_iter=20_000).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-6)
    assert objective(ours, X, y) <= objective(peer, X, y) * (1 + 1e-12)
    assert ((ours.coef_ == 0) == (np.abs(peer.coef_) < 1e-9)).all()


@pytest.mark.grid(2)
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_every_fit_is_proven_and_the_proof_verifies(kind, penalty, k, fit_intercept):
    X, y = classes(k)
    weights = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    data = {"dense": X, "sparse": sp.csr_array(X), "float32": X.astype(np.float32)}[kind]
    model = LogisticRegression(**penalty, fit_intercept=fit_intercept).fit(data, y, weights)
    certificate = model.certificate_
    assert certificate.relative_gap <= (1e-4 if kind == "float32" else 1e-6)
    if kind != "float32":
        found = objective(model, X, y, weights)
        assert certificate.objective == pytest.approx(found, rel=1e-9)
    assert model.verify(data, y, weights)
    assert model.coef_.dtype == data.dtype


@pytest.mark.grid(1)
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("k", [2, 3])
def test_tampering_is_rejected(penalty, k):
    X, y = classes(k)
    model = LogisticRegression(**penalty).fit(X, y)
    certificate = model.certificate_
    assert certificate.verify(X, y)
    for forged in (
        replace(certificate, gap=0.0),
        replace(certificate, objective=certificate.objective * (1 - 1e-6)),
        replace(certificate, coef=certificate.coef * 1.01),
        replace(
            certificate,
            intercept=certificate.intercept + np.linspace(0.01, 0.02, len(certificate.intercept)),
        ),
    ):
        assert not forged.verify(X, y)
    flipped = y.copy()
    flipped[0] = next(label for label in model.classes_ if label != y[0])
    assert not certificate.verify(X, flipped)
    assert not certificate.verify(X * 1.001, y)


@pytest.mark.grid(1)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_no_coefficients_near_or_far_are_better_by_more_than_the_gap(k, penalty):
    X, y = classes(k, n=60)
    model = LogisticRegression(**penalty, tol=1e-2).fit(X, y)
    certificate, random = model.certificate_, np.random.default_rng(2)
    coef, intercept = model.coef_.copy(), model.intercept_.copy()
    for size in (1e-6, 1e-3, 0.1, 1.0, 30.0):
        for _ in range(20):
            model.coef_ = coef + size * random.normal(size=coef.shape)
            model.intercept_ = intercept + size * random.normal(size=intercept.shape)
            assert objective(model, X, y) >= certificate.lower_bound - 1e-9


def test_without_a_penalty_it_is_maximum_likelihood():
    statsmodels = pytest.importorskip("statsmodels.api")
    X, y = classes(2)
    model = LogisticRegression(C=np.inf).fit(X, y)
    result = statsmodels.Logit(y, statsmodels.add_constant(X)).fit(disp=0, tol=1e-12)
    found = np.append(model.intercept_, model.coef_[0])
    np.testing.assert_allclose(found, result.params, rtol=1e-8, atol=1e-10)
    assert model.certificate_.kind == "curvature"
    assert model.certificate_.relative_gap < 1e-12
    assert model.verify(X, y)


def test_without_a_penalty_the_softmax_is_maximum_likelihood():
    statsmodels = pytest.importorskip("statsmodels.api")
    X, y = classes(3)
    model = LogisticRegression(C=np.inf).fit(X, y)
    result = statsmodels.MNLogit(y, statsmodels.add_constant(X)).fit(disp=0, tol=1e-12)
    found = np.hstack([model.intercept_[:, None], model.coef_])
    np.testing.assert_allclose(found[1:] - found[0], result.params.T, rtol=1e-5, atol=1e-6)
    assert model.verify(X, y).holds  # for coefficients within a radius: nothing penalises them


def test_two_classes_are_the_softmax_of_two():
    X, y = classes(2)
    binary = LogisticRegression(C=2.0, tol=1e-6).fit(X, y)
    # Twice the strength: the softmax shares each difference between two vectors.
    from trueline.design import as_design
    from trueline.losses import Softmax
    from trueline.penalties import L2
    from trueline.planner import execute, make_plan
    from trueline.problem import Problem
    from trueline.solvers.base import Monitor, Options

    problem = Problem(as_design(X), np.eye(2)[y], Softmax(), L2(1.0))
    solution = execute(problem, make_plan(problem), Options(tol=1e-13), Monitor())
    difference = solution.coef[:, 1] - solution.coef[:, 0]
    np.testing.assert_allclose(difference, binary.coef_[0], atol=1e-6)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("penalty", PENALTIES[:3], ids=str)
def test_weights_are_repetitions(k, penalty):
    X, y = classes(k, n=80)
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = LogisticRegression(**penalty, tol=1e-6).fit(X, y, counts)
    repeated = LogisticRegression(**penalty, tol=1e-6).fit(X.repeat(counts, 0), y.repeat(counts))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("weight", ["balanced", "own"])
def test_class_weights_agree_with_scikit_learn_and_verify(k, weight):
    X, y = classes(k)
    given_weights = "balanced" if weight == "balanced" else {c: 1.0 + c for c in range(k)}
    ours = LogisticRegression(class_weight=given_weights, tol=1e-6).fit(X, y)
    peer = Peer(class_weight=given_weights, solver="newton-cholesky", tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-6)
    assert ours.verify(X, y)


@pytest.mark.grid(1)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_sparse_rows_give_the_same_answer(k, penalty):
    X, y = classes(k)
    X[np.abs(X) < 0.7] = 0.0
    dense = LogisticRegression(**penalty, tol=1e-6).fit(X, y)
    for form in ("csr", "csc", "coo"):
        sparse = LogisticRegression(**penalty, tol=1e-6).fit(sp.coo_array(X).asformat(form), y)
        np.testing.assert_allclose(dense.predict_proba(X), sparse.predict_proba(X), atol=1e-6)


def test_many_columns_take_another_way_to_the_same_answer():
    random = np.random.default_rng(0)
    X = sp.random_array((150, 3000), density=0.02, random_state=0, format="csr")
    y = (X @ random.normal(size=3000) > 0).astype(int)
    for penalty in ({}, {"l1_ratio": 1.0, "C": 10.0}):
        model = LogisticRegression(**penalty, tol=1e-5).fit(X, y)
        assert model.solver_ in ("newton_cg", "dual_coordinate_descent", "working_set_newton")
        assert model.certificate_.relative_gap <= 1e-6
        assert model.verify(X, y)
    ridge = LogisticRegression(tol=1e-6).fit(X, y)
    peer = Peer(solver="newton-cg", tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ridge.predict_proba(X), peer.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
@pytest.mark.parametrize("scaling", [1.0, 10.0])
def test_liblinear_penalises_the_intercept_as_it_always_did(l1_ratio, scaling):
    X, y = classes(2)
    options = {"solver": "liblinear", "l1_ratio": l1_ratio, "intercept_scaling": scaling}
    ours = LogisticRegression(**options, tol=1e-6).fit(X, y)
    # Its order of coordinates is drawn anew each time; some never reach so fine a tolerance.
    peer = Peer(**options, tol=1e-12, max_iter=10_000, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-6)
    assert ours.verify(X, y)


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cg", "newton-cholesky", "sag", "saga"])
@pytest.mark.parametrize("k", [2, 3])
def test_all_names_of_solvers_mean_the_same_function(solver, k):
    X, y = classes(k)
    named = LogisticRegression(solver=solver).fit(X, y)
    np.testing.assert_array_equal(named.coef_, LogisticRegression().fit(X, y).coef_)


@pytest.mark.grid(1)
@pytest.mark.parametrize(
    "solver", ["newton_cg", "gradient_descent", "proximal_gradient", "mini_batch"]
)
@pytest.mark.parametrize("k", [2, 3])
def test_methods_of_the_textbook_get_there_and_leave_a_trace(solver, k):
    X, y = classes(k, n=100, d=3)
    best = LogisticRegression(C=0.1).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # by their nature slow
        model = LogisticRegression(
            C=0.1, solver=solver, trace=True, max_iter=3, tol=1e-3, random_state=0
        ).fit(X, y)
    close = 0.1 if solver == "mini_batch" else 0.01
    np.testing.assert_allclose(model.predict_proba(X), best.predict_proba(X), atol=close)
    assert model.solver_ == solver
    assert len(model.trace_["objective"]) > 1
    assert model.verify(X, y)


@pytest.mark.parametrize("k", [2, 3])
def test_scores_of_any_size_give_finite_numbers(k):
    X, y = classes(k)
    model = LogisticRegression(C=1e3).fit(X * 100, y)
    far = np.vstack([X, 1e6 * X]) * 100
    assert np.isfinite(model.predict_log_proba(far)).all()
    np.testing.assert_allclose(model.predict_proba(far).sum(axis=1), 1.0)
    assert (model.predict(far) == model.classes_[model.predict_proba(far).argmax(axis=1)]).all()


@pytest.mark.parametrize("positives", [1, 3])
def test_one_row_against_many(positives):
    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 3))
    y = np.zeros(20_000, dtype=int)
    y[:positives] = 1
    model = LogisticRegression().fit(X, y)
    assert model.intercept_[0] == pytest.approx(np.log(positives / 20_000), abs=1.0)
    assert model.certificate_.relative_gap < 1e-6
    assert model.verify(X, y)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("penalty", PENALTIES[:3], ids=str)
def test_hostile_columns(k, penalty):
    """Constants, copies, columns far from zero and of wild scales."""
    X, y = classes(k, n=120)
    X = np.hstack(
        [X, X[:, :2], np.full((120, 1), 7.0), 1e6 + X[:, :1], 1e-5 * X[:, 1:2], 0 * X[:, :1]]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # scores of 1e6 leave fewer digits
        model = LogisticRegression(**penalty).fit(X, y)
    assert model.certificate_.relative_gap < 1e-5
    assert model.verify(X, y)


def test_more_columns_than_rows():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(30, 200)), np.arange(30) % 3
    for labels in (y, y > 0):
        model = LogisticRegression(tol=1e-6).fit(X, labels)
        peer = Peer(tol=1e-10, max_iter=5000).fit(X, labels)
        np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-5)
        assert model.verify(X, labels)


@pytest.mark.parametrize("k", [2, 3])
def test_separated_classes_without_a_penalty_are_told(k):
    X = np.repeat(np.arange(float(k)), 10)[:, None] * np.array([[1.0, -1.0]])
    X += 0.01 * np.random.default_rng(0).normal(size=X.shape)
    y = np.repeat(np.arange(k), 10)
    with pytest.warns(ConvergenceWarning, match="separates the classes"):
        model = LogisticRegression(C=np.inf).fit(X, y)
    assert (model.predict(X) == y).all()
    assert model.verify(X, y)


def test_a_class_without_weight_is_never_predicted():
    X, y = classes(3)
    names = np.array(["a", "b", "c"])[y]
    model = LogisticRegression(class_weight={"a": 1, "b": 2, "c": 0}).fit(X, names)
    assert set(model.predict(X)) == {"a", "b"}
    assert (model.predict_proba(X)[:, 2] < 1e-20).all()
    assert model.verify(X, names)
    two = LogisticRegression(class_weight={"a": 1, "b": 2}, C=2.0, tol=1e-6).fit(
        X[y < 2], names[y < 2]
    )
    first = model.predict_proba(X)[:, :2]
    np.testing.assert_allclose(first, two.predict_proba(X), atol=1e-4)


def test_bad_input_is_refused_in_words():
    X, y = classes(2, n=20)
    with pytest.raises(ValueError, match="one class only"):
        LogisticRegression().fit(X, np.zeros(20))
    with pytest.raises(ValueError, match="at least two classes"):
        LogisticRegression().fit(X, y, sample_weight=(y == 0).astype(float))
    with pytest.raises(ValueError, match="Unknown label type"):
        LogisticRegression().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="NaN"):
        LogisticRegression().fit(np.where(X > 1, np.nan, X), y)
    with pytest.raises(ValueError, match="C"):
        LogisticRegression(C=0.0).fit(X, y)
    with pytest.raises(ValueError, match="Only binary"):
        LogisticRegression(solver="liblinear").fit(X, np.arange(20) % 3)
    with pytest.raises(ValueError, match="not declared"):
        LogisticRegression().fit(X, y).verify(X, y + 1)
    with pytest.warns(FutureWarning, match="penalty is deprecated"):
        LogisticRegression(penalty="l2").fit(X, y)


def test_warm_starts_begin_where_the_last_fit_ended():
    X, y = classes(3)
    model = LogisticRegression(warm_start=True).fit(X, y)
    cold = int(model.n_iter_[0])
    again = int(model.fit(X, y).n_iter_[0])
    assert again < cold
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(X[:, :2], y)


def test_sparse_coefficients_predict_the_same():
    X, y = classes(3)
    model = LogisticRegression(l1_ratio=1.0, C=0.05).fit(X, y)
    before = model.decision_function(X)
    assert sp.issparse(model.sparsify().coef_)
    np.testing.assert_allclose(model.decision_function(X), before)
    assert model.verify(X, y)
    assert isinstance(model.densify().coef_, np.ndarray)


@pytest.mark.parametrize("k", [2, 3])
def test_models_are_saved_and_loaded(k, tmp_path):
    X, y = classes(k)
    model = LogisticRegression().fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.verify(X, y)
    assert "newton" in str(again.explain())


@pytest.mark.parametrize("k", [2, 3])
def test_cross_validation_chooses_as_scikit_learn_does(k):
    from sklearn.linear_model import LogisticRegressionCV as PeerCV

    X, y = classes(k, n=90, d=3)
    options = {"Cs": 5, "cv": 3, **CHOICE}
    ours = LogisticRegressionCV(**options, tol=1e-6).fit(X, y)
    peer = PeerCV(**options, solver="newton-cholesky", tol=1e-10, max_iter=500).fit(X, y)
    assert ours.C_ == peer.C_
    np.testing.assert_allclose(ours.scores_, peer.scores_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-5)
    assert ours.coefs_paths_.shape == peer.coefs_paths_.shape
    assert ours.n_iter_.shape == peer.n_iter_.shape
    assert ours.verify(X, y)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(4, 40),
    d=st.integers(1, 6),
    k=st.integers(2, 4),
    C=st.sampled_from((1e-4, 0.1, 1.0, 10.0, 1000.0)),
    l1_ratio=st.sampled_from((0.0, 0.5, 1.0)),
    fit_intercept=st.booleans(),
)
def test_any_small_problem_is_solved_and_proven(seed, n, d, k, C, l1_ratio, fit_intercept):
    random = np.random.default_rng(seed)
    X = np.round(random.normal(size=(n, d)), 1) * random.choice([1e-2, 1.0, 1e2], size=d)
    y = np.append(np.arange(k), random.integers(0, k, max(0, n - k)))[: max(n, k)]
    X = np.vstack([X, X[: len(y) - n]]) if len(y) > n else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=C, l1_ratio=l1_ratio, fit_intercept=fit_intercept).fit(X, y)
    assert model.verify(X, y)
    assert model.certificate_.relative_gap < 1e-3


@pytest.mark.parametrize("place", [0, 7, 41_000])
def test_one_row_of_a_class_among_very_many(place):
    """A sample of the rows that shows one class only says nothing about the intercept."""
    n = 50_000
    X = np.random.default_rng(2).standard_normal((n, 2))
    y = (np.arange(n) == place).astype(int)
    model = LogisticRegression().fit(X, y)
    assert np.isfinite(model.intercept_).all()
    assert model.certificate_.relative_gap <= 1e-6
    assert model.verify(X, y)
    # The probabilities add up to the count, as the derivative by the intercept says.
    assert_allclose(model.predict_proba(X)[:, 1].sum(), 1.0, rtol=1e-3)


def test_a_search_keeps_the_names_of_the_columns():
    X, y = load_iris(return_X_y=True, as_frame=True)
    search = LogisticRegressionCV(
        Cs=3, l1_ratios=(0.0,), scoring="accuracy", use_legacy_attributes=False
    )
    model = search.fit(X, y)
    assert list(model.feature_names_in_) == list(X.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X.rename(columns={X.columns[0]: "other"}))


def test_a_search_is_explained_before_it_is_run():
    X, y = load_iris(return_X_y=True)
    search = LogisticRegressionCV(
        Cs=[0.1, 1.0], l1_ratios=(0.0, 0.5), scoring="accuracy", use_legacy_attributes=False
    )
    text = str(search.explain(X, y))
    assert "C the best of 2 from 0.1 to 1,  l1_ratio the best of 0, 0.5" in text
    assert not hasattr(search, "C")


@pytest.mark.parametrize("dtype", [object, "U5"])
def test_words_are_encoded_as_sorting_would(dtype):
    y = np.array(["b", "a", "c", "b", "a", "c", "a"], dtype=dtype)
    classes, codes = encode_labels(y, "model")
    expected, places = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(codes, places)
    assert classes.dtype == expected.dtype


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint8, np.float32])
@pytest.mark.parametrize("labels", [[0, 1], [3, 100], [0, 60, 127]])
def test_numbers_are_encoded_as_sorting_would(labels, dtype):
    y = np.array(labels * 120, dtype=dtype)
    for labelled in (y, y - dtype(100)) if dtype != np.uint8 else (y,):
        classes, codes = encode_labels(labelled, "model")
        expected, places = np.unique(labelled, return_inverse=True)
        np.testing.assert_array_equal(classes, expected)
        np.testing.assert_array_equal(codes, places)
        assert classes.dtype == expected.dtype


def test_labels_farther_apart_than_their_type_reaches():
    y = np.array([-128, 0, 127] * 100, dtype=np.int8)
    classes, codes = encode_labels(y, "model")
    assert classes.tolist() == [-128, 0, 127]
    assert codes[:3].tolist() == [0, 1, 2]


def test_labels_that_are_no_words_are_still_refused():
    X, y = np.arange(12.0).reshape(6, 2), np.array(["spam", "ham"] * 3, dtype=object)
    y[3] = 1.5
    with pytest.raises(TypeError, match="several types"):
        LogisticRegression().fit(X, y)
    y[3] = None
    with pytest.raises((TypeError, ValueError)):
        LogisticRegression().fit(X, y)


def test_separated_classes_take_few_steps():
    """Beyond a point that separates them the losses vanish along a line."""
    X, _ = classes()
    y = X[:, 0] - 2 * X[:, 1] > 0.3
    with pytest.warns(ConvergenceWarning, match="A hyperplane separates the classes. Separable"):
        model = LogisticRegression(C=np.inf).fit(X, y)
    assert model.n_iter_[0] <= 8
    assert model.certificate_.gap <= 1e-8 * len(y)
    assert (model.predict(X) == y).all()
    assert model.separability_.is_separable


@pytest.mark.parametrize("is_dependent", [False, True])
def test_curvature_that_proves_a_maximum_spares_the_exact_decision(is_dependent, monkeypatch):
    """Scores are extreme, and the rows overlap: one of each class is far on the other's side."""
    X = np.random.default_rng(0).normal(size=(300, 2))
    X[0] = 40.0, 0.0
    y = X[:, 0] + 0.3 * np.random.default_rng(1).normal(size=300) > 0
    if is_dependent:
        X = np.column_stack([X, X[:, 0] - X[:, 1]])
    monkeypatch.setattr(logistic, "separate", None)
    model = LogisticRegression(C=np.inf).fit(X, y)
    assert np.abs(model.decision_function(X)).max() > 25
    assert not hasattr(model, "separability_")
    assert separability(X, y).verdict == "not separable"
    assert model.verify(X, y).holds


def test_no_solver_takes_over_where_some_rows_are_separated():
    """One column tells some rows of a class; the other rows overlap, and have their best fit."""
    X, y = classes()
    tells = np.where((y == 1) & (np.arange(len(y)) % 3 == 0), 1.0, 0.0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = LogisticRegression(C=np.inf).fit(np.column_stack([X, tells]), y)
    assert [entry.category for entry in said] == [ConvergenceWarning, ConvergenceWarning]
    assert "the coefficients grow without end" in str(said[0].message)
    assert "but for rows on it" in str(said[1].message)
    assert "stages" not in str(model.explain())
    others = LogisticRegression(C=np.inf).fit(X[tells == 0], y[tells == 0])
    assert_allclose(model.coef_[0, :-1], others.coef_[0], rtol=1e-3)
    assert model.separability_.verdict == "quasi-separable"
    assert model.separability_.verify(np.column_stack([X, tells]), y)
