"""Theorems, one in a file: what a kind of certificate claims, and why it follows."""
