"""Halfspaces: what a hyperplane can and cannot do with labelled rows, proven."""
