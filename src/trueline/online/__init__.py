"""Learning one row at a time: update rules, passes over rows, streams, and what is recorded.

In: rows in an order, a rule and its rate. Out: weights that changed in place, and a record of
mistakes and updates. The estimators are in ``trueline.estimators.online``.
"""
