"""Best subset selection: the best support of k columns, with a proof.

``statement`` forms the problem, ``exchange`` finds good supports, ``search`` proves by branch and
bound that there is no better one, ``relaxation`` and ``diagonal`` give the lower bounds,
``rounding`` says what they are worth in double precision, ``sequence`` goes through several sizes,
``path`` keeps what came out, ``proof`` certifies it.
"""

from trueline.best_subset.node import Quadratic
from trueline.best_subset.path import SubsetPath, carried_down
from trueline.best_subset.proof import certify_search
from trueline.best_subset.sequence import Answer, best_subsets
from trueline.best_subset.statement import Statement, state

__all__ = [
    "Answer",
    "Quadratic",
    "Statement",
    "SubsetPath",
    "best_subsets",
    "carried_down",
    "certify_search",
    "state",
]
