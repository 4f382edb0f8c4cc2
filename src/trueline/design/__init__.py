"""Design matrices behind a few products: dense, sparse, implicitly standardised.

In: an array, a sparse matrix, or another design. Out: products with the matrix and its transpose,
blocks of rows and columns, and bounds on the rounding of products. Solvers ask nothing else of
data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from trueline.design.base import Accuracy, Design, SecondMoments
from trueline.design.dense import DenseDesign
from trueline.design.sparse import SparseDesign
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
]


def as_design(X: Any) -> Design:
    """Wrap an array or a sparse matrix; a design is returned as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design import as_design
    >>> as_design(np.ones((3, 2))).shape
    (3, 2)
    """
    if isinstance(X, Design):
        return X
    if sp.issparse(X):
        return SparseDesign(X)
    X = np.asarray(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return DenseDesign(X)
