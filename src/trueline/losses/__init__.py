"""Losses: convex functions of the score, one family per file.

In: scores and targets. Out: values, derivatives, curvatures, conjugates, and what a loss can do
(``capabilities``), from which the pairing with solvers follows.
"""

from trueline.losses.base import Loss, LossProperties
from trueline.losses.deviance import Gamma, LocalDeviance, Poisson, Tweedie
from trueline.losses.epsilon_insensitive import (
    EpsilonInsensitive,
    SquaredEpsilonInsensitive,
)
from trueline.losses.hinge import CrammerSinger, HardMargin, Hinge, SquaredHinge, ZeroOne
from trueline.losses.logistic import Logistic, Softmax
from trueline.losses.perceptron import PerceptronLoss
from trueline.losses.quantile import Absolute, MaximumError, OrderedQuantiles, Quantile
from trueline.losses.registry import LOSSES, as_loss
from trueline.losses.smoothed import LogSumExp, Smoothed, smoothed
from trueline.losses.squared import Huber, Squared

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
    "LogSumExp",
    "Logistic",
    "Loss",
    "LossProperties",
    "OrderedQuantiles",
    "MaximumError",
    "PerceptronLoss",
    "Poisson",
    "Quantile",
    "Smoothed",
    "Softmax",
    "Squared",
    "ZeroOne",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "Tweedie",
    "as_loss",
    "smoothed",
]
