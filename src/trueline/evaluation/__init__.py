"""Honest evaluation: scores on rows that a model has not seen, and comparisons of models by them.

=====================  ==========================================================================
module                 holds
=====================  ==========================================================================
``cross_validation``   scores of one model on folds, by the cheapest exact way
``comparison``         many models on the same folds; is a difference more than luck?
``nested``             the choice of hyperparameters validated with the rest
``complexity``         errors against complexity, or against the number of rows
``leave_one_out``      leave-one-out without refitting
``leakage``            columns that give the target away
``grids``               grids of settings, their fits on every fold, and the best of them
=====================  ==========================================================================
"""

from trueline.evaluation.comparison import compare
from trueline.evaluation.complexity import (
    ComplexityCurve,
    LearningCurve,
    complexity_curve,
    learning_curve,
)
from trueline.evaluation.cross_validation import CrossValidation, cross_validate
from trueline.evaluation.leakage import LeakageWarning
from trueline.evaluation.nested import NestedCrossValidation, nested_cross_validate
from trueline.evaluation.report import Comparison

__all__ = [
    "Comparison",
    "ComplexityCurve",
    "CrossValidation",
    "LeakageWarning",
    "LearningCurve",
    "NestedCrossValidation",
    "compare",
    "complexity_curve",
    "cross_validate",
    "learning_curve",
    "nested_cross_validate",
]
