"""Losses: convex functions of the score, one formula per file.

In: scores and targets. Out: values, derivatives, curvatures, conjugates, and what a loss can do
(``capabilities``), from which the pairing with solvers follows.
"""

from trueline.losses.base import Loss
from trueline.losses.classification.crammer_singer import CrammerSinger
from trueline.losses.classification.hard_margin import HardMargin
from trueline.losses.classification.hinge import Hinge, SquaredHinge
from trueline.losses.classification.logistic import Logistic
from trueline.losses.classification.softmax import Softmax
from trueline.losses.classification.zero_one import ZeroOne
from trueline.losses.registry import LOSSES, as_loss
from trueline.losses.regression.deviance import Gamma, Poisson, Tweedie
from trueline.losses.regression.epsilon_insensitive import (
    EpsilonInsensitive,
    SquaredEpsilonInsensitive,
)
from trueline.losses.regression.huber import Huber
from trueline.losses.regression.local_deviance import LocalDeviance
from trueline.losses.regression.maximum_error import MaximumError
from trueline.losses.regression.quantile import Absolute, OrderedQuantiles, Quantile
from trueline.losses.regression.squared import Squared

__all__ = [
    "LOSSES",
    "Absolute",
    "CrammerSinger",
    "EpsilonInsensitive",
    "Gamma",
    "HardMargin",
    "Hinge",
    "Huber",
    "LocalDeviance",
    "Logistic",
    "Loss",
    "OrderedQuantiles",
    "MaximumError",
    "Poisson",
    "Quantile",
    "Softmax",
    "Squared",
    "ZeroOne",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "Tweedie",
    "as_loss",
]
