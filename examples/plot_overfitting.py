"""
When is a model too simple, and when too complex?
=================================================

A model that is too simple misses the shape of the data; one that is too complex learns its noise.
Errors on the training rows cannot tell: they only fall. Errors on other rows can.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import KFold

from trueline import PolynomialRegression, Ridge, complexity_curve, learning_curve

rng = np.random.default_rng(3)
x = np.sort(rng.uniform(-1, 1, 40))
truth = np.sin(3 * x) + 0.3 * x
y = truth + 0.25 * rng.standard_normal(40)
X, line = x[:, None], np.linspace(-1, 1, 400)
cv = KFold(5, shuffle=True, random_state=0)

# %%
# Three polynomials
# -----------------
# A line misses the bends. Degree 15 goes through many points, and swings between them.

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.4), sharey=True, layout="constrained")
for ax, degree, name in zip(axes, (1, 3, 15), ("underfits", "fits", "overfits")):
    model = PolynomialRegression(degree).fit(X, y)
    ax.plot(x, y, "o", color="#888888", markersize=4)
    ax.plot(line, np.sin(3 * line) + 0.3 * line, color="#BBBBBB", linewidth=3)
    ax.plot(line, model.predict(line[:, None]), color="#D55E00")
    ax.set(title=f"degree {degree} {name}", ylim=(-2, 2))

# %%
# Error against the degree
# ------------------------
# The training error falls all the way. The error on held-out rows falls, stays, and rises. AIC and
# BIC, which need no held-out rows, charge for every coefficient and turn at about the same place.

degrees = complexity_curve(X, y, "degree", range(1, 13), cv=cv)
degrees.plot()
print(f"best degree on held-out rows: {degrees.best:g}; simplest near it: {degrees.best_1se:g}")
print(f"best degree by BIC: {degrees.values[np.argmin(degrees.bic)]:g}")

# %%
# Error against the strength of a penalty
# ---------------------------------------
# Many columns need not overfit: a penalty makes the model simple again. Here the columns are the
# powers up to 12, and complexity is turned down to the left by ridge regression.

powers = x[:, None] ** np.arange(1, 13)
complexity_curve(powers, y, "lambda", np.geomspace(1e-6, 1e2, 17), cv=cv).plot()

# %%
# Error against the number of radial basis functions
# --------------------------------------------------

complexity_curve(X, y, "rbf", [1, 2, 3, 4, 6, 8, 12, 16, 24], cv=cv).plot()

# %%
# More rows instead
# -----------------
# What is too complex for few rows may be right for many. The two curves of a learning curve close
# in on each other: when they have met, more rows will not help, but a richer model might.

rows = rng.uniform(-1, 1, 600)
values = np.sin(3 * rows) + 0.3 * rows + 0.25 * rng.standard_normal(600)
columns = rows[:, None] ** np.arange(1, 13)
curve = learning_curve(
    Ridge(1e-6),
    columns,
    values,
    sizes=[30, 50, 80, 150, 300, 480],
    scoring="neg_mean_squared_error",
)
curve.plot()
plt.show()
