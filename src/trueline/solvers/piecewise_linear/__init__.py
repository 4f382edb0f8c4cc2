"""Piecewise linear losses: absolute error, quantiles, epsilon-insensitive, hinge.

In: a problem with such a loss. Out: a Solution. ``interior_point`` is exact, ``highs`` states the
linear program to HiGHS, ``smoothed`` is the textbook's smoothing.
"""
