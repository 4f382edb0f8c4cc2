"""
Is this really the least squares line?
======================================

Fit a line, ask how it was found, check the proof that no line is better, then tamper with the data
and see the proof fail.
"""

import matplotlib.pyplot as plt
import numpy as np

from trueline import LinearRegression

rng = np.random.default_rng(0)
n = 40
X = rng.uniform(0.0, 10.0, size=(n, 1))
y = 1.5 * X[:, 0] + 2.0 + rng.normal(scale=2.0, size=n)

# %%
# Fit
# ---
# The parameters and attributes are scikit-learn's.

model = LinearRegression().fit(X, y)
print(f"slope {model.coef_[0]:.3f}, intercept {model.intercept_:.3f}")

# %%
# Explain
# -------
# Which solvers could do this, which one did, and why.

print(model.explain())

# %%
# Prove
# -----
# The certificate states the objective reached and a bound that no line can beat. ``verify``
# recomputes both from the data, without the code that found the line.

print(model.certificate_)
print(model.certificate_.verify(X, y))

# %%
# Tamper
# ------
# Change one target after the fit. The line is no longer the best one for these data, and the check
# says so.

tampered = y.copy()
tampered[0] += 5.0
print(model.certificate_.verify(X, tampered))

# %%
# See
# ---

grid = np.array([[0.0], [10.0]])
fig, ax = plt.subplots(figsize=(8.0, 4.4), layout="constrained")
ax.scatter(X[:, 0], y, s=20, label="data")
ax.plot(X[0, 0], tampered[0], "x", color="C3", markersize=9, label="tampered")
ax.plot(grid[:, 0], model.predict(grid), color="C1", label="certified least squares")
ax.set(xlabel="x", ylabel="y")
ax.grid(True, color="#DDDDDD")
ax.legend(frameon=False)
