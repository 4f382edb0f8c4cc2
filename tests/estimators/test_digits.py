"""Coefficients to the last digit.

Doubles are fractions, so every problem below has an exact rational solution. The claim, for every
coefficient and the intercept, however small beside the others:

    abs(found - exact)  <=  2 units in the last place of the exact value  +  a_j

    a = eps^2 abs(H^{-1}) v,    v_j = norm(x_j) (sum_i norm(x_i) abs(w_i) + norm(y))

Two units, not half of one: a refinement step is a double added to a double (half a unit), and the
last step is known to cond(X) eps of its size. The allowance a is what gradients evaluated in
doubled precision cannot see: v bounds what cancels in X^T (y - X w), doubled numbers hold it to
eps^2, and the inverse Hessian carries that over to the coefficients. It is of the order
(cond(X) eps)^2 and counts from cond(X) = 1e7 or so on only. A solution that is exactly zero has no
unit of its own: it is given that of the target, in the units of the column.
"""

from fractions import Fraction

import numpy as np
import pytest
from rational import Quadratic, solve
from statsmodels.datasets import longley

from trueline import LinearRegression, PolynomialRegression

UNITS = 2
EPS = float(np.finfo(float).eps)


def unseen_by_doubled_numbers(X, y, exact, weights, fit_intercept):
    """The allowance a of the text above."""
    V = np.column_stack([X, np.ones(len(y))]) if fit_intercept else X
    root = np.ones(len(y)) if weights is None else np.sqrt(weights)
    norms = np.linalg.norm(root[:, None] * V, axis=0)
    inverse = np.linalg.pinv(root[:, None] * V / norms, rcond=1e-15)
    sizes = norms * np.abs(np.array([float(value) for value in exact]))
    reach = sizes.sum() + np.linalg.norm(root * y)
    return EPS**2 * (np.abs(inverse @ inverse.T) @ np.ones(len(norms))) * reach / norms


def assert_last_digit(model, exact, X, y, weights=None):
    """Coefficients (then the intercept, if there is one) agree with the exact ones as claimed."""
    found = list(model.coef_)
    if model.fit_intercept:
        found.append(model.intercept_)
    sizes = [*np.abs(X).max(axis=0).tolist(), 1.0]
    allowance = unseen_by_doubled_numbers(X, y, exact, weights, model.fit_intercept)
    for j, (value, truth) in enumerate(zip(found, exact, strict=True)):
        rounded = float(truth)
        unit = np.spacing(abs(rounded)) if rounded else np.spacing(np.abs(y).max()) / sizes[j]
        error = float(abs(Fraction(float(value)) - truth) / Fraction(float(unit)))
        extra = allowance[j] / unit
        assert error <= UNITS + extra, (j, value, rounded, error, extra)


def condition(X, fit_intercept):
    V = X - X.mean(axis=0) if fit_intercept else X
    return np.linalg.cond(V / np.linalg.norm(V, axis=0))


# --- problems -----------------------------------------------------------------------------------

STEPS = np.arange(21.0)
POWERS = np.cumprod(np.tile(STEPS[:, None], 5), axis=1)  # exact, which pow need not be
DELTA = np.array([759, -2048, 2048, -2048, 2523, -2048, 2048, -2048, 1838, -2048, 2048], float)
DELTA = np.concatenate([DELTA, DELTA[:-1][::-1]])


def wampler(number):
    """R. H. Wampler, "A report on the accuracy of some widely used least squares computer
    programs", J. Am. Statist. Assoc. 65 (1970) 549-565: polynomials of degree 5 on x = 0..20.
    """
    if number == 2:
        return np.array([float(sum(Fraction(x, 10) ** m for m in range(6))) for x in range(21)])
    return 1 + POWERS.sum(axis=1) + {1: 0.0, 3: 1.0, 4: 100.0, 5: 10000.0}[number] * DELTA


def longley_data(rng):
    data = longley.load_pandas()
    return data.exog.to_numpy(float), data.endog.to_numpy(float)


def laeuchli(rng):
    """e^2 is below the rounding of 1: the Gram matrix does not see it."""
    e = 2.0**-30
    X = np.vstack([np.ones((2, 4)), e * np.eye(4), -e * np.eye(4)])
    return X, rng.standard_normal(10)


def vandermonde(rng):
    points = np.linspace(0, 1, 15)
    return points[:, None] ** np.arange(1, 8), np.cos(4 * points)


def nearly_collinear(rng):
    X = rng.standard_normal((30, 3))
    X[:, 2] = X[:, 0] + 1e-9 * X[:, 2]
    return X, rng.standard_normal(30)


def timestamps(rng):
    X = np.column_stack([1.6e12 + rng.integers(0, 90_000_000, 40), rng.standard_normal(40)])
    return X, 3e-7 * (X[:, 0] - 1.6e12) + X[:, 1] + rng.standard_normal(40)


def big_offsets(rng):
    """A line far from the origin on both axes, as in calibrations like Norris's."""
    x = 1e9 + np.round(rng.uniform(0, 1000, 36), 1)
    return x[:, None], 1e8 - 0.26 + 1.002 * (x - 1e9) + rng.normal(0, 0.9, 36).round(1)


def mixed_scales(rng):
    X = rng.standard_normal((25, 4)) * 10.0 ** np.array([-40, -3, 12, 60])
    return X, 1e5 * rng.standard_normal(25)


def plain(rng):
    return rng.standard_normal((50, 5)), rng.standard_normal(50)


PROBLEMS = {
    **{f"Wampler {m}": lambda rng, m=m: (POWERS, wampler(m)) for m in range(1, 6)},
    "Longley": longley_data,
    "Laeuchli": laeuchli,
    "Vandermonde": vandermonde,
    "nearly collinear": nearly_collinear,
    "timestamps": timestamps,
    "big offsets": big_offsets,
    "mixed scales": mixed_scales,
    "plain": plain,
}


@pytest.mark.grid(1)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_least_squares(name, fit_intercept):
    X, y = PROBLEMS[name](np.random.default_rng(0))
    assert condition(X, fit_intercept) < 1e13
    exact, rank = Quadratic(X, y, fit_intercept=fit_intercept).minimum()
    assert rank == len(exact)
    model = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    assert_last_digit(model, exact, X, y)
    assert model.rank_ == X.shape[1]
    verification = model.verify(X, y)
    assert verification, str(verification)


@pytest.mark.parametrize("name", PROBLEMS)
def test_weighted_least_squares(name):
    rng = np.random.default_rng(1)
    X, y = PROBLEMS[name](rng)
    weights = rng.choice([0.3, 1.0, 2.0, 7.5], len(y))
    exact, _ = Quadratic(X, y, weights).minimum()
    model = LinearRegression().fit(X, y, sample_weight=weights)
    assert_last_digit(model, exact, X, y, weights)
    assert model.verify(X, y, weights)


@pytest.mark.grid(1)
@pytest.mark.parametrize("solver", ["qr", "svd"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_orthogonal_factorisations_by_name(name, solver):
    X, y = PROBLEMS[name](np.random.default_rng(2))
    model = LinearRegression(solver=solver).fit(X, y)
    assert_last_digit(model, Quadratic(X, y).minimum()[0], X, y)
    assert model.verify(X, y)


def test_several_targets_have_their_digits_each():
    Y = np.column_stack([wampler(m) for m in range(1, 6)])
    together = LinearRegression().fit(POWERS, Y)
    for t in range(5):
        alone = LinearRegression().fit(POWERS, Y[:, t])
        assert_last_digit(alone, Quadratic(POWERS, Y[:, t]).minimum()[0], POWERS, Y[:, t])
        np.testing.assert_array_equal(together.coef_[t], alone.coef_)
        assert together.intercept_[t] == alone.intercept_


def test_the_published_answers():
    """All ones for polynomials 1, 3, 4 and 5; powers of a tenth for the second."""
    for number in (1, 3, 4, 5):
        exact, _ = Quadratic(POWERS, wampler(number)).minimum()
        assert exact == [1] * 6
    model = LinearRegression().fit(POWERS, wampler(2))
    np.testing.assert_allclose(model.coef_, [1e-1, 1e-2, 1e-3, 1e-4, 1e-5], rtol=1e-9)
    X, y = longley_data(None)
    published = [
        15.0618722713733,
        -0.358191792925910e-01,
        -2.02022980381683,
        -1.03322686717359,
        -0.511041056535807e-01,
        1829.15146461355,
    ]
    model = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, published, rtol=1e-13)
    np.testing.assert_allclose(model.intercept_, -3482258.63459582, rtol=1e-13)


# --- polynomials --------------------------------------------------------------------------------


def exact_polynomial(x, y, degree, fit_intercept=True):
    """Coefficients of x, x^2, ... and the constant, with powers in fractions too."""
    x, y = [Fraction(float(value)) for value in x], [Fraction(float(value)) for value in y]
    first = 0 if fit_intercept else 1
    exponents = [*range(1, degree + 1), *([] if first else [0])]
    sums = [sum(value**m for value in x) for m in range(2 * degree + 1)]
    right = [sum(b * a**m for a, b in zip(x, y, strict=True)) for m in exponents]
    return solve([[sums[i + j] for j in exponents] for i in exponents], right)[0]


def filip_like(rng):
    x = np.sort(rng.uniform(-8.8, -3.1, 82))
    return x, 0.8 + 0.05 * np.sin(3 * x) + rng.normal(0, 3e-3, 82), 10


def unit_interval(rng):
    x = np.linspace(0, 1, 30)
    return x, np.exp(x), 10


POLYNOMIALS = {
    **{f"Wampler {m}": lambda rng, m=m: (STEPS, wampler(m), 5) for m in range(1, 6)},
    "unit interval, degree 10": unit_interval,
    "thousands, degree 3": lambda rng: (rng.uniform(1000, 1100, 40), rng.normal(0, 1, 40), 3),
    "degree 10 far from zero": filip_like,
}


@pytest.mark.grid(1)
@pytest.mark.parametrize("name", POLYNOMIALS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_polynomials_of_the_points_as_they_are(name, fit_intercept):
    """Exact powers of the points, which no design in doubles holds."""
    x, y, degree = POLYNOMIALS[name](np.random.default_rng(3))
    model = PolynomialRegression(degree, fit_intercept=fit_intercept).fit(x[:, None], y)
    exact = exact_polynomial(x, y, degree, fit_intercept)
    powers = x[:, None] ** np.arange(1, degree + 1)
    assert_last_digit(model, exact, powers, y)
    verification = model.verify(x[:, None], y)
    assert verification, str(verification)


def test_predictions_of_a_polynomial_are_those_of_its_coefficients():
    x, y, degree = filip_like(np.random.default_rng(4))
    model = PolynomialRegression(degree).fit(x[:, None], y)
    exact = [
        float(sum(Fraction(float(c)) * Fraction(float(v)) ** m for m, c in enumerate(terms)))
        for v in x
        for terms in [[model.intercept_, *model.coef_]]
    ]
    np.testing.assert_allclose(model.predict(x[:, None]), exact, rtol=4e-16)


def test_single_precision_points_give_the_rounded_answer_with_a_strong_proof():
    x = (np.arange(21) / 10).astype(np.float32)
    y = np.float32(1) + x + x**2
    model = PolynomialRegression(2).fit(x[:, None], y)
    exact = exact_polynomial(x, y, 2)
    np.testing.assert_array_equal(model.coef_, np.array(exact[:-1], dtype=float).astype(np.float32))
    assert model.certificate_.kind == "quadratic"
    assert model.verify(x[:, None], y)
