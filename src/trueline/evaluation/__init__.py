"""Honest evaluation: scores on rows that a model has not seen, and comparisons of models by them."""

from trueline.evaluation.comparison import compare
from trueline.evaluation.cross_validation import CrossValidation, cross_validate
from trueline.evaluation.leakage import LeakageWarning
from trueline.evaluation.report import Comparison

__all__ = ["Comparison", "CrossValidation", "LeakageWarning", "compare", "cross_validate"]
