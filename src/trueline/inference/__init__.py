"""How far estimated coefficients may be from the truth: standard errors, tests, intervals.

In: a fitted model and its rows. Out: covariances of coefficients, tests and intervals.
"""

from trueline.inference.quantile import quantile_covariance
from trueline.inference.table import CoefficientTable, fisher_covariance

__all__ = ["CoefficientTable", "fisher_covariance", "quantile_covariance"]
