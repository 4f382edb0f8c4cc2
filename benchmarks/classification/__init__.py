"""Linear classifiers beside other libraries: what ``python -m benchmarks classification`` does."""
