"""The formula door."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf
from scipy import sparse
from sklearn.pipeline import make_pipeline

from trueline import FormulaFeatures, Lasso, LinearRegression, formula
from trueline.errors import MissingExtraError, TableError

RNG = np.random.default_rng(0)
DATA = pd.DataFrame(
    {"y": RNG.standard_normal(40), "x1": RNG.uniform(1, 2, 40), "x2": RNG.uniform(size=40)}
).assign(city=np.tile(["Rome", "Oslo", "Bonn", "Rome"], 10))
TEXT = "y ~ x1 + C(city) + poly(x2, 3)"
KINDS = [lambda d: d, pl.from_pandas, pa.Table.from_pandas, lambda d: d.to_dict("list")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("output", ["dense", "sparse"])
def test_design_target_and_names(kind, output):
    X, y, names = formula(TEXT, kind(DATA), output=output)
    assert sparse.issparse(X) == (output == "sparse")
    X = X.toarray() if sparse.issparse(X) else X
    np.testing.assert_array_equal(y, DATA["y"])
    assert list(names[:3]) == ["x1", "C(city)[T.Oslo]", "C(city)[T.Rome]"]
    np.testing.assert_array_equal(X[:, 1], DATA["city"] == "Oslo")
    P = X[:, 3:]
    np.testing.assert_allclose(P.T @ P, np.eye(3), atol=1e-12)
    assert np.linalg.matrix_rank(np.column_stack([DATA["x2"] ** k for k in range(4)] + [P])) == 4


def test_the_fit_is_that_of_statsmodels():
    text = "y ~ x1 * C(city) + np.log(x1)"
    X, y, names = formula(text, DATA)
    ours, theirs = LinearRegression().fit(X, y), smf.ols(text, DATA).fit()
    assert list(names) == list(theirs.params.index[1:]) or set(names) == set(
        theirs.params.index[1:]
    )
    expected = theirs.params[list(names)]
    np.testing.assert_allclose(ours.coef_, expected, rtol=1e-7)
    assert ours.verify(X, y)


def test_a_pipeline_treats_new_rows_as_it_learned():
    model = make_pipeline(FormulaFeatures(TEXT), Lasso(0.01)).fit(DATA, DATA["y"])
    some = DATA.iloc[[3]]
    assert model.predict(some)[0] == pytest.approx(model.predict(DATA)[3])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(DATA), model.predict(DATA))
    frame = FormulaFeatures(TEXT).set_output(transform="pandas").fit_transform(DATA)
    assert list(frame.columns) == list(model[0].get_feature_names_out())
    assert "poly(x2, 3): 3 columns" in model[0].explain()


def test_targets():
    assert list(formula("city ~ x1", DATA).y[:2]) == ["Rome", "Oslo"]
    np.testing.assert_allclose(formula("np.log(x1) ~ x2", DATA).y, np.log(DATA["x1"]))
    assert formula("~ x1", DATA).y is None
    assert "C(city)[Bonn]" in formula("y ~ 0 + C(city)", DATA).names


@pytest.mark.parametrize(
    ("text", "message"),
    [("y ~ x1 +", "cannot be read"), ("y ~ x9", "does not fit the table.*It has: y, x1, x2, city")],
)
def test_bad_formulas(text, message):
    with pytest.raises(ValueError, match=message):
        formula(text, DATA)


def test_missing_values_are_refused():
    holes = DATA.assign(x1=DATA["x1"].where(DATA["x1"] < 1.9))
    with pytest.raises(TableError, match="rows miss a value"):
        formula(TEXT, holes)
    with pytest.raises(TableError, match="x1"):
        FormulaFeatures(TEXT).fit(DATA).transform(holes)
    with pytest.raises(TableError, match="DataFrame is needed"):
        FormulaFeatures(TEXT).fit(np.ones((3, 2)))


def test_the_extra_is_named(monkeypatch):
    import trueline.errors as errors

    real = errors.importlib.import_module

    def missing(name):
        if name.startswith("formulaic"):
            raise ImportError(name)
        return real(name)

    monkeypatch.setattr(errors.importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"trueline\[formula\]"):
        formula(TEXT, DATA)
