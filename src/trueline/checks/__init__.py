"""The laws that every part obeys, for our own parts and for yours.

A loss, a penalty, a design or a solver is trusted because it obeys a list of laws, each of them a
small function whose docstring is the formula it tests. Run them on a part of your own::

    from trueline.checks import check_loss

    check_loss(MyLoss())

In: a part. Out: nothing, or an ``AssertionError`` that names the law that was broken, states it,
and shows the numbers.
"""

from trueline.checks.book import Law, LawBook
from trueline.checks.designs import DESIGN_LAWS, check_design
from trueline.checks.estimators import ESTIMATOR_LAWS, check_estimator
from trueline.checks.losses import LOSS_LAWS, check_loss
from trueline.checks.penalties import PENALTY_LAWS, check_penalty
from trueline.checks.planted import KnownProblem
from trueline.checks.problems import known_problems
from trueline.checks.solvers import SOLVER_LAWS, check_solver

__all__ = [
    "check_loss",
    "check_penalty",
    "check_design",
    "check_solver",
    "check_estimator",
    "LOSS_LAWS",
    "PENALTY_LAWS",
    "DESIGN_LAWS",
    "SOLVER_LAWS",
    "ESTIMATOR_LAWS",
    "Law",
    "LawBook",
    "KnownProblem",
    "known_problems",
]
