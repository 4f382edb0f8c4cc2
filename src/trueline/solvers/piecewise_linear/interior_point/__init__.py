"""Exact minimisation of piecewise linear losses: interior point, then the vertex."""
