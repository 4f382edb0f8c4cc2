"""Model selection that costs about one pass: fold moments, closed-form leave-one-out.

``cross_validation`` holds folds, grids and scores, ``leave_one_out`` the closed form, ``criteria``
AIC and its relatives, ``stepwise`` the choice of columns. In: a problem, folds and a grid of
strengths. Out: errors on held-out rows for every strength, and criteria.
"""
