"""Kernel support vector machines beside other libraries: ``python -m benchmarks kernels``."""
