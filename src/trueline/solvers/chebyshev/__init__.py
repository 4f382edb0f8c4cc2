"""Solvers of the maximum error: exchange of rows, the linear program, and the smoothed form.

In: a problem with the maximum error as loss. Out: a Solution, proven by the rows that err most.
``reference`` has the rows and their exchange, ``smoothed`` the smooth form.
"""
