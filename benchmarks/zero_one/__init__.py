"""Halfspaces with the fewest training errors."""
