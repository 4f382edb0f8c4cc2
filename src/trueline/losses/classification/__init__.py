"""Losses of labels, one formula per file.

In: scores and labels (-1 and +1, or class numbers). Out: values, derivatives, conjugates.
"""
