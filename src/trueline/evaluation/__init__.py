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

from trueline.evaluation.comparison import compare as compare
from trueline.evaluation.complexity import ComplexityCurve as ComplexityCurve
from trueline.evaluation.complexity import LearningCurve as LearningCurve
from trueline.evaluation.complexity import complexity_curve as complexity_curve
from trueline.evaluation.complexity import learning_curve as learning_curve
from trueline.evaluation.cross_validation import CrossValidation as CrossValidation
from trueline.evaluation.cross_validation import NestedCrossValidation as NestedCrossValidation
from trueline.evaluation.cross_validation import cross_validate as cross_validate
from trueline.evaluation.cross_validation import nested_cross_validate as nested_cross_validate
from trueline.evaluation.leakage import LeakageWarning as LeakageWarning
from trueline.evaluation.report import Comparison as Comparison
