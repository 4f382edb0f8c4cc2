"""Penalties: convex functions of the coefficients, one family per file.

In: coefficients and strengths. Out: values, proximal steps, conjugates, and what a penalty can do
(``capabilities``), from which the pairing with solvers follows.
"""

from trueline.penalties.base import NoPenalty, Penalty
from trueline.penalties.bounded import Bounded, NonNegative
from trueline.penalties.elastic_net import L1, L2, ElasticNet
from trueline.penalties.group import Group, MultiTask
from trueline.penalties.registry import PENALTIES, as_penalty

__all__ = [
    "L1",
    "L2",
    "PENALTIES",
    "Bounded",
    "ElasticNet",
    "Group",
    "MultiTask",
    "NoPenalty",
    "NonNegative",
    "Penalty",
    "as_penalty",
]
