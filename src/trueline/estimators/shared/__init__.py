"""What estimators are built from: parameters, validation, labels, the fit, the proof, the report.

In: what a user gave. Out: a Problem that is planned and solved, and attributes of the Solution. No
class here is meant for users but the base classes of their own estimators.
"""
