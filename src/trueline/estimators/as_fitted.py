"""Whether a model is still as it was fitted: the proof must be about what the model predicts with.

A certificate proves something about numbers that a fit found, for hyperparameters that it was given.
Whoever changes either afterwards has another model, of which nothing is proven. Models keep copies
of both (large matrices are compared with the data instead), and ``verify`` compares.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from trueline.check import Check, Verification

__all__ = ["same", "same_rows", "settings_of", "snapshot", "tied"]

# Parameters that say how to compute, not what: changing them changes neither statement nor model.
_HOW = frozenset(
    {"cache_size", "copy_X_train", "early_stopping", "max_iter", "n_iter_no_change", "n_jobs"}
    | {"n_restarts_optimizer", "random_state", "record_updates", "shrinking", "shuffle", "solver"}
    | {"tol", "trace", "validation_fraction", "verbose", "warm_start"}
)


def settings_of(model: Any) -> dict[str, Any]:
    """The hyperparameters that state the problem or the prediction."""
    return {
        name: value for name, value in model.get_params(deep=False).items() if name not in _HOW
    }


def snapshot(values: Mapping[str, Any]) -> dict[str, Any]:
    """Copies of numbers and settings; functions stay what they are.

    Examples
    --------
    >>> from trueline.estimators.as_fitted import same, snapshot
    >>> values = {"coef_": np.zeros(2), "C": 1.0}
    >>> before = snapshot(values)
    >>> values["coef_"][1] = 0.5
    >>> same(before["coef_"], values["coef_"]), same(before["C"], values["C"])
    (False, True)
    """
    return {
        name: value if isfunction(value) else copy.deepcopy(value) for name, value in values.items()
    }


def isfunction(value: Any) -> bool:
    """Whether it is called rather than compared; kernels of scikit-learn can be compared."""
    return callable(value) and not hasattr(value, "get_params")


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, arrays number by number."""
    if one is other:
        return True
    if sp.issparse(one) or sp.issparse(other):
        both = sp.issparse(one) and sp.issparse(other) and one.shape == other.shape
        return bool(both and abs(sp.csr_array(one) - sp.csr_array(other)).sum() == 0)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        try:
            return np.array_equal(np.asarray(one), np.asarray(other))
        except (TypeError, ValueError):
            return False
    return bool(type(one) is type(other) or isinstance(one, (int, float, str))) and bool(
        one == other
    )


def same_rows(kept: Any, X: Any, which: Any = slice(None)) -> bool:
    """Whether rows that a model kept are those of the data, or some of them."""
    try:
        if sp.issparse(X) or sp.issparse(kept):
            return same(sp.csr_array(kept), sp.csr_array(sp.csr_array(X)[which]))
        if not (hasattr(kept, "dtype") and np.asarray(kept).dtype.kind in "biuf"):
            return same(list(kept), list(X))  # what kernels of one's own compare
        rows = np.asarray(X, dtype=np.asarray(kept).dtype)[which]
        return np.array_equal(rows, kept)
    except (IndexError, TypeError, ValueError):
        return False


def tied(
    before: Mapping[str, Any] | None, now: Mapping[str, Any], verification: Verification, **kept: bool
) -> Verification:
    """The outcome of a check, which fails as well if the model is not as it was fitted.

    Parameters
    ----------
    before : mapping of str to value
        The :func:`snapshot` of the fit.
    now : mapping of str to value
        The same, as it is.
    verification : Verification
    **kept : bool
        Other things of the model, and whether they are what the data make them.
    """
    changed = [name for name in now if before is None or not same(before.get(name), now[name])]
    changed += [name for name, is_kept in kept.items() if not is_kept]
    found = f"changed: {', '.join(changed)}" if changed else "yes"
    tie = Check("model as fitted", "yes", found, not changed)
    return replace(verification, checks=(tie, *verification.checks))
