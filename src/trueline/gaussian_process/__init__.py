"""Gaussian processes: covariances, marginal likelihood, its maximum, and inducing points.

=====================  ===========================================================================
module                 holds
=====================  ===========================================================================
``structure``          which kernels are known by formula
``covariance``         covariance matrices and sums of their derivatives, on all threads
``likelihood``         the log marginal likelihood, its gradient and average information
``search``             its maximum: few rows first, then all of them
``inducing``           bounds on it from few inducing points
``kernel_ridge``       kernel ridge regression: all strengths at once, and leave-one-out
``proof``              the certificates of processes
=====================  ===========================================================================

In: rows, targets and a kernel. Out: its parameters, dual coefficients, and the claims of a proof.
"""
