"""
2. From least squares to regularisation and robust regression
==============================================================

A line through points: which one? Least squares takes the one with the smallest sum of squared
residuals. Too many columns make it follow the noise, and single wild rows pull it away; each of the
two has a remedy, and each remedy is another loss or another penalty.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from trueline import (
    ChebyshevRegressor,
    HuberRegressor,
    LassoCV,
    LeastAbsoluteDeviations,
    LinearRegression,
    Ridge,
    lasso_path,
)
from trueline.plots import plot_coefficients

# %%
# The normal equations, written out
# ---------------------------------
# The gradient of 1/2 ||y - X w||^2 is zero where X'X w = X'y: forming X'X costs n d^2 operations,
# solving d^3 / 3. With a column of ones for the intercept:

rng = np.random.default_rng(1)
x = np.sort(rng.uniform(0, 1, 15))
y = np.sin(2 * np.pi * x) + rng.normal(0, 0.2, 15)
A = np.column_stack([np.ones(15), x])
print("by hand:   ", np.linalg.solve(A.T @ A, A.T @ y))
line = LinearRegression().fit(x[:, None], y)
print("trueline:  ", line.intercept_, line.coef_)
print(line.certificate_)

# %%
# Overfitting, and weight decay
# -----------------------------
# A polynomial of degree 12 meets almost every point, and says nothing about the rest. A small
# penalty alpha/2 ||w||^2 on the squared length of the coefficients calms it down.

grid = np.linspace(0, 1, 300)
figure, panels = plt.subplots(1, 4, figsize=(15, 3.6), sharey=True, layout="constrained")
cases = [(1, 0.0), (3, 0.0), (12, 0.0), (12, 0.001)]
for ax, (degree, alpha) in zip(panels, cases):
    model = make_pipeline(PolynomialFeatures(degree), Ridge(alpha)).fit(x[:, None], y)
    ax.plot(x, y, "o", grid, np.sin(2 * np.pi * grid), "--", color="0.4")
    ax.plot(grid, model.predict(grid[:, None]), color="C3")
    ax.set(ylim=(-2, 2), title=f"degree {degree}, alpha = {alpha:g}")

# %%
# The lasso chooses columns
# -------------------------
# The penalty alpha ||w||_1 has a kink at zero, so that many coefficients are exactly zero. From the
# strength at which all of them are, one column after the other enters. Cross-validation chooses.

X, disease = load_diabetes(return_X_y=True, as_frame=True)
chosen = LassoCV().fit(X, disease)
alphas, paths, gaps = lasso_path(X, disease)
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained")
left.semilogx(alphas, paths.T)
left.axvline(chosen.alpha_, color="0.5", linestyle="--")
left.set(xlabel="alpha", ylabel="coefficients", title="lasso path, and what was chosen")
plot_coefficients(chosen, right)
print(f"largest gap on the path: {gaps.max():.2g}")
print(chosen.verify(X, disease))

# %%
# One wild row
# ------------
# Squares make one large error outweigh many small ones. Absolute errors, or Huber's loss (squares
# near zero, absolute values far away), do not care how far away the wild row is; the maximum error
# looks at nothing else.

x = np.linspace(0, 10, 20)
y = 1.0 + 0.5 * x + rng.normal(0, 0.2, 20)
y[17] = 12.0
models = {
    "least squares": LinearRegression(),
    "absolute errors": LeastAbsoluteDeviations(),
    "Huber": HuberRegressor(),
    "maximum error": ChebyshevRegressor(),
}
figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.plot(x, y, "o", color="0.4")
for name, model in models.items():
    model.fit(x[:, None], y)
    ax.plot(x, model.predict(x[:, None]), label=f"{name}: slope {model.coef_[0]:.2f}")
ax.legend()

# %%
# Exercise
# --------
# A constant is fitted to numbers: which one do squares, absolute errors and the maximum error give?
#
# .. raw:: html
#
#    <details><summary>Answer</summary>
#
# The mean, the median, and the middle of the smallest and the largest number.

numbers = np.array([1.0, 2.0, 4.0, 7.0, 31.0])
nothing = np.zeros((5, 1))
for name, model in (models | {"Huber": None}).items():
    if model is not None:
        print(f"{name:15} {model.fit(nothing, numbers).intercept_:g}")
print(np.mean(numbers), np.median(numbers), (numbers.min() + numbers.max()) / 2)

# %%
# .. raw:: html
#
#    </details>
