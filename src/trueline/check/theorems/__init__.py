"""Theorems, one in a file: what a kind of certificate claims, and why it follows.

In: a certificate and the data. Out: the claims that hold, those that do not, and why.
"""
