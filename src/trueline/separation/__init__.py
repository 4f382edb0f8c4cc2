"""Halfspaces: what a hyperplane can and cannot do with labelled rows, proven.

================  ==================================================================
module            holds
================  ==================================================================
``inequalities``  the inequalities of a classification, rounded and exact
``decide``        a direction, or rows that exclude one; both parts of the rows
``nearby``        all rows on the boundary at once, from a fit on its way to infinity
``nearest``       Wolfe's method for the nearest point of a polytope
``exact``         what the search proposes, made exact
``lifting``       exact solution of systems of integers; doubles as integers
``separate``      from data to the verdict with its certificate
``margin``        the largest margin, with bounds from both sides
``zero_one``      the halfspace with the fewest errors
================  ==================================================================

In: rows and labels. Out: a verdict, a margin or a halfspace, with a proof. The public functions,
:func:`trueline.separability` and :func:`trueline.maximum_margin`, read any kind of table and labels
and call ``separate`` and ``margin``.
"""
