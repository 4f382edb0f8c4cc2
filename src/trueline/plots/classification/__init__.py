"""Pictures of classifiers: boundaries, confusions, margins, coefficients, mistakes.

In: a fitted classifier, with X and y where rows are drawn. Out: a display.
"""
