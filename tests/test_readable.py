"""Results at a prompt and in a notebook: a few lines of text, never arrays."""

from __future__ import annotations

import dataclasses
import html

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

import trueline as tl
from trueline.design import as_design
from trueline.features.base import DesignMatrix
from trueline.losses import Squared
from trueline.penalties import L1
from trueline.planner import execute, make_plan
from trueline.problem import Problem
from trueline.solvers.base import Monitor, Options
from trueline.wording import Readable, Text, outline

X, y = load_diabetes(return_X_y=True, as_frame=True)
IRIS, SPECIES = load_iris(return_X_y=True)
TWO = IRIS[:100], SPECIES[:100]
OVERLAP = IRIS[50:], SPECIES[50:]
TABLE = {"y": [1.0, 3.0, 5.0, 9.0], "x": [0.0, 1.0, 2.0, 3.0], "s": list("abab")}
TEXTS = ["a cat sat", "the cat ran", "a dog sat", "the dog ran"]


def solution():
    problem = Problem(as_design(X.to_numpy()), y.to_numpy()[:, None], Squared(), L1(50.0))
    return execute(problem, make_plan(problem), Options(), Monitor())


#: What users meet: how it is made, and a word that its text has.
RESULTS = {
    "certificate": (lambda: tl.Lasso().fit(X, y).certificate_, "proven within"),
    "many columns": (
        lambda: tl.Ridge().fit(np.eye(60, 500), np.arange(60.0)).certificate_,
        "proof",
    ),
    "best subset": (lambda: tl.BestSubset(k=2).fit(X, y).certificate_, "proven within"),
    "support vectors": (lambda: tl.SVC().fit(*OVERLAP).certificate_, "proven within"),
    "kernel": (lambda: tl.KernelRidge().fit(X, y).certificate_, "proven within"),
    "several classes": (
        lambda: tl.OneVsOneClassifier(tl.LogisticRegression()).fit(IRIS, SPECIES).certificate_,
        "proven within",
    ),
    "verification": (lambda: tl.Lasso().fit(X, y).verify(X, y), "The certificate holds."),
    "explanation": (lambda: tl.Lasso().fit(X, y).explain(), "minimise"),
    "plan": (lambda: tl.Lasso().explain(X, y), "minimise"),
    "explanation of a kernel": (lambda: tl.KernelRidge().fit(X, y).explain(), "minimise"),
    "explanation of classes": (
        lambda: tl.OneVsRestClassifier(tl.LogisticRegression()).fit(IRIS, SPECIES).explain(),
        "scheme",
    ),
    "explanation of steps": (lambda: tl.StepwiseRegression().fit(X, y).explain(), "criterion"),
    "explanation of a table": (
        lambda: tl.TableFeatures().fit(TABLE).explain(),
        "TableFeatures: 3 columns in",
    ),
    "explanation of texts": (lambda: tl.TextFeatures().fit(TEXTS).explain(), "TextFeatures"),
    "path": (lambda: tl.regularization_path(X, y), "100 alphas from 2.148"),
    "logistic path": (lambda: tl.logistic_path(*OVERLAP, Cs=5), "5 values of C"),
    "subsets": (lambda: tl.BestSubset(k=[1, 2, 3]).fit(X, y).path_, "3 of 3 proven"),
    "formula": (lambda: tl.formula("y ~ x + C(s)", TABLE), "4 rows x 2 columns, dense"),
    "design": (lambda: tl.design_matrix(TABLE, target="y"), "4 rows x 3 columns, dense"),
    "separability": (lambda: tl.separability(*TWO), "Separable"),
    "exact proof": (lambda: tl.separability(*TWO).certificate, "margin at least"),
    "margin": (lambda: tl.maximum_margin(*TWO), "largest margin"),
    "solution": (solution, "not zero"),
    "moments": (lambda: tl.Ridge().fit(X, y).moments_, "Moments("),
    "posterior": (lambda: tl.BayesianLinearRegression().fit(X, y).posterior_, "array of shape"),
    "trace": (
        lambda: tl.LinearRegressor("squared", "l1", 10.0, trace=True).fit(X, y).trace_,
        "records of iteration",
    ),
    "no trace": (lambda: tl.Ridge().fit(X, y).trace_, "fit with trace=True"),
    "comparison": (lambda: tl.compare(X, y, models=["ridge", "lasso"]), "5 folds"),
    "winner": (lambda: tl.compare(X, y, models=["ridge", "lasso"]).best, "±"),
    "cross-validation": (lambda: tl.cross_validate(tl.Ridge(), X, y), "5 folds"),
    "learning curve": (lambda: tl.learning_curve(tl.Ridge(), X, y), "5 folds"),
    "complexity curve": (
        lambda: tl.complexity_curve(X, y, "alpha", np.geomspace(0.01, 10, 30), model=tl.Ridge()),
        "best alpha",
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_prints_as_a_few_lines_and_shows_the_same_in_a_notebook(name):
    make, words = RESULTS[name]
    result = make()
    text = repr(result)
    assert text == str(result)
    assert words in text
    assert "array(" not in text
    assert "object at 0x" not in text
    assert len(text.splitlines()) <= 36
    shown = result._repr_html_()
    assert shown.startswith(("<pre>", "<table>"))
    assert html.escape(text.splitlines()[-1]) in shown


def test_results_are_made_by_hand_as_before():
    """Printing is all that differs: these are dataclasses."""
    certificate = tl.Ridge().fit(X, y).certificate_
    assert dataclasses.is_dataclass(certificate)
    assert dataclasses.replace(certificate, gap=1.0).gap == 1.0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.zeros((3, 4)), "array of shape (3, 4)"),
        (np.float64(0.125), "0.125"),
        ([1, 2], "list of 2"),
        ({"a": 1}, "dict of 1"),
        ("x" * 100, "'" + "x" * 55 + " ..."),
        (None, "None"),
    ],
)
def test_an_outline_of_a_value(value, text):
    assert outline(value) == text


def test_text_stays_text():
    text = Text("a < b\nc")
    assert text == "a < b\nc"
    assert repr(text) == "a < b\nc"
    assert text._repr_html_() == "<pre>a &lt; b\nc</pre>"


def test_an_outline_leaves_out_what_is_not_there():
    @dataclasses.dataclass(repr=False)
    class Pair(Readable):
        one: object
        other: object = None

    assert repr(Pair(np.zeros(2))) == "Pair(one: array of shape (2,))"


# --- one kind of design ---------------------------------------------------------------------------


@pytest.fixture(
    params=[
        lambda table: tl.design_matrix(table, target="y"),
        lambda table: tl.formula("y ~ x + C(s)", table),
    ],
    ids=["design_matrix", "formula"],
)
def design(request):
    return request.param(TABLE)


def test_tables_and_formulas_give_the_same_kind_of_design(design):
    assert type(design) is DesignMatrix
    features, target, names = design
    assert features is design.X
    assert target is design.y
    assert names is design.names
    assert design.X.shape == (4, len(design.names)) == (4, len(design.sources))
    np.testing.assert_array_equal(design.y, TABLE["y"])


def test_a_design_makes_that_of_other_rows(design):
    other = {name: values[::-1] for name, values in TABLE.items()}
    import pandas as pd

    table = pd.DataFrame(other)
    made = design.features.transform(table[list(design.features.feature_names_in_)])
    np.testing.assert_array_equal(made, design.X[::-1])


def test_coefficients_are_grouped_by_where_columns_come_from(design):
    groups = design.features.by_source(np.arange(len(design.names)))
    assert sum(map(len, groups.values())) == len(design.names)
    assert groups["x"] == {"x": 0.0}
    assert list(dict.fromkeys(design.sources)) == list(groups)
    with pytest.raises(ValueError, match=r"columns, got 1 coefficients"):
        design.features.by_source([1.0])


def test_earlier_names_of_a_design_still_work():
    design = tl.formula("y ~ x", TABLE)
    with pytest.warns(FutureWarning, match="design of a DesignMatrix is deprecated: it is X now"):
        assert design.design is design.X
    with pytest.warns(FutureWarning, match="it is y now"):
        assert design.target is design.y
