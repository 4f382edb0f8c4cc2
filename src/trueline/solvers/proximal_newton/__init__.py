"""Proximal Newton: a smooth loss with absolute values, squares or bounds on the coefficients.

In comes a Problem, out goes a Solution with its proof. A step minimises a quadratic model of the
loss plus the penalty: from a Gram matrix (``gram``), or from the columns of a working set
(``columns``, with the quadratic ``models``).
"""
