"""
What a linear model sees in a digit
===================================

Ten classes, eight by eight pixels. Softmax regression has one image of coefficients for each digit:
ink on red pixels speaks for it, ink on blue pixels against it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from trueline import LinearSVC, LogisticRegression
from trueline.plots import plot_boundary, plot_class_coefficients, plot_confusion

X, y = load_digits(return_X_y=True)
train, test = slice(0, 1200), slice(1200, None)

# %%
# One problem for all classes
# ---------------------------
# The certificate is about all ten images together: no other coefficients have an objective that is
# lower by more than the gap.

softmax = LogisticRegression(C=0.01).fit(X[train], y[train])
print(softmax.certificate_)
assert softmax.verify(X[train], y[train])
plot_class_coefficients(softmax, shape=(8, 8))

# %%
# Ink in the middle speaks against a zero, which has a hole there.
#
# Which digits are taken for which
# --------------------------------

plot_confusion(softmax, X[test], y[test])

# %%
# Two digits and a margin
# -----------------------
# A support vector machine for eights and ones. The picture shows the distance from the boundary on
# one axis, so that every row is on its true side, however many columns there are. Only the rows
# marked by squares matter for the answer.

pair = np.isin(y, (1, 8))
machine = LinearSVC(loss="hinge", C=0.001).fit(X[pair], y[pair])
print(f"{len(machine.support_)} of {pair.sum()} digits are support vectors")
plot_boundary(machine, X[pair], y[pair], support=True)

# %%
# How sure is it?
# ---------------
# With two numbers for each digit, the ink in its middle columns and the ink beside them, a digit is
# a point of a plane, and logistic regression gives the probability of being an eight everywhere:
# the stronger the colour, the surer.

ink = X[pair].reshape(-1, 8, 8).sum(axis=1)
plane = pd.DataFrame({"ink beside": ink[:, [1, 2, 5]].sum(axis=1), "ink inside": ink[:, 3]})
two = LogisticRegression().fit(plane, y[pair])
plot_boundary(two, plane, y[pair], shade="probabilities")
plt.show()
