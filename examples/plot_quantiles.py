"""
How sure is a prediction?
=========================

Least squares predicts a mean and leaves open how far targets scatter around it, and whether they
scatter more for some rows than for others. Quantiles say it directly.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from trueline import LeastAbsoluteDeviations, LinearRegression, QuantileRegressor
from trueline.plots import plot_losses, plot_quantile_fan

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
bmi = X[["bmi"]]

# %%
# A fan of quantiles
# ------------------
# The progression of diabetes over the body mass index: five quantiles, fitted at once. The band
# widens to the right, which a mean with one standard deviation for all would miss.

quantiles = [0.05, 0.25, 0.5, 0.75, 0.95]
fan = QuantileRegressor(quantile=quantiles, alpha=0).fit(bmi, y)
mean = LinearRegression().fit(bmi, y)
display = plot_quantile_fan(fan, bmi, y)
ends = np.array([[bmi["bmi"].min()], [bmi["bmi"].max()]])
line = mean.intercept_ + mean.coef_[0] * ends
display.ax_.plot(ends, line, color="black", linestyle="--", label="mean")
display.ax_.legend(loc="upper left")
display.ax_.set_ylabel("progression")

# %%
# How many rows lie below each line? As many as the quantile says.

below = (y.to_numpy()[:, None] <= fan.predict(bmi) + 1e-9).mean(axis=0)
for q, share in zip(quantiles, below):
    print(f"quantile {q:.2f}: {share:.3f} of the rows are at or below the line")

# %%
# Is the slope the same for all?
# ------------------------------
# Standard errors that let the density differ from row to row, since the fan shows that it does.
# The interval of the low quantile does not even reach the slope of the high one.

print(fan.standard_errors(bmi, y, kind="kernel"))

# %%
# The proof
# ---------
# The slopes of the losses at the answer are a dual point: nothing else is needed to see that no
# other lines have smaller losses.

print(fan.certificate_)
print(fan.verify(bmi, y))

# %%
# Lines that must not cross
# -------------------------
# With all ten columns and quantiles close together some predictions are out of order.
# ``non_crossing=True`` keeps them in order at every row, and proves that this costs no more than
# necessary.

close = np.arange(0.1, 0.91, 0.1)
apart = QuantileRegressor(quantile=close, alpha=0).fit(X, y)
ordered = QuantileRegressor(quantile=close, alpha=0, non_crossing=True).fit(X, y)
for name, model in (("one by one", apart), ("in order", ordered)):
    crossings = int((np.diff(model.predict(X), axis=1) < 0).sum())
    print(f"{name:10}  {crossings:3} crossings, objective {model.certificate_.objective:.3f}")

# %%
# What outliers do
# ----------------
# A hundred times the target in a single row, as a slip of the decimal point would have it: the mean
# follows, the median hardly notices. The slope of the loss tells why.

slip = y.copy()
slip.iloc[int(bmi["bmi"].argmax())] *= 100
for name, model in (("mean", LinearRegression()), ("median", LeastAbsoluteDeviations())):
    before, after = model.fit(bmi, y).coef_[0], model.fit(bmi, slip).coef_[0]
    print(f"{name:6}  slope {before:7.2f} becomes {after:7.2f}")
plot_losses()
plt.show()
