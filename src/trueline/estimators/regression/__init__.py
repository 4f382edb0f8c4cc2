"""Regression with squared loss, ridge regression and generalised linear models.

Also what their statistics need: standard errors, offsets. In: X and a numeric target. Out:
coefficients of all columns, none of them held at zero.
"""
