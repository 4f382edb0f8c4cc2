"""Compiled passes over rows, dense and sparse.

In: the arrays of the rows, labels and a rule's numbers. Out: weights, counts and a log, written to
in place; the row whose score is no number, if there is one.
"""
