"""Newton's method for losses with curvature, on standardised rows.

In: a problem of at most some thousand columns. Out: steps for ``newton/solver.py``: the Hessian,
the length of a step, continuation by smoothed losses where too few rows have curvature.
"""
