"""Halfspaces: what a hyperplane can and cannot do with labelled rows, proven.

===============  ==================================================================
module           holds
===============  ==================================================================
``rows``         the inequalities of a classification, rounded and exact
``decide``       the two parts of the rows: strictly separable, and on the boundary
``search``       a direction, or rows that exclude one, in doubles; pairs of classes
``nearest``      Wolfe's method for the nearest point of a polytope
``exact``        what the search proposes, made exact
``lifting``      exact solution of systems of integers; doubles as integers
``separate``     from data to the verdict with its certificate
``result``       the verdict, for people
``margin``       the largest margin, with bounds from both sides
``zero_one``     the halfspace with the fewest errors
===============  ==================================================================

The public functions, :func:`trueline.separability` and :func:`trueline.maximum_margin`, read any
kind of table and labels and call ``separate`` and ``margin``.
"""
