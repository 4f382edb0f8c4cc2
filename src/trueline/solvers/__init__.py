"""Solvers: ways to the minimum, one per file, and the loop that the iterative ones share."""
