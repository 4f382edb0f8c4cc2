"""The halfspace with the fewest errors: a good one, and the proof that there is no better one.

``problem`` states what is minimised, ``starts`` and ``local_search`` find good hyperplanes,
``branch_and_bound`` proves that there is no better one, ``enumeration`` looks at every circle where
columns are few, ``proof`` certifies and decides in integers what doubles are not sure of,
``margin`` chooses the hyperplane that is returned, ``milp`` asks HiGHS instead, ``warmup`` has
everything compiled before a time limit counts.
"""

from trueline.separation.zero_one.branch_and_bound.search import Found, search
from trueline.separation.zero_one.local_search import local_search
from trueline.separation.zero_one.problem import Task, state

__all__ = ["Found", "Task", "local_search", "search", "state"]
