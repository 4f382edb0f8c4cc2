"""Hinges of sparse rows: rounded kinks level by level, columns that occur, sweeps before Newton."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from trueline import LinearSVC
from trueline.design import as_design
from trueline.estimators.shared.classifier import encode_labels
from trueline.losses import Hinge, SquaredHinge
from trueline.penalties import L2
from trueline.problem import Problem
from trueline.solvers.iterative import best_constant
from trueline.solvers.piecewise_linear.interior_point.sparse_rows import (
    CompressedProgram,
    is_for_levels,
)


def narrow(n: int = 5000, d: int = 210, seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Zeros and ones, many rows alike, and classes that overlap."""
    draw = np.random.default_rng(seed)
    X = sp.csr_array((draw.random((n, d)) < 0.04).astype(float))
    score = X @ draw.normal(size=d) + 0.5 * draw.normal(size=n)
    return X, np.where(score > np.quantile(score, 0.7), 1.0, -1.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("is_weighted", [True, False])
def test_levels_agree_with_the_exact_vertex(fit_intercept: bool, is_weighted: bool) -> None:
    X, y = narrow()
    weights = np.random.default_rng(1).uniform(0.2, 3.0, len(y)) if is_weighted else None
    settings = {"loss": "hinge", "C": 0.5, "fit_intercept": fit_intercept}
    settings["solver"] = "interior_point"
    model = LinearSVC(**settings, tol=1e-7).fit(X, y, weights)
    assert "Newton" in str(model.explain())
    # Turned rows have no zeros, so that they are solved as dense ones, and the same margins.
    turned = np.linalg.qr(np.random.default_rng(2).normal(size=(X.shape[1],) * 2))[0]
    exact = LinearSVC(**settings).fit(X @ turned, y, weights)
    assert model.verify(X, y, weights)
    ours, theirs = model.certificate_, exact.certificate_
    assert ours.gap <= 1e-9 * 0.5 * len(y) * 3
    assert abs(ours.objective - theirs.objective) <= ours.gap + theirs.gap + 1e-9
    assert np.allclose(model.coef_, exact.coef_ @ turned.T, atol=1e-4)


def test_levels_of_several_classes_are_those_of_one_at_a_time() -> None:
    X, y = narrow()
    labels = np.where(y > 0, 2, np.random.default_rng(2).integers(0, 2, len(y)))
    settings = {"loss": "hinge", "C": 0.1, "solver": "interior_point", "tol": 1e-6}
    weight = {0: 1.0, 1: 2.0, 2: 0.5}
    model = LinearSVC(**settings, class_weight=weight).fit(X, labels)
    assert model.verify(X, labels)
    own = LinearSVC(**settings, class_weight={False: 1.0, True: 2.0}).fit(X, labels == 1)
    assert np.allclose(model.coef_[1], own.coef_[0], atol=1e-3)


def test_compressed_rows_do_what_dense_rows_do() -> None:
    X, y = narrow(40, 7)
    problem = Problem(as_design(X), y[:, None], Hinge(2.0), L2(1.5))
    scale = np.linspace(0.5, 2.0, 7)
    program = CompressedProgram.of(problem, 0, scale)
    A = np.column_stack([X.toarray() / scale, np.ones(40)])
    draw = np.random.default_rng(0)
    v, weights = draw.normal(size=8), draw.random(40) * (draw.random(40) < 0.5)
    assert np.allclose(program.scores(v), A @ v)
    assert np.allclose(program.rmatvec(weights), A.T @ weights)
    gram = (A.T * weights) @ A + np.diag(program.quad)
    assert np.allclose(program.gram(weights), gram)
    assert np.allclose(program.quad, np.append(1.5 / scale**2, 0.0))
    slope = program.ell + program.quad * v + A.T @ weights
    for _ in range(2):  # from the multipliers before, too
        assert np.allclose(program.slopes(weights, v), slope)
        program.slopes(draw.random(40), v)
    loss = weights @ Hinge(2.0).value(y, A @ v) - weights @ Hinge(2.0).value(y, 0 * y)
    kinks = program.c * (np.maximum(A @ v - y, 0.0) - np.maximum(-y, 0.0))
    line = -program.share * program.c * (A @ v)
    assert np.isclose(weights @ (line + kinks), loss)


def test_few_or_filled_rows_are_left_to_the_exact_method() -> None:
    X, y = narrow(100, 20)
    assert not is_for_levels(Problem(as_design(X), y[:, None], Hinge(), L2(1.0)))
    X, y = narrow()
    assert is_for_levels(Problem(as_design(X), y[:, None], Hinge(), L2(1.0)))
    assert not is_for_levels(Problem(as_design(X.toarray()), y[:, None], Hinge(), L2(1.0)))


@pytest.mark.parametrize("loss", [Hinge(), Hinge(3.0), SquaredHinge(), SquaredHinge((0.5, 2.0))])
def test_best_constants_of_hinges(loss: Hinge | SquaredHinge) -> None:
    draw = np.random.default_rng(0)
    Y = np.where(draw.random((30, 2)) < [0.3, 0.8], 1.0, -1.0)
    weights = draw.random(30)
    problem = Problem(as_design(np.ones((30, 1))), Y, loss, L2(1.0), True, weights)
    best = best_constant(problem)

    def total(levels: np.ndarray) -> np.ndarray:
        return weights @ loss.value(Y, np.broadcast_to(levels, Y.shape))

    for shift in (-0.3, -1e-3, 1e-3, 0.3):
        assert (total(best) <= total(best + shift) + 1e-12).all()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_columns_that_do_not_occur_have_no_say(loss: str, fit_intercept: bool) -> None:
    X, y = narrow(60, 300)
    places = np.sort(np.random.default_rng(3).choice(2000, 300, replace=False))
    wide = sp.csr_array((X.data, places[X.indices], X.indptr), shape=(60, 2000))
    name = "balanced_dual_descent" if fit_intercept else "dual_coordinate_descent"
    settings = {"loss": loss, "solver": name, "tol": 1e-8, "fit_intercept": fit_intercept}
    model, small = LinearSVC(**settings).fit(wide, y), LinearSVC(**settings).fit(X, y)
    assert model.verify(wide, y)
    assert model.coef_.shape == (1, 2000)
    assert np.allclose(model.coef_[:, places], small.coef_, atol=1e-6)
    assert not model.coef_[:, np.setdiff1d(np.arange(2000), places)].any()


@pytest.mark.parametrize("C", [0.01, 1.0, 300.0])
def test_sweeps_before_newton_change_nothing_but_the_time(C: float) -> None:
    X, y = narrow(400, 300)
    scaled = sp.csr_array(X / np.sqrt(np.maximum(1.0, X.sum(axis=1)))[:, None])
    model = LinearSVC(C=C, solver="newton_cg", tol=1e-6).fit(scaled, y)
    exact = LinearSVC(C=C, solver="newton", tol=1e-10).fit(scaled.toarray(), y)
    assert model.verify(scaled, y)
    assert model.solver_ == "newton_cg"
    ours, theirs = model.certificate_, exact.certificate_
    assert ours.objective - theirs.objective <= ours.gap + theirs.gap
    assert ours.gap <= 1e-8 * len(y)


@pytest.mark.parametrize("dtype", [object, str])
def test_words_are_encoded_as_sorting_would(dtype: type) -> None:
    words = np.random.default_rng(0).choice(["spam", "ham", "egg"], 50)
    y = words.astype(dtype)
    classes, codes = encode_labels(y, "LinearSVC")
    sorted_classes, inverse = np.unique(y, return_inverse=True)
    assert classes.dtype == sorted_classes.dtype
    assert np.array_equal(classes, sorted_classes)
    assert np.array_equal(codes, inverse)


def test_the_first_level_may_take_many_steps():
    """Far from the start it takes 41 steps here; dense rows would be taken after fewer."""
    rng = np.random.default_rng(1)
    dummies = np.hstack([np.eye(4)[rng.integers(0, 4, 600)] for _ in range(60)])
    X = dummies * np.exp(rng.normal(0, np.log(30) / 2, 240))
    z = X @ rng.standard_normal(240) / np.sqrt(30)
    y = z + 0.5 * rng.standard_normal(600) * z.std() > 0.3 * z.std()
    model = LinearSVC(loss="hinge", solver="interior_point").fit(sp.csr_array(X), y)
    assert "steps of Newton's method" in str(model.explain())
