"""Losses: convex functions of the score, one family per file.

In: scores and targets. Out: values, derivatives, curvatures, conjugates, and what a loss can do
(``capabilities``), from which the pairing with solvers follows.
"""

from trueline.losses.base import Loss as Loss
from trueline.losses.base import LossProperties as LossProperties
from trueline.losses.deviance import Gamma as Gamma
from trueline.losses.deviance import LocalDeviance as LocalDeviance
from trueline.losses.deviance import Poisson as Poisson
from trueline.losses.deviance import Tweedie as Tweedie
from trueline.losses.epsilon_insensitive import EpsilonInsensitive as EpsilonInsensitive
from trueline.losses.epsilon_insensitive import (
    SquaredEpsilonInsensitive as SquaredEpsilonInsensitive,
)
from trueline.losses.hinge import CrammerSinger as CrammerSinger
from trueline.losses.hinge import HardMargin as HardMargin
from trueline.losses.hinge import Hinge as Hinge
from trueline.losses.hinge import SquaredHinge as SquaredHinge
from trueline.losses.hinge import ZeroOne as ZeroOne
from trueline.losses.logistic import Logistic as Logistic
from trueline.losses.logistic import Softmax as Softmax
from trueline.losses.perceptron import PerceptronLoss as PerceptronLoss
from trueline.losses.quantile import Absolute as Absolute
from trueline.losses.quantile import MaximumError as MaximumError
from trueline.losses.quantile import OrderedQuantiles as OrderedQuantiles
from trueline.losses.quantile import Quantile as Quantile
from trueline.losses.registry import LOSSES as LOSSES
from trueline.losses.registry import as_loss as as_loss
from trueline.losses.smoothed import LogSumExp as LogSumExp
from trueline.losses.smoothed import Smoothed as Smoothed
from trueline.losses.smoothed import smoothed as smoothed
from trueline.losses.squared import Huber as Huber
from trueline.losses.squared import Squared as Squared
