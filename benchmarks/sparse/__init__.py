"""Sparse regression beside other libraries: what ``python -m benchmarks sparse`` measures."""
