"""How far estimated coefficients may be from the truth: standard errors, tests, intervals."""

from trueline.inference.quantile import quantile_covariance
from trueline.inference.table import CoefficientTable, fisher_covariance

__all__ = ["CoefficientTable", "fisher_covariance", "quantile_covariance"]
