"""
Functions with their uncertainty
================================

A line whose posterior grows with every point, and carbon dioxide at Mauna Loa by a Gaussian process
whose kernel says what the curve is made of.
"""

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, RationalQuadratic, WhiteKernel

from trueline import BayesianLinearRegression, GaussianProcessRegressor
from trueline.plots import plot_posterior, plot_process

# %%
# Point by point
# --------------
# Black points have arrived, grey ones will. The posterior of one panel is the prior of the next:
# lines that could still be true become fewer, and the ellipse of intercept and slope shrinks.

generator = np.random.default_rng(3)
x = generator.uniform(-2, 2, size=30)
y = 1.0 + 0.8 * x + 0.4 * generator.normal(size=30)
plot_posterior(BayesianLinearRegression(prior_precision=0.1), x, y, steps=[2, 3, 8, 30])

# %%
# Mauna Loa
# ---------
# Monthly means since 1958, as statsmodels ships them. The kernel is a sum: a trend over
# decades, a season that changes slowly, fluctuations of a year or so, and noise.

weekly = sm.datasets.co2.load_pandas().data["co2"]
monthly = weekly.resample("MS").mean().dropna()
year = (monthly.index.year + (monthly.index.month - 0.5) / 12).to_numpy().reshape(-1, 1)
level = monthly.to_numpy()

kernel = (
    50.0**2 * RBF(50.0)
    + 2.0**2 * RBF(100.0) * ExpSineSquared(1.0, periodicity=1.0, periodicity_bounds="fixed")
    + 0.5**2 * RationalQuadratic(length_scale=1.0, alpha=1.0)
    + WhiteKernel(0.25**2)
)
model = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=False)
model.fit(year, level - level.mean())
display = plot_process(model, year, level - level.mean())
display.ax_.set_xlabel("year")
display.ax_.set_ylabel("ppm above the mean")

# %%
# How well does it know each month from all others? Leave-one-out costs one inverse.

mean, std = model.leave_one_out()
miss = (level - level.mean() - mean) / std
print(f"root mean square of leave-one-out errors, in standard deviations: {miss.std():.2f}")

# %%
# Length scales say what matters
# ------------------------------
# A function of two columns that looks at one of them. The certificate of the fit is local: it
# bounds the slope of the likelihood and the residual of the equations.

X = generator.uniform(-3, 3, size=(150, 2))
z = np.sin(X[:, 0]) + 0.1 * generator.normal(size=150)
process = GaussianProcessRegressor(1.0 * RBF([1.0, 1.0], (1e-2, 1e3)) + WhiteKernel(0.1)).fit(X, z)
print(process.explain())
plot_process(process, X, z, samples=3)
plt.show()
