"""Numbers: sums with bounds on their rounding, rational numbers, rows, Gram matrices."""
