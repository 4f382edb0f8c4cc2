"""Newton's method for losses with curvature: standardised rows, Gram matrices that follow the rows."""
