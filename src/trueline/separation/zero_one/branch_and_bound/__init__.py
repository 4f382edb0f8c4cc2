"""Branch and bound on rows: each is an error, or it is right.

``simplex`` finds conflicts, ``packing`` makes a bound of them, ``branching`` and ``search`` close
the rest, ``box_margin`` judges a node, ``exact`` decides in integers what doubles are not sure of.
In: a task and a good hyperplane. Out: the best one found, and the bound.
"""
