"""Best subset selection: the best support of k columns, with a proof.

``exchange`` finds good supports, ``search`` proves by branch and bound that there is no better
one, ``relaxation`` and ``diagonal`` give the lower bounds, ``sequence`` puts these together.
"""

from trueline.subset.node import Quadratic
from trueline.subset.search import Found, search
from trueline.subset.sequence import Answer, best_subsets, distinct_columns

__all__ = ["Answer", "Found", "Quadratic", "best_subsets", "distinct_columns", "search"]
