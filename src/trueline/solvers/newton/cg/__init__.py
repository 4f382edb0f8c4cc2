"""Newton's method with steps found by conjugate gradients, for many coefficients.

In: a problem with a smooth loss and a squared penalty. Out: a Solution, proven by curvature or by
a dual point.
"""
