"""Least squares on some of the columns: best subsets, steps forward and backward.

In: X, a target and how many columns are wanted. Out: the chosen columns and the fit on them; for
the best subset also a proof that no better one exists.
"""
