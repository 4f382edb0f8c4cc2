"""Newton's method with steps found by conjugate gradients, for many coefficients."""
