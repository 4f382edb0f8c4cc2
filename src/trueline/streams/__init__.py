"""Rows that are larger than memory: read batch by batch, in as many passes as a fit needs.

In: files, arrays, or a function that gives batches. Out: :class:`~trueline.streams.Batches`, which
takes the place of X and y in a fit. To solvers it is one more design.
"""

from trueline.streams.batches import Batches
from trueline.streams.batches import open_rows as open

__all__ = ["Batches", "open"]
