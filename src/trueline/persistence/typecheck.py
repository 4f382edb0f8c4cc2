"""Whether a value is what a dataclass says its field holds.

A file is free to claim that a penalty's strength is a list of strings. Saying so while loading is
kinder than an odd error in the middle of a prediction.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from trueline.persistence.registry import SCHEMAS, known_classes, label

_NUMBERS = "biuf"  # the dtype kinds that can stand where numbers are expected


def misfit(cls: type, values: Mapping[str, Any]) -> str | None:
    """What is wrong with these fields of a dataclass, or None.

    Examples
    --------
    >>> from trueline.penalties import L2
    >>> from trueline.persistence.typecheck import misfit
    >>> misfit(L2, {"alpha": 1.0})
    >>> misfit(L2, {"alpha": "much"})
    'L2.alpha cannot be of type str'
    """
    hints = _hints(cls)
    for name, value in values.items():
        if not _fits(value, hints[name]):
            return f"{cls.__name__}.{name} cannot be of type {type(value).__name__}"
    return None


def misfit_attribute(name: str, value: Any, cls: type | None = None) -> str | None:
    """What is wrong with a fitted attribute of an estimator, or None.

    Of the package's estimators only the attributes that every linear model has are known here; of
    scikit-learn's transformers all are.

    Examples
    --------
    >>> from trueline.persistence.typecheck import misfit_attribute
    >>> misfit_attribute("coef_", [1.0])
    'coef_ cannot be of type list'
    """
    schema = None if cls is None else SCHEMAS.get(label(cls))
    if schema is not None and name not in schema:
        return f"{name} of {label(cls)} is not known" if cls is not None else None
    if _fits(value, (_attribute_types() if schema is None else schema).get(name, Any)):
        return None
    return f"{name} cannot be of type {type(value).__name__}"


def misfit_parameter(cls: type, values: Mapping[str, Any]) -> str | None:
    """What is wrong with these parameters of an estimator, or None.

    Decided by the same constraints as at the beginning of a fit.

    Examples
    --------
    >>> from trueline import Ridge
    >>> from trueline.persistence.typecheck import misfit_parameter
    >>> misfit_parameter(Ridge, {"alpha": 1.0})
    >>> misfit_parameter(Ridge, {"tol": "low"})
    'the parameter tol of Ridge must be a float in the range [0.0, inf), not a str'
    """
    allowed = _constraints(cls)
    for name, value in values.items():
        options = allowed.get(name, ())
        if options and not any(option.is_satisfied_by(value) for option in options):
            listed = " or ".join(str(option) for option in options if not option.hidden)
            kind = type(value).__name__
            return f"the parameter {name} of {cls.__name__} must be {listed}, not a {kind}"
    return None


@cache
def _constraints(cls: type) -> dict[str, tuple[Any, ...]]:
    """Scikit-learn makes these anew for every estimator that it checks."""
    from sklearn.utils._param_validation import make_constraint

    declared: Mapping[str, Any] = getattr(cls, "_parameter_constraints", {})
    return {
        name: tuple(make_constraint(option) for option in options)
        for name, options in declared.items()
        if not isinstance(options, str)  # "no_validation"
    }


@cache
def _attribute_types() -> dict[str, Any]:
    classes = known_classes()
    numbers = NDArray[np.floating]
    return {
        "coef_": numbers,
        "intercept_": float | numbers,
        "moments_": classes["moments.Moments"],
        "solver_": str,
        "n_features_in_": int,
        "trace_": classes["trace.Trace"],
        "_certificate": classes["certificates.Certificate"]
        | classes["certificates.KernelCertificate"],
        "_plan": classes["plan.Plan"],
    }


@cache
def _hints(cls: type) -> dict[str, Any]:
    """The type of each field; names imported for type checkers only are looked up here."""
    names = {known.__name__: known for known in known_classes().values()}
    own = {field.name for field in fields(cls)}
    hints = get_type_hints(cls, localns=names)
    return {name: hint for name, hint in hints.items() if name in own}


def _fits(value: Any, hint: Any) -> bool:
    """A small part of Python's typing: what fields of parts and results are declared with."""
    origin = get_origin(hint) or hint
    if origin is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, option) for option in get_args(hint))
    if origin is np.ndarray:
        holds_anything = get_args(hint)[-1:] == (np.dtype[Any],)  # NDArray[Any]: labels of classes
        return isinstance(value, np.ndarray) and (holds_anything or value.dtype.kind in _NUMBERS)
    if origin in (float, int):
        accepted = (int, np.integer) if origin is int else (int, float, np.integer, np.floating)
        return isinstance(value, accepted) and not isinstance(value, bool)
    if origin in (list, dict, Mapping):
        items = value.values() if isinstance(value, Mapping) else value
        return isinstance(value, origin) and _all_fit(items, get_args(hint)[-1:])
    return isinstance(value, origin) if isinstance(origin, type) else True


def _all_fit(items: Any, hint: tuple[Any, ...]) -> bool:
    """Whether every item fits; a bare container promises nothing about its items."""
    return all(_fits(item, hint[0]) for item in items) if hint else True
