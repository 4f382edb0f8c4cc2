"""Methods of rows take files: ``score("folder/*.parquet", target="y")``."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

import trueline
from trueline import (
    LassoCV,
    LogisticRegression,
    OneClassSVM,
    OnlineLogisticRegression,
    Perceptron,
    PoissonRegressor,
    Ridge,
    StepwiseRegression,
)

pytest.importorskip("pyarrow")
N = 600
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
SIGNAL = X @ [1.0, -2.0, 0.5] + 0.1 * RNG.standard_normal(N)
TABLE = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
    y=SIGNAL,
    sign=np.where(SIGNAL > 0, "up", "down"),
    count=np.floor(np.exp(0.5 * SIGNAL)),
    weight=RNG.integers(1, 3, N).astype(float),
)
FEATURES = ["a", "b", "c"]


@pytest.fixture
def folder(tmp_path):
    for k in range(3):
        TABLE.iloc[k * 200 : (k + 1) * 200].to_parquet(tmp_path / f"{k}.parquet")
    return tmp_path


MODELS = [
    (Ridge(2.0), "y"),
    (LassoCV(cv=3), "y"),
    (PoissonRegressor(), "count"),
    (LogisticRegression(), "sign"),
    (Perceptron(tol=None, max_iter=3, shuffle=False), "sign"),
    (OnlineLogisticRegression(max_iter=3, shuffle=False), "sign"),
]


def _same(ours, theirs):
    if isinstance(ours, np.ndarray) and ours.dtype.kind != "f":
        return (ours == theirs).all()
    return np.allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize(("model", "target"), MODELS)
@pytest.mark.parametrize("weight", [None, "weight"])
def test_methods_of_rows_and_target_open_files(folder, model, target, weight):
    rows = TABLE[FEATURES], TABLE[target].to_numpy()
    weights = None if weight is None else TABLE[weight].to_numpy()
    fitted = clone(model).fit(*rows, sample_weight=weights)
    path, named = str(folder / "*.parquet"), {"target": target, "weight": weight}
    opened = trueline.open(path, columns=FEATURES, **named)
    assert fitted.verify(path, **named)
    assert fitted.verify(X=path, y=target, sample_weight=weight)
    expected = fitted.score(*rows, sample_weight=weights)
    assert fitted.score(path, **named) == pytest.approx(expected, rel=1e-9)
    assert fitted.score(path, target, weight) == pytest.approx(expected, rel=1e-9)
    assert fitted.score(opened) == pytest.approx(expected, rel=1e-9)
    for name in ("objective", "certify", "explain", "log_likelihood"):
        if hasattr(fitted, name) and not (name == "explain" and "fold" in str(model)):
            ours, theirs = (
                getattr(fitted, name)(path, memory="64KB", **named),
                getattr(fitted, name)(*rows, sample_weight=weights),
            )
            assert type(ours) is type(theirs)
            if name == "objective":
                assert ours() == pytest.approx(theirs())
            if name == "certify":
                assert ours.objective == theirs.objective
            if name == "log_likelihood":
                assert ours == pytest.approx(theirs)


@pytest.mark.parametrize(("model", "target"), MODELS)
def test_methods_of_rows_alone_open_files(folder, model, target):
    fitted = clone(model).fit(folder, target=target, columns=FEATURES)
    methods = ("predict", "decision_function", "predict_proba", "predict_log_proba")
    for name in methods:
        if hasattr(fitted, name):
            expected = getattr(fitted, name)(TABLE[FEATURES])
            assert _same(getattr(fitted, name)(folder), expected)
            assert _same(getattr(fitted, name)(folder, memory="64KB"), expected)


def test_chosen_columns_are_read_from_files(folder):
    chosen = StepwiseRegression().fit(folder, target="y", columns=FEATURES)
    expected = chosen.transform(TABLE[FEATURES])
    np.testing.assert_allclose(chosen.transform(folder).toarray(), expected)


def test_what_is_told_of_files_goes_with_a_path(folder):
    fitted = Ridge().fit(folder, target="y", columns=FEATURES)
    with pytest.raises(TypeError, match="target go with the path of files"):
        fitted.score(trueline.open(folder, target="y", columns=FEATURES), target="y")
    for method in (fitted.score, fitted.verify, fitted.fit):
        with pytest.raises(TypeError, match="target go with the path of files"):
            method(TABLE[FEATURES], TABLE["y"], target="y")
    for method in ("score", "verify", "objective"):
        with pytest.raises(ValueError, match=rf"{method}\(path, target='y'\)"):
            getattr(fitted, method)(folder, columns=FEATURES)
    kernel = OneClassSVM().fit(TABLE[FEATURES])
    with pytest.raises(TypeError, match="OneClassSVM needs its rows in memory"):
        kernel.verify(folder, columns=FEATURES)
    TABLE.drop(columns="b").to_parquet(folder / "0.parquet")
    with pytest.raises(trueline.errors.TableError, match="has no column 'b'"):
        fitted.score(folder / "0.parquet", target="y")


def test_columns_that_sparse_text_does_not_name_are_zero(tmp_path):
    wide, narrow = tmp_path / "learned.svm", tmp_path / "new.svm"
    S = np.round(RNG.standard_normal((50, 6)), 2)
    dump_svmlight_file(S, S[:, 0], str(wide))
    dump_svmlight_file(S * [1, 1, 1, 0, 0, 0], S[:, 0], str(narrow))
    model = Ridge().fit(wide)
    expected = S * [1, 1, 1, 0, 0, 0] @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(narrow), expected)
