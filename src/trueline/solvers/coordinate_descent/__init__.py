"""Coordinate descent on working sets, and exact paths of the lasso and the elastic net."""
