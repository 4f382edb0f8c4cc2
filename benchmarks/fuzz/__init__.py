"""Random problems against independent references: ``python -m benchmarks.fuzz FAMILY --fits N``."""
