"""Penalties: convex functions of the coefficients, one family per file.

In: coefficients and strengths. Out: values, proximal steps, conjugates, and what a penalty can do
(``capabilities``), from which the pairing with solvers follows.
"""

from trueline.penalties.base import NoPenalty as NoPenalty
from trueline.penalties.base import Penalty as Penalty
from trueline.penalties.bounded import Bounded as Bounded
from trueline.penalties.bounded import NonNegative as NonNegative
from trueline.penalties.elastic_net import L1 as L1
from trueline.penalties.elastic_net import L2 as L2
from trueline.penalties.elastic_net import ElasticNet as ElasticNet
from trueline.penalties.group import Group as Group
from trueline.penalties.group import MultiTask as MultiTask
from trueline.penalties.registry import PENALTIES as PENALTIES
from trueline.penalties.registry import as_penalty as as_penalty
