"""Bounds of searches are below the exact optimum, also where columns are nearly dependent."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact import fractions, moments
from trueline.best_subset import node as node_module
from trueline.best_subset.relaxation import proven_bound
from trueline.best_subset.search import best_subsets
from trueline.best_subset.statement import allowance, least_of_all, lowered, state
from trueline.design import as_design
from trueline.losses import Squared
from trueline.penalties import NoPenalty
from trueline.problem import Problem

SEEDS = st.integers(0, 2**32 - 1)


def solved(A, c):
    """x with A x = c in fractions, A being regular; None if it is not."""
    A = np.column_stack([A, c])
    for j in range(len(A)):
        below = [i for i in range(j, len(A)) if A[i, j] != 0]
        if not below:
            return None
        A[[j, below[0]]] = A[[below[0], j]]
        A[j] = A[j] / A[j, j]
        for i in range(len(A)):
            if i != j:
                A[i] = A[i] - A[i, j] * A[j]
    return A[:, -1]


def exact_values(X, y, k):
    """The objective of every support of at most k columns without rounding, and its eigenvalue."""
    sums = moments(X, y[:, None])
    G, c, total = sums["gram"], sums["cross"][:, 0], sums["y_square"][0]
    R = np.array([[float(v) for v in row] for row in G])
    R = R / np.sqrt(np.outer(R.diagonal(), R.diagonal()))
    for size in range(1, k + 1):
        for support in map(list, itertools.combinations(range(len(c)), size)):
            w = solved(G[np.ix_(support, support)], c[support])
            if w is not None:
                value = (total - w @ c[support]) / 2
                yield value, np.linalg.eigvalsh(R[np.ix_(support, support)])[0]


@pytest.mark.parametrize("choices", [node_module._CHOICES, 0], ids=["by looking", "by bounds"])
@given(SEEDS, st.sampled_from([1e-2, 1e-4, 1e-6, 1e-8]), st.sampled_from([0.0, 1e3]))
@settings(max_examples=10, deadline=None)
def test_no_support_of_those_compared_lies_below_the_bound(choices, seed, apart, mean):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((7, 4))
    X[:, 2] = X[:, 0] + apart * X[:, 2]
    X[:, 3] = X[:, 1] - X[:, 0] + apart * X[:, 3]
    X += mean
    y = (X[:, 2] - X[:, 0]) / apart + 0.1 * rng.standard_normal(7)
    problem = Problem(as_design(X), y[:, None], Squared(), NoPenalty(), True)
    statement = state(problem, 4, 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_module, "_CHOICES", choices)
        answers = best_subsets(statement.task, [2, 3], statement.columns, 0.0)
    for answer in answers:
        compared = [v for v, least in exact_values(X, y, answer.k) if least >= answer.delta]
        assert Fraction(answer.found.lower_bound) <= min(compared)


@given(SEEDS, st.integers(1, 4), st.sampled_from([0.0, 0.3]), st.sampled_from([1.0, 1e-6]))
@settings(max_examples=20, deadline=None)
def test_the_bound_of_a_relaxation_is_below_its_exact_value(seed, q, alpha, small):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((9, 6))
    Q, D = A.T @ A, small * rng.uniform(0.1, 1.0, 6)
    c, v = rng.standard_normal(6), rng.standard_normal(6) / small
    h = np.empty(6)
    bound = proven_bound(Q, D, c, q, alpha, v, h)
    F = {name: fractions(array) for name, array in (("Q", Q), ("D", D), ("c", c), ("v", v))}
    s = F["Q"] @ F["v"]
    exact_h = (F["c"] - s) ** 2 / (2 * F["D"])
    net = sorted((max(value - Fraction(alpha), Fraction(0)) for value in exact_h), reverse=True)
    exact = -(F["v"] @ s) / 2 - sum(net[:q])
    assert Fraction(float(bound)) <= exact
    assert all(Fraction(float(upper)) >= value for upper, value in zip(h, exact_h))
    scale = float(abs(exact)) + float(sum(net[:q]))
    assert float(exact) - bound <= 1e-10 * scale


def task_of(X, k=2):
    y = X[:, 0] + np.linspace(0, 1, len(X))
    problem = Problem(as_design(X), y[:, None], Squared(), NoPenalty(), True)
    statement = state(problem, k, 0.0)
    return statement.task, statement.columns


def test_columns_that_are_clearly_independent_need_no_condition():
    X = np.random.default_rng(0).standard_normal((50, 6))
    task, columns = task_of(X)
    least = least_of_all(task, columns)
    assert 0 < least <= np.linalg.eigvalsh(np.corrcoef(X.T))[0]
    by, stated = lowered(task, columns, np.array([0, 1]), least)
    assert stated == 0
    assert by <= 1e-9 * task.constant


def test_with_more_columns_than_rows_pairs_need_none_but_triples_do():
    X = np.random.default_rng(0).standard_normal((8, 12))
    for k, has_condition in [(1, False), (2, False), (3, True)]:
        task, columns = task_of(X, k)
        assert least_of_all(task, columns) == 0
        by, stated = lowered(task, columns, np.arange(k), 0.0)
        assert (stated > 0) == has_condition
        assert by <= 1e-7 * task.constant


def test_the_claim_is_about_the_support_that_was_found():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    X[:, 1] = X[:, 0] + 1e-4 * X[:, 1]
    X[:, 3] = X[:, 0] + X[:, 2]
    task, columns = task_of(X, 3)
    support = np.array([0, 1, 2])
    by, stated = lowered(task, columns, support, least_of_all(task, columns))
    assert 0 < stated <= np.linalg.eigvalsh(np.corrcoef(X[:, support].T))[0]
    assert by >= allowance(task.unit, 3, stated) * task.constant


@pytest.mark.parametrize("few", [500, 0], ids=["eigenvalues", "tried out"])
def test_no_eigenvalue_lies_below_what_is_known_of_all(few, monkeypatch):
    monkeypatch.setattr("trueline.best_subset.statement._FEW", few)
    X = np.random.default_rng(1).standard_normal((40, 10))
    task, columns = task_of(X)
    actual = np.linalg.eigvalsh(task.gram)[0]
    assert 0.1 * actual <= least_of_all(task, columns) <= actual
    dependent = np.column_stack([X, X @ np.ones(10)])
    assert least_of_all(*task_of(dependent)) <= 1e-9
