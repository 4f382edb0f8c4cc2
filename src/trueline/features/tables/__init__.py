"""One table in, one design out.

=================  ================================================================
module             holds
=================  ================================================================
``columns``        a column of any DataFrame as Arrow, and what it seems to be
``encoders``       numbers, booleans and texts: what is learned of them
``categories``     categories, few or many
``dates``          dates and times
``assembly``       blocks of columns into one matrix, without copies in between
``leakage``        whether a column gives the target away
``transformer``    ``TableFeatures``
``design``         ``design_matrix``
=================  ================================================================
"""
