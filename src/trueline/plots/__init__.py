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
``shared``        (what they share)
================  ==================================================================================

In: a fitted object, with X and y where rows are drawn. Out: a display.
"""

from trueline.plots.bands import AlternationDisplay as AlternationDisplay
from trueline.plots.bands import QuantileFanDisplay as QuantileFanDisplay
from trueline.plots.bands import plot_alternation as plot_alternation
from trueline.plots.bands import plot_quantile_fan as plot_quantile_fan
from trueline.plots.boundary import BoundaryDisplay as BoundaryDisplay
from trueline.plots.boundary import plot_boundary as plot_boundary
from trueline.plots.coefficients import ClassCoefficientDisplay as ClassCoefficientDisplay
from trueline.plots.coefficients import CoefficientDisplay as CoefficientDisplay
from trueline.plots.coefficients import plot_class_coefficients as plot_class_coefficients
from trueline.plots.coefficients import plot_coefficients as plot_coefficients
from trueline.plots.columns import StepsDisplay as StepsDisplay
from trueline.plots.columns import SubsetDisplay as SubsetDisplay
from trueline.plots.columns import plot_steps as plot_steps
from trueline.plots.columns import plot_subsets as plot_subsets
from trueline.plots.losses import LossDisplay as LossDisplay
from trueline.plots.losses import MarginLossDisplay as MarginLossDisplay
from trueline.plots.losses import OutlierDisplay as OutlierDisplay
from trueline.plots.losses import plot_losses as plot_losses
from trueline.plots.losses import plot_margin_losses as plot_margin_losses
from trueline.plots.losses import plot_outliers as plot_outliers
from trueline.plots.online import MistakeDisplay as MistakeDisplay
from trueline.plots.online import UpdateAnimation as UpdateAnimation
from trueline.plots.online import animate_updates as animate_updates
from trueline.plots.online import plot_mistakes as plot_mistakes
from trueline.plots.path import CVCurveDisplay as CVCurveDisplay
from trueline.plots.path import PathDisplay as PathDisplay
from trueline.plots.path import plot_cv_curve as plot_cv_curve
from trueline.plots.path import plot_path as plot_path
from trueline.plots.posterior import LengthScaleDisplay as LengthScaleDisplay
from trueline.plots.posterior import PosteriorDisplay as PosteriorDisplay
from trueline.plots.posterior import ProcessDisplay as ProcessDisplay
from trueline.plots.posterior import plot_length_scales as plot_length_scales
from trueline.plots.posterior import plot_posterior as plot_posterior
from trueline.plots.posterior import plot_process as plot_process
from trueline.plots.predictions import ConfusionDisplay as ConfusionDisplay
from trueline.plots.predictions import FitDisplay as FitDisplay
from trueline.plots.predictions import plot_confusion as plot_confusion
from trueline.plots.predictions import plot_fit as plot_fit
from trueline.plots.scores import ComparisonDisplay as ComparisonDisplay
from trueline.plots.scores import ComplexityDisplay as ComplexityDisplay
from trueline.plots.textbook.balls import BallDisplay as BallDisplay
from trueline.plots.textbook.balls import plot_balls as plot_balls
from trueline.plots.textbook.curves import BumpDisplay as BumpDisplay
from trueline.plots.textbook.curves import DegreeDisplay as DegreeDisplay
from trueline.plots.textbook.curves import plot_bumps as plot_bumps
from trueline.plots.textbook.curves import plot_degrees as plot_degrees
from trueline.plots.textbook.hulls import HullDisplay as HullDisplay
from trueline.plots.textbook.hulls import plot_hulls as plot_hulls
from trueline.plots.trace import DescentDisplay as DescentDisplay
from trueline.plots.trace import TraceDisplay as TraceDisplay
from trueline.plots.trace import plot_descent as plot_descent
from trueline.plots.trace import plot_trace as plot_trace

__all__ = sorted(name for name in globals() if name.startswith(("plot_", "animate_")))
__all__ += sorted(name for name in globals() if name.endswith(("Display", "Animation")))
