"""Honest evaluation: scores on rows that a model has not seen, and comparisons of models by them.

=====================  ==========================================================================
module                 holds
=====================  ==========================================================================
``cross_validation``   scores of one model on folds, by the cheapest exact way; nested
``comparison``         many models on the same folds; is a difference more than luck?
``report``             the result of a comparison: a table, a picture, a DataFrame
``complexity``         errors against complexity, or against the number of rows
``leave_one_out``      leave-one-out without refitting
``leakage``            columns that give the target away
``task``               data, folds, weights and scorers of an evaluation
``candidates``         the models that are compared if none are named, with their grids
``grid_fits``          one model for all settings, fitted to the training rows of a fold
``grid_search``        scores of all settings, and the best of them
=====================  ==========================================================================

In: a model or none, data and folds. Out: scores of every fold, and what they allow to say.
"""

from trueline.evaluation.comparison import compare
from trueline.evaluation.complexity import (
    ComplexityCurve,
    LearningCurve,
    complexity_curve,
    learning_curve,
)
from trueline.evaluation.cross_validation import (
    CrossValidation,
    NestedCrossValidation,
    cross_validate,
    nested_cross_validate,
)
from trueline.evaluation.leakage import LeakageWarning
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
