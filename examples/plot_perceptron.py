"""
A perceptron learns
===================

The oldest learning machine corrects itself at every mistake and is done after finitely many, if a
line separates the classes. How many mistakes it makes at most is known before it starts.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from trueline import Perceptron
from trueline.plots import animate_updates, plot_boundary, plot_mistakes

iris = load_iris(as_frame=True)
flowers = iris.target < 2
X = iris.data.loc[flowers, ["sepal length (cm)", "petal length (cm)"]]
y = iris.target[flowers].map({0: "setosa", 1: "versicolor"})

# %%
# As the textbook writes it
# -------------------------
# Go round and round through the rows; add every row that is on the wrong side. When a round makes
# no mistake, all rows are on their sides.

model = Perceptron(variant="cyclic", record_updates=True).fit(X, y)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
plot_boundary(model, X, y, left)
plot_mistakes(model, right)

# %%
# The bound
# ---------
# Novikoff's theorem (1962): if some line keeps a distance gamma from all rows, and no row is longer
# than R (with a one in front for the intercept), then there are at most (R / gamma)^2 mistakes, in
# whatever order the rows come. The certificate holds all three numbers and a line that proves
# gamma, the one that was learned; :meth:`~trueline.Perceptron.verify` checks them against the data.
# :meth:`~trueline.Perceptron.bound_mistakes` looks for the line of largest gamma.

for certificate in (model.certificate_, model.bound_mistakes(X, y)):
    witness = certificate.witness
    print(f"R = {witness['radius'][0]:.3f}, gamma = {witness['gamma'][0]:.4f}")
    print(f"at most {witness['bound'][0]:,.0f} mistakes, {witness['mistakes'][0]:.0f} were made")
print(model.verify(X, y))

# %%
# Every correction
# ----------------
# One frame for each: the row that was wrong is ringed, the line before is dashed. The animation
# can be saved as a GIF or as a page with buttons.

animation = animate_updates(model, X, y)
figure, panels = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
last = int(animation.frames[-1])
for ax, update in zip(panels, (1, last // 2, last)):
    animation.draw(ax, update)

# %%
# When no line will do
# --------------------
# Versicolor and virginica overlap, and the perceptron never comes to rest. The *pocket* keeps the
# best weights seen on the way; the *averaged* perceptron takes the mean over all rounds. Mistakes
# in each pass show the difference between resting and wandering.

X = iris.data.loc[iris.target > 0, ["petal length (cm)", "petal width (cm)"]]
y = iris.target[iris.target > 0].map({1: "versicolor", 2: "virginica"})
figure, panels = plt.subplots(1, 3, figsize=(13, 4.0), layout="constrained")
for ax, variant in zip(panels, ("cyclic", "pocket", "averaged")):
    model = Perceptron(variant=variant, max_iter=50, tol=None).fit(X, y)
    plot_boundary(model, X, y, ax)
    wrong = int(np.sum(model.predict(X) != y))
    ax.text(0.02, 0.02, f"{variant}: {wrong} of {len(y)} wrong", transform=ax.transAxes)

# %%
# Row by row
# ----------
# The same model learns from a stream, one row or one batch at a time, and is judged on every row
# before it learns from it.

stream = ((X.to_numpy()[i : i + 1], y.to_numpy()[i : i + 1]) for i in range(len(y)))
online = Perceptron(variant="averaged").fit_stream(stream, classes=["versicolor", "virginica"])
print(online.progress_)
