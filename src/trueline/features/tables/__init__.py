"""One table in, one design out.

=================  ================================================================
file               holds
=================  ================================================================
``columns.py``     a column of any DataFrame as Arrow, and what it seems to be
``encoders.py``    numbers and booleans: what is learned, what they become
``categories.py``  categories, few or many
``dates.py``       dates and times
``texts.py``       free text
``assembly.py``    blocks of columns into one matrix, without copies in between
``leakage.py``     whether a column gives the target away
``transformer.py`` ``TableFeatures``
``design.py``      ``design_matrix``
=================  ================================================================
"""
