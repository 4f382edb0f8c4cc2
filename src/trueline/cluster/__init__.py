"""Rows on the workers of a Dask cluster: fits go to the rows, and sums come back.

In: Dask arrays and DataFrames, as fits and predictions are given them. Out: to solvers one more
design (:class:`~trueline.cluster.rows.ClusterRows`), and predictions that are Dask collections.
"""

from trueline.cluster.collections import on_cluster
from trueline.cluster.lazy import blockwise

__all__ = ["blockwise", "on_cluster"]
