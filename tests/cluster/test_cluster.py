"""Rows on a Dask cluster: the coefficients and proofs of rows in memory, whoever holds blocks."""

from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from scipy import sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import trueline
from trueline import (
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    RidgeCV,
)
from trueline.cluster.rows import ClusterRows

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

N = 3000
FEATURES = ["a", "b", "c", "d"]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 4)) * [1, 2, 0.5, 1] + [0, 1, 100, -3]
SCORE = (X - X.mean(axis=0)) @ [1.0, -0.5, 2.0, 0.0]
TARGETS = {
    "y": SCORE + RNG.standard_normal(N),
    "kind": np.where(SCORE + RNG.standard_normal(N) > 0, "yes", "no"),
    "three": np.digitize(SCORE + RNG.standard_normal(N), [-1, 1]),
    "count": RNG.poisson(np.exp(0.2 * SCORE)),
    "positive": np.exp(0.2 * SCORE + 0.1 * RNG.standard_normal(N)),
}
WEIGHT = RNG.integers(0, 3, N).astype(float)
ROWS = da.from_array(X, chunks=(700, 4))
TABLE = pd.DataFrame(X, columns=FEATURES).assign(**TARGETS)
MODELS = [
    (LinearRegression(), "y"),
    (LinearRegression(solver="qr"), "y"),
    (Ridge(2.0), "y"),
    (Lasso(0.1), "y"),
    (ElasticNet(0.1), "y"),
    (HuberRegressor(), "y"),
    (PoissonRegressor(), "count"),
    (GammaRegressor(), "positive"),
    (LogisticRegression(), "kind"),
    (LogisticRegression(C=0.1, l1_ratio=1.0), "kind"),
    (LogisticRegression(), "three"),
    (LinearSVC(), "kind"),
    (RidgeClassifier(), "kind"),
    (LassoCV(alphas=20), "y"),
    (RidgeCV(), "y"),
]


@contextmanager
def workers(count, threads):
    """A client of a cluster of so many workers, in this process."""
    options = {"processes": False, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(n_workers=count, threads_per_worker=threads, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with workers(2, 2) as client:
        yield client


def blocks(values, size=1000):
    return da.from_array(values, chunks=size)


@pytest.mark.grid(1)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("model", "target"), MODELS, ids=str)
def test_fits_are_those_of_rows_in_memory(client, model, target, weighted):
    y = TARGETS[target]
    given = {"sample_weight": WEIGHT} if weighted else {}
    sent = {name: blocks(values, 400) for name, values in given.items()}
    spread = clone(model).fit(ROWS, blocks(y), **sent)
    whole = clone(model).fit(X, y, **given)
    if target == "three":
        # In memory other steps are taken. |w - w*|^2 / (2 C) is no more than what is proven.
        proven = [np.sqrt(2 * model.C * fit.certificate_.gap) for fit in (spread, whole)]
        assert np.linalg.norm(spread.coef_ - whole.coef_) <= sum(proven)
        assert sum(proven) < 1e-3 * np.linalg.norm(whole.coef_)
    else:
        np.testing.assert_allclose(spread.coef_, whole.coef_, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(spread.intercept_, whole.intercept_, rtol=1e-9)
    assert spread.certificate_.gap <= 10 * whole.certificate_.gap + 1e-9
    assert spread.verify(X, y, **given)
    if not isinstance(model, HuberRegressor):  # whose theorem reads rows in memory
        assert spread.verify(ROWS, blocks(y), **sent)
        spread.coef_ = spread.coef_ * 1.001
        assert not spread.verify(ROWS, blocks(y), **sent)


def test_blocks_without_a_target_are_told_where_to_give_one():
    blocks = da.from_array(X, chunks=(1000, 4))
    with pytest.raises(ValueError, match="learns from a target. Give y beside X.$"):
        trueline.Ridge().fit(blocks)


@pytest.mark.parametrize(("model", "target"), [MODELS[i] for i in (0, 2, 3, 6, 8, 10, 11)], ids=str)
def test_rows_stay_where_they_are(client, monkeypatch, model, target):
    """But for few that are looked at: neither fit nor proof nor check brings blocks here."""
    monkeypatch.setattr("trueline.moments._LOOK_ALL", 0)
    monkeypatch.setattr("trueline.moments._LOOK_ROWS", 64)
    monkeypatch.setattr(ClusterRows, "parts", lambda self: pytest.fail("a block was brought"))
    y = blocks(TARGETS[target])
    assert clone(model).fit(ROWS, y).verify(ROWS, y)


def test_tables_bring_their_names(client):
    table = dd.from_pandas(TABLE, npartitions=5)
    model = Ridge().fit(table[FEATURES], table["y"])
    np.testing.assert_allclose(model.coef_, Ridge().fit(X, TARGETS["y"]).coef_, rtol=1e-12)
    assert model.feature_names_in_.tolist() == FEATURES
    assert model.verify(table[FEATURES], table["y"])
    predicted = model.predict(table[FEATURES])
    assert isinstance(predicted, dd.Series)
    pd.testing.assert_series_equal(
        predicted.compute(), pd.Series(model.predict(TABLE[FEATURES]), index=TABLE.index)
    )
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table[FEATURES[::-1]])
    classifier = LogisticRegression().fit(table[FEATURES], table["kind"])
    shares = classifier.predict_proba(table[FEATURES])
    assert list(shares.columns) == ["no", "yes"]
    np.testing.assert_array_equal(shares.compute(), classifier.predict_proba(TABLE[FEATURES]))


def test_predictions_are_lazy(client):
    model = LogisticRegression().fit(ROWS, blocks(TARGETS["three"]))
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        predicted = getattr(model, method)(ROWS)
        whole = getattr(model, method)(X)
        assert isinstance(predicted, da.Array)
        assert predicted.shape == whole.shape
        assert predicted.dtype == whole.dtype
        np.testing.assert_array_equal(predicted.compute(), whole)
    words = LogisticRegression().fit(ROWS, blocks(TARGETS["kind"]))
    assert words.predict(ROWS).compute().tolist() == words.predict(X).tolist()
    assert words.score(ROWS, blocks(TARGETS["kind"])) == words.score(X, TARGETS["kind"])
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(ROWS[:, :3])


def test_blocks_may_be_sparse(client):
    S = sp.random_array((N, 30), density=0.1, rng=RNG, format="csr")
    y = S @ RNG.standard_normal(30) + 0.1 * RNG.standard_normal(N)
    cut = [S[i : i + 500] for i in range(0, N, 500)]
    rows = da.concatenate(
        [da.from_delayed(_as_is(part), part.shape, meta=sp.csr_array((0, 0))) for part in cut]
    )
    for model, target in ((Ridge(), y), (LogisticRegression(), y > 0), (Lasso(0.01), y)):
        spread = clone(model).fit(rows, blocks(target))
        whole = clone(model).fit(S, target)
        np.testing.assert_allclose(spread.coef_, whole.coef_, rtol=1e-6, atol=1e-8)
        assert spread.verify(rows, blocks(target))
        np.testing.assert_allclose(spread.predict(rows).compute(), spread.predict(S), rtol=1e-12)


def _as_is(value):
    import dask

    return dask.delayed(lambda: value)()


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.integers(1, N - 1), max_size=12, unique=True))
def test_any_partition_gives_the_same_answer(client, cuts):
    sizes = tuple(np.diff([0, *sorted(cuts), N]).tolist())
    rows = da.from_array(X, chunks=(sizes, 4))
    model = LinearRegression().fit(rows, blocks(TARGETS["y"]))
    whole = LinearRegression().fit(X, TARGETS["y"])
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-12)
    assert model.certificate_.relative_gap < 1e-12


@pytest.mark.parametrize(("count", "threads"), [(1, 1), (3, 1), (1, 4)])
def test_the_last_digit_does_not_depend_on_the_workers(client, count, threads):
    fitted = LogisticRegression().fit(ROWS, blocks(TARGETS["kind"]))
    with workers(count, threads):
        again = LogisticRegression().fit(ROWS, blocks(TARGETS["kind"]))
    assert again.coef_.tolist() == fitted.coef_.tolist()
    assert again.intercept_.tolist() == fitted.intercept_.tolist()


def test_without_a_cluster_dask_works_in_this_process():
    model = PoissonRegressor().fit(ROWS, blocks(TARGETS["count"]))
    whole = PoissonRegressor().fit(X, TARGETS["count"])
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9)


def test_how_rows_are_cut_does_not_matter(client):
    whole = Ridge().fit(X, TARGETS["y"])
    unknown = dd.from_pandas(TABLE, npartitions=4)[FEATURES].to_dask_array()
    empty = da.concatenate([ROWS[:1000], ROWS[:0], ROWS[1000:]])
    for rows in (ROWS.rechunk((500, 2)), unknown, empty):
        model = Ridge().fit(rows, blocks(TARGETS["y"], 77))
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-12)
        predicted = model.predict(rows).compute()  # sums of terms of a few hundred
        np.testing.assert_allclose(predicted, whole.predict(X), rtol=1e-12, atol=1e-12)
    single = Ridge().fit(ROWS.astype(np.float32), blocks(TARGETS["y"]))
    assert single.coef_.dtype == Ridge().fit(X.astype(np.float32), TARGETS["y"]).coef_.dtype


def test_plans_and_fits_are_told_of_the_cluster(client):
    model = Ridge()
    assert "3,000 rows x 4 columns" in str(model.explain(ROWS, blocks(TARGETS["y"])))
    told = str(model.fit(ROWS, blocks(TARGETS["y"])).explain())
    assert "3,000 rows x 4 columns in 5 blocks on 2 workers, 2 passes" in told


@pytest.mark.parametrize(
    ("rows", "y", "message"),
    [
        (da.where(ROWS == ROWS[7, 1], np.nan, ROWS), TARGETS["y"], "Input X contains NaN"),
        (ROWS, TARGETS["y"][:-1], "inconsistent numbers: 3000 of X, 2999 of y"),
        (ROWS[:, 0], TARGETS["y"], "Expected 2D array"),
        (dd.from_pandas(TABLE[["a", "kind"]], npartitions=2), TARGETS["y"], "'kind' holds"),
        (ROWS, None, "requires y to be passed"),
    ],
    ids=["nan", "lengths", "vector", "words", "no target"],
)
def test_what_cannot_be_fitted_is_said(client, rows, y, message):
    with pytest.raises(ValueError, match=message):
        Ridge().fit(rows, None if y is None else blocks(y))


@pytest.mark.parametrize("model", [trueline.SVC(), trueline.KernelRidge()])
def test_models_that_need_their_rows_in_memory_say_so(client, model):
    with pytest.raises(TypeError, match=r"needs its rows in memory: give it X.compute\(\)"):
        model.fit(ROWS, blocks(TARGETS["count"]))


def test_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dask", None)
    with pytest.raises(ImportError, match=r"trueline\[dask\]"):
        Ridge().fit(ROWS, blocks(TARGETS["y"]))


# --- beside scikit-learn --------------------------------------------------------------------------


def test_pipelines_of_steps_that_work_by_blocks(client):
    y = blocks(TARGETS["y"])
    whole = make_pipeline(StandardScaler(), Ridge()).fit(X, TARGETS["y"])
    scaler = StandardScaler()
    for block in ROWS.blocks:
        scaler.partial_fit(block.compute())
    scaled = FunctionTransformer(lambda rows: rows.map_blocks(scaler.transform, dtype=float))
    model = make_pipeline(scaled, Ridge()).fit(ROWS, y)
    np.testing.assert_allclose(model[-1].coef_, whole[-1].coef_, rtol=1e-9)
    predicted = model.predict(ROWS)
    assert isinstance(predicted, da.Array)
    np.testing.assert_allclose(predicted.compute(), whole.predict(X), rtol=1e-9, atol=1e-12)


def test_pipelines_that_bring_rows_here_say_so(client):
    bringing = FunctionTransformer(lambda rows: rows.compute())
    with pytest.raises(TypeError, match=r"X is in memory: .*pipeline.*map_blocks.*y.compute\(\)"):
        make_pipeline(bringing, Ridge()).fit(ROWS, blocks(TARGETS["y"]))


def test_folds_and_strengths_on_the_workers_by_joblib(client):
    model, grid = LogisticRegression(), {"C": [0.01, 0.1, 1.0]}
    here = GridSearchCV(model, grid, cv=3).fit(X, TARGETS["kind"])
    with parallel_config(backend="dask"):
        there = GridSearchCV(model, grid, cv=3).fit(X, TARGETS["kind"])
    assert there.best_params_ == here.best_params_
    for name in ("mean_test_score", "std_test_score"):
        np.testing.assert_array_equal(there.cv_results_[name], here.cv_results_[name])
    assert there.best_estimator_.verify(X, TARGETS["kind"])
