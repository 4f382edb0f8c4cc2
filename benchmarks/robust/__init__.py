"""Robust regression beside other libraries: what ``python -m benchmarks robust`` measures."""
