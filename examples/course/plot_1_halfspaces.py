"""
1. Halfspaces and the perceptron
================================

A halfspace says yes on one side of a hyperplane: h(x) = sign(w . x + b). Which one is best on n
labelled rows? The fewest mistakes is the goal (empirical risk minimisation); if some halfspace
makes none, the classes are *linearly separable*, and a very simple algorithm finds one.
"""

import matplotlib.pyplot as plt
import numpy as np

from trueline import Perceptron, ZeroOneHalfspace, maximum_margin, separability
from trueline.plots import plot_boundary, plot_hulls, plot_mistakes

# %%
# The algorithm, written out
# --------------------------
# The perceptron (Rosenblatt, 1958) starts at zero. As long as some row is on the wrong side,
#
# .. math:: y_i (w \cdot x_i + b) \le 0,
#
# it adds that row to the weights: w <- w + y_i x_i, b <- b + y_i. For AND, with labels -1 and +1:

X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
y = np.array([-1, -1, -1, 1])
w, b, mistakes = np.zeros(2), 0.0, 0
while np.any(wrong := y * (X @ w + b) <= 0):
    i = np.argmax(wrong)  # the first row that is wrong
    w, b, mistakes = w + y[i] * X[i], b + y[i], mistakes + 1
    if mistakes <= 5:
        print(f"row {X[i]}  ->  w = {w}, b = {b:g}")
print(f"no mistake is left after {mistakes} updates: w = {w}, b = {b:g}")

# %%
# The library's does the same, keeps count, and knows a bound:

model = Perceptron(variant="textbook").fit(X, y)
print(model.coef_[0], model.intercept_, model.certificate_.objective, "mistakes left")
print(model.explain())

# %%
# Why it ends
# -----------
# If some hyperplane keeps a distance gamma from all rows, and no row is longer than R, then at most
#
# .. math:: (R / \gamma)^2
#
# updates are made (Novikoff, 1962): with each of them w grows by at least gamma along the good
# direction, while its squared length grows by at most R squared. The largest gamma there is:

print(maximum_margin(X, y))

# %%
# A wider street between the classes means fewer updates:

rng = np.random.default_rng(0)
figure, panels = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
sides = np.repeat([-1, 1], 30)
for ax, apart in zip(panels, (3.0, 1.1)):
    clouds = rng.uniform(-0.5, 0.5, (60, 2)) + [1.0, 1.0] + sides[:, None] * apart / 2
    learner = Perceptron(variant="textbook", record_updates=True).fit(clouds, sides)
    plot_boundary(learner, clouds, sides, ax)
    ax.set_xlabel(f"{apart:g} apart: {len(learner.records_[0].rows)} updates")
plot_mistakes(learner, panels[2])

# %%
# When no line will do
# --------------------
# XOR: the segment between the two rows of one class crosses the segment between the others. No line
# can pass between two sets whose hulls share a point, and the point is the proof.

xor = np.array([-1, 1, 1, -1])
answer = separability(X, xor)
print(answer)
best = ZeroOneHalfspace().fit(X, xor)
print(best.certificate_)
print(best.verify(X, xor))
figure, panels = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
plot_hulls(answer, X, xor, panels[0])
plot_boundary(best, X, xor, panels[1])

# %%
# Exercise
# --------
# All rows are multiplied by ten, the column of ones included. How many updates does the perceptron
# need now?
#
# .. raw:: html
#
#    <details><summary>Answer</summary>
#
# Just as many. Both R and gamma grow by ten, so the bound is the same, and so is every decision:
# the weights are those of before, times ten.

ones = np.column_stack([X, np.ones(4)])
for scale in (1.0, 10.0):
    learner = Perceptron(variant="textbook", fit_intercept=False, record_updates=True)
    learner.fit(scale * ones, y)
    print(f"scale {scale:4g}: {len(learner.records_[0].rows)} updates, w = {learner.coef_[0]}")

# %%
# .. raw:: html
#
#    </details>
