"""Regression that outliers cannot spoil, or that answers for the worst row.

Huber's loss with its scale, quantiles and absolute deviations, the largest error. In: X and a
numeric target. Out: coefficients, of several quantiles where these are asked for.
"""
