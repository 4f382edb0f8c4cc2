"""Model selection that costs about one pass: fold moments, closed-form leave-one-out.

In: a problem, folds and a grid of strengths. Out: errors on held-out rows for every strength, and
criteria. Estimators that choose their strength use it.
"""
