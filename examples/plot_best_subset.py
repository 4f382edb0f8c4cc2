"""
Are these the best columns?
===========================

Stepwise selection and the lasso find a few columns quickly. Whether better ones exist they cannot
say. A search over all supports can, and its answer comes with a proof.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning

from trueline import BestSubset, LinearRegression, StepwiseRegression, regularization_path
from trueline.plots import SubsetDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True)

# %%
# All sizes
# ---------
# Every number of columns from one to ten is searched. BIC then picks the size; since each size is
# proven, no other subset of any size has a smaller BIC.

model = BestSubset(criterion="bic").fit(X, y)
for row in model.path_.rows():
    names = X.columns[row["support"]]
    print(f"{row['k']:2}  BIC {row['bic']:.2f}  proven {row['proven']} ", *names)
SubsetDisplay.from_estimator(model)

# %%
# What the others find
# --------------------
# Forward and backward selection by BIC both end at six columns. The best five are better, but no
# single exchange leads from one to the other: s3 stands for s1 and s2 together.

for direction in ("forward", "backward"):
    greedy = StepwiseRegression(direction, "bic").fit(X, y)
    print(f"{direction:9} BIC {greedy.bic():.2f}", *greedy.get_feature_names_out())
print(f"best      BIC {model.path_.criteria['bic'].min():.2f}", *X.columns[model.support_])

# %%
# By how much does each miss the best residual square of its size? For the lasso, the columns of the
# first point of its path with so many non-zero coefficients are fitted by least squares.

best = dict(zip(model.path_.k.tolist(), model.path_.residual_square))


def excess(square, size):
    return 100 * (square / best[size] - 1)


found = {}
for direction in ("forward", "backward"):
    books = StepwiseRegression(direction, n_features_to_select=10 * (direction == "forward"))
    steps = books.fit(X, y).history_
    found[direction] = [(s["n_features"], s["rss"]) for s in steps if s["n_features"]]
path = regularization_path(X, y, alphas=500)
sizes, first = np.unique(path.n_nonzero, return_index=True)
found["lasso"] = []
for size, point in zip(sizes[1:], first[1:]):
    few = X.loc[:, path.coefs[:, [point]].toarray().ravel() != 0]
    square = 2 * LinearRegression().fit(few, y).certificate_.objective
    found["lasso"].append((int(size), square))

fig, ax = plt.subplots(figsize=(8.0, 4.4), layout="constrained")
for (name, points), style in zip(found.items(), ("^-", "v--", "o-")):
    sizes, squares = zip(*sorted(points))
    ax.plot(sizes, list(map(excess, squares, sizes)), style, label=name)
ax.set(xlabel="number of columns", ylabel="residual square above the best (%)")
ax.grid(True, color="#DDDDDD")
ax.legend(frameon=False)

# %%
# The proof, and what happens to a forged one
# -------------------------------------------
# ``verify`` recomputes the objective, and the bound that the relaxation gives before any branching.
# Only a few hundred supports could still beat that bound: each of them is fitted anew. Where they
# are too many, the search is not repeated, and the table says so.

print(model.verify(X, y))
model.coef_[model.support_[0]] *= 1.01
print("after tampering:", [check.name for check in model.verify(X, y).checks if not check.holds])

# %%
# More columns, and no time
# -------------------------
# With squares and products there are 64 columns. Two seconds and a half are not enough to prove
# every size; what is not proven is hollow, and a line goes down to its proven lower bound.

pairs = {f"{a}*{b}": X[a] * X[b] for i, a in enumerate(X) for b in list(X)[i:]}
Z = X.assign(**{name: values for name, values in pairs.items() if name != "sex*sex"})
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # the picture tells
    hurried = BestSubset(k=range(1, 9), time_limit=2.5).fit(Z, y)
SubsetDisplay.from_estimator(hurried, criterion="objective")
