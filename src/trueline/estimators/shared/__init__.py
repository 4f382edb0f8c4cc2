"""What estimators are built from: parameters, validation, labels, the fit, the proof, the report.

=================  ===========================================================================
module             holds
=================  ===========================================================================
``base``           the fit: plan, run, keep the solution with its proof; callbacks
``parameters``     how parameters are declared and checked; marks of those that were fitted
``validation``     rows, targets, weights and folds as they are given, checked
``regressor``      real targets; noise variance and degrees of freedom of squared loss
``classifier``     labels, class weights, scores, decisions
``columns``        the rank of the columns; an intercept that is a constant column
``fold_sets``      one model for many settings and folds, as a set of problems
``precision``      numbers whose squares overflow; coefficients in single precision
``report``         explanations, and the check of a proof
=================  ===========================================================================

In: what a user gave. Out: a Problem that is planned and solved, and attributes of the Solution. No
class here is meant for users but the base classes of their own estimators.
"""
