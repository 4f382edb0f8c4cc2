"""Pictures that textbooks have, of one's own data: what a norm, a hull, a bump or a degree does.

==========  ========================================================================================
module      draws
==========  ========================================================================================
``balls``   balls of three norms, and the contours of the squared error that touch them
``hulls``   the convex hulls of two classes, with the line or the point that both share
``curves``  radial bumps with their sum, and polynomials of several degrees side by side
==========  ========================================================================================

In: a fitted object, with X and y. Out: a display.
"""
