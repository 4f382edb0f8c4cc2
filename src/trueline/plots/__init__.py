"""Pictures of fits: how a solver got there, which columns matter, how well a model predicts.

Each picture is a display in scikit-learn's manner: made from an estimator or from plain numbers,
drawn by ``plot(ax=None)``, kept in ``ax_`` and ``figure_``. Matplotlib is imported when something
is drawn (``pip install 'trueline[plot]'``).

================  ==================================================================================
module            draws
================  ==================================================================================
``trace``         objective and gap along the iterations; the way of a descent
``coefficients``  coefficients as bars; those of every class as a map or as images
``predictions``   predictions against the truth, and which classes are taken for which
``path``          coefficients, and errors on held-out rows, against the strength of a penalty
``columns``       a criterion along the steps of a selection, or against the number of columns
``scores``        several models on the same folds; errors against complexity or number of rows
``losses``        losses and derivatives, of residuals and margins; their lines through outliers
``bands``         quantile lines with bands, and the band of the smallest largest error
``posterior``     the posterior of a line, and of a Gaussian process with its length scales
``boundary``      regions of a classifier, its boundary and mistakes
``online``        an online learner's mistakes with their bound, and its corrections one by one
``textbook``      balls of norms, hulls of classes, radial bumps, polynomials of several degrees
``views``         (rows of many columns in one or two coordinates)
``style``         (what they share)
================  ==================================================================================

In: a fitted object, with X and y where rows are drawn. Out: a display.
"""

from trueline.plots.bands import (
    AlternationDisplay,
    QuantileFanDisplay,
    plot_alternation,
    plot_quantile_fan,
)
from trueline.plots.boundary import BoundaryDisplay, plot_boundary
from trueline.plots.coefficients import (
    ClassCoefficientDisplay,
    CoefficientDisplay,
    plot_class_coefficients,
    plot_coefficients,
)
from trueline.plots.columns import StepsDisplay, SubsetDisplay, plot_steps, plot_subsets
from trueline.plots.losses import (
    LossDisplay,
    MarginLossDisplay,
    OutlierDisplay,
    plot_losses,
    plot_margin_losses,
    plot_outliers,
)
from trueline.plots.online import MistakeDisplay, UpdateAnimation, animate_updates, plot_mistakes
from trueline.plots.path import CVCurveDisplay, PathDisplay, plot_cv_curve, plot_path
from trueline.plots.posterior import (
    LengthScaleDisplay,
    PosteriorDisplay,
    ProcessDisplay,
    plot_length_scales,
    plot_posterior,
    plot_process,
)
from trueline.plots.predictions import ConfusionDisplay, FitDisplay, plot_confusion, plot_fit
from trueline.plots.scores import ComparisonDisplay, ComplexityDisplay
from trueline.plots.textbook.balls import BallDisplay, plot_balls
from trueline.plots.textbook.curves import BumpDisplay, DegreeDisplay, plot_bumps, plot_degrees
from trueline.plots.textbook.hulls import HullDisplay, plot_hulls
from trueline.plots.trace import DescentDisplay, TraceDisplay, plot_descent, plot_trace

__all__ = [
    "AlternationDisplay",
    "BallDisplay",
    "BoundaryDisplay",
    "BumpDisplay",
    "CVCurveDisplay",
    "ClassCoefficientDisplay",
    "CoefficientDisplay",
    "ComparisonDisplay",
    "ComplexityDisplay",
    "ConfusionDisplay",
    "DegreeDisplay",
    "DescentDisplay",
    "FitDisplay",
    "HullDisplay",
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
    "plot_balls",
    "plot_boundary",
    "plot_bumps",
    "plot_class_coefficients",
    "plot_coefficients",
    "plot_confusion",
    "plot_cv_curve",
    "plot_degrees",
    "plot_descent",
    "plot_fit",
    "plot_hulls",
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
