"""
What a line can and cannot do
=============================

AND and OR can be learned by a line, XOR cannot. Here both statements are proven; and where no line
is perfect, the best one is found, with a proof that no other makes fewer mistakes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from trueline import (
    LeastSquaresClassifier,
    LinearSVC,
    Perceptron,
    ZeroOneHalfspace,
    maximum_margin,
    separability,
)
from trueline.plots import plot_boundary

# %%
# AND, OR, XOR
# ------------
# Four rows each. Where a line exists, the perceptron finds one; where none does, a few rows prove
# it: their convex hulls meet, and no line can pass between two sets that share a point. The best
# line for XOR then makes one mistake.

corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
labels = {"AND": [0, 0, 0, 1], "OR": [0, 1, 1, 1], "XOR": [0, 1, 1, 0]}
figure, panels = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
for ax, (name, y) in zip(panels, labels.items()):
    answer = separability(corners, y)
    print(f"{name}: {answer}\n")
    model = Perceptron(variant="cyclic") if answer.is_separable else ZeroOneHalfspace()
    plot_boundary(model.fit(corners, y), corners, y, ax)
    ax.set_xlabel(name)

# %%
# XOR after all
# -------------
# With the product of both columns as a third one, a plane does what no line could. Seen in the two
# columns it is a curve.

model = make_pipeline(
    PolynomialFeatures(2, interaction_only=True, include_bias=False),
    Perceptron(variant="cyclic"),
)
model.fit(corners, labels["XOR"])
mapped = model[:-1].transform(corners)
print(separability(mapped, labels["XOR"]))
plot_boundary(model, corners, labels["XOR"])

# %%
# The widest street
# -----------------
# Of all lines that separate two classes, one keeps the largest distance from both. Its margin is
# proven from both sides: the line itself shows that it can be had, two points of the convex hulls
# that there is no more.

rng = np.random.default_rng(3)
X = np.vstack([rng.normal([0, 0], 0.6, (40, 2)), rng.normal([3, 2], 0.6, (40, 2))])
y = np.repeat(["left", "right"], 40)
best = maximum_margin(X, y)
print(best)
plot_boundary(LinearSVC(loss="hinge", C=1e6, intercept_scaling=None).fit(X, y), X, y)

# %%
# The fewest mistakes
# -------------------
# Two clouds that overlap, and a group far away on its right side. Least squares on labels -1 and +1
# is pulled towards that group: being *too* right costs it. The hinge only counts what is short of
# the margin. The halfspace with the fewest training errors counts errors, and is proven best.

X = np.vstack(
    [
        rng.normal([0, 0], 1.0, (40, 2)),
        rng.normal([2.5, 1.0], 1.0, (40, 2)),
        rng.normal([14, -8], 0.7, (40, 2)),
    ]
)
y = np.repeat(["no", "yes", "yes"], (40, 40, 40))
models = {
    "least squares": LeastSquaresClassifier(),
    "support vectors": LinearSVC(loss="hinge"),
    "fewest errors": ZeroOneHalfspace(),
}
figure, panels = plt.subplots(1, 3, figsize=(13, 4.6), layout="constrained")
for ax, (name, model) in zip(panels, models.items()):
    plot_boundary(model.fit(X, y), X, y, ax, margin=None)
    ax.set_xlabel(f"{name}: {int(np.sum(model.predict(X) != y))} errors")

# %%
# What is proven about the last one, and what was checked:

print(models["fewest errors"].certificate_)
print(models["fewest errors"].verify(X, y))
