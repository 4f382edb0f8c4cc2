"""Grids of settings: where they come from, their fits on every fold, and the best of them.

In: a model, data with folds, and a grid or none. Out: scores of every setting, and the choice.
"""
