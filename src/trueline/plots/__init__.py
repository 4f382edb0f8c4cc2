"""Pictures of fits: how a solver got there, which columns matter, how well a model predicts.

Each picture is a display in scikit-learn's manner: made from an estimator or from plain numbers,
drawn by ``plot(ax=None)``, kept in ``ax_`` and ``figure_``. Matplotlib is imported when something
is drawn (``pip install 'trueline[plot]'``).

=====================================  =============================================================
module                                 draws
=====================================  =============================================================
``trace``                              objective and gap along the iterations
``coefficients``                       coefficients as bars
``regression.fit``                     predictions against the truth
``model_selection.path``               coefficients against the strength of a penalty
``model_selection.cv_curve``           errors on held-out rows against the strength
``model_selection.subsets``            a criterion against the number of columns
``model_selection.steps``              a criterion along the steps of a selection
``model_selection.comparison``         scores of several models on the same folds
``model_selection.complexity``         errors against complexity, or against the number of rows
``losses``                             loss functions and their derivatives
``regression.outliers``                lines that different losses draw through data with outliers
``regression.quantile_fan``            quantile lines with shaded bands
``regression.alternation``             the band of the smallest largest error, and its rows
``regression.process``                 a Gaussian process with bands, and its length scales
``regression.posterior``               the posterior of a line, updated point by point
``classification.boundary``            regions of a classifier, its boundary and mistakes
``classification.margins``             the sigmoid, and losses of classification
``classification.confusion``           which classes are taken for which
``classification.class_coefficients``  the coefficients of every class, as a map or as images
``classification.mistakes``            mistakes of an online learner so far, and their bound
``classification.updates``             an animation of a perceptron's corrections
``views``                              (rows of many columns in one or two coordinates)
``fitted``                             (what the functions are given: the fitted object first)
``style``                              (what they share)
=====================================  =============================================================
"""

from trueline.plots.classification.boundary import BoundaryDisplay, plot_boundary
from trueline.plots.classification.class_coefficients import (
    ClassCoefficientDisplay,
    plot_class_coefficients,
)
from trueline.plots.classification.confusion import ConfusionDisplay, plot_confusion
from trueline.plots.classification.margins import MarginLossDisplay, plot_margin_losses
from trueline.plots.classification.mistakes import MistakeDisplay, plot_mistakes
from trueline.plots.classification.updates import UpdateAnimation, animate_updates
from trueline.plots.coefficients import CoefficientDisplay, plot_coefficients
from trueline.plots.losses import LossDisplay, plot_losses
from trueline.plots.model_selection.comparison import ComparisonDisplay
from trueline.plots.model_selection.complexity import ComplexityDisplay
from trueline.plots.model_selection.cv_curve import CVCurveDisplay, plot_cv_curve
from trueline.plots.model_selection.path import PathDisplay, plot_path
from trueline.plots.model_selection.steps import StepsDisplay, plot_steps
from trueline.plots.model_selection.subsets import SubsetDisplay, plot_subsets
from trueline.plots.regression.alternation import AlternationDisplay, plot_alternation
from trueline.plots.regression.fit import FitDisplay, plot_fit
from trueline.plots.regression.outliers import OutlierDisplay, plot_outliers
from trueline.plots.regression.posterior import PosteriorDisplay, plot_posterior
from trueline.plots.regression.process import (
    LengthScaleDisplay,
    ProcessDisplay,
    plot_length_scales,
    plot_process,
)
from trueline.plots.regression.quantile_fan import QuantileFanDisplay, plot_quantile_fan
from trueline.plots.trace import TraceDisplay, plot_trace

__all__ = [
    "AlternationDisplay",
    "BoundaryDisplay",
    "CVCurveDisplay",
    "ClassCoefficientDisplay",
    "CoefficientDisplay",
    "ComparisonDisplay",
    "ComplexityDisplay",
    "ConfusionDisplay",
    "FitDisplay",
    "LengthScaleDisplay",
    "LossDisplay",
    "MarginLossDisplay",
    "MistakeDisplay",
    "OutlierDisplay",
    "PathDisplay",
    "PosteriorDisplay",
    "ProcessDisplay",
    "QuantileFanDisplay",
    "StepsDisplay",
    "SubsetDisplay",
    "TraceDisplay",
    "UpdateAnimation",
    "animate_updates",
    "plot_alternation",
    "plot_boundary",
    "plot_class_coefficients",
    "plot_coefficients",
    "plot_confusion",
    "plot_cv_curve",
    "plot_fit",
    "plot_length_scales",
    "plot_losses",
    "plot_margin_losses",
    "plot_mistakes",
    "plot_outliers",
    "plot_path",
    "plot_posterior",
    "plot_process",
    "plot_quantile_fan",
    "plot_steps",
    "plot_subsets",
    "plot_trace",
]
