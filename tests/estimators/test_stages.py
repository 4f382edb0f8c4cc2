"""What explain() says ran is what ran: stages are the calls of registered solvers, in order."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

import trueline
from trueline import LinearRegression, LinearSVC, LogisticRegression
from trueline.estimators.shared.base import LinearEstimator
from trueline.solvers.registry import SOLVERS


def estimators():
    """One of every public estimator whose explain() tells of a plan."""
    for name in trueline.__all__:
        made = getattr(trueline, name)
        if inspect.isclass(made) and issubclass(made, LinearEstimator):
            yield pytest.param(made(), id=name)


@pytest.fixture
def entered(monkeypatch):
    """The names of the registered solvers whose solve is entered, from outside of all others."""
    calls, inside = [], []

    def watched(name, work):
        def run(*args, **named):
            if not inside:
                calls.append(name)
            inside.append(name)
            try:
                return work(*args, **named)
            finally:
                inside.pop()

        return run

    for name, solver in SOLVERS.items():
        for work in ("solve", "solve_from_moments"):
            monkeypatch.setattr(solver, work, watched(name, getattr(solver, work)), raising=False)
    return calls


def data_for(model, is_sparse=False, n=120, d=8):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    z = X[:, 0] - 0.5 * X[:, 1] + 0.3 * random.normal(size=n)
    y = (z > 0).astype(int) if is_classifier(model) else np.exp(0.3 * z)
    return (sp.csr_array(X * (np.abs(X) > 1)) if is_sparse else X), y


@pytest.mark.parametrize("model", list(estimators()))
def test_the_stages_are_the_solvers_that_ran(model, entered):
    X, y = data_for(model)
    if "MultiTask" in type(model).__name__:
        y = np.column_stack([y, y**2])
    model = clone(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)  # of scikit-learn's parameters
        model.fit(X, y)
    facts = model._solution_facts
    if model.solver_ not in SOLVERS:  # a search of its own kind, which fits parts on the way
        assert f"happened   {model.solver_}, " in str(model.explain())
        return
    stages = [stage[0] for stage in facts["stages"]]
    assert model.solver_ == facts["solver"] == stages[-1]
    assert model.solver_ in str(model.explain())
    if entered:  # not where models of all folds, targets or batches are solved together
        assert entered[-len(stages) :] == stages
        assert stages[0] == model._plan.chosen


@pytest.mark.grid(1)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, 1e6])
@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC()], ids=repr)
def test_stages_of_sparse_classifiers(model, C, entered):
    X, y = data_for(model, is_sparse=True, n=300, d=400)
    model.set_params(C=C).fit(X, y)
    stages = model._solution_facts["stages"]
    assert entered == [stage[0] for stage in stages]
    assert entered[0] == model.explain().plan.chosen
    text = str(model.explain())
    for stage in stages[:-1]:
        assert stage[-1].startswith("handed over")
        assert f"{stage[0]}, {stage[1]} iterations, " in text
    assert model.verify(X, y)


def test_a_gram_matrix_that_was_given_up_is_a_stage():
    model = LinearRegression()
    X, y = data_for(model)
    X = np.column_stack([X, X[:, 0] + 1e-10 * X[:, 1]])
    model.fit(X, y)
    first, *_, last = model._solution_facts["stages"]
    assert (first[0], last[0]) == ("cholesky", model.solver_)
    assert first[-1].startswith("handed over")
    assert "1. cholesky, 1 iteration, " in str(model.explain())
    assert "rows factored" in str(model.explain())


def test_the_lasso_says_whether_the_homotopy_or_coordinate_descent_found_the_answer():
    X, y = data_for(LinearRegression())
    text = str(trueline.Lasso(alpha=0.01).fit(X, y).explain())
    assert "found by the LARS homotopy" in text
    text = str(trueline.Lasso(alpha=0.01, positive=True).fit(X, y).explain())
    assert "found by coordinate descent" in text
