"""Newton's method for many problems on the same rows at once.

In: a :class:`~trueline.problem_set.ProblemSet` with a smooth loss and squared penalties. Out: a
Solution for every member, its proof pending. Called by the solver ``newton_cg``.
"""
