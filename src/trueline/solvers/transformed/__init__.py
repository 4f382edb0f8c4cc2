"""Solvers that state an easier problem with the same answer, and have it solved by another solver.

Columns brought to one scale, dependent columns left out, targets one by one, wide data in the space
of their rows. In: a problem. Out: the Solution of the original problem, with its proof.
"""
