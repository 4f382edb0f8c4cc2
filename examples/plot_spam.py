"""
Which words make a message spam?
================================

Messages become counts of words, a sparse matrix with one column per word. Logistic regression with
an L1 penalty keeps the words that matter, and its answer comes with a proof. The
messages here are made up by a small grammar, so that the page needs no data.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from trueline import LogisticRegression
from trueline.plots import plot_coefficients, plot_confusion, plot_margin_losses

# %%
# Messages
# --------
# Two thirds of the words are everyday ones. The others come from a list that depends on what
# the message is about; some words are in both lists.

rng = np.random.default_rng(0)
EVERYDAY = ["the", "a", "to", "you", "is", "it", "for", "on", "we", "will", "be", "with", "my"]
SPAM = ["free", "prize", "winner", "claim", "cash", "urgent", "offer", "call", "text", "stop"]
HAM = ["lunch", "home", "later", "sorry", "love", "dinner", "bus", "thanks", "call", "text", "mum"]


def message(is_spam):
    words = SPAM if is_spam else HAM
    length = 4 + rng.poisson(8)
    return " ".join(rng.choice(words if rng.random() < 0.35 else EVERYDAY) for _ in range(length))


y = np.where(rng.random(4000) < 0.2, "spam", "ham")
messages = [message(label == "spam") for label in y]
print(messages[0], "|", y[0])

# %%
# One column per word
# -------------------

counter = CountVectorizer(token_pattern=r"\w+")
X = counter.fit_transform(messages)
train, test = slice(0, 3000), slice(3000, None)
print(f"{X.shape[0]} messages, {X.shape[1]} words, {X.nnz / X.shape[0]:.1f} words a message")

# %%
# Absolute values leave words out
# -------------------------------
# The certificate says how far from the best coefficients these can be, and holds against the data.

model = LogisticRegression(l1_ratio=1, C=0.1).fit(X[train], y[train])
print(f"{np.count_nonzero(model.coef_)} of {X.shape[1]} words are kept")
print(model.certificate_)
assert model.verify(X[train], y[train])
plot_coefficients(model, names=counter.get_feature_names_out(), top=14)

# %%
# Words on the right speak for spam. "call" and "text" are in both lists and say little.
#
# Mistakes on messages that were not fitted
# -----------------------------------------

plot_confusion(model, X[test], y[test])

# %%
# Why logarithms of odds
# ----------------------
# The score of a message is the sum of its words' coefficients, and the sigmoid makes a probability
# of it. The logistic loss is minus the logarithm of the probability of the true class. It goes on
# falling beyond the margin where the hinge is content: every message has a say, those near the
# boundary the loudest.

plot_margin_losses()

# %%
# Too good to be true
# -------------------
# A word that occurs in spam only would get an infinite coefficient without a penalty. The fit says
# so, and Firth's correction gives a finite one, with a standard error.

few = X[:60, counter.vocabulary_["free"]].toarray(), y[:60]
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    LogisticRegression(C=np.inf).fit(*few)
print(*(str(warning.message)[:110] for warning in told), sep="\n")
print(LogisticRegression(penalty="firth").fit(*few).standard_errors(*few))
plt.show()
