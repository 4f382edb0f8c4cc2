"""Losses made of straight lines: the exact minimum, by an interior point and then the vertex."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from trueline import LinearSVC
from trueline.design import as_design
from trueline.losses import Absolute, EpsilonInsensitive, Loss, Quantile
from trueline.penalties import L1, L2, ElasticNet, NoPenalty, Penalty
from trueline.planner import execute, make_plan
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Monitor, Options
from trueline.solvers.piecewise_linear.interior_point import targets
from trueline.solvers.piecewise_linear.interior_point.source import Source
from trueline.solvers.piecewise_linear.interior_point.vertex import (
    Vertex,
    independent_kinks,
    kinks_met,
)

LOSSES = (Absolute(), Quantile(0.5), Quantile(0.9), Quantile(0.03), EpsilonInsensitive(0.4))
PENALTIES = (NoPenalty(), L1(2.0), L2(1.5), ElasticNet(3.0, 0.5))


def solve(problem: Problem, solver: str = "interior_point") -> Solution:
    return execute(problem, make_plan(problem, solver), Options(), Monitor())


def noisy(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, X @ random.normal(size=d) + random.standard_t(2, size=n)


@pytest.mark.grid(2)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: p.name)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_gap_is_proven_to_be_tiny(
    loss: Loss, penalty: Penalty, fit_intercept: bool, kind: str
) -> None:
    X, y = noisy(60, 5)
    design = as_design(sp.csr_array(X) if kind == "sparse" else X)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=60)
    solution = solve(Problem(design, y[:, None], loss, penalty, fit_intercept, weights))
    certificate = solution.certificate
    assert certificate is not None
    assert certificate.relative_gap < 1e-8
    assert certificate.verify(design.toarray(), y, weights)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("penalty", PENALTIES[:2], ids=lambda p: p.name)
def test_it_agrees_with_highs(loss: Loss, penalty: Penalty) -> None:
    X, y = noisy(80, 6, seed=3)
    problem = Problem(as_design(X), y[:, None], loss, penalty)
    ours, other = solve(problem), solve(problem, "highs")
    assert ours.certificate is not None
    assert other.certificate is not None
    assert ours.certificate.objective == pytest.approx(other.certificate.objective, rel=1e-10)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_small_problems_with_ties_agree_with_highs(data: st.DataObject) -> None:
    """Integers make ties, repeated rows, dependent columns and perfect fits."""
    n, d = data.draw(st.integers(1, 14)), data.draw(st.integers(1, 5))
    numbers = st.integers(-3, 3)
    X = np.array(data.draw(st.lists(numbers, min_size=n * d, max_size=n * d)), dtype=float)
    y = np.array(data.draw(st.lists(numbers, min_size=n, max_size=n)), dtype=float)
    loss = data.draw(st.sampled_from(LOSSES))
    penalty = data.draw(st.sampled_from([NoPenalty(), L1(0.5), L1(3.0)]))
    problem = Problem(
        as_design(X.reshape(n, d)), y[:, None], loss, penalty, data.draw(st.booleans())
    )
    ours, other = solve(problem), solve(problem, "highs")
    objective = problem.objective(ours.coef, ours.intercept)
    reference = problem.objective(other.coef, other.intercept)
    assert objective == pytest.approx(reference, abs=1e-9, rel=1e-9)
    assert ours.certificate is not None
    assert ours.certificate.gap <= 1e-7 * max(1.0, abs(objective))
    assert ours.certificate.verify(X.reshape(n, d), y)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_vertex_lies_on_as_many_rows_as_it_has_coefficients(loss: Loss) -> None:
    X, y = noisy(200, 4, seed=5)
    solution = solve(Problem(as_design(X), y[:, None], loss, NoPenalty()))
    residual = X @ solution.coef[:, 0] + solution.intercept - y
    distance = np.min([np.abs(residual - kink) for kink in loss.kinks], axis=0)
    assert np.count_nonzero(distance < 1e-9) == 5
    assert sorted(solution.extra["interpolated"][0]) == sorted(np.flatnonzero(distance < 1e-9))


@pytest.mark.grid(1)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: p.name)
def test_few_rows_at_a_time_and_all_at_once_agree(
    loss: Loss, penalty: Penalty, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = noisy(4000, 4, seed=7)
    problem = Problem(as_design(X), y[:, None], loss, penalty)
    reduced = targets.solve_targets(Source.of(problem))[0]
    monkeypatch.setattr(targets, "_WORTH", np.inf)
    whole = targets.solve_targets(Source.of(problem))[0]
    assert reduced.rows < 2000 < whole.rows == 4000
    np.testing.assert_allclose(reduced.v, whole.v, rtol=0, atol=1e-9)


def _many_rows() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    X, y = noisy(6000, 3, seed=9)
    same, same_target, steps = X.copy(), y.copy(), np.round(X / X.std(axis=0), 1)
    same[:4000], same_target[:4000] = X[0], y[0]
    return {
        "a perfect fit": (X, X @ np.array([1.0, -2.0, 0.5]) + 3.0),
        "most rows the same": (same, same_target),
        "most targets the same": (X, np.where(np.arange(6000) % 10 < 7, 0.0, y)),
        "ties everywhere": (steps, np.round(steps @ np.array([1.0, 2.0, 3.0]))),
        "two clusters, sorted": (np.sort(X, axis=0), np.where(np.arange(6000) < 3000, 0.0, 99.0)),
    }


MANY_ROWS = _many_rows()


@pytest.mark.grid(1)
@pytest.mark.parametrize("name", list(MANY_ROWS))
@pytest.mark.parametrize("loss", [Absolute(), Quantile(0.9), Quantile(0.002)], ids=repr)
def test_many_hostile_rows_agree_with_all_at_once(
    name: str, loss: Loss, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = MANY_ROWS[name]
    problem = Problem(as_design(X), y[:, None], loss, NoPenalty())
    ours = solve(problem)
    monkeypatch.setattr(targets, "_WORTH", np.inf)
    whole = solve(problem)
    objective = problem.objective(ours.coef, ours.intercept)
    size = float(np.abs(y).sum())
    assert objective == pytest.approx(
        problem.objective(whole.coef, whole.intercept), rel=1e-10, abs=1e-13 * size
    )
    assert ours.certificate is not None
    assert ours.certificate.gap <= 1e-7 * max(objective, 1e-3 * size)
    assert ours.certificate.verify(X, y)


def test_a_perfect_fit_of_many_rows_needs_no_steps() -> None:
    X, y = MANY_ROWS["a perfect fit"]
    solution = solve(Problem(as_design(X), y[:, None], Absolute(), NoPenalty()))
    np.testing.assert_allclose(solution.coef[:, 0], [1.0, -2.0, 0.5], atol=1e-13)
    assert "0 steps, 0 exchanges of rows" in solution.notes


def test_sorted_rows_do_not_mislead_the_sample() -> None:
    """A column that varies in few rows only: a sample may miss it altogether."""
    X, y = noisy(20_000, 3, seed=8)
    X = np.column_stack([X, np.zeros(len(X))])
    X[:7, 3] = 1.0
    y[:7] += 50.0
    solution = solve(Problem(as_design(X), y[:, None], Absolute(), NoPenalty()))
    assert solution.certificate is not None
    assert solution.certificate.relative_gap < 1e-8
    assert solution.coef[3, 0] == pytest.approx(50.0, abs=5.0)


def test_several_quantiles_are_those_of_one_at_a_time() -> None:
    X, y = noisy(300, 3)
    quantiles = (0.1, 0.5, 0.8)
    Y = np.repeat(y[:, None], 3, axis=1)
    together = solve(Problem(as_design(X), Y, Quantile(quantiles), NoPenalty()))
    for j, q in enumerate(quantiles):
        alone = solve(Problem(as_design(X), y[:, None], Quantile(q), NoPenalty()))
        np.testing.assert_allclose(together.coef[:, j], alone.coef[:, 0], atol=1e-12)
    assert together.certificate is not None
    assert together.certificate.verify(X, Y)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 40),
    has_ties=st.booleans(),
    share=st.floats(0.0, 1.2),
)
def test_an_edge_is_followed_until_the_slope_turns(
    seed: int, count: int, has_ties: bool, share: float
) -> None:
    draw = np.random.default_rng(seed)
    offset = draw.integers(-3, 4, count).astype(float) if has_ties else draw.normal(size=count)
    moved = draw.integers(-1, 2, count).astype(float) if has_ties else draw.normal(size=count)
    is_above, c = offset > 0, draw.uniform(0.5, 2.0, count)
    met = np.flatnonzero(np.where(is_above, moved < 0, moved > 0))
    gains = c[met] * np.abs(moved[met])
    fall = share * gains.sum()
    passed, entering, step = kinks_met(offset, moved, is_above, c, fall)
    if not len(met):
        assert entering == -1
        return
    reach = np.maximum(-offset[met] / moved[met], 0.0)
    order = np.argsort(reach, kind="stable")
    rises = np.cumsum(gains[order])
    place = min(int(np.searchsorted(rises, fall * (1 - 1e-12))), len(order) - 1)
    assert step == reach[order[place]]
    assert entering in met[reach == step]
    # Everything nearer is passed; of those as far, as many as the slope still falls over.
    assert set(met[reach < step]) <= set(passed)
    assert set(passed) <= set(met[reach <= step]) - {entering}
    before = c[passed] @ np.abs(moved[passed])
    assert before <= fall * (1 + 1e-12) + 1e-300
    if share < 1:
        assert before + c[entering] * abs(moved[entering]) >= fall * (1 - 1e-12)


@pytest.mark.parametrize("loss", [Absolute(), EpsilonInsensitive(0.4)], ids=repr)
@pytest.mark.parametrize("penalty", [NoPenalty(), L1(2.0)], ids=lambda p: p.name)
def test_exchanges_lead_from_a_far_vertex_to_the_optimum(loss: Loss, penalty: Penalty) -> None:
    X, y = noisy(90, 4, seed=5)
    (source,) = Source.of(Problem(as_design(X), y[:, None], loss, penalty))
    program = source.program(source.gather(slice(None)), slice(None))
    far = np.random.default_rng(6).uniform(size=len(program.c))
    kinks = independent_kinks(program, far)
    assert kinks is not None
    vertex = Vertex(program, kinks, np.zeros(len(program.ell)))
    assert vertex.improve(1000)
    assert vertex.exchanges > 3
    pi = vertex.multipliers()
    slack = 1e-9 * program.c
    assert ((pi >= -slack) & (pi <= program.c + slack)).all()
    np.testing.assert_allclose(program.slopes(pi, vertex.v), 0.0, atol=1e-11)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rows_that_meet_at_one_kink_take_few_steps(seed):
    """All rows of the frequent class stand at their kinks: no face is clear, rounding ends it."""
    rng = np.random.default_rng(seed)
    group, Z = rng.random(4000) < 0.3, rng.normal(size=(4000, 2))
    X = np.column_stack([Z, group, ~group]).astype(float)
    y = rng.random(4000) < 1 / (1 + np.exp(6 - 2.5 * Z[:, 0]))
    for solver in ("interior_point", "multipliers"):
        model = LinearSVC(loss="hinge", solver=solver).fit(X, y)
        assert model.solver_ == solver
        assert model.n_iter_ <= 40
        assert model.verify(X, y)
