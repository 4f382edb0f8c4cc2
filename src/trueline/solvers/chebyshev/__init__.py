"""Solvers of the maximum error: exchange of rows, the linear program, and the smoothed form."""
