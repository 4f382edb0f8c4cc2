"""Newton's method for losses with curvature, on standardised rows."""
