"""Honest evaluation: scores on rows that a model has not seen, and comparisons of models by them."""

from trueline.evaluation.cross_validation import CrossValidation, cross_validate

__all__ = ["CrossValidation", "cross_validate"]
