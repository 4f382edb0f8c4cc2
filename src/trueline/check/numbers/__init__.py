"""Numbers: sums with bounds on their rounding, rational numbers, rows, Gram matrices.

In: arrays and rows, dense or sparse. Out: sums, products and factors, each with a bound on its
error.
"""
