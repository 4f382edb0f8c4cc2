"""Every fit comes to an end: solved, or short of it and saying so, or with an error that helps."""

import warnings

import numpy as np
import pytest
from machines import labelled
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from trueline import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM, maximum_margin

XOR = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), np.array([0, 0, 1, 1])


def _apart(n=30, d=4, seed=0):
    """Rows on both sides of a gap."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, d))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += 0.3 * np.sign(X[:, 0])
    return X, y


# --- no price at all: the hard margin -----------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "textbook_smo"])
def test_classes_that_overlap_have_no_hard_margin_and_rows_prove_it(solver):
    X, y = XOR
    with pytest.raises(ValueError, match=r"no hard margin.*rows 2 and 3.*rows 0 and 1.*finite C"):
        SVC(kernel="linear", C=np.inf, solver=solver).fit(X, y)


@pytest.mark.parametrize("kernel", ["poly", "precomputed", "callable"])
def test_hulls_that_meet_in_the_space_of_a_kernel_are_said(kernel):
    X, y = XOR
    K = X @ X.T
    given = {"precomputed": "precomputed", "poly": "poly", "callable": lambda a, b: a @ b.T}[kernel]
    machine = SVC(kernel=given, degree=1, C=np.inf)
    with pytest.raises(ValueError, match="no hard margin between 1 and 0.*finite C"):
        machine.fit(K if kernel == "precomputed" else X, y)


def test_the_same_row_in_both_classes_excludes_every_kernel():
    X, y = _apart()
    X[1] = X[0]
    y[0], y[1] = 0, 1
    with pytest.raises(ValueError, match="no hard margin"):
        SVC(C=np.inf).fit(X, y)


@pytest.mark.parametrize("solver", ["auto", "textbook_smo"])
def test_the_linear_hard_margin_is_the_largest_margin(solver):
    X, y = _apart()
    best = maximum_margin(X, y)
    model = SVC(kernel="linear", C=np.inf, solver=solver, tol=1e-9).fit(X, y)
    assert model.verify(X, y)
    assert_allclose(model.coef_[0], best.coef, rtol=1e-6)
    assert_allclose(model.certificate_.objective, 0.5 / best.margin**2, rtol=1e-6)
    assert (np.where(y == 1, 1, -1) * model.decision_function(X) >= 1 - 1e-12).all()


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_the_hard_margin_of_a_kernel_is_the_limit_of_large_prices(kernel):
    X, y = labelled(40)
    options = {"kernel": kernel, "gamma": 1.0, "coef0": 1.0, "degree": 5}
    hard, soft = SVC(C=np.inf, **options).fit(X, y), SVC(C=1e12, **options).fit(X, y)
    assert hard.verify(X, y)
    certificate = hard.certificate_
    # Values of a polynomial of degree five round by 1e-6 of the margins: the proof allows for it.
    assert certificate.gap <= (1e-6 if kernel == "rbf" else 1e-5) * certificate.objective
    assert_allclose(hard.decision_function(X), soft.decision_function(X), rtol=1e-4, atol=1e-5)


def test_three_classes_have_three_hard_margins():
    X, _ = _apart(45, 2)
    y = np.digitize(X[:, 1], [-0.5, 0.5])
    X[:, 1] += y
    model = SVC(kernel="linear", C=np.inf).fit(X, y)
    assert model.verify(X, y)
    for number, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)]):
        part = (y == a) | (y == b)
        best = maximum_margin(X[part], y[part])
        assert_allclose(model.coef_[number], -best.coef, rtol=1e-9)


@pytest.mark.parametrize(
    "machine",
    [
        SVC(kernel="linear", C=np.inf),
        SVC(gamma=0.5, C=np.inf),
        LinearSVC(C=np.inf, loss="hinge"),
        LinearSVC(C=np.inf),
        LinearSVC(C=np.inf, fit_intercept=False),
    ],
    ids=str,
)
def test_rows_of_weight_zero_are_absent_from_hard_margins(machine):
    X, y = _apart()
    weights = np.ones(30)
    weights[::4] = 0.0
    wrong = np.where(weights > 0, y, 1 - y)
    scores = machine.fit(X, wrong, weights).decision_function(X)
    assert machine.verify(X, wrong, weights)
    some = weights > 0
    assert_allclose(machine.fit(X[some], y[some]).decision_function(X), scores, rtol=1e-12)


def test_a_tube_that_no_function_stays_in_is_an_error():
    X, y = XOR
    with pytest.raises(ValueError, match="finite C, or a larger epsilon"):
        SVR(kernel="linear", C=np.inf).fit(X, y)
    with pytest.raises(ValueError, match="finite C"):
        NuSVR(C=np.inf).fit(X, y)


def test_where_every_row_is_within_the_tube_no_kernel_value_is_asked_for(monkeypatch):
    from trueline.solvers.smo import engine

    def refuse(*_):
        raise AssertionError("kernel values were asked for")

    monkeypatch.setattr(engine, "whole_matrix", refuse)
    X, _ = XOR
    y = np.array([3.0, 3.1, 2.95, 3.0])
    model = SVR(epsilon=0.1).fit(X, y)
    assert model.n_iter_ == 0
    assert (np.abs(model.predict(X) - y) <= 0.1).all()
    assert model.verify(X, y)


# --- long ways, and rounding --------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e6, 1e12])
def test_multipliers_go_a_long_way_in_long_steps(C):
    X, y = XOR
    model = SVC(kernel="linear", C=C).fit(X, y)
    assert model.fit_status_ == 0
    assert_allclose(np.abs(model.dual_coef_), C, rtol=1e-12)
    assert_allclose(model.certificate_.objective, 4 * C, rtol=1e-6)
    assert model.n_iter_[0] < 1_000_000


def test_the_textbook_ends_and_states_the_gap():
    X, y = XOR
    with pytest.warns(ConvergenceWarning, match=r"after 500 steps.*proven within"):
        model = SVC(kernel="linear", C=1e12, solver="textbook_smo", max_iter=500).fit(X, y)
    assert model.fit_status_ == 1


def test_the_textbook_has_a_limit_of_its_own(monkeypatch):
    from trueline.solvers.smo import textbook

    monkeypatch.setattr(textbook, "_MOST_STEPS", 200)
    X, y = XOR
    with pytest.warns(ConvergenceWarning, match="violation"):
        SVC(kernel="linear", C=1e12, solver="textbook_smo").fit(X, y)


def test_kernel_values_that_rounding_drowns_end_with_a_warning(monkeypatch):
    from trueline.solvers.smo import engine

    monkeypatch.setattr(engine, "_MOST_STEPS", 300_000)
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(20, 8)) * np.geomspace(1, 3e8, 8), np.arange(20) % 2
    with pytest.warns(ConvergenceWarning, match=r"proven within.*Standardise the columns"):
        model = SVC(kernel="linear").fit(X, y)
    assert model.verify(X, y)
    # In terms of the columns the same problem is solved, and proven.
    linear = LinearSVC(loss="hinge").fit(X, y)
    assert linear.certificate_.relative_gap <= 1e-6


# --- numbers of any size ------------------------------------------------------------------------


@pytest.mark.parametrize("machine", [NuSVC(nu=0.3), OneClassSVM()], ids=str)
@pytest.mark.parametrize("size", [1e-60, 1e-3, 1e3, 1e60])
def test_the_size_of_all_weights_does_not_matter(machine, size):
    X, y = labelled(40)
    plain = machine.fit(X, y).decision_function(X)
    weighted = machine.fit(X, y, np.full(40, size)).decision_function(X)
    unit = size if isinstance(machine, OneClassSVM) else 1.0
    assert_allclose(weighted / unit, plain, rtol=1e-6, atol=1e-9)
    assert machine.verify(X, y, np.full(40, size))


MACHINES = [
    SVC(),
    SVC(kernel="linear"),
    SVR(),
    SVR(kernel="linear"),
    NuSVR(),
    NuSVC(nu=0.3),
    OneClassSVM(),
    LinearSVC(),
    LinearSVC(loss="hinge"),
    LinearSVC(multi_class="crammer_singer"),
    LinearSVR(),
    LinearSVR(loss="squared_epsilon_insensitive"),
]


@pytest.mark.grid(2)
@pytest.mark.parametrize("what", ["C", "weights", "one weight"])
@pytest.mark.parametrize("size", [1e-300, 1e-100, 1e-20, 1e20, 1e100, 1e300])
@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_extreme_prices_and_weights_end_in_a_proof_a_warning_or_a_sentence(machine, size, what):
    if isinstance(machine, NuSVC) and (size, what) == (1e-300, "weights"):
        pytest.skip("its proof leaves the range of doubles")
    X, y = labelled(24)
    weights = None
    if what == "C":
        if "C" not in machine.get_params():
            pytest.skip("has no C")
        machine = machine.__class__(**{**machine.get_params(), "C": size})
    else:
        weights = np.full(24, size)
        weights[(0 if what == "weights" else 1) :] = size if what == "weights" else 1.0
    said = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            machine.fit(X, y, weights)
        except ValueError as error:
            said = str(error)
        else:
            assert all(issubclass(w.category, ConvergenceWarning) for w in caught)
            assert caught or machine.verify(X, y, weights)
            assert np.isfinite(machine.predict(X)).all()
    assert not said or any(word in said for word in ("Lower", "Divide", "Multiply", "Bring"))
