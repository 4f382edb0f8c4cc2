"""Losses of numeric targets, one formula per file.

In: scores and targets. Out: values, derivatives, conjugates, and what a loss can do.
"""
