"""Coordinate descent on the dual of losses with a squared penalty.

In: a problem with a squared penalty, mostly on sparse rows: hinges, epsilon-insensitive losses,
logistic loss (whose dual is an entropy). Out: a Solution, proven by its dual point.
"""
