"""The halfspace with the fewest errors: a good one, and the proof that there is no better one.

====================  ===================================================================
module                holds
====================  ===================================================================
``problem``           what is minimised
``local_search``      good hyperplanes, from surrogate losses and along great circles
``branch_and_bound``  the search that proves that there is no better one; HiGHS instead
``conflicts``         rows that cannot all be right, packed into a bound
``simplex``           whether some rows can all be right, and which few say that not
``enumeration``       every circle of the arrangement, where columns are few
``exact``             in integers what doubles are not sure of
``margin``            the hyperplane that is returned, of those with the same errors
``proof``             the certificate
====================  ===================================================================

In: rows, labels and weights. Out: a hyperplane, its errors, and a bound on the errors of any other.
"""

from trueline.separation.zero_one.branch_and_bound import Found, search
from trueline.separation.zero_one.local_search import local_search
from trueline.separation.zero_one.problem import Task, state

__all__ = ["Found", "Task", "local_search", "search", "state"]
