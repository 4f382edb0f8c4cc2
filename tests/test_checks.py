"""Every law notices a part that breaks it: a law that cannot fail proves nothing."""

import dataclasses
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from trueline import LinearRegression
from trueline.checks import (
    DESIGN_LAWS,
    ESTIMATOR_LAWS,
    LOSS_LAWS,
    PENALTY_LAWS,
    SOLVER_LAWS,
    LawBook,
    check_design,
    check_estimator,
    check_loss,
    check_penalty,
    check_solver,
)
from trueline.checks.designs import DesignPoints
from trueline.checks.estimators import EstimatorPoints
from trueline.checks.losses import LossPoints
from trueline.checks.penalties import PenaltyPoints
from trueline.checks.solvers import SolverPoints
from trueline.design import DenseDesign, SparseDesign, as_design
from trueline.losses import Huber, Loss, Squared
from trueline.penalties import L1, L2, ElasticNet, NonNegative, NoPenalty
from trueline.solution import Status
from trueline.solvers.registry import SOLVERS


def label(value):
    """A name for the test's id that does not change from run to run: no addresses."""
    name = value if isinstance(value, str) else getattr(value, "__name__", type(value).__name__)
    return name[:60]


def broken(cls, **methods):
    """The same class with some methods wrong."""
    return type(f"Broken{cls.__name__}", (cls,), methods)


def assert_noticed(book, name, part, points):
    with pytest.raises(AssertionError, match=f'breaks the law "{name}"'):
        book.check_one(book[name], part, points)


# Losses ----------------------------------------------------------------------------------------


def coarse(array):
    """Half precision in the middle of a single-precision computation."""
    return array.astype(np.float16) if array.dtype == np.float32 else array


def forgets_the_offset(self, y, z):
    r = np.abs(z - y)
    return np.where(r < self.delta, 0.5 * r**2, self.delta * r)


def writes_into_the_score(self, y, z):
    np.subtract(z, y, out=z)
    return 0.5 * z**2


@dataclass
class CanBeChanged(Huber.__mro__[1]):  # the abstract Loss, without frozen=True
    delta: float = 1.0
    name: ClassVar[str] = "can be changed"
    formula: ClassVar[str] = ""
    capabilities: ClassVar[frozenset] = Huber.capabilities
    curvature_bound = Huber.curvature_bound
    check_target, value, gradient = Huber.check_target, Huber.value, Huber.gradient
    curvature, conjugate = Huber.curvature, Huber.conjugate
    project_dual = Huber.project_dual


@dataclass(frozen=True)
class SaysSomethingElse(Squared):
    def __repr__(self):
        return "Squared()"


BROKEN_LOSSES = [
    ("gradient is the slope of the value", Huber, {"gradient": lambda s, y, z: 1.001 * (z - y)}),
    ("gradient is the slope of the value", Squared, {"gradient": lambda s, y, z: y - z}),
    ("gradient is the slope of the value", Squared, {"value": lambda s, y, z: np.abs(z - y)}),
    (
        "curvature is the slope of the gradient",
        Huber,
        {"curvature": lambda s, y, z: np.ones_like(z - y)},
    ),
    (
        "curvature is the slope of the gradient",
        Squared,
        {"curvature": lambda s, y, z: 2 * np.ones_like(z - y)},
    ),
    (
        "derivatives are gradient and curvature",
        Squared,
        {"derivatives": lambda s, y, z: (z - y, 1.001 * np.ones_like(z - y))},
    ),
    ("value is never negative", Squared, {"value": lambda s, y, z: 0.5 * (z - y) ** 2 - 1.0}),
    ("value is convex", Huber, {"value": lambda s, y, z: np.sqrt(np.abs(z - y))}),
    ("value is convex", Squared, {"value": lambda s, y, z: -0.5 * (z - y) ** 2}),
    (
        "gradient is a subgradient",
        Huber,
        {"gradient": lambda s, y, z: 0.99 * np.clip(z - y, -1, 1)},
    ),
    ("gradient is a subgradient", Huber, {"gradient": lambda s, y, z: np.clip(z - y, -2, 2)}),
    ("kinks are continuous", Huber, {"value": forgets_the_offset}),
    (
        "kinks are continuous",
        Huber,
        {"gradient": lambda s, y, z: np.where(np.abs(z - y) < s.delta, z - y, -np.sign(z - y))},
    ),
    ("curvature bound holds", Huber, {"curvature_bound": property(lambda s: 0.5)}),
    ("curvature bound holds", Squared, {"curvature_bound": property(lambda s: np.inf)}),
    (
        "quadratic means half the squared error",
        Squared,
        {"value": lambda s, y, z: (z - y) ** 2},
    ),
    (
        "conjugate obeys fenchel and young",
        Squared,
        {"conjugate": lambda s, y, u: 0.499 * u**2 + u * y},
    ),
    ("conjugate obeys fenchel and young", Squared, {"conjugate": lambda s, y, u: 0.5 * u**2}),
    (
        "conjugate is reached at the gradient",
        Squared,
        {"conjugate": lambda s, y, u: 0.501 * u**2 + u * y},
    ),
    (
        "conjugate is infinite outside of its domain",
        Huber,
        {"conjugate": lambda s, y, u: 0.5 * u**2 + u * y},
    ),
    (
        "conjugate is infinite outside of its domain",
        Squared,
        {
            "conjugate": lambda s, y, u: np.where(np.abs(u) <= 1, 0.5 * u**2 + u * y, np.inf),
            "project_dual": lambda s, y, u: np.clip(u, -1, 1),
        },
    ),
    (
        "projection lands on the nearest dual point",
        Huber,
        {"project_dual": lambda s, y, u: np.clip(u, -2 * s.delta, 2 * s.delta)},
    ),
    (
        "projection lands on the nearest dual point",
        Squared,
        {"project_dual": lambda s, y, u: 0.5 * u},
    ),
    (
        "projection lands on the nearest dual point",
        Huber,
        {"project_dual": lambda s, y, u: np.clip(u, -s.delta / 2, s.delta / 2)},
    ),
    (
        "extreme scores give no nan",
        Huber,
        {"value": lambda s, y, z: s.delta * (np.sqrt((z - y) ** 2) - s.delta / 2)},
    ),
    (
        "extreme scores give no nan",
        Squared,
        {"conjugate": lambda s, y, u: 0.5 * u**2 + u * y},
    ),
    (
        "single precision agrees with double",
        Huber,
        {"curvature": lambda s, y, z: np.abs(z - y) <= s.delta},
    ),
    (
        "single precision agrees with double",
        Squared,
        {"value": lambda s, y, z: 0.5 * coarse(z - y) ** 2},
    ),
    ("shapes broadcast", Squared, {"curvature": lambda s, y, z: np.ones_like(z)}),
    ("shapes broadcast", Squared, {"value": lambda s, y, z: (0.5 * (z - y) ** 2).sum(axis=1)}),
    ("inputs are not modified", Squared, {"value": writes_into_the_score}),
    ("part is a frozen value", CanBeChanged, {}),
    ("part is a frozen value", SaysSomethingElse, {}),
    ("part is a frozen value", Squared, {"delta": 1.0}),  # made in a function: not picklable
]


@pytest.mark.parametrize(("law", "cls", "methods"), BROKEN_LOSSES, ids=label)
def test_a_broken_loss_is_noticed(law, cls, methods):
    part = cls() if cls in (CanBeChanged, SaysSomethingElse) else broken(cls, **methods)()
    assert_noticed(
        LOSS_LAWS, law, part, LossPoints.of(Huber() if "delta" in vars(cls) else Squared())
    )


# Penalties -------------------------------------------------------------------------------------


def soft(v, t):
    return np.sign(v) * np.maximum(np.abs(v) - t, 0.0)


def writes_into_the_point(self, V, step):
    V *= 1.0
    return V


BROKEN_PENALTIES = [
    ("value is the sum over targets", L1(1.0), {"value": lambda s, W: 2.0 * np.abs(W).sum()}),
    (
        "value is the sum over targets",
        L1(1.0),
        {"value_per_target": lambda s, W: np.abs(W).sum(axis=1)},
    ),
    (
        "value is zero at zero and never negative",
        L2(1.0),
        {"value_per_target": lambda s, W: 1 + np.sum(W**2, axis=0)},
    ),
    (
        "targets do not interact",
        L1(1.0),
        {"dual_scale": lambda s, V: np.full(V.shape[1], min(1.0, 1 / np.abs(V).max()))},
    ),
    (
        "domain is what is declared",
        NonNegative(L1(1.0)),
        {"value_per_target": lambda s, W: np.abs(W).sum(axis=0)},
    ),
    (
        "domain is what is declared",
        NonNegative(),
        {"value_per_target": lambda s, W: np.full(W.shape[1], np.inf if (W < 0).any() else 0.0)},
    ),
    (
        "curvature is not overstated",
        L2(1.0),
        {"value_per_target": lambda s, W: 0.499 * np.sum(W**2, axis=0)},
    ),
    (
        "curvature is not overstated",
        L1(1.0),
        {
            "value_per_target": lambda s, W: np.sum(np.abs(W), axis=0),
            "curvature": property(lambda s: 1e-4),
        },
    ),
    (
        "quadratic means half the curvature times the square",
        L2(1.0),
        {"value_per_target": lambda s, W: np.sum(W**2, axis=0)},
    ),
    ("gradient is the slope of the value", L2(1.0), {"gradient": lambda s, W: 1.001 * W}),
    ("gradient is the slope of the value", L1(1.0), {"gradient": lambda s, W: np.sign(W).T}),
    ("gradient is a subgradient", L1(1.0), {"gradient": lambda s, W: np.where(W > 0, 1.0, -1.2)}),
    (
        "gradient at zero is the least subgradient",
        L1(1.0),
        {"gradient": lambda s, W: np.where(W >= 0, 1.0, -1.0)},
    ),
    ("prox is optimal", L1(1.0), {"prox": lambda s, V, t: soft(V, 1.0001 * t)}),
    ("prox is optimal", L2(1.0), {"prox": lambda s, V, t: V * (1 - t / (1 + t)) * (1 + 1e-9)}),
    ("prox is optimal", L1(1.0), {"prox": lambda s, V, t: np.where(np.abs(V) > t, V, 0.0)}),
    (
        "prox is optimal",
        NonNegative(L2(1.0)),
        {"prox": lambda s, V, t: V / (1 + t)},
    ),
    (
        "prox is not expansive",
        L1(1.0),
        {"prox": lambda s, V, t: np.where(np.abs(V) > t, V, 0.0)},
    ),
    (
        "prox of step zero is the nearest point",
        L2(1.0),
        {"prox": lambda s, V, t: V / (2 + t)},
    ),
    (
        "conjugate obeys fenchel and young",
        L2(1.0),
        {"conjugate_per_target": lambda s, V: 0.49 * np.sum(V**2, axis=0)},
    ),
    (
        "conjugate is reached at the gradient",
        L2(1.0),
        {"conjugate_per_target": lambda s, V: 0.51 * np.sum(V**2, axis=0)},
    ),
    (
        "worst ends bound the conjugate",
        L2(1.0),
        {"worst_ends": lambda s, low, high: (low, np.zeros_like(low))},
    ),
    (
        "prox and conjugate agree",
        ElasticNet(1.0, 0.5),
        {"conjugate_per_target": lambda s, V: np.sum(V**2, axis=0)},
    ),
    (
        "dual scale is the largest",
        L1(1.0),
        {"dual_scale": lambda s, V: np.full(V.shape[1], 1.0)},
    ),
    (
        "dual scale is the largest",
        L1(1.0),
        {"dual_scale": lambda s, V: 0.5 / np.maximum(0.5, np.abs(V).max(axis=0))},
    ),
    (
        "strength may differ by target",
        L2(1.0),
        {"prox": lambda s, V, t: V / (1 + t * np.mean(s.alpha))},
    ),
    (
        "strength zero means no penalty",
        L1(1.0),
        {"conjugate_per_target": lambda s, V: np.zeros(V.shape[1])},
    ),
    ("negative and infinite strengths are refused", L2(1.0), {"__post_init__": lambda s: None}),
    (
        "extreme coefficients give no nan",
        L1(1.0),
        {"value_per_target": lambda s, W: np.sum(np.abs(W) + 0.0 * W**2, axis=0)},
    ),
    (
        "extreme coefficients give no nan",
        L1(1.0),
        {
            "conjugate_per_target": lambda s, V: np.sum(
                np.where(np.abs(V) > s.alpha, (np.abs(V) - s.alpha) ** 2 / 0.0, 0.0), axis=0
            )
        },
    ),
    (
        "single precision agrees with double",
        L2(1.0),
        {"gradient": lambda s, W: coarse(W)},
    ),
    ("inputs are not modified", NoPenalty(), {"prox": writes_into_the_point}),
    (
        "no coefficients at all",
        L1(1.0),
        {"dual_scale": lambda s, V: 1 / np.maximum(1, np.abs(V).max(axis=0))},
    ),
    ("part is a frozen value", L2(1.0), {"__repr__": lambda s: "L2(alpha=2.0)"}),
    ("part is a frozen value", L2(1.0), {"__setattr__": object.__setattr__}),
]


@pytest.mark.parametrize(("law", "part", "methods"), BROKEN_PENALTIES, ids=label)
def test_a_broken_penalty_is_noticed(law, part, methods):
    values = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
    wrong = broken(type(part), **methods)(**values)
    assert_noticed(PENALTY_LAWS, law, wrong, PenaltyPoints.of(part))


# Designs ---------------------------------------------------------------------------------------


def scaled(name, factor=1 + 1e-12):
    """The inherited method with a result that is slightly off."""

    def method(self, *arguments):
        return getattr(super(type(self), self), name)(*arguments) * factor

    return {name: method}


def wrong_moments(**changes):
    def second_moments(self, Y, weights, shift):
        right = super(type(self), self).second_moments(Y, weights, shift)
        return right._replace(**{name: change(right) for name, change in changes.items()})

    return {"second_moments": second_moments}


def skewed(right):
    gram = right.gram.copy()
    gram[0, 1] = np.nextafter(gram[0, 1], np.inf)
    return gram


def ignores_weights(self, weights):
    return super(type(self), self).column_means(None)


def forgets_the_last_rows(self, rows):
    for start in range(0, self.shape[0] - rows + 1, rows):
        where = slice(start, start + rows)
        yield where, self.X[where].astype(float)


def depends_on_threads(self, W):
    from trueline.numerics.blas import available_threads

    return self.X @ W * (1 + available_threads() * 2.0**-52)


def writes_into_the_vector(self, U):
    right = super(type(self), self).rmatvec(U.copy())
    U *= 2.0
    return right


def overstated_accuracy(self, weights):
    right = super(type(self), self).accuracy(weights)
    return right._replace(column_terms=1e-3)


def understated_magnitude(self, weights):
    right = super(type(self), self).accuracy(weights)
    return right._replace(magnitude=0.5 * right.magnitude)


def cannot_travel(self):
    raise TypeError("no pickling")


def transposed_product_of_one_column_only(self, U):
    return self.X.T @ (U if U.ndim == 1 else U[:, :1] + 0 * U)


def sums_pieces_separately(self):
    largest = np.zeros(self.shape[1])
    largest[self.X.indices] = np.abs(self.X.data)
    return largest


BROKEN_DESIGNS = [
    (
        "facts are true",
        DenseDesign,
        {"dtype": property(lambda s: np.dtype(int), lambda s, v: None)},
    ),
    ("matvec is the product", DenseDesign, scaled("matvec")),
    ("matvec is the product", SparseDesign, scaled("matvec")),
    ("rmatvec is the product with the transpose", DenseDesign, scaled("rmatvec")),
    (
        "rmatvec is the product with the transpose",
        SparseDesign,
        {"rmatvec": transposed_product_of_one_column_only},
    ),
    ("products are adjoint", DenseDesign, scaled("rmatvec", -1.0)),
    (
        "second moments are sums over rows",
        SparseDesign,
        wrong_moments(total=lambda m: m.total * (1 + 1e-12)),
    ),
    ("second moments are sums over rows", DenseDesign, wrong_moments(gram=skewed)),
    ("second moments are sums over rows", DenseDesign, wrong_moments(cross=lambda m: -m.cross)),
    (
        "second moments state their rounding",
        SparseDesign,
        wrong_moments(size=lambda m: 0.9 * m.gram.diagonal()),
    ),
    (
        "second moments state their rounding",
        DenseDesign,
        wrong_moments(gram=lambda m: m.gram * (1 + 1e-13)),
    ),
    ("kernel is the product of the rows", DenseDesign, scaled("kernel")),
    ("kernel is the product of the rows", SparseDesign, scaled("kernel")),
    ("column means are weighted means", DenseDesign, {"column_means": ignores_weights}),
    ("column largest is the largest magnitude", DenseDesign, scaled("column_largest")),
    (
        "column largest is the largest magnitude",
        SparseDesign,
        {"column_largest": sums_pieces_separately},
    ),
    ("column squares are sums of squares", DenseDesign, scaled("column_squares")),
    ("column squares are sums of squares", SparseDesign, scaled("column_squares")),
    ("row squares are sums of squares", DenseDesign, scaled("row_squares")),
    ("accuracy bounds the rounding", DenseDesign, {"accuracy": overstated_accuracy}),
    ("accuracy bounds the rounding", DenseDesign, {"accuracy": understated_magnitude}),
    ("blocks cover the rows in order", DenseDesign, {"blocks": forgets_the_last_rows}),
    (
        "take and row pick rows",
        DenseDesign,
        {"take": lambda s, rows: as_design(s.X[np.sort(rows)])},
    ),
    ("take and row pick rows", DenseDesign, {"row": lambda s, i: s.X[i - 1]}),
    ("results do not depend on threads", DenseDesign, {"matvec": depends_on_threads}),
    ("nothing is modified", DenseDesign, {"rmatvec": writes_into_the_vector}),
    ("design survives pickling", DenseDesign, {"__reduce__": cannot_travel}),
]
TABLE = np.random.default_rng(0).standard_normal((23, 6))


@pytest.mark.parametrize(("law", "cls", "methods"), BROKEN_DESIGNS, ids=label)
def test_a_broken_design_is_noticed(law, cls, methods):
    X = TABLE if cls is DenseDesign else sp.csr_array(TABLE * (TABLE > 0))
    right, wrong = cls(X), broken(cls, **methods)(X)
    assert_noticed(DESIGN_LAWS, law, wrong, DesignPoints.of(right))


# Solvers ---------------------------------------------------------------------------------------


def solver(change, base="cholesky", **attributes):
    """A solver whose solutions are changed after the fact."""
    right = SOLVERS[base]

    def solve(self, problem, options, monitor):
        return change(right.solve(problem, options, monitor), problem)

    return type("BrokenSolver", (type(right),), {"solve": solve, **attributes})()


def with_other_coefficients(solution, problem, factor=1 + 1e-3):
    """Another answer, with the certificate moved along: a claim about the wrong point."""
    coef = solution.coef * factor
    certificate = replace(
        solution.certificate, coef=coef, objective=problem.objective(coef, solution.intercept)
    )
    return replace(solution, coef=coef, proof=certificate)


def claiming(**claims):
    def change(solution, problem):
        return replace(solution, proof=replace(solution.certificate, **claims))

    return change


def negative_coefficients(solution, problem):
    return replace(solution, coef=solution.coef - 1e-9)


class Moody:
    """A different answer every time."""

    calls = 0

    def __call__(self, solution, problem):
        self.calls += 1
        return replace(solution, coef=solution.coef * (1 + self.calls * 2.0**-50))


def writes_into_the_target(solution, problem):
    problem.target[0] += 0.0 if problem.target.flags.writeable is False else 1.0
    return solution


class Infinite:
    flops = passes = memory = 1.0
    seconds = np.inf


BROKEN_SOLVERS = [
    ("something is claimed", solver(lambda s, p: s, needs_loss=frozenset({"magic"}))),
    ("solution is complete", solver(lambda s, p: replace(s, proof=None))),
    ("solution is complete", solver(lambda s, p: replace(s, coef=s.coef.T.copy()))),
    ("solution is complete", solver(lambda s, p: replace(s, solver="another", notes=[]))),
    ("certified objective is the objective", solver(claiming(objective=0.123))),
    (
        "certified objective is the objective",
        solver(lambda s, p: replace(s, coef=s.coef + 1e-3)),
    ),
    ("certificate is true", solver(with_other_coefficients)),
    ("certificate is true", solver(claiming(gap=-1.0))),
    ("certificate verifies", solver(with_other_coefficients)),
    ("certificate verifies", solver(claiming(gap=0.0, objective_rounding=0.0, witness={}))),
    ("finished means within the tolerance", solver(claiming(gap=1.0))),
    ("direct solvers finish", solver(lambda s, p: replace(s, status=Status.STALLED))),
    (
        "answer is better than no model",
        solver(lambda s, p: replace(s, coef=s.coef + 100.0)),
    ),
    (
        "coefficients agree with the known answer",
        solver(lambda s, p: replace(s, coef=s.coef + 1e-3)),
    ),
    ("restrictions are honoured", solver(negative_coefficients, "active_set")),
    (
        "restrictions are honoured",
        solver(lambda s, p: replace(s, intercept=s.intercept + 1e-300)),
    ),
    ("same problem gives the same bits", solver(Moody())),
    ("data are not modified", solver(writes_into_the_target)),
    (
        "watching changes nothing",
        type("Silent", (type(SOLVERS["cholesky"]),), {"is_direct": False})(),
    ),
    ("costs are estimates", solver(lambda s, p: s, cost=lambda self, facts: Infinite())),
]


@pytest.mark.parametrize(("law", "part"), BROKEN_SOLVERS, ids=label)
def test_a_broken_solver_is_noticed(law, part):
    assert_noticed(SOLVER_LAWS, law, part, SolverPoints.of(part))


# Estimators ------------------------------------------------------------------------------------


class Unproven(LinearRegression):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.coef_ = self.coef_ + 1e-3
        self.certificate_ = replace(self.certificate_, coef=self.certificate_.coef + 1e-3)
        return self


class Gullible(LinearRegression):
    """Its certificate says yes to everything."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)

        class Yes:
            def verify(self, X, y, sample_weight=None):
                return True

        self.certificate_ = Yes()
        return self


class Silent(LinearRegression):
    def explain(self, *arguments):
        return ""


class IgnoresWeights(LinearRegression):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y)


class SparseIsDifferent(LinearRegression):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        if sp.issparse(X):
            self.coef_ = self.coef_ * (1 + 1e-6)
        return self


class Restless(LinearRegression):
    fits: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.fits.append(1)
        self.coef_ = self.coef_ * (1 + len(self.fits) * 2.0**-52)
        return self


BROKEN_ESTIMATORS = [
    ("every fit has a certificate that verifies", Unproven()),
    ("certificates refuse other data", Gullible()),
    ("explain returns text", Silent()),
    ("weights mean repetition", IgnoresWeights()),
    ("sparse and dense agree", SparseIsDifferent()),
    ("same data give the same bits", Restless()),
]


@pytest.mark.parametrize(("law", "part"), BROKEN_ESTIMATORS, ids=label)
def test_a_broken_estimator_is_noticed(law, part):
    assert_noticed(ESTIMATOR_LAWS, law, part, EstimatorPoints.of(part))


# The books themselves --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("book", "cases"),
    [
        (LOSS_LAWS, BROKEN_LOSSES),
        (PENALTY_LAWS, BROKEN_PENALTIES),
        (DESIGN_LAWS, BROKEN_DESIGNS),
        (SOLVER_LAWS, BROKEN_SOLVERS),
        (ESTIMATOR_LAWS, BROKEN_ESTIMATORS),
    ],
    ids=lambda x: getattr(x, "kind", ""),
)
def test_every_law_has_a_part_that_breaks_it(book, cases):
    assert {law.name for law in book} == {case[0] for case in cases}


@pytest.mark.parametrize(
    "book",
    [LOSS_LAWS, PENALTY_LAWS, DESIGN_LAWS, SOLVER_LAWS, ESTIMATOR_LAWS],
    ids=lambda x: x.kind,
)
def test_every_law_states_itself(book):
    names = [law.name for law in book]
    assert len(set(names)) == len(names)
    assert all(len(law.statement) > 10 for law in book)


def test_sound_parts_pass_and_the_laws_are_named():
    assert "value is convex" in check_loss(Squared())
    assert "prox is optimal" in check_penalty(NonNegative(L1(0.5)))
    assert "matvec is the product" in check_design(as_design(TABLE))
    assert "certificate is true" in check_solver(SOLVERS["cholesky"])


def test_an_estimator_is_checked_against_both_contracts():
    assert "weights mean repetition" in check_estimator(LinearRegression())
    with pytest.raises(AssertionError, match="explain returns text"):
        check_estimator(Silent())


def test_laws_about_claims_that_a_part_does_not_make_are_left_out():
    rough = broken(Squared, capabilities=frozenset({"smooth"}))
    names = {law.name for law in LOSS_LAWS if law.concerns(rough())}
    assert "conjugate obeys fenchel and young" not in names
    assert "value is convex" in names


def test_the_message_names_part_law_formula_and_numbers():
    wrong = broken(Huber, gradient=lambda s, y, z: 2 * (z - y))(delta=0.5)
    with pytest.raises(AssertionError) as caught:
        check_loss(wrong)
    text = str(caught.value)
    assert "BrokenHuber(delta=0.5)" in text or "Huber(delta=0.5)" in text
    assert 'breaks the law "gradient is the slope of the value"' in text
    assert "l'(z) = (l(z + h) - l(z - h)) / (2 h)" in text
    assert "expected = " in text


def test_a_crash_is_a_broken_law_too():
    def crash(self, y, z):
        raise IndexError("oops")

    with pytest.raises(AssertionError, match=r"It raised IndexError\('oops'\)"):
        check_loss(broken(Squared, value=crash)())


class Margin(Loss):
    """A loss of one's own, of targets -1 and 1: the squared hinge, 1/2 max(0, 1 - y z)^2."""

    name, formula = "squared hinge", "1/2 max(0, 1 - y z)^2"
    capabilities = frozenset({"smooth", "curvature"})
    curvature_bound = 1.0
    kinks = (0.0,)  # y z = 1 is z = y

    def __setattr__(self, name, value):
        raise AttributeError("frozen")

    def __repr__(self):
        return "Margin()"

    def check_target(self, y):
        if not np.isin(y, (-1.0, 1.0)).all():
            raise ValueError("targets are -1 and 1")

    def value(self, y, z):
        return 0.5 * np.maximum(0.0, 1 - y * z) ** 2

    def gradient(self, y, z):
        return -y * np.maximum(0.0, 1 - y * z)

    def curvature(self, y, z):
        return np.where(y * z < 1, 1.0, 0.0)

    def conjugate(self, y, u):
        raise NotImplementedError

    def project_dual(self, y, u):
        raise NotImplementedError


def test_a_loss_of_labels_is_tested_with_labels():
    assert set(LossPoints.of(Margin()).targets) == {-1.0, 1.0}
    with pytest.raises(ValueError, match="-1 and 1"):
        check_loss(Margin(), targets=[0.0, 2.0])
    assert "value is convex" in check_loss(Margin())


def test_a_loss_that_accepts_no_usual_target_must_be_given_some():
    def refuse(self, y):
        raise ValueError("never")

    with pytest.raises(ValueError, match=r"give targets=\.\.\."):
        check_loss(broken(Squared, check_target=refuse)())


def test_a_book_is_open_to_new_laws():
    book = LawBook("number")

    @book.law()
    def is_even(number, points):
        """x = 2 k."""
        assert number % 2 == 0

    assert book.check(4, None) == ["is even"]
    with pytest.raises(AssertionError, match='The number 3 breaks the law "is even": x = 2 k.'):
        book.check(3, None)
