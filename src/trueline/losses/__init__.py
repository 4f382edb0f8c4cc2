"""Losses: convex functions of the score, one formula per file."""

from trueline.losses.base import Loss
from trueline.losses.crammer_singer import CrammerSinger
from trueline.losses.deviance import Gamma, Poisson, Tweedie
from trueline.losses.epsilon_insensitive import EpsilonInsensitive, SquaredEpsilonInsensitive
from trueline.losses.hard_margin import HardMargin
from trueline.losses.hinge import Hinge, SquaredHinge
from trueline.losses.huber import Huber
from trueline.losses.local_deviance import LocalDeviance
from trueline.losses.logistic import Logistic
from trueline.losses.maximum_error import MaximumError
from trueline.losses.quantile import Absolute, OrderedQuantiles, Quantile
from trueline.losses.registry import LOSSES, as_loss
from trueline.losses.softmax import Softmax
from trueline.losses.squared import Squared
from trueline.losses.zero_one import ZeroOne

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
