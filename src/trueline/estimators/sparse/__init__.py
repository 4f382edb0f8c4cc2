"""Regression that holds coefficients at zero: lasso, elastic net, groups of columns, several tasks.

Single strengths, paths of strengths and searches by cross-validation. In: X and a numeric target.
Out: sparse coefficients.
"""
