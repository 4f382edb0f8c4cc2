"""
Support vector machines with kernels
====================================

The widest margin between two classes, with and without a kernel, and handwritten digits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_blobs, make_moons
from sklearn.model_selection import train_test_split

from trueline import SVC, SVR
from trueline.plots import plot_boundary

# %%
# The widest street
# -----------------
# Of all lines between two groups of points, the machine draws the one farthest from both. Only the
# rows on its edges decide where it runs: the support vectors, in squares. All others could be
# moved, as long as they stay off the street.

X, y = make_blobs(60, centers=[[-2.0, 0.0], [2.0, 1.0]], cluster_std=0.8, random_state=4)
model = SVC(kernel="linear", C=100.0).fit(X, y)
plot_boundary(model, X, y, support=True)
plt.title("a hard margin")

# %%
# The certificate is about the quadratic programme itself: primal and dual value of the fit, and the
# gap between them.

print(model.explain())
print("verified:", bool(model.verify(X, y)))

# %%
# Bent by a kernel
# ----------------
# With radial basis functions the same street runs through a space of many dimensions. A small
# ``gamma`` keeps it stiff, a large one lets it wind around single points.

X, y = make_moons(200, noise=0.22, random_state=0)
figure, axes = plt.subplots(1, 3, figsize=(13, 4))
for ax, gamma in zip(axes, (0.1, 1.0, 30.0), strict=True):
    model = SVC(gamma=gamma).fit(X, y)
    plot_boundary(model, X, y, ax=ax, support=True)
    ax.set_title(f"gamma = {gamma:g}: {len(model.support_)} support vectors")
    ax.legend().remove()

# %%
# Digits
# ------
# Ten classes are told apart two at a time, and the 45 machines vote. The rows that carry them are
# the ones that are hard to read.

digits = load_digits()
X_train, X_test, y_train, y_test = train_test_split(
    digits.data, digits.target, test_size=0.3, random_state=0
)
model = SVC(gamma=0.001, C=10.0).fit(X_train, y_train)
print(f"{model.score(X_test, y_test):.1%} of {len(y_test)} digits are read right")

largest = np.argsort(-np.abs(model.dual_coef_).max(axis=0))[:12]
figure, axes = plt.subplots(2, 6, figsize=(9, 3.4))
for ax, row in zip(axes.ravel(), model.support_[largest], strict=True):
    ax.imshow(X_train[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(str(y_train[row]))
    ax.axis("off")
figure.suptitle("The digits that weigh most")

# %%
# A tube around a curve
# ---------------------
# For regression, rows inside a tube of radius ``epsilon`` cost nothing: those outside or on its
# edge carry the curve.

generator = np.random.default_rng(1)
x = np.sort(generator.uniform(0, 6, size=120)).reshape(-1, 1)
y = np.sin(1.5 * x[:, 0]) + 0.15 * generator.normal(size=120)
model = SVR(C=10.0, epsilon=0.2).fit(x, y)
grid = np.linspace(0, 6, 300).reshape(-1, 1)
curve = model.predict(grid)
figure, ax = plt.subplots()
ax.fill_between(grid[:, 0], curve - 0.2, curve + 0.2, alpha=0.2, label="tube")
ax.plot(grid[:, 0], curve, label="fit")
ax.plot(x[:, 0], y, ".", color="0.6", label="rows inside")
ax.plot(x[model.support_, 0], y[model.support_], "s", mfc="none", color="k", label="support")
ax.legend()
