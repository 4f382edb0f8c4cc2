"""Exact minimisation of piecewise linear losses: interior point, then the vertex.

In: a problem with such a loss, of one target or several that may not cross. Out: a Solution at a
vertex, and multipliers of the kinks that prove it.
"""
