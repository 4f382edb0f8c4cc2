"""Gaussian processes: covariances, marginal likelihood, its maximum, and inducing points.

=====================  ===========================================================================
module                 holds
=====================  ===========================================================================
``structure``          which kernels are known by formula
``pairs``              compiled loops over pairs of rows
``covariance``         covariance matrices and sums of their derivatives, on all threads
``likelihood``         the log marginal likelihood, its gradient and average information
``search``             its maximum: few rows first, then all of them
``inducing``           bounds on it from few inducing points
``memory``             what a fit would need, said before it is allocated
=====================  ===========================================================================
"""
