"""Pictures of regressions: predictions, bands, outliers, processes, posteriors.

In: a fitted regressor, with X and y where rows are drawn. Out: a display.
"""
