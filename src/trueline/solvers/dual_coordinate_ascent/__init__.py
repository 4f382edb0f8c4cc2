"""Coordinate descent on the dual of losses with a squared penalty."""
