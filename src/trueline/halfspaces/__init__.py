"""Halfspaces: whether two or more classes can be separated by them, and how well."""
