"""Regression in the feature space of a kernel: kernel ridge and Gaussian processes.

In: X and a numeric target. Out: dual coefficients, and for processes a predictive deviation; the
mathematics is in ``trueline.gaussian_process``.
"""
