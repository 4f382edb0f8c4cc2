"""
Can rows arrive in pieces, on several machines, and the answer still be exact?
==============================================================================

For least squares and ridge, yes. A model keeps sums over its rows (their *moments*), a few small
matrices that add up. Batches and merged models give the answer of all rows together, to rounding.
"""

import matplotlib.pyplot as plt
import numpy as np

from trueline import LinearRegression, Ridge
from trueline.design import as_design
from trueline.moments import Moments

rng = np.random.default_rng(0)
n, d = 5000, 4
X = rng.standard_normal((n, d)) + 100.0  # far from zero: centring must not lose digits
true_coef = np.array([1.0, -2.0, 0.5, 0.0])
y = X @ true_coef + 3.0 + 2.0 * rng.standard_normal(n)
whole = LinearRegression().fit(X, y)

# %%
# In batches
# ----------
# ``partial_fit`` adds rows; after each batch the model is that of all rows so far.

stream, history = LinearRegression(), []
edges = np.unique(np.geomspace(20, n, 25).astype(int))
for start, stop in zip([0, *edges], edges):
    stream.partial_fit(X[start:stop], y[start:stop])
    history.append(stream.coef_.copy())
print("largest difference to one fit of all rows:", np.abs(stream.coef_ - whole.coef_).max())

# %%
# The certificate of the last batch speaks about all rows, and can be checked if they still exist.

print(stream.certificate_)
print(stream.certificate_.verify(X, y))

# %%
# On several machines
# -------------------
# Fit each part where it lives, then add the models.

parts = [Ridge(alpha=5.0).fit(X[i::3], y[i::3]) for i in range(3)]
merged = parts[0] + parts[1] + parts[2]
direct = Ridge(alpha=5.0).fit(X, y)
print("rows seen by the merged model:", merged.moments_.count)
print("largest difference to one fit:", np.abs(merged.coef_ - direct.coef_).max())

# %%
# Forgetting
# ----------
# Moments subtract as well. Remove the oldest thousand rows from a model's sums:

moments = whole.moments_ - Moments.from_rows(as_design(X[:1000]), y[:1000, None])
kept = LinearRegression().fit(X[1000:], y[1000:])
print("rows left:", moments.count)
print("largest difference of the sums:", np.abs(moments.gram - kept.moments_.gram).max())

# %%
# See
# ---
# The coefficients settle as rows arrive; the dotted lines are the true ones.

fig, ax = plt.subplots(figsize=(8.0, 4.4), layout="constrained")
for j, path in enumerate(np.array(history).T):
    ax.plot(edges, path, color=f"C{j}", marker=".", label=f"coefficient {j}")
    ax.axhline(true_coef[j], color=f"C{j}", linestyle=":", linewidth=1.0)
ax.set(xscale="log", xlabel="rows seen", ylabel="estimate")
ax.grid(True, color="#DDDDDD")
ax.legend(frameon=False, ncols=2, loc="center right", bbox_to_anchor=(1.0, 0.4))
