"""Bayesian linear regression: posteriors in closed form, and priors of maximum evidence.

In: X and a numeric target. Out: a mean with its uncertainty; the mathematics is in
``trueline.bayesian``.
"""
