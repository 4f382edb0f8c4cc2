"""
How many digits of a polynomial survive?
========================================

Powers of a column are nearly collinear, and the coefficients of a fitted polynomial lose digits
with every degree. How many are left depends on how the powers and the equations are formed.
"""

from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import lstsq

from trueline import LinearRegression, PolynomialRegression

# %%
# An answer that is known exactly
# -------------------------------
# The least squares coefficients for doubles x and y are rational numbers. Python's fractions
# compute them without any rounding, by elimination on the normal equations.

x = np.linspace(1.0, 3.0, 41)
y = np.sin(2.0 * x) + 0.01 * np.cos(37.0 * x)


def exact_coefficients(degree):
    columns = [[Fraction(v) ** m for v in x] for m in range(degree + 1)]
    right = [Fraction(v) for v in y]
    rows = [[sum(a * b for a, b in zip(p, q)) for q in [*columns, right]] for p in columns]
    for i, pivot in enumerate(rows):
        rows[i] = pivot = [value / pivot[i] for value in pivot]
        for j, row in enumerate(rows):
            if j != i:
                rows[j] = [a - row[i] * b for a, b in zip(row, pivot)]
    return [row[-1] for row in rows]


# %%
# Four ways to fit it
# -------------------


def normal_equations(degree):
    V = np.vander(x, degree + 1, increasing=True)
    return np.linalg.solve(V.T @ V, V.T @ y)


def orthogonal(degree):
    return lstsq(np.vander(x, degree + 1, increasing=True), y)[0]


def refined(degree):
    powers = np.vander(x, degree + 1, increasing=True)[:, 1:]
    model = LinearRegression().fit(powers, y)
    return np.append(model.intercept_, model.coef_)


def doubled_powers(degree):
    model = PolynomialRegression(degree=degree).fit(x[:, None], y)
    return np.append(model.intercept_, model.coef_)


methods = {
    "normal equations in double precision": normal_equations,
    "singular values (scipy.linalg.lstsq)": orthogonal,
    "LinearRegression on rounded powers": refined,
    "PolynomialRegression": doubled_powers,
}

# %%
# Count digits
# ------------
# The worst coefficient counts: -log10 of its relative error, at most the 15.7 digits of a double.


def digits(found, exact):
    errors = [abs(Fraction(float(f)) / e - 1) for f, e in zip(found, exact)]
    return float(np.clip(-np.log10(max(float(max(errors)), 2.0**-52)), 0.0, None))


degrees = np.arange(1, 13)
answers = {degree: exact_coefficients(int(degree)) for degree in degrees}
fig, ax = plt.subplots(figsize=(8.0, 4.6), layout="constrained")
for (name, fit), marker in zip(methods.items(), "sv^o"):
    correct = [digits(fit(int(degree)), answers[degree]) for degree in degrees]
    ax.plot(degrees, correct, marker=marker, markerfacecolor="none", label=name)
    print(f"{name:38} degree 5: {correct[4]:4.1f} digits, degree 12: {correct[-1]:4.1f}")
ax.set(xlabel="degree", ylabel="correct digits of the worst coefficient", ylim=(0.0, 16.5))
ax.grid(True, color="#DDDDDD")
ax.legend(frameon=False, loc="lower left")
ax.set_title("Digits that survive, by method")
