"""Formulas: losses, penalties and kernels restated, and claims about coefficients.

In: names and numbers read from a certificate, and arrays. Out: values, slopes and excesses with
bounds on their rounding, from formulas written down anew.
"""
