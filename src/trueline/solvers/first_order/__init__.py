"""Gradient descent, proximal gradient descent and stochastic gradients: the textbook's methods.

In: a problem with a smooth loss. Out: a Solution. The planner never chooses them; users name them.
"""
