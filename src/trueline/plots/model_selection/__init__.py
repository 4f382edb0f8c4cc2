"""Pictures of choices: paths, errors on held-out rows, steps, subsets, comparisons.

In: a path, a search or a comparison. Out: a display.
"""
