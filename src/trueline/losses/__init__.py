"""Losses: convex functions of the score, one formula per file."""

from trueline.losses.base import Loss
from trueline.losses.huber import Huber
from trueline.losses.registry import LOSSES, as_loss
from trueline.losses.squared import Squared

__all__ = ["LOSSES", "Huber", "Loss", "Squared", "as_loss"]
