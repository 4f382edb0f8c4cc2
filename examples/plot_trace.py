"""
How fast does each method approach the optimum?
===============================================

Gradient descent, stochastic gradient descent, mini-batches and conjugate gradients on the same
ridge regression. After every iteration each method states its objective and a *proven* bound on
the distance to the optimum, so the picture needs no reference solution.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from trueline import LinearRegressor
from trueline.plots import plot_descent, plot_trace

rng = np.random.default_rng(0)
n, d = 2000, 20
X = rng.standard_normal((n, d)) * np.geomspace(1.0, 0.2, d)  # columns of different size
y = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)

# %%
# Fit with a trace
# ----------------
# ``trace=True`` keeps the objective, the proven gap and the time of every iteration. One iteration
# is one look at all rows: a full gradient, an epoch of single rows, an epoch of batches, or one
# direction of conjugate gradients. The stochastic methods stop at the iteration limit and say so;
# here that is what we want to see.

solvers = ["conjugate_gradient", "gradient_descent", "mini_batch", "stochastic_gradient"]
traces = {}
for solver in solvers:
    model = LinearRegressor(
        "squared", "l2", 0.1, solver=solver, tol=1e-12, max_iter=200, trace=True, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    traces[solver] = model.trace_
    proof = model.certificate_
    print(f"{solver:20} {model.n_iter_:4} iterations, proven within {proof.gap:.1e} of the optimum")
    assert model.verify(X, y)  # true for unfinished fits as well: the gap is simply larger

# %%
# By iteration
# ------------
# Solid: how far the objective is above the lowest one reached by anybody. Dashed: the proven gap.
# A dashed line is never below its solid line, because a proof may be cautious but not wrong.

plot_trace(traces)

# %%
# Read the picture
# ----------------
# - *Conjugate gradients* need few iterations, and in exact arithmetic never more than columns. The
#   columns are first brought to equal size, which makes this problem easy for them.
# - *Gradient descent* falls by a constant factor per iteration. The factor is set by the ratio of
#   the largest to the smallest curvature, here about 25.
# - *Stochastic gradients* use a row (or 32) at a time. The first epochs gain the most, because each
#   makes many cheap steps. Then the noise of single rows dominates, and the steps have to shrink.

fig, ax = plt.subplots(figsize=(8.0, 4.4), layout="constrained")
plot_trace(traces, ax=ax, against="seconds", show="gap")
ax.set_xscale("log")
ax.set_title("the same, by time")

# %%
# Step by step
# ------------
# The trace keeps the weights, too. On two columns, from a start of our own, the way of each method
# goes over the lines of equal objective: with all rows straight down, with few of them roughly.

few, goal = X[:60, :2], y[:60]
setting = {"penalty": None, "tol": 0.0, "trace": True, "random_state": 0}
ways = {
    "batch": LinearRegressor(solver="gradient_descent", eta0=0.005, max_iter=20, **setting),
    "mini-batch": LinearRegressor(solver="mini_batch", eta0=0.1, max_iter=10, **setting),
    "stochastic": LinearRegressor(solver="stochastic_gradient", eta0=0.03, max_iter=3, **setting),
}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    for model in ways.values():
        model.set_params(batch_size=10).fit(few, goal, coef_init=[3.0, -2.0])
plot_descent(ways, few, goal)
