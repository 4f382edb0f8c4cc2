"""Proximal Newton on working sets of columns, for many columns and coupled scores."""
