"""Forgeries that a checker once believed: each of them states something false and is refused.

Every test makes the false claim as credible as it can: coefficients away from the optimum carry
the objective that they really have, and the rest of the certificate is that of an honest fit.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gp

import trueline as tl
from trueline.check import verify
from trueline.losses import Absolute, Huber
from trueline.penalties import L2, NonNegative

from .adapter import ask
from .grammar import get, names, put
from .truth import reached, refute

N, D = 12, 3


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(N, D))
    y = X @ np.array([1.0, -2.0, 0.5]) + 0.4 * rng.normal(size=N) + 0.3
    return X, y, np.where(y > np.median(y), 1, 0)


def fitted(estimator, X, y, weight=None):
    """An honest certificate, its data as it reads them; it must be proven, or conditional."""
    model = estimator.fit(X, y)
    certificate = model.certificate_
    data = (X, y, weight)
    if hasattr(certificate, "read"):
        data = certificate.read(*data)
    assert ask(certificate, *data).word in ("proven", "conditional")
    return certificate, data


def lie(certificate, data, size=0.3):
    """Coefficients away from the optimum, their objective, and no gap."""
    W = np.asarray(certificate.coef, dtype=float)
    out = put(
        certificate,
        ("coef",),
        W + size * np.sign(W + 1e-9) * (1 + np.arange(W.size).reshape(W.shape)),
    )
    value = reached(out, *data)
    assert value is not None
    out = put(put(out, ("objective",), value), ("objective_rounding",), 1e-9 * abs(value))
    return put(out, ("gap",), 1e-9 * abs(value))


def witness(certificate, **values):
    for name, value in values.items():
        certificate = put(certificate, ("witness", name), value)
    return certificate


def assert_refused(certificate, data, hints=(), words=("refused",)):
    """The claim is false, and the checker says so without raising anything."""
    assert refute(certificate, *data, hints) is not None, "the claim is true: nothing is tested"
    answer = ask(certificate, *data)
    assert answer.word in words, answer


SUMS = {
    "quadratic": tl.LinearRegression(),
    "ridge": tl.Ridge(),
    "fenchel": tl.Lasso(alpha=0.01),
    "duality": tl.LeastAbsoluteDeviations(),
    "duality with l1": tl.QuantileRegressor(quantile=0.3, alpha=0.01),
    "curvature": tl.LinearRegressor(Huber(0.5), L2(0.1)),
    "bounded": tl.LinearRegressor(Huber(0.5), NonNegative(L2(0.1))),
}


@pytest.fixture(params=SUMS)
def sums(request, rows):
    X, y, _ = rows
    honest, data = fitted(SUMS[request.param], X, y)
    return honest, lie(honest, data), data


@pytest.mark.grid(2)
@pytest.mark.parametrize("power", [-5000.0, 5000.0, -600.0, 0.5, np.nan])
@pytest.mark.parametrize("both", [False, True])
def test_powers_of_two_do_not_change_the_claim(sums, power, both):
    honest, forged, data = sums
    forged = witness(forged, target_exponent=np.full(1, power))
    if both:
        forged = witness(forged, column_exponent=np.full(D, power))
    assert_refused(forged, data, [honest])


@pytest.mark.parametrize("power", [-5000.0, 0.0, 1.0])
def test_powers_of_two_of_another_shape(sums, power):
    honest, forged, data = sums
    shapes = [(N, 1), (1, 1), (), (0,), (2,)]
    for shape in shapes:
        assert_refused(witness(forged, target_exponent=np.full(shape, power)), data, [honest])
        assert_refused(witness(forged, column_exponent=np.full(shape, power)), data, [honest])


def test_zeros_instead_of_the_fit_in_units_in_which_nothing_is_left(rows):
    """Targets times 2^-5000 underflow to zero: every claim about them would hold."""
    X, y, _ = rows
    honest, data = fitted(tl.LinearRegression(), X, y)
    forged = put(honest, ("coef",), np.zeros((D, 1)))
    for name, value in (("objective", 0.0), ("objective_rounding", 1e-300), ("gap", 1e-300)):
        forged = put(forged, (name,), value)
    forged = put(forged, ("intercept",), np.zeros(1))
    assert_refused(witness(forged, target_exponent=np.full(1, -5000.0)), data, [honest])
    both = witness(forged, target_exponent=np.full(1, -5000.0), column_exponent=np.full(D, -5000.0))
    assert_refused(both, data, [honest])


@pytest.mark.grid(1)
@pytest.mark.parametrize(
    "intercept",
    [np.zeros(0), np.zeros((1, 1)), np.zeros((N, 1)), np.zeros(2), 0.0, None, np.zeros((1, 0))],
    ids=str,
)
def test_intercept_of_another_shape(sums, intercept):
    honest, _, data = sums
    assert_refused(put(honest, ("intercept",), intercept), data, [honest])


def test_intercept_that_is_added_per_row(rows):
    """An intercept of shape (n, 1) would explain every residual."""
    X, y, _ = rows
    honest, data = fitted(tl.LinearRegression(), X, y)
    left = (y - X @ honest.coef[:, 0])[:, None]
    forged = put(put(honest, ("intercept",), left), ("objective",), 0.0)
    assert_refused(put(forged, ("gap",), 1e-12), data, [honest])


@pytest.mark.parametrize("scale", [1.6e-162, 1e-160, 1e160, 0.0])
@pytest.mark.parametrize("coercivity", [5e-324, 0.0, 1e300, np.inf])
def test_basis_whose_squares_underflow(rows, scale, coercivity):
    X, y, _ = rows
    honest, data = fitted(tl.LinearRegression(), X, y)
    for basis in (scale * np.eye(D), np.full(D, scale)):
        forged = witness(lie(honest, data), basis=basis, coercivity=np.array(coercivity))
        assert_refused(forged, data, [honest])


@pytest.mark.parametrize("radius", [0.0, 1e-300])
def test_no_coefficients_within_a_radius_of_nothing(sums, radius):
    honest, forged, data = sums
    for names_of in (
        ("radius",),
        ("radius", "intercept_radius"),
        ("radius", "coefficient_radius"),
        ("coefficient_radius",),
        ("reach",),
    ):
        shapes = {"coefficient_radius": (D, 1)}
        values = {name: np.full(shapes.get(name, (1,)), radius) for name in names_of}
        assert_refused(witness(forged, **values), data, [honest])


@pytest.mark.parametrize("estimator", [tl.ChebyshevRegressor(), tl.HuberRegressor()], ids=str)
def test_no_coefficients_within_a_radius_of_nothing_for_other_objectives(rows, estimator):
    X, y, _ = rows
    honest, data = fitted(estimator, X, y)
    forged = lie(honest, data)
    assert_refused(forged, data, [honest])
    for radius, reach in ((0.0, 0.0), (0.0, np.inf), (1e9, 0.0)):
        edited = witness(
            forged, radius=np.full(1, radius), coefficient_radius=np.full((D, 1), reach)
        )
        assert_refused(edited, data, [honest])


def test_firth_without_columns(rows):
    X, _, labels = rows
    honest, data = fitted(tl.LogisticRegression(penalty="firth"), X, labels)
    for columns in ([], [0], [0, 0], [0, 1, 2, 2], [0, 1, 5], [-1, 0, 1]):
        forged = witness(honest, columns=np.array(columns, dtype=np.intp))
        forged = put(forged, ("coef",), np.zeros((D, 1)))
        for objective in (N * np.log(2), honest.objective):
            edited = put(put(forged, ("objective",), objective), ("objective_rounding",), 1e-9)
            edited = put(edited, ("gap",), 1e9)
            assert_refused(edited, data, [honest])


def test_firth_with_a_penalty_that_nobody_adds(rows):
    X, _, labels = rows
    honest, data = fitted(tl.LogisticRegression(penalty="firth"), X, labels)
    assert_refused(put(honest, ("penalty",), L2(5.0)), data, [honest])
    assert_refused(put(honest, ("loss",), Absolute()), data, [honest])


def test_best_subset_does_not_take_an_offset_for_a_constant_column():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 4))
    y = X[:, 0] + 0.1 * rng.normal(size=10)
    X[:, 0] += 1e6
    honest, data = fitted(tl.BestSubset(k=1), X, y)
    others = tl.BestSubset(k=1).fit(X[:, 1:], y).certificate_
    forged = put(honest, ("coef",), np.vstack([[[0.0]], others.coef]))
    forged = put(forged, ("intercept",), others.intercept)
    for name in ("objective", "objective_rounding", "gap"):
        forged = put(forged, (name,), get(others, (name,)))
    for name, value in others.witness.items():
        forged = witness(forged, **{name: value})
    columns = np.array([False, True, True, True])
    for edited in (forged, witness(forged, columns=columns)):
        assert_refused(edited, data, [honest])


@pytest.mark.parametrize("loss", [Absolute(), Huber(1e-3), Huber(1e6)], ids=str)
def test_best_subset_of_another_loss(rows, loss):
    X, y, _ = rows
    honest, data = fitted(tl.BestSubset(k=2), X, y)
    assert_refused(put(honest, ("loss",), loss), data, [honest])


def test_an_invented_bound_of_a_search(rows):
    X, y, _ = rows
    honest, data = fitted(tl.BestSubset(k=2), X, y)
    forged = lie(honest, data)
    W = np.array(forged.coef)
    W[np.argsort(np.abs(W[:, 0]))[0]] = 0.0
    forged = put(forged, ("coef",), W)
    value = reached(forged, *data)
    forged = put(forged, ("objective",), value)
    for bound in (value, 1e9, np.inf):
        edited = witness(forged, search_bound=np.array(bound))
        assert_refused(edited, data, [honest])
        assert_refused(witness(edited, root_bound=np.array(0.0)), data, [honest])


def test_fewest_errors_by_an_invented_search():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(9, 2))
    y = np.where(X[:, 0] > 0, 1, 0)
    honest, data = fitted(tl.ZeroOneHalfspace(), X, y)
    forged = put(honest, ("coef",), -np.asarray(honest.coef))
    value = reached(forged, *data)
    assert value > 0
    forged = put(
        put(put(forged, ("objective",), value), ("gap",), 0.0), ("kind",), "zero-one search"
    )
    # What nobody repeats is at best a condition.
    assert_refused(forged, data, [honest], ("refused", "conditional"))
    bound = witness(forged, search_bound=np.array(value))
    assert_refused(bound, data, [honest], ("refused", "conditional"))


@pytest.mark.parametrize("kind", ["zero-one nonsense", "nonsense", "", "search of nothing"])
def test_kinds_that_there_are_not(rows, kind):
    X, y, labels = rows
    for estimator, target in ((tl.ZeroOneHalfspace(), labels), (tl.LinearRegression(), y)):
        honest, data = fitted(estimator, X, target)
        answer = ask(put(honest, ("kind",), kind), *data)
        assert answer.word == "refused", answer


def test_row_space_with_a_direction_left_out(rows):
    """A direction of effect 1e-3 is left out of the row space, and would lower the objective."""
    X, y, _ = rows
    X = X.copy()
    X[:, 2] = X[:, 0] + 5e-4 * X[:, 2]
    y = y + 1e3 * (X[:, 2] - X[:, 0])
    honest, data = fitted(tl.LinearRegression(), X, y)
    smaller = tl.LinearRegression().fit(X[:, :2], y).certificate_
    forged = put(honest, ("coef",), np.vstack([smaller.coef, [[0.0]]]))
    forged = put(forged, ("intercept",), smaller.intercept)
    for name in ("objective", "objective_rounding", "gap"):
        forged = put(forged, (name,), get(smaller, (name,)))
    forged = put(forged, ("kind",), "row space")
    assert_refused(forged, data, [honest])
    basis = np.vstack([np.eye(2), [[0.0, 0.0]]])
    for left_out in (1e-3, 1.0):
        edited = witness(
            forged, basis=basis, coercivity=np.array(1e-3), left_out=np.array(left_out)
        )
        assert_refused(edited, data, [honest])


# --- support vector machines ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def machine(rows):
    X, _, labels = rows
    return fitted(tl.SVC(kernel="rbf", gamma=0.5), X, labels)


def test_support_vectors_that_are_counted_twice(machine):
    honest, data = machine
    forged = put(honest, ("support",), np.concatenate([honest.support, honest.support[:1]]))
    for extra in (honest.coef[:, :1], 0 * honest.coef[:, :1]):
        assert_refused(put(forged, ("coef",), np.hstack([honest.coef, extra])), data, [honest])


def test_rows_of_coefficients_that_belong_to_nothing(machine, rows):
    honest, data = machine
    assert_refused(put(honest, ("coef",), np.vstack([honest.coef, honest.coef])), data, [honest])
    X, y, _ = rows
    for estimator, target in ((tl.SVR(), y), (tl.OneClassSVM(), None)):
        other, own = fitted(estimator, X, target)
        assert_refused(put(other, ("coef",), np.vstack([other.coef, other.coef])), own, [other])


def test_kernels_that_are_not_positive(machine):
    honest, data = machine
    forged = put(honest, ("kernel", "gamma"), -0.5)
    value = reached(forged, *data)
    forged = put(put(forged, ("objective",), value), ("objective_rounding",), 1e-6 * abs(value))
    assert_refused(put(forged, ("gap",), 1e9), data, [honest])


def test_permuted_targets_of_a_machine(rows):
    X, y, _ = rows
    rng = np.random.default_rng(0)
    for seed in range(5):
        honest, _data = fitted(tl.NuSVR(kernel="linear", C=5.0), X, y)
        permuted = y[np.random.default_rng(seed).permutation(N)]
        own = (X, permuted, None)
        forged = put(honest, ("objective",), reached(honest, *own))
        assert_refused(forged, own)
        # The width in the witness chosen such that the objective is the old one.
        wide = witness(honest, epsilon=np.asarray(honest.witness["epsilon"]) * rng.uniform(0.5, 2))
        value = reached(wide, *own)
        assert_refused(put(wide, ("objective",), value), own)


# --- kernel methods -------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [-1.0, -1e-9, np.nan, np.inf])
def test_kernel_ridge_with_a_negative_strength(rows, alpha):
    X, y, _ = rows
    honest, data = fitted(tl.KernelRidge(kernel="rbf", alpha=0.5), X, y)
    forged = witness(honest, alpha=np.array([alpha]))
    assert_refused(forged, data, [honest])
    K = gp.RBF(np.sqrt(0.5 * D))(X)
    if np.isfinite(alpha):
        own = np.linalg.solve(K + alpha * np.eye(N), y)[:, None]
        assert_refused(put(forged, ("coef",), own), data, [honest])


def test_kernel_ridge_with_rows_of_its_own(rows):
    X, y, _ = rows
    honest, data = fitted(tl.KernelRidge(kernel="rbf", alpha=0.5, gamma=1.0), X, y)
    for extra in (
        {"Y": X},
        {"Y": X[::-1].copy()},
        {"X": X},
        {"n_jobs": 1},
        {"filter_params": True},
    ):
        recipe = {**honest.kernel, **extra}
        answer = ask(put(honest, ("kernel",), recipe), *data)
        assert answer.word == "refused" or set(extra) & {"n_jobs", "filter_params"}, answer


def test_a_process_whose_level_explains_every_target(rows):
    X, y, _ = rows
    kernel = gp.RBF(1.0) + gp.WhiteKernel(0.3)
    honest, data = fitted(tl.GaussianProcessRegressor(kernel=kernel, optimizer=None), X, y)
    K = kernel(X) + 1e-10 * np.eye(N)
    likelihood = -0.5 * np.linalg.slogdet(K)[1] - 0.5 * N * np.log(2 * np.pi)
    forged = put(honest, ("coef",), np.zeros((N, 1)))
    forged = put(put(forged, ("objective",), -likelihood), ("objective_rounding",), 1e-6)
    for level in (y[:, None], y, np.tile(y[:, None], (1, N))):
        assert_refused(witness(forged, level=level), data, [honest])
    assert_refused(witness(honest, scale=np.full((N, 1), 1e9)), data, [honest])


def test_bounds_on_the_evidence_that_are_crossed(rows):
    X, y, _ = rows
    kernel = gp.ConstantKernel(1.0) * gp.RBF(1.0) + gp.WhiteKernel(0.3)
    honest, data = fitted(
        tl.SparseGaussianProcessRegressor(kernel=kernel, n_inducing=4, optimizer=None), X, y
    )
    low, high = -honest.objective, float(honest.witness["upper"])
    for new_low, new_high in (
        (high, low),
        (high + 1, low - 1),
        (low, low - 1e-3),
        (high + 1, high + 2),
    ):
        forged = put(honest, ("objective",), -new_low)
        assert_refused(witness(forged, upper=np.array(new_high)), data, [honest])
    assert_refused(witness(honest, upper=np.array(np.inf)), data, [honest])  # says nothing


# --- numbers that hide ----------------------------------------------------------------------------


class Turning:
    """Another number each time it is asked."""

    def __init__(self):
        self.asked = 0

    def __float__(self):
        self.asked += 1
        return 0.3 * self.asked

    def __array__(self, *given, **options):
        return np.array(float(self))


class Renamed(str):
    """A text that is equal to every other."""

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


HIDDEN = {
    "long double": np.longdouble(0.3) * (1 + 1e-18),
    "object": np.array(0.3, dtype=object),
    "text in an object": np.array("0.3", dtype=object),
    "text": "0.3",
    "huge integer": 2**70,
    "integer in an object": np.array([2**70], dtype=object),
    "complex": 0.3 + 0j,
    "boolean": True,
    "masked": np.ma.masked_array([0.3], mask=[True]),
    "turning": Turning(),
    "infinite": np.inf,
    "subnormal": 5e-324,
}


@pytest.fixture(scope="module")
def process(rows):
    X, y, _ = rows
    kernel = gp.ConstantKernel(1.0) * gp.RBF(1.0) + gp.WhiteKernel(0.3)
    return fitted(tl.GaussianProcessRegressor(kernel=kernel, optimizer=None), X, y)


@pytest.mark.parametrize("value", HIDDEN.values(), ids=HIDDEN)
def test_parameters_of_a_process_that_are_no_plain_numbers(process, value):
    honest, data = process
    names_of = ("k1", "k1", "constant_value"), ("k1", "k2", "length_scale"), ("k2", "noise_level")
    for path in names_of:
        answer = ask(put(honest, ("kernel", *path), value), *data)
        assert answer.word == "refused", answer


def test_parameters_of_a_process_in_single_precision_are_other_numbers(process):
    """0.3 in single precision is 0.30000001, whose likelihood is not the one that is claimed."""
    honest, data = process
    forged = put(honest, ("kernel", "k2", "noise_level"), np.float32(0.3))
    assert_refused(forged, data, [honest])


@pytest.mark.parametrize("bounds", ["1", "", "free", b"fixed", Renamed("x")], ids=repr)
def test_bounds_that_are_a_text_but_not_fixed(rows, bounds):
    """A parameter that is not fixed is free, and its slope is part of the claim."""
    X, y, _ = rows
    kernel = gp.RBF(1.0) + gp.WhiteKernel(0.3)
    honest, data = fitted(tl.GaussianProcessRegressor(kernel=kernel), X, y)
    answer = ask(put(honest, ("kernel", "k2", "noise_level_bounds"), bounds), *data)
    assert answer.word == "refused", answer


@pytest.mark.parametrize("kind", ["given parameters", "stationary point"])
def test_residual_and_slope_change_places(rows, kind):
    X, y, _ = rows
    kernel = gp.RBF(1.0) + gp.WhiteKernel(0.3)
    optimizer = None if kind == "given parameters" else "fmin_l_bfgs_b"
    honest, data = fitted(tl.GaussianProcessRegressor(kernel=kernel, optimizer=optimizer), X, y)
    assert honest.kind == kind
    swapped = put(put(honest, ("residual",), honest.slope), ("slope",), honest.residual)
    for forged in (swapped, put(honest, ("residual",), np.inf)):
        answer = ask(forged, *data)
        if kind == "given parameters" or forged is not swapped:
            assert answer.word == "refused", answer


@pytest.mark.parametrize("name", ["gamma", "coef0", "degree", "name"])
@pytest.mark.parametrize(
    "value", [HIDDEN["turning"], HIDDEN["text in an object"], 1j, Renamed("x")]
)
def test_parameters_of_a_kernel_that_are_no_plain_numbers(machine, name, value):
    honest, data = machine
    answer = ask(put(honest, ("kernel", name), value), *data)
    assert answer.word == "refused", answer


def test_noise_that_is_multiplied_by_another_kernel(rows):
    """Its variance is on the diagonal, where the bounds by inducing points do not see it."""
    X, y, _ = rows
    kernel = gp.ConstantKernel(1.0) * gp.RBF(1.0) + gp.WhiteKernel(0.3)
    honest, data = fitted(
        tl.SparseGaussianProcessRegressor(kernel=kernel, n_inducing=N, optimizer=None), X, y
    )
    hidden = honest.kernel + gp.WhiteKernel(2.0) * gp.RBF(1.0)
    assert_refused(put(honest, ("kernel",), hidden), data, [honest])


def test_kernels_without_an_end(process):
    honest, data = process
    endless = gp.RBF(1.0) + gp.WhiteKernel(0.3)
    endless.k1 = endless
    many = gp.RBF(1.0)
    for _ in range(60):
        many = many + many
    for kernel in (endless, many):
        assert ask(put(honest, ("kernel",), kernel), *data).word == "refused"


# --- infinite prices ------------------------------------------------------------------------------


def hard_machine():
    X = np.array([[-2.0], [-1.0], [1.0], [3.0]])
    return fitted(tl.SVC(kernel="linear", C=np.inf), X, np.array([0, 0, 1, 1]))


@pytest.mark.parametrize("margin", [0.0, 1e-17, 1e-16, -1e-17])
def test_margins_that_hold_only_by_rounding(margin):
    """Rows on the wrong side by less than the rounding of their scores, and any objective."""
    honest, data = hard_machine()
    forged = put(honest, ("intercept",), np.array([margin - 1.0]))
    for objective in (honest.objective, honest.objective / max(margin, 1e-17) ** 2, 1e300):
        claim = put(
            put(forged, ("objective",), objective), ("objective_rounding",), 0.5 * objective
        )
        claim = put(put(claim, ("gap",), 1e300), ("violation",), 1e300)
        assert ask(claim, *data).word == "refused"


def test_the_rounding_of_a_small_margin_is_rounding_of_the_objective():
    """The least margin is 1e-14 within a tenth of it: so is what the objective is divided by."""
    honest, data = hard_machine()
    forged = put(honest, ("intercept",), np.array([1e-14 - 1.0]))
    forged = put(put(forged, ("gap",), 1e300), ("violation",), 1e300)
    value = float(reached(forged, *data))
    for objective in np.linspace(0.5, 2.0, 76) * value:
        claim = put(forged, ("objective",), objective)
        claim = put(claim, ("objective_rounding",), 0.015 * value)
        assert ask(claim, *data).word == "refused" or refute(claim, *data, [honest]) is None


def test_margins_that_are_short_are_paid_for():
    """A function with the least margin q has the objective of that function divided by q."""
    honest, data = hard_machine()
    forged = put(honest, ("intercept",), honest.intercept + 0.5)
    claim = put(put(forged, ("gap",), 1e3), ("violation",), 1e3)
    assert_refused(claim, data, [honest])
    paid = put(put(claim, ("objective",), 4 * honest.objective), ("objective_rounding",), 1e-9)
    assert ask(paid, *data).word == "proven"


def test_errors_beyond_an_infinitely_dear_tube_are_a_condition(rows):
    X, y, _ = rows
    honest, data = fitted(tl.SVR(C=np.inf, epsilon=0.01, gamma=2.0), X, y)
    answer = ask(honest, *data)
    assert answer.word == "conditional"
    assert "beyond epsilon" in answer.text


def test_prices_beyond_the_range_of_doubles_are_not_infinite(rows):
    """1e308 times a weight of ten is a price all the same: losses cost something."""
    X, _, labels = rows
    honest, (X, labels, _) = fitted(tl.SVC(kernel="rbf", gamma=50.0, C=np.inf), X, labels)
    forged = put(honest, ("parameters",), {"C": 1e308})
    answer = ask(forged, X, labels, np.full(N, 10.0))
    assert answer.word == "refused", answer


# --- kinds ----------------------------------------------------------------------------------------


class Mute:
    """Nothing can be said of it, and it is equal to nothing."""

    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __eq__ = __hash__ = __str__


class Unhashable(str):
    def __hash__(self):
        raise RuntimeError("no number")


class Silent(dict):
    def get(self, *given):
        raise Unspoken


class Unspoken(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize("kind", [Mute(), Unhashable("quadratic"), [Mute()], type(Mute)], ids=type)
def test_kinds_that_are_no_text_are_refused_without_a_word(rows, kind):
    X, y, _ = rows
    verification = verify({"kind": kind}, X, y)
    assert not verification
    assert "unknown" in str(verification)


def test_certificates_that_refuse_to_be_read(rows):
    X, y, _ = rows
    assert not verify(Silent(), X, y)


def test_every_field_of_a_certificate_is_reached_by_the_grammar(machine):
    honest, _ = machine
    assert {"kind", "machine", "objective", "support", "coef", "witness"} <= set(names(honest))
