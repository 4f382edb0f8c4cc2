"""Sequential minimal optimisation: the dual of support vector machines.

In: labels or targets and a kernel's matrix by blocks. Out: multipliers, and how far they are from
the optimum.
"""
