"""BestSubset and L0Regression: right answers, honest proofs, clear errors."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression as Reference
from sklearn.linear_model import Ridge as ReferenceRidge
from sklearn.utils.estimator_checks import parametrize_with_checks

from trueline import BestSubset, L0Regression
from trueline.check import Verdict
from trueline.checks.estimators import ESTIMATOR_LAWS, EstimatorPoints
from trueline.persistence import load, register, save
from trueline.selection.criteria import CRITERIA, Criterion

TALL = (60, 8)
WIDE = (10, 13)


def rows(shape=TALL, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape) + 0.6 * rng.standard_normal((shape[0], 1)) + 5.0
    y = X[:, :3] @ np.array([2.0, -1.0, 0.5]) + noise * rng.standard_normal(shape[0]) - 1.0
    return X, y


def objective(model, X, y, weights=None, l2=0.0, alpha=0.0):
    s = np.ones(len(y)) if weights is None else weights
    w = model.coef_.astype(float)
    z = X @ w + model.intercept_
    return 0.5 * s @ (y - z) ** 2 + 0.5 * l2 * w @ w + alpha * np.count_nonzero(w)


@parametrize_with_checks([BestSubset(k=1)])
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [L0Regression(), BestSubset(), BestSubset(k=1, l2=1.0), L0Regression(0.0, l2=0.5)]
)
def test_contract_with_more_settings(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "model", [BestSubset(k=2), BestSubset(), L0Regression(0.5), L0Regression(3.0, l2=1.0)], ids=repr
)
def test_laws_of_estimators(model):
    names = ESTIMATOR_LAWS.check(model, EstimatorPoints.of(model))
    assert "every fit has a certificate that verifies" in names


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", [TALL, WIDE], ids=str)
@pytest.mark.parametrize("l2", [0.0, 0.7])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_best_of_all_supports(shape, l2, fit_intercept):
    X, y = rows(shape)
    model = BestSubset(k=3, l2=l2, fit_intercept=fit_intercept).fit(X, y)

    def reached(support):
        columns = X[:, list(support)]
        if l2:
            fit = ReferenceRidge(l2, fit_intercept=fit_intercept).fit(columns, y)
        else:
            fit = Reference(fit_intercept=fit_intercept).fit(columns, y)
        square = np.sum((y - fit.predict(columns)) ** 2)
        return 0.5 * square + 0.5 * l2 * fit.coef_ @ fit.coef_, fit

    best = min(itertools.combinations(range(shape[1]), 3), key=lambda s: reached(s)[0])
    value, fit = reached(best)
    assert tuple(model.support_) == best
    assert model.proven_
    assert_allclose(model.coef_[list(best)], fit.coef_, rtol=1e-9)
    assert_allclose(model.certificate_.objective, value, rtol=1e-11)
    assert_allclose(objective(model, X, y, l2=l2), value, rtol=1e-11)
    assert model.certificate_.lower_bound <= value
    assert model.certificate_.relative_gap < 1e-6
    assert model.verify(X, y)


def test_the_path_of_all_sizes():
    X, y = rows()
    model = BestSubset().fit(X, y)
    path = model.path_
    assert path.k.tolist() == list(range(1, 9))
    assert path.proven.all()
    assert (np.diff(path.objective) <= 1e-12).all()
    assert (path.lower_bound <= path.objective).all()
    assert (path.relative_gap < 1e-6).all()
    criterion = Criterion("bic", 60, float(np.sum((y - y.mean()) ** 2)), True)
    for i, row in enumerate(path.rows()):
        assert len(path.supports[i]) == path.k[i] == row["k"]
        alone = BestSubset(k=int(path.k[i])).fit(X, y)
        assert_allclose(path.coef[i], alone.coef_, rtol=1e-12)
        assert_allclose(path.residual_square[i], 2 * alone.certificate_.objective, rtol=1e-10)
        for name in ("aic", "aicc", "bic", "adjusted_r2"):
            assert_allclose(row[name], criterion.value(row["objective"] * 2, i + 2, name))
    # By its definition, Cp of the model with all columns is their number.
    assert_allclose(path.criteria["cp"][-1], 9)
    assert len(path.to_frame()) == len(path) == 8


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_criterion_chooses_the_size(criterion):
    X, y = rows()
    model = BestSubset(criterion=criterion).fit(X, y)
    values = model.path_.criteria[criterion]
    best = np.argmax(values) if criterion == "adjusted_r2" else np.argmin(values)
    assert model.k_ == model.path_.k[best]
    assert np.array_equal(model.support_, model.path_.supports[best])
    assert_allclose(model.coef_, model.path_.coef[best])
    assert model.verify(X, y)


@pytest.mark.parametrize("sizes", [[4, 2], range(2, 5), np.array([1, 5])], ids=repr)
def test_several_sizes_in_the_order_given(sizes):
    X, y = rows()
    path = BestSubset(k=sizes).fit(X, y).path_
    assert path.k.tolist() == list(sizes)
    assert [len(support) for support in path.supports] == list(sizes)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 5.0, 1e6])
def test_a_price_per_column_chooses_among_the_best_subsets(alpha):
    X, y = rows()
    model = L0Regression(alpha).fit(X, y)
    path = BestSubset(k=range(9)).fit(X, y).path_
    total = path.objective + alpha * path.k
    assert_allclose(model.certificate_.objective, total.min(), rtol=1e-10)
    assert_allclose(objective(model, X, y, alpha=alpha), total.min(), rtol=1e-10)
    assert len(model.support_) == np.argmin(total)
    assert model.proven_
    assert model.verify(X, y)


def test_more_columns_than_rows_are_compared_if_they_are_clearly_independent():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 90))
    y = X[:, [1, 20, 40, 60, 80]].sum(axis=1) + 0.3 * rng.standard_normal(60)
    model = BestSubset(k=5).fit(X, y)
    assert model.support_.tolist() == [1, 20, 40, 60, 80]
    assert model.proven_
    assert 0 < model.path_.delta[0] < 1
    correlations = np.corrcoef(X[:, model.support_].T)
    assert np.linalg.eigvalsh(correlations)[0] >= model.path_.delta[0]
    assert model.certificate_.kind == "conditioned search"
    assert "no eigenvalue below" in model.certificate_.statement
    assert "correlations have eigenvalues of" in str(model.explain())
    assert model.verify(X, y).verdict is Verdict.CONDITIONAL  # on the search being right


def test_a_squared_penalty_needs_no_condition():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 90))
    y = X[:, [1, 20, 40, 60, 80]].sum(axis=1) + 0.3 * rng.standard_normal(60)
    model = BestSubset(k=5, l2=10.0, time_limit=20.0).fit(X, y)
    assert model.path_.delta[0] == 0
    assert model.certificate_.kind == "search"
    assert model.verify(X, y).verdict is Verdict.CONDITIONAL  # on the search being right


# --- data of all kinds ---------------------------------------------------------------------------


def test_weights_are_repetitions():
    X, y = rows()
    repeats = np.random.default_rng(1).integers(0, 3, len(y))
    weighted = BestSubset(k=3).fit(X, y, sample_weight=repeats.astype(float))
    repeated = BestSubset(k=3).fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)
    assert_allclose(weighted.path_.criteria["bic"], repeated.path_.criteria["bic"], rtol=1e-9)
    assert weighted.verify(X, y, repeats.astype(float))
    assert not weighted.verify(X, y)


def test_sparse_matrices_and_single_precision():
    X, y = rows()
    dense = BestSubset(k=3).fit(X, y)
    sparse = BestSubset(k=3).fit(sp.csr_array(X), y)
    assert_allclose(sparse.coef_, dense.coef_, rtol=1e-9)
    assert sparse.verify(sp.csr_array(X), y)
    single = BestSubset(k=3).fit(X.astype(np.float32), y.astype(np.float32))
    assert single.coef_.dtype == np.float32
    assert np.array_equal(single.support_, dense.support_)
    assert_allclose(single.coef_, dense.coef_, rtol=1e-4)
    assert single.verify(X.astype(np.float32), y.astype(np.float32))


def test_names_of_columns_and_the_mask():
    pandas = pytest.importorskip("pandas")
    X, y = rows()
    names = [f"x{j}" for j in range(X.shape[1])]
    model = BestSubset(k=2).fit(pandas.DataFrame(X, columns=names), y)
    assert model.feature_names_in_.tolist() == names
    assert np.flatnonzero(model.get_support()).tolist() == model.get_support(indices=True).tolist()
    assert np.array_equal(np.flatnonzero(model.coef_), model.support_)


def test_of_copies_the_first_is_taken():
    X, y = rows()
    copied = np.column_stack([X[:, 5], X, 2 * X[:, 0], X[:, 0], -X[:, 1], X[:, 1]])
    model = BestSubset(k=3).fit(copied, y)
    plain = BestSubset(k=3).fit(X, y)
    expected = [0 if j == 5 else j + 1 for j in plain.support_]
    assert model.support_.tolist() == sorted(expected)
    assert_allclose(model.certificate_.objective, plain.certificate_.objective, rtol=1e-11)
    assert model.proven_
    assert model.verify(copied, y)


def test_dependent_columns_are_no_obstacle():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 4, 80)
    X = np.column_stack([np.eye(4)[group], rng.standard_normal((80, 4))])
    y = 2.0 * (group == 1) + X[:, 5] + 0.5 * rng.standard_normal(80)
    # All four indicators add up to the constant: seven columns say everything.
    assert BestSubset().fit(X, y).path_.k.tolist() == [1, 2, 3, 4, 5, 6, 7]
    path = BestSubset(k=range(1, 9)).fit(X, y).path_
    assert path.proven.all()
    assert [len(support) for support in path.supports] == [1, 2, 3, 4, 5, 6, 7, 7]


def test_a_fit_that_leaves_no_row_over_is_not_chosen():
    X, y = rows((8, 12))
    assert BestSubset().fit(X, y).path_.k.tolist() == [1, 2, 3, 4, 5, 6]
    model = BestSubset(k=range(1, 8)).fit(X, y)
    assert_allclose(model.path_.residual_square[-1], 0, atol=1e-20)
    assert model.k_ < 7


@pytest.mark.parametrize("model", [BestSubset(), BestSubset(k=2), L0Regression()], ids=repr)
def test_constant_columns_never_enter(model):
    X, y = rows()
    X[:, 1] = 3.0
    model = clone(model).fit(X, y)
    assert 1 not in model.support_
    assert model.verify(X, y)


@pytest.mark.parametrize("model", [BestSubset(k=2), L0Regression()], ids=repr)
def test_nothing_to_explain(model):
    X, _ = rows()
    for y in (np.zeros(len(X)), np.full(len(X), 7.0)):
        model = clone(model).fit(X, y)
        assert_allclose(model.predict(X), y, atol=1e-12)
        assert model.certificate_.gap <= 1e-12
        assert model.verify(X, y)


def test_no_columns_at_all():
    X, y = rows()
    model = BestSubset(k=0).fit(X, y)
    assert not model.coef_.any()
    assert_allclose(model.intercept_, y.mean())
    assert model.verify(X, y)


# --- proofs --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def proven():
    X, y = rows()
    return BestSubset(k=3).fit(X, y).certificate_, X, y


def with_witness(certificate, **changes):
    return replace(certificate, witness={**certificate.witness, **changes})


def with_bound(certificate, bound):
    """The gap of another bound."""
    gap = certificate.objective + certificate.objective_rounding - bound
    return replace(certificate, gap=gap)


def found_by(verification, name):
    (check,) = [check for check in verification.checks if check.name == name]
    return check.found


def test_a_certificate_holds_as_it_is(proven):
    certificate, X, y = proven
    assert certificate.verify(X, y)
    assert "at the root" in found_by(certificate.verify(X, y), "bound")


@pytest.mark.parametrize(
    "tampered",
    [
        lambda c: replace(c, objective=c.objective * 0.999),
        lambda c: replace(c, gap=0.0),
        lambda c: replace(c, gap=-1.0),
        lambda c: replace(c, coef=c.coef * 1.001),
        lambda c: replace(c, coef=c.coef + 1e-9),
        lambda c: replace(c, intercept=c.intercept + 0.01),
        lambda c: replace(c, kind="conditioned search"),
        lambda c: with_witness(c, k=np.int64(2)),
        lambda c: with_witness(c, alpha=np.float64(0.1)),
        lambda c: with_witness(c, delta=np.float64(0.5)),
        lambda c: with_witness(c, search_bound=np.float64(c.objective)),
        lambda c: with_bound(c, c.objective),
        lambda c: with_witness(c, diagonal=c.witness["diagonal"][:-1]),
        lambda c: with_witness(c, diagonal=-c.witness["diagonal"]),
        lambda c: with_witness(c, dual=c.witness["dual"] + np.nan),
        lambda c: with_witness(c, theta=np.float64(0.5)),
        lambda c: with_witness(c, columns=np.arange(8) > 0),
        lambda c: replace(c, witness={}),
    ],
)
def test_a_certificate_that_was_changed_is_refused(proven, tampered):
    certificate, X, y = proven
    assert not tampered(certificate).verify(X, y)


def test_a_smaller_part_in_place_of_all_columns_is_refused(proven):
    certificate, X, y = proven
    keep = np.arange(8) != 7
    witness = certificate.witness
    fewer = with_witness(
        certificate,
        columns=keep,
        diagonal=witness["diagonal"][keep],
        dual=witness["dual"][keep],
    )
    assert "column 7 is left out" in str(fewer.verify(X, y))


def test_a_search_is_repeated_where_few_supports_are_open(proven):
    certificate, X, y = proven
    found = found_by(certificate.verify(X, y), "bound")
    assert re.search(r"at the root, .* on \d+ open supports", found)
    weaker = with_bound(certificate, 0.5 * certificate.objective)
    assert found_by(weaker.verify(X, y), "bound").endswith("at the root")
    # Where the root proves nothing, every support is looked at.
    for nothing in (certificate.witness["diagonal"] * 10, np.zeros(8)):
        found = found_by(with_witness(certificate, diagonal=nothing).verify(X, y), "bound")
        assert "on 93 open supports" in found


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (BestSubset(k=3), TALL),
        (BestSubset(k=3), WIDE),
        (L0Regression(2.0), TALL),
        pytest.param(L0Regression(2.0), WIDE, marks=pytest.mark.slow),  # all supports are open
        (BestSubset(k=3, l2=0.5), TALL),
        (BestSubset(k=3, l2=0.5), WIDE),
    ],
    ids=str,
)
def test_a_bound_above_the_optimum_is_refused(model, shape):
    X, y = rows(shape)
    model = clone(model).fit(X, y)
    certificate = model.certificate_
    assert certificate.verify(X, y)
    # A support that is not the best one, with the bound that only the best one has.
    W, columns = np.zeros_like(certificate.coef), [0, 2]
    fit = ReferenceRidge(model.l2).fit(X[:, columns], y)
    W[columns, 0] = fit.coef_
    level = np.array([fit.intercept_])
    loss = 0.5 * np.sum((y - X @ W[:, 0] - level) ** 2)
    worse = loss + 0.5 * model.l2 * np.sum(W**2) + getattr(model, "alpha", 0.0) * 2
    lie = replace(certificate, coef=W, intercept=level, objective=worse, objective_rounding=1e-9)
    assert with_bound(lie, certificate.lower_bound).verify(X, y)
    check = with_bound(lie, worse - 1e-6 * worse).verify(X, y).checks[-1]
    assert not check.holds


def test_a_search_that_leaves_too_much_open_is_not_repeated():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 40))
    y = X[:, :6].sum(axis=1) + 6.0 * rng.standard_normal(60)
    with pytest.warns(ConvergenceWarning):
        model = BestSubset(k=10, time_limit=0.0).fit(X, y)
    certificate = model.certificate_
    assert found_by(certificate.verify(X, y), "bound").endswith("at the root")
    claimed = with_bound(certificate, certificate.objective * (1 - 1e-6)).verify(X, y)
    assert claimed.verdict is Verdict.CONDITIONAL
    assert "the branch and bound search, which was not repeated, is right" in str(claimed)


def test_other_data_are_refused(proven):
    certificate, X, y = proven
    assert not certificate.verify(X, y[::-1])
    assert not certificate.verify(X[::-1], y)


def test_a_search_without_time_is_honest():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((100, 36))
    y = X[:, :12].sum(axis=1) + 4.0 * rng.standard_normal(100)
    with pytest.warns(
        ConvergenceWarning, match=r"stopped \(time limit\) before its support was.*Raise time_limit"
    ):
        short = BestSubset(k=8, time_limit=0.0).fit(X, y)
    assert not short.proven_
    assert short.certificate_.gap > 0
    assert short.verify(X, y)
    assert "stopped by: time limit" in str(short.explain())
    full = BestSubset(k=8, time_limit=None).fit(X, y)
    assert full.proven_
    assert short.certificate_.lower_bound <= full.certificate_.objective
    assert full.certificate_.objective <= short.certificate_.objective * (1 + 1e-12)


def test_few_choices_are_looked_at_also_without_time():
    X, y = rows()
    model = BestSubset(time_limit=0.0).fit(X, y)
    assert model.path_.proven.all()


def test_an_interrupted_search_keeps_what_it_has(monkeypatch):
    from importlib import import_module

    module = import_module("trueline.best_subset.search")
    explore, calls = module.explore, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return explore(*arguments)

    rng = np.random.default_rng(5)
    X = rng.standard_normal((100, 36))
    y = X[:, :12].sum(axis=1) + 4.0 * rng.standard_normal(100)
    monkeypatch.setattr(module, "explore", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = BestSubset(k=8, time_limit=None).fit(X, y)
    monkeypatch.undo()
    full = BestSubset(k=8, time_limit=None).fit(X, y)
    assert 0 < model.certificate_.lower_bound <= full.certificate_.objective
    assert not model.proven_
    assert model.verify(X, y).verdict is Verdict.CONDITIONAL  # on the search being right


def test_an_interruption_before_the_search_keeps_the_first_support(monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    X, y = rows(noise=0.1)
    monkeypatch.setattr("trueline.best_subset.search.many_starts", interrupted)
    with pytest.warns(ConvergenceWarning, match=r"stopped \(interrupted\) before"):
        model = BestSubset(k=[2, 3]).fit(X, y)
    assert model.support_.tolist() == [0, 1, 2]
    assert not model.path_.proven.any()
    assert (model.path_.lower_bound > 0).all()
    assert model.verify(X, y)


def test_bounds_of_sizes_that_were_not_reached_are_those_of_the_relaxation():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((100, 36))
    y = X[:, :12].sum(axis=1) + 4.0 * rng.standard_normal(100)
    with pytest.warns(ConvergenceWarning):
        model = BestSubset(k=range(6, 12), time_limit=0.0).fit(X, y)
    path = model.path_
    assert not path.nodes.any()
    assert (path.lower_bound > 0.5 * path.objective).all()
    assert (np.diff(path.lower_bound) <= 0).all()
    chosen = path.k.tolist().index(model.k_)
    assert path.lower_bound[chosen] >= model.certificate_.lower_bound
    assert_allclose(path.lower_bound[chosen], model.certificate_.lower_bound, rtol=1e-9)


def test_a_warning_says_which_sizes_are_open(monkeypatch):
    from trueline.best_subset import search as sequence

    search = sequence.search

    def hurried(task, allowed, support, until, *others):
        return search(task, allowed, support, -np.inf if task.k > 3 else until, *others)

    X, y = rows(noise=0.1)
    monkeypatch.setattr(sequence, "search", hurried)
    words = (
        r"stopped \(time limit\) before 2 sizes \(k = 4, 5\) of 4 could be proven best. "
        r"The size that predicts, k = 3, is proven"
    )
    with pytest.warns(ConvergenceWarning, match=words):
        model = BestSubset(k=range(2, 6)).fit(X, y)
    assert model.proven_
    assert model.path_.proven.tolist() == [True, True, False, False]


def test_the_same_answer_every_time():
    X, y = rows(seed=3)
    first, second = BestSubset().fit(X, y), BestSubset().fit(X, y)
    assert first.coef_.tobytes() == second.coef_.tobytes()
    assert first.path_.nodes.tolist() == second.path_.nodes.tolist()


def test_a_model_file_keeps_the_path(tmp_path):
    X, y = rows()
    register(BestSubset)
    model = BestSubset().fit(X, y)
    again = load(save(model, tmp_path / "m.trueline"))
    assert again.path_.to_frame().equals(model.path_.to_frame())
    assert again.predict(X).tobytes() == model.predict(X).tobytes()
    assert again.verify(X, y)
    assert str(again.explain()) == str(model.explain())


def test_the_plan_before_a_fit():
    X, y = rows()
    before = BestSubset(k=3).explain(X, y)
    assert "||w||_0 <= k,  k = 3" in str(before)
    assert str(BestSubset(k=3).fit(X, y).explain()).startswith(str(before))
    assert "+ alpha ||w||_0,  alpha = 2" in str(L0Regression(2.0).explain(X, y))
    with pytest.raises(ValueError, match="needs the target y"):
        BestSubset().explain(X)


def test_progress_is_shown_and_callbacks_hear_of_it(capsys):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 30))
    y = X[:, :6].sum(axis=1) + 4.0 * rng.standard_normal(60)
    BestSubset(k=6, verbose=True).fit(X, y)
    assert re.search(r"objective \d", capsys.readouterr().out)


def test_the_trace_of_a_search_closes_the_gap():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 30))
    y = X[:, :6].sum(axis=1) + 4.0 * rng.standard_normal(60)
    model = BestSubset(k=[6, 7]).fit(X, y)
    trace = model.trace_
    assert set(trace["k"]) == {6, 7}
    for k in (6, 7):
        gap, value = trace["gap"][trace["k"] == k], trace["objective"][trace["k"] == k]
        assert (np.diff(gap) <= 1e-9 * value[0]).all()
        assert (np.diff(value) <= 0).all()
        assert gap[-1] <= 1e-6 * value[-1]


def test_a_callback_can_stop_the_search(monkeypatch):
    from trueline.estimators.column_selection import best_subset

    class Stop:
        def __call__(self, event):
            assert np.count_nonzero(event.coef) <= 8
            return True

    original = best_subset.listener

    def listening(statement, monitor, began):
        monitor.callbacks = [Stop()]
        return original(statement, monitor, began)

    rng = np.random.default_rng(5)
    X = rng.standard_normal((100, 36))
    y = X[:, :12].sum(axis=1) + 4.0 * rng.standard_normal(100)
    monkeypatch.setattr(best_subset, "listener", listening)
    with pytest.warns(ConvergenceWarning, match="stopped"):
        model = BestSubset(k=8).fit(X, y)
    assert not model.proven_
    assert model.verify(X, y).verdict is Verdict.CONDITIONAL  # on the search being right


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (BestSubset(k=9), "k must be between 0 and the number of columns, 8; got 9"),
        (BestSubset(k=-1), "got -1"),
        (BestSubset(k=[1, 2.5]), "got 2.5"),
        (BestSubset(k=[]), "k is empty"),
        (BestSubset(k=[2, 2]), "repeated"),
        (BestSubset(k="three"), "'k' parameter"),
        (BestSubset(l2=-1.0), "'l2' parameter"),
        (BestSubset(l2=np.nan), "'l2' parameter"),
        (BestSubset(criterion="mdl"), "'criterion' parameter"),
        (BestSubset(time_limit=-1.0), "'time_limit' parameter"),
        (BestSubset(min_eigenvalue=1.5), "'min_eigenvalue' parameter"),
        (L0Regression(alpha=-0.1), "'alpha' parameter"),
        (L0Regression(alpha=np.nan), "'alpha' parameter"),
        (L0Regression(l2=np.inf), "'l2' parameter"),
        (L0Regression(alpha=np.inf), "'alpha' parameter"),
    ],
    ids=repr,
)
def test_parameters_that_make_no_sense_are_refused(model, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        model.fit(*rows())


@pytest.mark.parametrize("model", [BestSubset(k=2), L0Regression()], ids=repr)
def test_data_that_make_no_sense_are_refused(model):
    X, y = rows()
    with pytest.raises(ValueError, match="non-zero"):
        model.fit(X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X == X[3, 3], np.nan, X), y)
    with pytest.raises(ValueError, match="infinity|inf"):
        model.fit(X, np.where(y == y[0], np.inf, y))
    with pytest.raises(ValueError, match="1d array"):
        model.fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="power of ten"):
        model.fit(X * 1e200, y)
