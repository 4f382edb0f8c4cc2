"""Separability of two classes: what ``python -m benchmarks separability`` measures."""
