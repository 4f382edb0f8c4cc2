"""Every loss with every penalty at any shape: some solver takes it, and says what it proved."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from trueline import GroupLasso, LinearRegression, LinearRegressor, LinearSVC
from trueline.design import as_design
from trueline.errors import PairingError
from trueline.losses import LOSSES, CrammerSinger, OrderedQuantiles, Softmax
from trueline.penalties import (
    L1,
    L2,
    PENALTIES,
    Bounded,
    ElasticNet,
    MultiTask,
    NonNegative,
    NoPenalty,
)
from trueline.planner import make_plan
from trueline.problem import Problem
from trueline.solvers.base import Facts
from trueline.solvers.registry import solvers_for

_SINGLE = [cls() for cls in PENALTIES.values() if cls is not NonNegative]
_ALL = [*_SINGLE, *(NonNegative(base) for base in _SINGLE if base.name != "bounded")]
# What an estimator can state: LinearRegressor any registered pair, the others what they are about.
PAIRS = [
    *((cls(), penalty) for cls in LOSSES.values() for penalty in _ALL),
    *((Softmax(), penalty) for penalty in (NoPenalty(), L2(), L1(), ElasticNet())),
    (CrammerSinger(), L2()),
    *((OrderedQuantiles((0.1, 0.5, 0.9)), penalty) for penalty in (NoPenalty(), L1())),
]
SOLVABLE = [pair for pair in PAIRS if solvers_for(*pair)]


def _id(pair):
    loss, penalty = pair
    base = getattr(penalty, "base", None)
    return f"{loss.name}-{penalty.name if base is None else base.name + '+'}"


# Rows and columns: tiny, tall, square, wide, and those that Gram matrices are too large for.
SHAPES = [(1, 1), (1, 3), (2, 2), (3, 1), (500, 10), (40, 40), (30, 100), (64, 6830), (2500, 5000),
          (40_000, 10_000)]  # fmt: skip


@pytest.mark.parametrize("pair", SOLVABLE, ids=_id)
def test_some_solver_takes_every_shape(pair):
    loss, penalty = pair
    targets = (3,) if "coupled" in loss.capabilities else (1, 3)
    for is_sparse, k, fit_intercept in itertools.product((False, True), targets, (False, True)):
        X = np.eye(3)
        design = as_design(sp.csr_array(X) if is_sparse else X)
        seen = Facts.of(Problem(design, np.ones((3, k)), loss, penalty, fit_intercept))
        for n, d in SHAPES:
            stored = max(1, n * d // 100) if is_sparse else n * d
            facts = replace(seen, n=n, d=d, nonzeros=stored)
            able = [s for s in solvers_for(loss, penalty) if s.refuses(facts) is None]
            assert able, (n, d, k, is_sparse, fit_intercept)


def _rows(loss, n, d, seed):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, d)).round(2)
    if "margins" in loss.capabilities:
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    elif loss.name in ("poisson", "gamma", "tweedie"):
        y = 1.0 + draw.integers(4, size=n)
    else:
        y = draw.normal(size=n).round(2)
    return X, y


REGRESSIONS = [
    pair for pair in SOLVABLE if pair[0].name in LOSSES and not isinstance(pair[1], MultiTask)
]


@pytest.mark.grid(1)
@pytest.mark.parametrize("shape", [(30, 4), (6, 6), (5, 12), (1, 2)], ids=str)
@pytest.mark.parametrize("pair", REGRESSIONS, ids=_id)
def test_a_small_fit_verifies_or_states_its_gap(pair, shape):
    loss, penalty = pair
    X, y = _rows(loss, *shape, seed=0)
    # An intercept that nothing holds has no finite answer where there is one class alone.
    levels = (False,) if "margins" in loss.capabilities and len(y) == 1 else (False, True)
    for is_sparse, fit_intercept in itertools.product((False, True), levels):
        data = sp.csr_array(X) if is_sparse else X
        model = LinearRegressor(loss=loss, penalty=penalty, fit_intercept=fit_intercept)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(data, y)
        said = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
        assert len(said) == len(caught), [str(w.message) for w in caught]
        assert np.isfinite(model.coef_).all()
        if not said:
            # Claims of fits that are exact to rounding may be too small to be confirmed, and those
            # by the gradient alone hold within a radius that may be too small to be told.
            certificate = model.certificate_
            is_weak = certificate.gap < 1e-20 or certificate.kind == "bounded"
            assert model.verify(data, y).holds or is_weak
            zero = replace_with_zero(model, data, y)
            assert model.certificate_.gap <= 1e-4 * zero + 1e-9


def replace_with_zero(model, X, y):
    """The objective of the model without coefficients."""
    problem = model._problem(X, y[:, None].astype(float), None)
    return problem.objective(np.zeros((X.shape[1], 1)), np.zeros(1))


def test_many_classes_of_few_long_rows_are_separated_by_the_hinge():
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(64, 6830)), np.arange(64) % 14
    model = LinearSVC(loss="hinge").fit(X, y)
    assert model.verify(X, y)
    assert (model.predict(X) == y).all()


def test_a_pair_without_a_solver_says_so_in_a_sentence():
    problem = Problem(as_design(np.eye(3)), np.ones((3, 1)), LOSSES["hinge"](), NonNegative(L2()))
    with pytest.raises(PairingError) as told:
        make_plan(problem)
    assert "choose another penalty" in str(told.value)
    assert len(str(told.value)) < 200


# --- loops that rounding once kept going --------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_pull_without_a_penalty_shrinks_to_nothing_and_ends(fit_intercept):
    X = np.random.default_rng(0).normal(size=(3, 3)).round(2)
    y = np.array([1.0, -1.0, 1.0])
    penalty = Bounded(NoPenalty(), -1.0, 1.0)
    model = LinearRegressor("squared_hinge", penalty, fit_intercept=fit_intercept).fit(X, y)
    assert model.verify(X, y)
    assert model.certificate_.gap <= 1e-9


def test_penalties_of_nearly_nothing_end_and_state_their_gap():
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(20, 6)), draw.normal(size=20)
    model = GroupLasso(alpha=1e-320, groups=[0, 0, 1, 1, 2, 2])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    least = LinearRegression().fit(X, y).certificate_.objective
    found = model.certificate_.objective
    assert any("proven within" in str(w.message) for w in caught) or found <= least * (1 + 1e-6)


def test_a_face_that_rounding_hides_ends_the_maximum_error():
    # Copies up to rounding, in columns of very different size, with errors that tie.
    draw = np.random.default_rng(3)
    x = draw.integers(-2, 3, size=(12, 1)).astype(float)
    X = np.hstack([x, x * (1 + 1e-15), 1e-9 * x])
    y = np.where(np.arange(12) % 2 == 0, 1.0, -1.0)
    model = LinearRegressor("maximum_error", None).fit(X, y)
    assert model.verify(X, y)
    assert model.certificate_.gap <= 1e-9
