"""
Which e-mails are important?
============================

A first classifier reads the words of an e-mail. A second one knows who wrote it and when, and what
the first one says. What it is told about an e-mail must come from a model that has not seen the
answer.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline

from trueline import ChainedClassifiers, LogisticRegression, TableFeatures, TextFeatures

# %%
# A mailbox
# ---------
# Generated. Important are mails about deadlines and contracts from people one knows, in office
# hours more than at night. Most words say nothing, and there are many of them.

rng = np.random.default_rng(1)
chatter = np.array([f"word{i}" for i in range(3000)])
pressing = np.array(["deadline", "contract", "urgent", "invoice", "meeting"])
senders = np.array(["anna", "boss", "bank", "shop", "newsletter"])
known = np.array([1.0, 2.0, 0.5, -1.5, -2.5])


def mailbox(n):
    urgent = rng.poisson(0.7, n)
    sender, hour = rng.integers(0, 5, n), rng.integers(0, 24, n)
    score = 1.5 * urgent + known[sender] + np.where((hour > 7) & (hour < 19), 0.5, -0.5) - 1.0
    important = rng.random(n) < 1 / (1 + np.exp(-2 * score))
    text = [" ".join([*rng.choice(pressing, k), *rng.choice(chatter, 30)]) for k in urgent]
    table = pd.DataFrame({"text": text, "sender": senders[sender], "hour": hour})
    return table, np.where(important, "important", "other")


train, y = mailbox(400)
test, y_test = mailbox(4000)

# %%
# The chain
# ---------
# The first stage has more words than mails: on mails that it has learned from it is always right.

words = make_pipeline(
    make_column_transformer((TextFeatures("binary"), "text")), LogisticRegression(C=10.0)
)
rest = make_pipeline(
    make_column_transformer((TableFeatures(), ["sender", "hour"])), LogisticRegression(C=10.0)
)
chain = ChainedClassifiers([("words", words), ("all", rest)], cv=10).fit(train, y)
print(chain.explain())
print(chain.stages_[-1].classifier.certificate_)

# %%
# What goes wrong without folds
# -----------------------------
# Told by a model that remembers the answers, the second stage learns to trust it blindly.

first = chain.stages_[0].classifier
remembered = first.predict_proba(chain.stages_[0].transformer.transform(train))[:, 1]
design = rest[:-1].fit_transform(train)
naive = LogisticRegression(C=10.0).fit(np.column_stack([design, remembered]), y)
told = chain.stage_outputs(test)
naive_test = np.column_stack([rest[:-1].transform(test), told])

scores = {
    "words alone": np.mean(words.fit(train, y).predict(test) == y_test),
    "sender and hour alone": np.mean(rest.fit(train, y).predict(test) == y_test),
    "both, remembered": np.mean(naive.predict(naive_test) == y_test),
    "both, out of fold": chain.score(test, y_test),
}
for name, score in scores.items():
    print(f"{name:<24}{score:.3f} of new mails right")

# %%
# The two descriptions of the same mails
# --------------------------------------

fig, axes = plt.subplots(1, 2, figsize=(8.0, 3.4), layout="constrained", sharey=True)
bins = np.linspace(0, 1, 21)
for ax, values, title in zip(
    axes, [remembered, chain.out_of_fold_[:, 0]], ["remembered", "out of fold"]
):
    for label, colour in (("important", "C0"), ("other", "C1")):
        ax.hist(values[y == label], bins, color=colour, alpha=0.6, label=label)
    ax.set(title=title, xlabel="what the words are said to say")
axes[0].legend(frameon=False)
