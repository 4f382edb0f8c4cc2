"""Classifiers that learn row by row: perceptrons, passive-aggressive, online logistic regression.

In: rows at once, in batches or as a stream. Out: a model after every row, with a bound on its
mistakes; the update rules are in ``trueline.online``.
"""
