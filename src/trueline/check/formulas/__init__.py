"""Formulas: losses, penalties and kernels restated, and claims about coefficients."""
