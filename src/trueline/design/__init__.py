"""Design matrices behind a few products: dense, sparse, implicitly standardised.

In: an array, a sparse matrix, or another design. Out: products with the matrix and its transpose,
blocks of rows and columns, and bounds on the rounding of products. Solvers ask nothing else of
data.
"""

from __future__ import annotations

from trueline.design.base import Accuracy, Design, SecondMoments
from trueline.design.dense import DenseDesign
from trueline.design.sparse import SparseDesign
from trueline.design.storage import as_design, as_suitable_design
from trueline.design.views import AugmentedDesign, StandardizedDesign

__all__ = [
    "Accuracy",
    "AugmentedDesign",
    "DenseDesign",
    "Design",
    "SecondMoments",
    "SparseDesign",
    "StandardizedDesign",
    "as_design",
    "as_suitable_design",
]
