"""Measurements of trueline beside other libraries: ``python -m benchmarks`` lists them."""
