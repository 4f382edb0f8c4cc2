"""
How long does it take to read an article?
=========================================

Readers were timed on articles that are stored with a topic, a date and an author, some of it
missing. Everything goes into one design, and every coefficient traces back to its column.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

from trueline import RidgeCV, TableFeatures, TextFeatures

# %%
# Articles
# --------
# Generated, so that the truth is known: 240 words a minute, slower for long words and for science,
# and half a minute to find the page on a weekend.

rng = np.random.default_rng(0)
short = ["the", "sun", "a", "dog", "ran", "to", "sea", "and", "we", "saw", "it"]
long = ["government", "experiment", "significant", "mathematics", "temperature", "relationship"]


def article(words, share):
    chosen = np.where(rng.random(words) < share, rng.choice(long, words), rng.choice(short, words))
    return " ".join(chosen).capitalize() + "."


n = 300
words = rng.integers(50, 1200, n)
share = rng.uniform(0.0, 0.5, n)
topics = rng.choice(["science", "sports", "politics"], n)
days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D")
minutes = words / 240 * (1 + share + 0.3 * (topics == "science"))
minutes = minutes + 0.5 * (days.day_of_week >= 5) + 0.15 * rng.standard_normal(n)
table = pd.DataFrame(
    {
        "text": [article(w, s) for w, s in zip(words, share)],
        "topic": np.where(rng.random(n) < 0.05, None, topics),
        "published": days,
        "author": [f"author{i}" for i in range(n)],  # of no use: one per row
    }
)

# %%
# One step from table to design
# -----------------------------
# Of the texts only their style is wanted: lengths, not words.

features = TableFeatures(text=TextFeatures(None, style=True), standardize=True)
model = make_pipeline(features, RidgeCV(np.geomspace(1e-3, 1e3, 13))).fit(table, minutes)
print(model[0].explain())
print(model[-1].certificate_)

# %%
# Which column matters
# --------------------
# ``by_source`` groups coefficients by the column of the table. The style of a text is measured in
# characters and shares, so that effects are compared by how far each column moves the prediction.

X = model[0].transform(table)
X = X.toarray() if hasattr(X, "toarray") else X
moved = {
    source: float(np.std(X[:, model[0].sources_ == source] @ list(group.values())))
    for source, group in model[0].by_source(model[-1].coef_).items()
}
for source, spread in sorted(moved.items(), key=lambda item: -item[1]):
    print(f"{source:<10} moves the prediction by {spread:.2f} minutes (standard deviation)")

# %%
# Predictions for articles left out
# ---------------------------------

predicted = cross_val_predict(model, table, minutes, cv=5)
error = np.sqrt(np.mean((predicted - minutes) ** 2))
print(f"error on articles left out: {error:.2f} minutes; noise alone has 0.15")

fig, ax = plt.subplots(figsize=(6.0, 4.4), layout="constrained")
for topic, colour in zip(["science", "sports", "politics"], ["C0", "C1", "C2"]):
    chosen = topics == topic
    ax.plot(predicted[chosen], minutes[chosen], ".", color=colour, label=topic)
ax.axline((0, 0), slope=1, color="#888888", linewidth=1)
ax.set(xlabel="predicted minutes", ylabel="minutes")
ax.legend(frameon=False)
