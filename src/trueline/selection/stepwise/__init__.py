"""Stepwise selection of columns from moments: no step goes back to the rows.

In: moments of the rows, and which columns may move together. Out: the columns of every step and
the criterion there.
"""
