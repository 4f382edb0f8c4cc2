"""
3. From losses to logistic regression and support vector machines
=================================================================

Counting mistakes is hard to minimise: the count is flat almost everywhere, and jumps. Convex losses
above it can be minimised, with a proof that nothing better exists.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from trueline import LinearSVC, LogisticRegression, ZeroOneHalfspace
from trueline.plots import plot_boundary, plot_descent, plot_margin_losses

# %%
# Losses of the margin
# --------------------
# With labels -1 and +1 and the score z = w . x + b, the product y z is the *margin*: negative if
# the row is on the wrong side. Each curve lies above the step of the mistakes.

plot_margin_losses()

# %%
# Gradient descent, written out
# -----------------------------
# Logistic regression with weight decay minimises
#
# .. math:: F(w) = C \sum_i \log(1 + e^{-y_i w \cdot x_i}) + \tfrac12 \|w\|^2 .
#
# Its gradient is w - C sum_i y_i x_i / (1 + exp(y_i w . x_i)). The step 1/L is safe, with L the
# largest curvature there can be, 1 + C ||X||^2 / 4.

rng = np.random.default_rng(4)
X = np.vstack([rng.normal([-1, -1], 1.0, (60, 2)), rng.normal([1, 1], 1.0, (60, 2))])
y = np.repeat([-1, 1], 60)
C = 0.1


def objective(w):
    """What is minimised."""
    return C * np.logaddexp(0, -y * (X @ w)).sum() + 0.5 * w @ w


w, step = np.zeros(2), 1 / (1 + C * np.linalg.norm(X, 2) ** 2 / 4)
values = []
for _ in range(60):
    values.append(objective(w))
    w = w - step * (w - C * X.T @ (y / (1 + np.exp(y * (X @ w)))))
model = LogisticRegression(C=C, fit_intercept=False, tol=1e-12).fit(X, y)
print("60 steps:", w, objective(w))
print("trueline:", model.coef_[0], objective(model.coef_[0]))

# %%
# How far from the best is step k? The certificate knows the optimum to within its gap (of the
# objective divided by C, as ``explain`` prints it):

best = C * model.certificate_.lower_bound
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.semilogy(np.array(values) - best)
ax.set(xlabel="step", ylabel="objective - optimum", title="gradient descent converges linearly")
print(model.certificate_)
print(model.explain())

# %%
# The batch looks at all rows in every step, stochastic descent at one, mini-batches at some:

descents = {
    name: LogisticRegression(
        C=C, fit_intercept=False, solver=solver, max_iter=epochs, tol=1e-3, trace=True
    )
    for name, solver, epochs in [
        ("batch", "gradient_descent", 60),
        ("one row at a time", "stochastic_gradient", 10),
        ("mini-batches", "mini_batch", 10),
    ]
}
for descent in descents.values():
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        descent.fit(X, y, coef_init=[2.0, -0.5])
plot_descent(descents, X, y)

# %%
# Probabilities, and the widest street
# ------------------------------------
# Logistic regression is the maximum a posteriori estimate of a model of probabilities. The support
# vector machine minimises hinges max(0, 1 - y z): rows with a margin above one do not count at all,
# and those that do are the *support vectors*.

svm = LinearSVC(loss="hinge", C=1.0, intercept_scaling=None).fit(X, y)
figure, panels = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
plot_boundary(LogisticRegression(C=C).fit(X, y), X, y, panels[0])
plot_boundary(svm, X, y, panels[1])
margins = y * svm.decision_function(X)
print(f"{np.sum(margins <= 1 + 1e-6)} of {len(y)} rows have a margin of at most one")

# %%
# Leaving out a row with a margin above one changes nothing:

kept = margins <= 1 + 1e-6
again = LinearSVC(loss="hinge", C=1.0, intercept_scaling=None).fit(X[kept], y[kept])
print(svm.coef_[0], again.coef_[0])
print(svm.verify(X, y))

# %%
# Exercise
# --------
# The hinge lies above the count of mistakes. What does that say about the best halfspace there is?
#
# .. raw:: html
#
#    <details><summary>Answer</summary>
#
# No halfspace makes more mistakes than its sum of hinges, so the sum of hinges of the machine is a
# bound on its own mistakes, and the fewest mistakes of all are fewer still. Both can be computed:

fewest = ZeroOneHalfspace().fit(X, y)
print(f"sum of hinges      {np.maximum(0, 1 - margins).sum():.2f}")
print(f"mistakes of it     {np.sum(margins <= 0)}")
print(f"fewest of all      {int(np.sum(fewest.predict(X) != y))}")

# %%
# .. raw:: html
#
#    </details>
