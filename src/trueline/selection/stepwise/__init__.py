"""Stepwise selection of columns from moments: no step goes back to the rows.

In: moments of the rows, and which columns may move together. Out: the columns of every step and
the criterion there.
"""

from trueline.selection.stepwise.forward import (
    ForwardPath,
    PartialCholesky,
    forward_selection,
    gram_columns,
)
from trueline.selection.stepwise.pricing import Pricing
from trueline.selection.stepwise.report import (
    StepwiseExplanation,
    Watcher,
    name_of,
    purpose,
    table_of_steps,
)
from trueline.selection.stepwise.search import (
    DIRECTIONS,
    FitScorer,
    HeldOutScorer,
    Search,
    Selection,
    make_terms,
)
from trueline.selection.stepwise.tableau import Outlook, Tableau, about, fold_tableaux

__all__ = [
    "DIRECTIONS",
    "FitScorer",
    "ForwardPath",
    "HeldOutScorer",
    "Outlook",
    "PartialCholesky",
    "Pricing",
    "Search",
    "Selection",
    "StepwiseExplanation",
    "Tableau",
    "Watcher",
    "about",
    "fold_tableaux",
    "forward_selection",
    "gram_columns",
    "make_terms",
    "name_of",
    "purpose",
    "table_of_steps",
]
