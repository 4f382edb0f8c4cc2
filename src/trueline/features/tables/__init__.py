"""One table in, one design out.

=================  ================================================================
module             holds
=================  ================================================================
``columns``        a column of any DataFrame as Arrow, and what it seems to be
``encoders``       what is learned of a column: numbers, categories, dates, texts
``assembly``       blocks of columns side by side in one matrix
``transformer``    ``TableFeatures`` and ``design_matrix``
=================  ================================================================

In: a DataFrame or a dict of columns. Out: a matrix of numbers with names for its columns.
"""
