"""Solvers: ways to the minimum, one per file, and the loop that the iterative ones share.

In: a problem, options and a monitor. Out: a Solution with its proof. ``registry`` lists the
solvers, ``base`` says what one is, what things cost and how iterations go, ``transformed`` solves a
problem as another one; the folders are named by method.
"""
