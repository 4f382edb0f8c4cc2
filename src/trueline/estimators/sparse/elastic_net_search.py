"""What a search over strengths and mixtures will do, or has done, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from trueline.plan import Plan
from trueline.selection.edges import edge_notes
from trueline.wording import counted

__all__ = ["WAYS", "search_done", "search_planned", "without_strength"]

#: How the fits of the folds get at the data: from moments, or not.
WAYS = {
    True: "from the moments of the folds: the rows are read once, whatever the number of fits",
    False: "from the columns, a warm-started path per fold; held-out rows have weight zero",
}
# Up to so many numbers are named one by one.
_NAMED = 6


def without_strength(plan: Plan, total_weight: float) -> Plan:
    """The same plan, for a strength (and a mixture) that is still to be chosen."""
    known = [
        part
        for part in plan.objective.split(",  ")
        if not part.startswith(("alpha = ", "n alpha = ", "sum(s) alpha = ", "l1_ratio = "))
    ]
    count = "sum(s)" if "sum_i s_i" in plan.objective else "n"
    chosen = f"alpha is chosen by the search,  {count} = {total_weight:g}"
    return replace(plan, objective=",  ".join([*known, chosen]))


def search_planned(model: Any, way: str, X: Any, y: Any) -> list[str]:
    """What ``fit`` would do before the final fit; no data are looked at."""
    if isinstance(model.alphas, Integral):
        count = int(model.alphas)
        grid = (
            f"{counted(count, 'strength')}, from the smallest that leaves all coefficients zero "
            f"down to {model.eps:g} of it"
        )
    else:
        count, grid = len(model.alphas), _named("strength", model.alphas)
    mixtures = model._mixtures()
    if "l1_ratio" in model.get_params(deep=False):
        grid += f"; {_named('l1_ratio', mixtures)}"
    folds = _folds(model.cv, X, y)
    fits = "" if folds is None else f", {counted(folds * count * len(mixtures), 'fit')}"
    many = "the given folds" if folds is None else counted(folds, "fold")
    return [
        grid,
        f"{many}{fits} {way}",
        f"{_rule(model.rule)}; then one fit of all rows, which the estimates are for",
    ]


def search_done(model: Any) -> list[str]:
    """What the last ``fit`` chose, and from what."""
    alphas, mixtures = np.atleast_2d(model.alphas_), model._mixtures()
    folds = model.mse_path_.size // (alphas.shape[1] * len(mixtures))
    grid = f"{counted(alphas.shape[1], 'strength')} from {alphas.max():g} to {alphas.min():g}"
    if len(mixtures) > 1:
        grid += f"; {_named('l1_ratio', mixtures)}"
    chosen = f"alpha = {model.alpha_:g}"
    if hasattr(model, "l1_ratio_"):
        chosen += f", l1_ratio = {model.l1_ratio_:g}"
    tried = alphas[mixtures.index(model.l1_ratio_)] if len(alphas) > 1 else alphas[0]
    return [
        f"{grid}; {counted(folds, 'fold')}",
        f"{_rule(model.rule)}: {chosen}",
        *_at_an_end(model, tried),
    ]


def _at_an_end(model: Any, tried: Any) -> list[str]:
    """What is to be said if the strength is the smallest or the largest of its grid."""
    if len(tried) > 1 and not np.any(model.coef_):
        said = "leaves all coefficients zero, and none of the others that were tried does better"
        return [f"alpha = {model.alpha_:g} {said}"]
    return edge_notes("alpha", model.alpha_, tried)


def _rule(rule: str) -> str:
    if rule == "min":
        return "the strength of the smallest mean squared error is taken"
    return "the largest strength within one standard error of the smallest mean error is taken"


def _named(what: str, values: Any) -> str:
    """Numbers, or how many there are and from where to where."""
    values = np.asarray(values, dtype=float)
    if len(values) <= _NAMED:
        return f"{what} " + ", ".join(f"{value:g}" for value in values)
    return f"{len(values)} times {what}, from {values.max():g} to {values.min():g}"


def _folds(cv: Any, X: Any, y: Any) -> int | None:
    """How many folds there will be; None if only a split would tell."""
    if isinstance(cv, Iterator):  # asking would use it up
        return None
    try:
        return int(check_cv(cv).get_n_splits(X, y))
    except (TypeError, ValueError):  # groups, which only a fit is given
        return None
