"""Losses: convex functions of the score, one formula per file."""

from trueline.losses.base import Loss
from trueline.losses.epsilon_insensitive import EpsilonInsensitive, SquaredEpsilonInsensitive
from trueline.losses.huber import Huber
from trueline.losses.maximum_error import MaximumError
from trueline.losses.quantile import Absolute, OrderedQuantiles, Quantile
from trueline.losses.registry import LOSSES, as_loss
from trueline.losses.squared import Squared
from trueline.losses.zero_one import ZeroOne

__all__ = [
    "LOSSES",
    "Absolute",
    "EpsilonInsensitive",
    "Huber",
    "Loss",
    "OrderedQuantiles",
    "MaximumError",
    "Quantile",
    "Squared",
    "ZeroOne",
    "SquaredEpsilonInsensitive",
    "as_loss",
]
