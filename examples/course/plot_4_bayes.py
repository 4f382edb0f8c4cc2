"""
4. Bayesian regression and Gaussian processes
=============================================

Instead of one line, all lines, each as probable as prior and data make it. The most probable line
is ridge regression; the spread of the others says how sure it is.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from trueline import BayesianLinearRegression, BayesianRidge, GaussianProcessRegressor, Ridge
from trueline.plots import plot_posterior, plot_process

# %%
# The posterior, written out
# --------------------------
# Prior w ~ N(0, I / lambda), noise of variance s^2. Then, given the data,
#
# .. math:: w \sim N(m, S), \quad S^{-1} = \lambda I + X'X / s^2, \quad m = S X'y / s^2 ,
#
# and m minimises 1/2 ||y - X w||^2 + lambda s^2 / 2 ||w||^2: ridge regression with
# alpha = lambda s^2.

rng = np.random.default_rng(2)
X = np.column_stack([np.ones(12), rng.uniform(-1, 1, 12)])
y = X @ [0.3, 0.8] + rng.normal(0, 0.3, 12)
lam, variance = 2.0, 0.09
S = np.linalg.inv(lam * np.eye(2) + X.T @ X / variance)
m = S @ X.T @ y / variance
print("posterior mean:", m, " deviations:", np.sqrt(np.diag(S)))
print("ridge:         ", Ridge(lam * variance, fit_intercept=False).fit(X, y).coef_)

# %%
# Row by row the posterior narrows; here the noise is unknown, too:

x = X[:, 1:]
plot_posterior(BayesianLinearRegression(lam).fit(x, y), x, y, steps=(2, 4, 12))

# %%
# How strong should the prior be?
# -------------------------------
# The *marginal likelihood* p(y | lambda, s) answers without a validation set: it is the density of
# the targets when the coefficients are integrated out. ``BayesianRidge`` climbs it.

evidence = BayesianRidge(fit_intercept=False, compute_score=True).fit(X, y)
print(f"noise {evidence.alpha_**-0.5:.3f}, prior precision {evidence.lambda_:.3f}")
print(evidence.certificate_)

# %%
# Functions instead of lines
# --------------------------
# A Gaussian process gives every function a probability; the kernel says how alike nearby values
# are. Where there are data the functions agree, elsewhere they do not.

x = np.sort(rng.uniform(0, 10, 12))[:, None]
z = np.sin(x[:, 0]) + rng.normal(0, 0.1, 12)
process = GaussianProcessRegressor(alpha=0.01).fit(x, z)
plot_process(process, x, z, samples=3)
print(process.kernel_)
print(process.certificate_)

# %%
# The mean of the process, written out: k(x*, X) (K + s^2 I)^{-1} y.

K = process.kernel_(x) + 0.01 * np.eye(12)
new = np.array([[2.0], [20.0]])
print("by hand: ", process.kernel_(new, x) @ np.linalg.solve(K, z))
mean, deviation = process.predict(new, return_std=True)
print("trueline:", mean, " deviations:", deviation)

# %%
# Exercise
# --------
# At a place far from all data, which numbers contain the function with probability 95%?
#
# .. raw:: html
#
#    <details><summary>Answer</summary>
#
# There the data say nothing: mean zero, and the deviation of the prior, the square root of k(x, x).
# At x = 20:

prior = float(np.sqrt(process.kernel_(new[1:])[0, 0]))
print(f"prior deviation {prior:.3f}, posterior deviation {deviation[1]:.3f}")
print(f"between {norm.ppf(0.025) * prior:.2f} and {norm.ppf(0.975) * prior:.2f}")
plt.show()

# %%
# .. raw:: html
#
#    </details>
