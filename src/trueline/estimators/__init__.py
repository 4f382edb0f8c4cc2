"""Estimators: scikit-learn classes that state a problem and keep its solution.

One folder per kind of model; ``shared`` holds what all of them are built from. In: parameters, X
and y. Out: a fitted estimator with its certificate. Users import the classes from ``trueline``
itself.
"""
