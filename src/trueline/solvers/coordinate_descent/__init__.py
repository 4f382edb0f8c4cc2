"""Coordinate descent on working sets, and exact paths of the lasso and the elastic net.

In: a squared-loss problem with absolute values, or a set of them along strengths and folds. Out: a
Solution each. ``path`` is the working-set loop; on a working set ``gram`` works with its Gram
matrix, ``columns`` with the columns themselves, ``homotopy`` (LARS) from one change of the support
to the next; ``kernels`` has the soft-threshold step.
"""
