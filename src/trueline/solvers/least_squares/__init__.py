"""Least squares with a squared penalty or none, and with coefficients that may not be negative.

In: a problem with the squared loss. Out: a Solution, proven from the residual of the normal
equations. Direct methods (QR, SVD, Cholesky, the kernel form) and conjugate gradients (in
``krylov``); ``normal_equations`` holds what they share.
"""
