"""Numerical tools without a model: compiled kernels, threads, BLAS, Gram matrices, exact sums.

In: arrays. Out: arrays. Everything else in the package may import from here.
"""
