"""The laws that every part obeys, for our own parts and for yours.

A loss, a penalty, a design or a solver is trusted because it obeys a list of laws, each of them a
small function whose docstring is the formula it tests. Run them on a part of your own::

    from trueline.checks import check_loss

    check_loss(MyLoss())

In: a part. Out: nothing, or an ``AssertionError`` that names the law that was broken, states it,
and shows the numbers.
"""

from trueline.checks.book import Law as Law
from trueline.checks.book import LawBook as LawBook
from trueline.checks.designs import DESIGN_LAWS as DESIGN_LAWS
from trueline.checks.designs import check_design as check_design
from trueline.checks.estimators import ESTIMATOR_LAWS as ESTIMATOR_LAWS
from trueline.checks.estimators import check_estimator as check_estimator
from trueline.checks.losses import LOSS_LAWS as LOSS_LAWS
from trueline.checks.losses import check_loss as check_loss
from trueline.checks.penalties import PENALTY_LAWS as PENALTY_LAWS
from trueline.checks.penalties import check_penalty as check_penalty
from trueline.checks.planted import KnownProblem as KnownProblem
from trueline.checks.problems import known_problems as known_problems
from trueline.checks.solvers import SOLVER_LAWS as SOLVER_LAWS
from trueline.checks.solvers import check_solver as check_solver
