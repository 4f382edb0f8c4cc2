"""
More columns than rows: which of them matter?
=============================================

A thousand columns, 120 rows, and columns that come in groups of five that look alike. The lasso
picks a few. How many should it pick, does the pick depend on the order of the columns, and is it
the minimum at all?
"""

import numpy as np
from sklearn.linear_model import Lasso as SklearnLasso

from trueline import Lasso, LassoCV
from trueline.plots import CVCurveDisplay, PathDisplay

rng = np.random.default_rng(0)
n, groups, alike = 120, 200, 5
d = groups * alike
shared = np.repeat(rng.standard_normal((n, groups)), alike, axis=1)
X = np.sqrt(0.8) * shared + np.sqrt(0.2) * rng.standard_normal((n, d))
truth = np.zeros(d)
truth[:40:5] = [3.0, -3.0, 2.0, -2.0, 2.0, -1.5, 1.5, 1.0]
y = X @ truth + 2.0 * rng.standard_normal(n)

# %%
# How many columns?
# -----------------
# The error on held-out rows is flat around its minimum. ``rule="1se"`` takes the strongest penalty
# whose error is within one standard error of the smallest.

model = LassoCV(cv=5, alphas=50, eps=1e-2, rule="1se").fit(X, y)
CVCurveDisplay.from_estimator(model, X, y)

# %%
# The path
# --------
# From left to right the penalty gets weaker and columns enter. The ten with the largest
# coefficients have names.

names = [f"{j}{' (true)' if truth[j] else ''}" for j in range(d)]
PathDisplay.from_estimator(model, X, y, names=names)

# %%
# Both rules find all the true columns here; the smallest error brings more false ones.

for rule, alpha in {"1se": model.alpha_1se_, "min": model.alpha_min_}.items():
    chosen = np.flatnonzero(Lasso(alpha).fit(X, y).coef_)
    true = np.count_nonzero(truth[chosen])
    print(f"{rule}: {len(chosen)} columns, {true} of the 8 true ones among them")

# %%
# Does the order of the columns matter?
# -------------------------------------
# It should not: the minimum is the same. A solver that stops early shows where it started. Here
# each lasso is fitted twice, the second time with the columns shuffled.

order = rng.permutation(d)
print("alpha    library       columns  that changed  largest change of a coefficient")
for alpha in (model.alpha_, model.alpha_ / 5, model.alpha_ / 20):
    for library, lasso in {"trueline": Lasso(alpha), "scikit-learn": SklearnLasso(alpha)}.items():
        once, again = lasso.fit(X, y).coef_.copy(), np.empty(d)
        again[order] = lasso.fit(X[:, order], y).coef_
        changed = np.count_nonzero((once != 0) != (again != 0))
        largest = np.abs(once - again).max()
        print(f"{alpha:.4f}  {library:13} {np.count_nonzero(once):7}  {changed:12}  {largest:.1g}")

# %%
# Is it the minimum?
# ------------------
# The coefficients prove it themselves: the gap to the optimum is computed from the data and
# the coefficients, without cancellation, and ``verify`` does so independently of the solver.

print(model.certificate_)
print(model.verify(X, y))

# %%
# A coefficient that was changed after the fit does not pass. Nor do data that were.

forged = model.coef_.copy()
forged[np.flatnonzero(forged)[0]] *= 1.001
honest, model.coef_ = model.coef_, forged
print("forged coefficient:", bool(model.verify(X, y)))
model.coef_ = honest
y_forged = y.copy()
y_forged[0] += 0.01
print("forged target:     ", bool(model.verify(X, y_forged)))
print("as it was:         ", bool(model.verify(X, y)))
