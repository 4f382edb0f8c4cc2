"""Rows that are read batch by batch: the same coefficients and proofs as of rows in memory."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse as sp
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

import trueline
from trueline import (
    ARDRegression,
    BayesianRidge,
    BestSubset,
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    LogisticRegressionCV,
    OnlineLogisticRegression,
    PassiveAggressiveClassifier,
    Perceptron,
    PoissonRegressor,
    Ridge,
    RidgeClassifierCV,
    RidgeCV,
    SequentialFeatureSelector,
    StepwiseRegression,
    regularization_path,
)
from trueline.design import as_design
from trueline.errors import TableError
from trueline.moments import Moments, SharedMoments

N = 3000
FEATURES = ["a", "b", "c", "d"]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 4)) * [1, 2, 0.5, 1] + [0, 1, 100, -3]
SCORE = (X - X.mean(axis=0)) @ [1.0, -0.5, 2.0, 0.0]
TABLE = pd.DataFrame(X, columns=FEATURES).assign(
    y=SCORE + RNG.standard_normal(N),
    kind=np.where(SCORE + RNG.standard_normal(N) > 0, "yes", "no"),
    count=RNG.poisson(np.exp(0.2 * SCORE)),
    weight=RNG.integers(0, 3, N).astype(float),
)
MODELS = [
    (LinearRegression(), "y"),
    (LinearRegression(solver="qr"), "y"),
    (Ridge(2.0), "y"),
    (Lasso(0.1), "y"),
    (ElasticNet(0.1), "y"),
    (HuberRegressor(), "y"),
    (PoissonRegressor(), "count"),
    (LogisticRegression(), "kind"),
    (LinearSVC(), "kind"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The table in three files of several row groups."""
    path = tmp_path_factory.mktemp("rows")
    for k, part in enumerate(np.array_split(np.arange(N), [700, 1900])):
        TABLE.iloc[part].to_parquet(path / f"part{k}.parquet", row_group_size=400)
    return path


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize(("model", "target"), MODELS, ids=str)
def test_fits_are_those_of_rows_in_memory(folder, model, target, weight):
    rows = trueline.open(folder, target=target, columns=FEATURES, weight=weight, memory="64KB")
    batched = clone(model).fit(rows)
    given = {} if weight is None else {"sample_weight": TABLE[weight]}
    whole = clone(model).fit(X, TABLE[target], **given)
    np.testing.assert_allclose(batched.coef_, whole.coef_, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(batched.intercept_, whole.intercept_, rtol=1e-9)
    assert batched.verify(X, TABLE[target], **given)
    assert batched.feature_names_in_.tolist() == FEATURES
    predicted = batched.predict(rows)
    if target == "kind":
        np.testing.assert_array_equal(predicted, batched.predict(TABLE[FEATURES]))
    else:
        np.testing.assert_allclose(predicted, batched.predict(TABLE[FEATURES]), rtol=1e-12)


@pytest.mark.parametrize(
    ("model", "target"),
    [(m, t) for m, t in MODELS if not isinstance(m, HuberRegressor)],
    ids=str,
)
def test_proofs_are_checked_batch_by_batch(folder, model, target):
    rows = trueline.open(folder, target=target, columns=FEATURES, weight="weight", memory="64KB")
    fitted = clone(model).fit(rows)
    outcome = fitted.verify(rows)
    assert outcome
    assert not outcome.conditions
    fitted.coef_ = fitted.coef_ * 1.001
    assert not fitted.verify(rows)


def test_all_of_least_squares_reads_the_features_once(folder):
    rows = trueline.open(folder, target="y", columns=FEATURES, memory="64KB")
    for model in (LinearRegression(), Ridge(), Lasso(0.1), BayesianRidge(), StepwiseRegression()):
        model.fit(rows)
        assert rows.passes == 1
    # Row groups of 400 and the rest of each file, cut at 256: 2 + 2, 3 * 2 and 3 * 2 batches.
    assert str(rows).endswith("16 batches of up to 256 rows")


@pytest.mark.parametrize("model", [Lasso(0.1), ElasticNet(0.1), LassoCV(cv=3), Ridge()], ids=str)
def test_single_precision_needs_no_pass_more(model):
    """What rounding the coefficients costs follows from the moments."""
    rows = trueline.open(X.astype(np.float32), target=TABLE["y"].to_numpy(), memory="64KB")
    model = clone(model).fit(rows)
    assert rows.passes == 1
    assert model.coef_.dtype == np.float32
    assert model.certificate_.relative_gap < 1e-4
    assert model.verify(rows)


def test_plans_and_objectives_are_told_of_batches(folder):
    rows = trueline.open(folder, target="kind", columns=FEATURES, memory="64KB")
    model = LogisticRegression()
    assert "3,000 rows x 4 columns" in str(model.explain(rows))
    model.fit(rows)
    assert model.objective(rows)() == pytest.approx(model.certificate_.objective)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, N - 1), max_size=12, unique=True))
def test_any_partition_gives_the_same_answer(cuts):
    def batches():
        return (TABLE.iloc[part] for part in np.array_split(np.arange(N), sorted(cuts)))

    rows = trueline.open(batches, target="y", columns=FEATURES)
    model = LinearRegression().fit(rows)
    whole = LinearRegression().fit(X, TABLE["y"])
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-12)
    assert model.certificate_.relative_gap < 1e-12


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "arrow", "parquet"])
def test_formats(tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    numbers = TABLE[[*FEATURES, "y"]]
    if ending.startswith("csv"):
        numbers.to_csv(path, index=False)
    elif ending == "arrow":
        numbers.to_feather(path)
    else:
        numbers.to_parquet(path)
    model = Ridge().fit(trueline.open(path, target="y"))
    np.testing.assert_allclose(model.coef_, Ridge().fit(X, TABLE["y"]).coef_, rtol=1e-12)


def test_mapped_arrays_and_single_precision(tmp_path):
    single = X.astype(np.float32)
    np.save(tmp_path / "X.npy", single)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    rows = trueline.open(mapped, target=TABLE["y"], memory="64KB")
    model, whole = Ridge().fit(rows), Ridge().fit(single, TABLE["y"])
    assert model.coef_.dtype == whole.coef_.dtype
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-6)


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("model", [Ridge(), Lasso(0.01), LinearSVC(), LogisticRegression()])
def test_sparse_text_is_read_in_sparse_batches(tmp_path, model, zero_based):
    S = sp.random_array((N, 100), density=0.05, rng=0, format="csr")
    target = np.where(S @ RNG.standard_normal(100) > 0, 1.0, -1.0)
    dump_svmlight_file(S, target, str(tmp_path / "rows.svm"), zero_based=zero_based)
    rows = trueline.open(tmp_path / "rows.svm", memory="2MB")
    assert rows.shape == S.shape
    assert len(rows.starts) > 3
    batched, whole = clone(model).fit(rows), clone(model).fit(S, target)
    np.testing.assert_allclose(batched.coef_, whole.coef_, rtol=1e-9, atol=1e-11)
    assert batched.verify(S, target)
    assert batched.verify(rows)
    some = trueline.open(tmp_path / "rows.svm", columns=["x3", "x5"])
    np.testing.assert_allclose(some.toarray(), S.toarray()[:, [3, 5]])


@pytest.mark.parametrize("target", ["y", "kind"])
def test_queries_are_run_anew_in_every_pass(target):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("own", TABLE)
    names = ", ".join(f'"{name}"' for name in [*FEATURES, target])
    rows = trueline.open(connection.sql(f"select {names} from own"), target=target, memory="64KB")
    model = Ridge() if target == "y" else LogisticRegression()
    np.testing.assert_allclose(
        clone(model).fit(rows).coef_, clone(model).fit(X, TABLE[target]).coef_, rtol=1e-9
    )


def test_rows_in_another_order_are_noticed():
    draw = np.random.default_rng(0)
    rows = trueline.open(
        lambda: [TABLE.iloc[draw.permutation(N)]], target="y", columns=FEATURES, memory="64KB"
    )
    with pytest.raises(TableError, match="rows in another order .*ORDER BY"):
        Ridge().fit(rows)


def test_functions_give_arrays_and_arrow_tables():
    y, weights = TABLE["y"].to_numpy(), TABLE["weight"].to_numpy()
    cuts = [slice(start, start + 700) for start in range(0, N, 700)]
    whole = Ridge().fit(X, y, sample_weight=weights)
    pairs = trueline.open(lambda: ((X[cut], y[cut], weights[cut]) for cut in cuts))
    np.testing.assert_allclose(Ridge().fit(pairs).coef_, whole.coef_, rtol=1e-12)
    tables = trueline.open(
        lambda: (pa.Table.from_pandas(TABLE.iloc[cut]) for cut in cuts),
        target="y",
        columns=FEATURES,
        weight="weight",
    )
    np.testing.assert_allclose(Ridge().fit(tables).coef_, whole.coef_, rtol=1e-12)
    alone = trueline.open(lambda: (X[cut] for cut in cuts))
    np.testing.assert_array_equal(alone.toarray(), X)


def test_partitions_by_folder_are_columns(tmp_path):
    for year in (2023, 2024):
        part = tmp_path / f"year={year}"
        part.mkdir()
        TABLE.iloc[year % 2 :: 2][[*FEATURES, "y"]].to_parquet(part / "rows.parquet")
    rows = trueline.open(tmp_path, target="y")
    assert rows.columns == [*FEATURES, "year"]
    assert rows.toarray()[:, 4].tolist() == [2023.0] * (N // 2) + [2024.0] * (N // 2)


def test_some_rows_and_ranges_are_those_of_the_matrix(folder):
    rows = trueline.open(folder, target="y", columns=FEATURES, memory="64KB")
    some = np.array([2999, 5, 5, 700, 1301])
    np.testing.assert_array_equal(rows.take(some).toarray(), X[some])
    np.testing.assert_array_equal(rows.take(slice(650, 1310)).toarray(), X[650:1310])
    np.testing.assert_array_equal(rows[np.flatnonzero(X[:, 0] > 1)].toarray(), X[X[:, 0] > 1])
    np.testing.assert_array_equal(rows.row(2000), X[2000])
    assert rows.take(slice(9, 9)).shape == (0, 4)


# --- one pass for a search ------------------------------------------------------------------------

FOLDS = [
    5,
    KFold(3, shuffle=True, random_state=0),
    [(np.arange(2000), np.arange(2000, N)), (np.arange(1000, N), np.arange(500))],
]


@pytest.mark.parametrize("cv", FOLDS, ids=["in order", "shuffled", "given"])
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize(
    "model",
    [RidgeCV([0.1, 10.0, 1000.0]), LassoCV(alphas=20), ElasticNetCV(l1_ratio=[0.5, 1.0], alphas=9)],
    ids=lambda model: type(model).__name__,
)
def test_searches_by_folds_read_once_and_choose_as_in_memory(folder, model, weight, cv):
    rows = trueline.open(folder, target="y", columns=FEATURES, weight=weight, memory="64KB")
    batched = clone(model).set_params(cv=cv).fit(rows)
    given = {} if weight is None else {"sample_weight": TABLE[weight]}
    whole = clone(model).set_params(cv=cv).fit(X, TABLE["y"], **given)
    scores = "fold_scores_" if isinstance(model, RidgeCV) else "mse_path_"
    np.testing.assert_allclose(getattr(batched, scores), getattr(whole, scores), rtol=1e-9)
    np.testing.assert_allclose(batched.coef_, whole.coef_, rtol=1e-9, atol=1e-11)
    assert batched.alpha_ == pytest.approx(whole.alpha_, rel=1e-12)
    if cv == 5 and (weight is None or not isinstance(model, RidgeCV)):
        assert rows.passes == 1
    assert batched.verify(rows)


@pytest.mark.parametrize("target", ["y", "kind"])
def test_leaving_one_out_reads_twice(folder, target):
    model = RidgeCV() if target == "y" else RidgeClassifierCV()
    rows = trueline.open(folder, target=target, columns=FEATURES, memory="64KB")
    batched, whole = clone(model).fit(rows), clone(model).fit(X, TABLE[target])
    assert rows.passes == 2
    assert batched.best_score_ == pytest.approx(whole.best_score_, rel=1e-12)
    np.testing.assert_allclose(batched.coef_, whole.coef_, rtol=1e-9)


def test_classes_are_scored_in_one_pass_a_fold(folder):
    rows = trueline.open(folder, target="kind", columns=FEATURES, memory="64KB")
    model = RidgeClassifierCV(cv=3)
    batched, whole = clone(model).fit(rows), clone(model).fit(X, TABLE["kind"])
    np.testing.assert_array_equal(batched.fold_scores_, whole.fold_scores_)
    assert rows.passes <= 1 + 3


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize(
    "model",
    [BayesianRidge(), BestSubset(), StepwiseRegression(), StepwiseRegression(criterion="cv")],
    ids=str,
)
def test_searches_for_columns_and_evidence(folder, model, weight):
    rows = trueline.open(folder, target="y", columns=FEATURES, weight=weight, memory="64KB")
    given = {} if weight is None else {"sample_weight": TABLE[weight]}
    batched, whole = clone(model).fit(rows), clone(model).fit(X, TABLE["y"], **given)
    np.testing.assert_allclose(batched.coef_, whole.coef_, rtol=1e-9, atol=1e-11)
    # The proof of a best subset is about its rows, in three passes more.
    assert rows.passes <= (4 if isinstance(model, BestSubset) else 1)
    assert batched.verify(rows)


def test_relevance_of_columns(folder):
    rows = trueline.open(folder, target="y", columns=FEATURES, memory="64KB")
    batched, whole = ARDRegression().fit(rows), ARDRegression().fit(X, TABLE["y"])
    np.testing.assert_allclose(batched.coef_, whole.coef_, rtol=1e-9)
    assert rows.passes == 1
    with pytest.raises(ValueError, match="takes no weights: open the rows without weight="):
        ARDRegression().fit(trueline.open(folder, target="y", columns=FEATURES, weight="weight"))


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_paths_read_once(folder, l1_ratio, fit_intercept):
    rows = trueline.open(folder, target="y", columns=FEATURES, weight="weight", memory="64KB")
    asked = {"l1_ratio": l1_ratio, "fit_intercept": fit_intercept, "alphas": 30}
    batched = regularization_path(rows, **asked)
    whole = regularization_path(X, TABLE["y"], sample_weight=TABLE["weight"], **asked)
    assert rows.passes == 1
    np.testing.assert_allclose(batched.alphas, whole.alphas, rtol=1e-12)
    np.testing.assert_allclose(batched.coefs.toarray(), whole.coefs.toarray(), atol=1e-9)
    np.testing.assert_allclose(batched.bic(), whole.bic(), rtol=1e-9)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, N - 1), max_size=12, unique=True), st.integers(0, 2**16))
def test_moments_of_any_folds_in_any_partition(cuts, seed):
    rows = trueline.open(
        lambda: (TABLE.iloc[part] for part in np.array_split(np.arange(N), sorted(cuts))),
        target="y",
        columns=FEATURES,
    )
    Y, fold = rows.target[:, None], np.random.default_rng(seed).integers(0, 3, N)
    folds = [np.where(fold == k, 0.0, 1.0) for k in range(3)]
    shared = SharedMoments(rows, Y, None, folds)
    for k in range(3):
        found = shared.of_fold(folds[k])
        whole = Moments.from_rows(as_design(X[fold != k]), Y[fold != k])
        np.testing.assert_allclose(found.gram, whole.gram, rtol=1e-11, atol=1e-9)
        np.testing.assert_allclose(found.cross, whole.cross, rtol=1e-11, atol=1e-9)
        assert found.count == whole.count
    assert rows.passes == 1


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss"])
@pytest.mark.parametrize("target", ["kind", "weight"], ids=["two classes", "three"])
def test_strengths_of_classifiers_are_chosen_as_in_memory(folder, target, scoring):
    model = LogisticRegressionCV(
        Cs=[0.01, 1.0], cv=3, l1_ratios=(0,), scoring=scoring, use_legacy_attributes=False
    )
    rows = trueline.open(folder, target=target, columns=FEATURES, memory="64KB")
    batched, whole = clone(model).fit(rows), clone(model).fit(X, TABLE[target])
    np.testing.assert_allclose(batched.scores_, whole.scores_, rtol=1e-6)
    np.testing.assert_allclose(batched.coefs_paths_, whole.coefs_paths_, rtol=1e-4, atol=1e-5)
    assert batched.C_ == whole.C_
    assert batched.feature_names_in_.tolist() == FEATURES
    assert batched.verify(rows)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_columns_are_chosen_one_by_one_in_one_pass(folder, direction):
    rows = trueline.open(folder, target="y", columns=FEATURES, memory="64KB")
    model = SequentialFeatureSelector(
        LinearRegression(), n_features_to_select=2, direction=direction
    )
    assert "moments of 5 folds" in str(model.explain(rows, rows.target))
    batched, whole = clone(model).fit(rows), clone(model).fit(TABLE[FEATURES], TABLE["y"])
    assert rows.passes == 1
    np.testing.assert_array_equal(batched.support_, whole.support_)
    assert [s["feature"] for s in batched.history_] == [s["feature"] for s in whole.history_]
    np.testing.assert_allclose(
        [step["score"] for step in batched.history_],
        [step["score"] for step in whole.history_],
        rtol=1e-9,
    )
    assert batched.get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()
    piped = make_pipeline(clone(model), Ridge()).fit(rows)
    np.testing.assert_allclose(
        piped.predict(rows), make_pipeline(model, Ridge()).fit(X, TABLE["y"]).predict(X)
    )


def test_columns_that_need_refits_need_their_rows_in_memory(folder):
    rows = trueline.open(folder, target="y", columns=FEATURES, memory="64KB")
    with pytest.raises(TypeError, match="by refits: HuberRegressor is not least squares"):
        SequentialFeatureSelector(HuberRegressor()).fit(rows)
    twice = trueline.open(TABLE[["a", "a", "b"]].to_numpy(), target=TABLE["y"])
    with pytest.raises(TypeError, match="by refits: the columns depend on each other"):
        SequentialFeatureSelector(LinearRegression(), direction="backward").fit(twice)


# --- learning row by row --------------------------------------------------------------------------

LEARNERS = [
    Perceptron(shuffle=False, tol=None, max_iter=4),
    Perceptron(shuffle=False, penalty="elasticnet"),
    Perceptron(variant="averaged", shuffle=False, max_iter=5),
    Perceptron(multiclass="direct", shuffle=False, max_iter=5),
    Perceptron(early_stopping=True, shuffle=False, random_state=0),
    PassiveAggressiveClassifier(shuffle=False),
    OnlineLogisticRegression(shuffle=False),
    OnlineLogisticRegression(update="plain", shuffle=False),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("target", ["kind", "weight"], ids=["two classes", "three"])
@pytest.mark.parametrize("model", LEARNERS, ids=str)
def test_rows_in_their_order_are_learned_as_in_memory(folder, model, target):
    """To the last bit: a pass over batches visits the same rows in the same order."""
    rows = trueline.open(folder, target=target, columns=FEATURES, memory="64KB")
    batched, whole = clone(model).fit(rows), clone(model).fit(X, TABLE[target])
    np.testing.assert_array_equal(batched.coef_, whole.coef_)
    np.testing.assert_array_equal(batched.intercept_, whole.intercept_)
    np.testing.assert_array_equal(batched.predict(rows), whole.predict(X))
    assert batched.certificate_.objective == whole.certificate_.objective
    assert batched.verify(rows)


def test_a_single_batch_is_shuffled_as_in_memory(folder):
    rows = trueline.open(TABLE[FEATURES].to_numpy(), target=TABLE["kind"])
    model = OnlineLogisticRegression(random_state=1)
    batched, whole = clone(model).fit(rows), clone(model).fit(X, TABLE["kind"])
    np.testing.assert_array_equal(batched.coef_, whole.coef_)


def test_rows_of_batches_are_shuffled_among_themselves(folder):
    rows = trueline.open(folder, target="kind", columns=FEATURES, memory="64KB")
    model = OnlineLogisticRegression(random_state=1).fit(rows)
    assert (model.coef_ != OnlineLogisticRegression(shuffle=False).fit(rows).coef_).any()
    assert np.mean(model.predict(rows) == TABLE["kind"]) > 0.7


@pytest.mark.parametrize(
    "model",
    [
        Perceptron(variant="voted"),
        Perceptron(record_updates=True),
        Perceptron(normalize_rows=True),
        Perceptron(bias="constant_feature"),
    ],
    ids=str,
)
def test_learning_that_needs_its_rows_in_memory_says_so(folder, model):
    with pytest.raises(ValueError, match="needs its rows in memory"):
        model.fit(trueline.open(folder, target="kind", columns=FEATURES))


# --- what cannot be read --------------------------------------------------------------------------


def test_files_that_differ_are_named(tmp_path):
    TABLE[["a", "y"]].to_parquet(tmp_path / "1.parquet")
    TABLE[["b", "y"]].to_parquet(tmp_path / "2.parquet")
    with pytest.raises(TableError, match=r"2\.parquet has no column 'a', which other files have"):
        Ridge().fit(trueline.open(tmp_path, target="y"))
    TABLE[["kind", "y"]].rename(columns={"kind": "a"}).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(TableError, match=r"'a' of .*2\.parquet holds .*string, and of other files"):
        Ridge().fit(trueline.open(tmp_path, target="y"))


def test_a_damaged_file_is_named_with_its_row_group(tmp_path):
    for k in range(2):
        TABLE[["a", "b", "y"]].to_parquet(
            tmp_path / f"{k}.parquet", row_group_size=1000, compression=None
        )
    raw = bytearray((tmp_path / "1.parquet").read_bytes())
    middle = len(raw) // 2
    raw[middle - 4000 : middle + 4000] = b"\xff" * 8000
    (tmp_path / "1.parquet").write_bytes(raw)
    with pytest.raises(TableError, match=r"1\.parquet, row group [012]"):
        Ridge().fit(trueline.open(tmp_path, target="y"))


def test_what_is_damaged_is_left_out_if_asked_and_told(tmp_path):
    for k in range(4):
        TABLE[["a", "b", "y"]].iloc[700 * k : 700 * (k + 1)].to_parquet(
            tmp_path / f"{k}.parquet", row_group_size=350, compression=None
        )
    raw = bytearray((tmp_path / "1.parquet").read_bytes())
    where = raw.find(TABLE["b"].to_numpy()[720:740].tobytes())
    raw[where - 3000 : where - 500] = b"\xff" * 2500  # in the first row group
    (tmp_path / "1.parquet").write_bytes(raw)
    (tmp_path / "2.parquet").write_bytes(b"PAR1 no more")
    TABLE[["a", "y"]].to_parquet(tmp_path / "3.parquet")
    with pytest.raises(TableError, match=r"take it away, or .*damaged='skip'"):
        Ridge().fit(trueline.open(tmp_path, target="y"))
    with pytest.warns(UserWarning, match="3 files or row groups of .* will be left out"):
        rows = trueline.open(tmp_path, target="y", damaged="skip")
    assert sorted(name[len(str(tmp_path)) + 1 :] for name in rows.skipped) == [
        "1.parquet, row group 0",
        "2.parquet",
        "3.parquet",
    ]
    left = np.r_[0:700, 1050:1400]
    np.testing.assert_allclose(
        Ridge().fit(rows).coef_, Ridge().fit(X[left, :2], TABLE["y"].iloc[left]).coef_, rtol=1e-9
    )


def test_missing_values_infinities_and_words_are_named(tmp_path):
    path = tmp_path / "rows.parquet"
    gaps = TABLE[["a", "y"]].copy()
    gaps["a"] = pd.array(np.where(np.arange(N) == 7, np.nan, gaps["a"]), dtype="Float64")
    gaps.to_parquet(path)
    with pytest.raises(TableError, match=r"'a' misses 1 values in .*rows\.parquet, row group 0"):
        Ridge().fit(trueline.open(path, target="y"))
    TABLE[["a", "y"]].assign(a=np.where(np.arange(N) == 7, np.inf, 1.0)).to_parquet(path)
    with pytest.raises(TableError, match="'a' contains NaN or infinity"):
        Ridge().fit(trueline.open(path, target="y"))
    with pytest.raises(TableError, match="'kind' holds '(yes|no)', which is no number"):
        Ridge().fit(trueline.open(lambda: [TABLE], target="y"))


@pytest.mark.parametrize(
    ("source", "given", "message"),
    [
        ("nowhere.parquet", {}, "There is no file or folder nowhere.parquet"),
        ("nowhere/*.parquet", {}, "No file is called nowhere"),
        (X, {"target": [1.0]}, "X has 3000 rows, and the shape"),
        (X, {"columns": ["x7"]}, "has no column 'x7'. It has: x0, x1"),
        (X[0], {}, r"array of shape \(n, d\) is needed"),
        (lambda: [[1.0, 2.0]], {}, "must give DataFrames, arrays, or pairs"),
        (lambda: [], {}, "must give DataFrames, arrays, or pairs"),
        (sp.csr_array(X), {}, "give it to fit as it is"),
    ],
)
def test_sources_that_are_none(source, given, message):
    with pytest.raises(TableError, match=message):
        trueline.open(source, **given)


def test_columns_in_another_order_are_not_predicted(folder):
    model = Ridge().fit(trueline.open(folder, target="y", columns=FEATURES))
    with pytest.raises(ValueError, match="feature names should match .* columns=\\['a', 'b', 'c'"):
        model.predict(trueline.open(folder, columns=FEATURES[::-1]))


@pytest.mark.parametrize("model", [trueline.SVC(), trueline.KernelRidge(), trueline.NuSVC()])
def test_models_that_need_their_rows_in_memory_say_so(model):
    rows = trueline.open(X[:50], target=TABLE["count"][:50])
    with pytest.raises(TypeError, match="needs its rows in memory: give it rows.toarray"):
        model.fit(rows, rows.target)


def test_a_target_is_asked_for():
    with pytest.raises(ValueError, match="requires y to be passed.*open"):
        Ridge().fit(trueline.open(X))
    with pytest.raises(ValueError, match="memory must be like '500MB'"):
        trueline.open(X, memory="much")


def test_rows_that_change_between_passes_are_noticed():
    sizes = iter([N, N, N, N - 1, N - 1])
    rows = trueline.open(lambda: [TABLE.iloc[: next(sizes)]], target="y", columns=FEATURES)
    with pytest.raises(TableError, match="other rows than when it was opened"):
        Ridge().fit(rows)


_FIT = """
import resource, sys, trueline
trueline.Ridge().fit(trueline.open(sys.argv[1], target="y", columns=["x0"], memory="1MB"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
trueline.Ridge().fit(trueline.open(sys.argv[1], target="y", memory="16MB"))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.slow
def test_memory_stays_near_the_budget(tmp_path):
    """16 MB, and a row group in the hands of the reader, of a file of 400 MB."""
    for k in range(10):
        part = pd.DataFrame(
            RNG.standard_normal((250_000, 20)), columns=[f"x{j}" for j in range(20)]
        )
        part.assign(y=part["x0"] + 1).to_parquet(tmp_path / f"{k}.parquet", row_group_size=50_000)
    done = subprocess.run([sys.executable, "-c", _FIT, tmp_path], capture_output=True, check=True)
    assert float(done.stdout) < 16 + 100


@pytest.mark.parametrize(
    "model",
    [trueline.BayesianLinearRegression(prior_mean=0.5), trueline.ChebyshevRegressor()],
    ids=str,
)
def test_proofs_that_ask_for_single_rows_read_batches(folder, model):
    rows = trueline.open(folder, target="y", columns=FEATURES, memory="64KB")
    fitted = clone(model).fit(rows)
    assert fitted.verify(rows)
    assert fitted.verify(X, TABLE["y"])
    fitted.coef_ = fitted.coef_ + 1e-3
    assert not fitted.verify(rows)


# --- files that are named in the call -------------------------------------------------------------


@pytest.mark.parametrize(("model", "target"), [(Ridge(2.0), "y"), (LogisticRegression(), "kind")])
def test_a_path_is_opened_by_fit_predict_and_verify(folder, model, target):
    pattern = str(folder / "*.parquet")
    named = clone(model).fit(pattern, target=target, columns=FEATURES, weight="weight")
    rows = trueline.open(folder, target=target, columns=FEATURES, weight="weight")
    opened = clone(model).fit(rows)
    np.testing.assert_array_equal(named.coef_, opened.coef_)
    assert named.verify(pattern, target, "weight")
    assert not named.verify(pattern, target)  # other weights
    assert "rows x 4 columns" in str(named.explain(pattern, target, "weight"))
    assert named.objective(folder, target, "weight")() == opened.objective(rows)()
    np.testing.assert_array_equal(named.predict(folder), opened.predict(rows))


def test_a_path_is_opened_with_a_target_that_is_at_hand(folder):
    given = {"columns": FEATURES, "memory": "64KB"}
    named = Ridge().fit(folder, TABLE["y"], TABLE["weight"], **given)
    rows = trueline.open(folder, target="y", weight="weight", **given)
    np.testing.assert_array_equal(named.coef_, Ridge().fit(rows).coef_)
    np.testing.assert_array_equal(named.coef_, Ridge().fit(folder, "y", "weight", **given).coef_)


def test_paths_that_cannot_be_fitted_say_what_to_do(folder):
    with pytest.raises(TableError, match="There is no file or folder of rows"):
        Ridge().fit("of rows", target="y")
    with pytest.raises(ValueError, match=r"requires y to be passed.*fit\(path, target='y'\)"):
        Ridge().fit(folder, columns=FEATURES)
    with pytest.raises(TypeError, match="memory, target go with the path of files"):
        Ridge().fit(trueline.open(X), target="y", memory="1MB")
    with pytest.raises(TypeError, match="SVC needs its rows in memory"):
        trueline.SVC().fit(folder, target="kind")
