"""
How good is this translation?
=============================

No reference translation, only the source and what a machine made of it: numbers about the pair,
and a ridge regression. The features of each training pair are made without that pair.
"""

import matplotlib.pyplot as plt
import numpy as np

from trueline import RidgeCV, TranslationFeatures

# %%
# A language and its translation
# ------------------------------
# Generated: words with frequencies as in real languages, each with one or two translations.
# The machine drops words, repeats words and mistranslates rare words more than frequent ones.

rng = np.random.default_rng(2)
size = 600
frequency = 1.0 / np.arange(1, size + 1)
frequency /= frequency.sum()
translations = [[f"t{i}"] if rng.random() < 0.7 else [f"t{i}", f"u{i}"] for i in range(size)]


def translate(words):
    """A translation, and the share of words that need correction."""
    skill = rng.random()
    made, wrong = [], 0
    for word in words:
        chance = rng.random() * (1.5 - skill)
        if chance > 1.2:
            wrong += 1  # dropped
        elif chance > 0.9 - 0.3 * (word > 50):
            made.append(f"t{rng.choice(size, p=frequency)}")
            wrong += 1
        else:
            made.append(str(rng.choice(translations[word])))
            if chance < 0.02:
                made.append(made[-1])  # twice
                wrong += 1
    return " ".join(made), wrong / len(words)


def corpus(n):
    sources = [rng.choice(size, rng.integers(5, 25), p=frequency) for _ in range(n)]
    results = [translate(words) for words in sources]
    pairs = [(" ".join(f"s{w}" for w in s), t) for s, (t, _) in zip(sources, results)]
    return pairs, np.array([wrong for _, wrong in results])


train, y = corpus(1500)
test, y_test = corpus(500)

# %%
# Features that leave their own row out
# -------------------------------------
# ``fit_transform`` describes each pair by what the others teach; ``transform`` of the same pairs
# would find every word in the lexicon, and a model would be misled.

features = TranslationFeatures()
X = features.fit_transform(train)
print(features.explain())
alphas = np.geomspace(0.1, 1e4, 11)
model = RidgeCV(alphas).fit(X, y)
misled = RidgeCV(alphas).fit(features.transform(train), y)
X_test = features.transform(test)


def correlation(fitted):
    return np.corrcoef(fitted.predict(X_test), y_test)[0, 1]


print(f"correlation on new pairs: {correlation(model):.3f}, each row left out of its features")
print(f"                          {correlation(misled):.3f}, each row counted in them")
print(model.certificate_)

# %%
# What tells good translations from bad ones
# ------------------------------------------

names = features.get_feature_names_out()
largest = np.argsort(-np.abs(model.coef_))[:8][::-1]
fig, axes = plt.subplots(1, 2, figsize=(10.0, 3.8), layout="constrained")
axes[0].barh(names[largest], model.coef_[largest], color="C0")
axes[0].set(xlabel="coefficient (of standardised features)")
axes[1].plot(model.predict(X_test), y_test, ".", alpha=0.5)
axes[1].set(xlabel="predicted share to correct", ylabel="share to correct")
