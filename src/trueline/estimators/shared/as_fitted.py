"""Whether a model is still as it was fitted: the proof must be about what the model predicts with.

A certificate proves something about numbers that a fit found, for given hyperparameters. Whoever
changes either afterwards has another model, of which nothing is proven. Models keep marks of both,
arrays as digests, and ``verify`` compares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from trueline.check import Check, Verification

__all__ = ["chosen_by", "marked", "same_rows", "settings_of", "tied"]

# Parameters that say how to compute, not what: changing them changes neither statement nor model.
_HOW = frozenset(
    {"cache_size", "copy_X", "copy_X_train", "early_stopping", "max_iter", "n_iter_no_change"}
    | {"n_jobs", "n_restarts_optimizer", "precompute", "progress", "random_state", "record_updates"}
    | {
        "selection",
        "shrinking",
        "shuffle",
        "solver",
        "store_cv_results",
        "time_limit",
        "tol",
        "trace",
    }
    | {"validation_fraction", "verbose", "warm_start"}
)
# What a fit finds or chooses by itself, if it does.
_CHOSEN = ("coef_", "intercept_", "alpha_", "l1_ratio_", "C_", "lambda_", "scale_")

# Bytes of arrays that are shorter than what a digest of them would cost.
_SHORT = 256


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """The parameters of a class that state the problem or the prediction."""
    return tuple(name for name in kind._get_param_names() if name not in _HOW)


def settings_of(model: Any) -> dict[str, Any]:
    """The hyperparameters that state the problem or the prediction."""
    kind: Any = type(model)
    return {name: getattr(model, name) for name in _names(kind)}


def chosen_by(model: Any) -> dict[str, Any]:
    """Coefficients and hyperparameters, given or chosen by the fit."""
    found = {name: vars(model)[name] for name in _CHOSEN if name in vars(model)}
    if sp.issparse(found.get("coef_")):
        found["coef_"] = found["coef_"].toarray()
    return {**settings_of(model), **found}


def marked(values: Mapping[str, Any]) -> dict[str, Any]:
    """What tells whether values have changed: digests of arrays, everything else as plain data.

    Examples
    --------
    >>> from trueline.estimators.shared.as_fitted import marked
    >>> values = {"coef_": np.zeros(2), "C": 1.0}
    >>> before = marked(values)
    >>> before == marked(values)
    True
    >>> values["coef_"][1] = 0.5
    >>> before == marked(values)
    False
    """
    return {name: _mark(value) for name, value in values.items()}


def _mark(value: Any) -> Any:
    kind = type(value)
    if value is None or kind is bool or kind is float:  # most parameters; tiny fits pay for this
        return value if kind is not float else repr(value)
    if isinstance(value, int | str):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return repr(value)  # equal to itself even if it is NaN
    if sp.issparse(value):
        rows = sp.csr_array(value)
        rows.sum_duplicates()
        return [_mark(part) for part in (rows.indptr, rows.indices, rows.data)]
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return [str(item) for item in value.ravel()]
        numbers = value.tobytes()
        digest = numbers if len(numbers) <= _SHORT else _digest(numbers)
        return f"{value.dtype.str} {value.shape} {digest.hex()}"
    if isinstance(value, Mapping):
        return {key: _mark(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mark(item) for item in value]
    if hasattr(value, "get_params") and not isinstance(value, type):  # kernels of scikit-learn
        return {"class": type(value).__name__, **_mark(value.get_params(deep=False))}
    if callable(value):
        return f"{value.__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    text = repr(value)
    return type(value).__qualname__ if " at 0x" in text else text


def _digest(numbers: bytes) -> bytes:
    return hashlib.blake2b(numbers, digest_size=16).digest()


def same_rows(kept: Any, X: Any, which: Any = slice(None)) -> bool:
    """Whether rows that a model kept are those of the data, or some of them."""
    try:
        if sp.issparse(X) or sp.issparse(kept):
            one, other = sp.csr_array(kept), sp.csr_array(X)[which]
            return one.shape == other.shape and bool(abs(one - other).sum() == 0)
        if np.asarray(kept).dtype.kind not in "biuf":  # what kernels of one's own compare
            return list(kept) == list(X)
        return np.array_equal(np.asarray(X, dtype=np.asarray(kept).dtype)[which], kept)
    except (IndexError, TypeError, ValueError):
        return False


def tied(
    before: Mapping[str, Any], now: Mapping[str, Any], verification: Verification, **kept: bool
) -> Verification:
    """The outcome of a check, which fails as well if the model is not as it was fitted.

    Parameters
    ----------
    before : mapping of str to value
        What was :func:`marked` in the fit.
    now : mapping of str to value
        The values as they are.
    verification : Verification
    **kept : bool
        Other things of the model, and whether they are what the data make them.
    """
    marks = marked({name: value for name, value in now.items() if name in before})
    changed = [name for name in marks if before[name] != marks[name]]
    changed += [name for name, is_kept in kept.items() if not is_kept]
    found = f"changed: {', '.join(changed)}" if changed else "yes"
    tie = Check("model as fitted", "yes", found, not changed)
    return replace(verification, checks=(tie, *verification.checks))
