"""Compiled passes over rows, dense and sparse."""
