"""The parameters of an estimator: declared, checked, and compared with those of the fit.

One line declares each of them: name, type, default, and what is allowed. ::

    @parameters()
    class Ridge(...):
        alpha: Any = given(1.0, "[0, inf)", "array-like")
        _: KW_ONLY
        fit_intercept: bool = True
        max_iter: int | None = given(None, "int [1, inf)", None)

makes ``__init__(self, alpha=1.0, *, fit_intercept=True, max_iter=None)``, which sets these
attributes and does nothing else, as scikit-learn asks for, and the constraints by which ``fit``
checks them. A class takes over the parameters of the classes that it is derived from, but for those
that it does without.

What is said of a parameter is written once: the docstring of a class is completed by what those of
its bases say of parameters, and of fitted attributes, that it does not speak of itself.

A certificate proves something about numbers that a fit found, for given hyperparameters. Whoever
changes either afterwards has another model, of which nothing is proven. Models keep marks of both,
arrays as digests, and ``verify`` compares.
"""

from __future__ import annotations

import hashlib
import re
from abc import update_abstractmethods
from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import KW_ONLY as KW_ONLY
from dataclasses import field, make_dataclass, replace
from functools import cache
from inspect import cleandoc, get_annotations, signature
from numbers import Integral, Real
from textwrap import indent
from typing import Any, NamedTuple, TypeVar, dataclass_transform

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import (
    Hidden,
    Interval,
    StrOptions,
    validate_parameter_constraints,
)

from trueline.check import Check, Verification
from trueline.estimators.shared.files import take_files
from trueline.estimators.shared.validation import with_rows_in_memory

_T = TypeVar("_T")

#: In place of a default: the parameter has to be given.
REQUIRED: Any = object()

_INTERVAL = re.compile(r"(int )?([\[(])([^,]+), ([^,]+)([\])])")
_CLOSED = {"[)": "left", "(]": "right", "[]": "both", "()": "neither"}


def one_of(*names: str) -> Any:
    """One of these strings."""
    return StrOptions(set(names))


def hidden(name: str) -> Any:
    """A string that is taken and not offered: a default, or a value of old."""
    return Hidden(StrOptions({name}))


class _Parameter(NamedTuple):
    annotation: Any
    default: Any
    allowed: list[Any] | str
    by_keyword: bool


class _Given(NamedTuple):
    default: Any
    allowed: tuple[Any, ...]

    def constraints(self) -> list[Any] | str:
        """In scikit-learn's terms."""
        if self.allowed == ("no_validation",):
            return "no_validation"
        return [one for allowed in self.allowed for one in _constraints(allowed)]


def _constraints(allowed: Any) -> list[Any]:
    """Intervals and class weights by their names; everything else is scikit-learn's already."""
    if allowed == "int":
        return [Integral]
    if allowed == "class_weight":
        return [dict, StrOptions({"balanced"}), None]
    found = _INTERVAL.fullmatch(allowed) if isinstance(allowed, str) else None
    if found is None:
        return [allowed]
    kind: Any = Integral if found[1] else Real
    low, high = (None if "inf" in end else int(end) for end in (found[3], found[4]))
    return [Interval(kind, low, high, closed=_CLOSED[found[2] + found[5]])]


def given(default: _T, *allowed: Any) -> _T:
    """A parameter with this default, and what may be given for it.

    Parameters
    ----------
    default : object
        The default, or ``REQUIRED``.
    *allowed : object
        An interval of numbers as ``"[0, inf)"`` or ``"int [1, inf)"``, ``"int"``,
        ``"class_weight"``, or anything that scikit-learn's constraints know.

    Returns
    -------
    parameter : object
        For the body of a class under :func:`parameters`.
    """
    return _Given(default, allowed)  # type: ignore[return-value]


@dataclass_transform(eq_default=False)
def parameters(*, without: Collection[str] = ()) -> Callable[[type[_T]], type[_T]]:
    """Make ``__init__`` and the constraints of an estimator from the parameters it declares.

    Parameters
    ----------
    without : collection of str
        Parameters of the classes it is derived from that it does not have.

    Returns
    -------
    decorator : callable
        Completes the class. Parameters after ``_: KW_ONLY`` can be given by keyword only; one of
        type ``bool`` takes truth values and needs no :func:`given`.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
    >>> @parameters()
    ... class Shrink(BaseEstimator):
    ...     alpha: float = given(1.0, "[0, inf)")
    ...     _: KW_ONLY
    ...     fit_intercept: bool = True
    >>> Shrink(2.0, fit_intercept=False).get_params()
    {'alpha': 2.0, 'fit_intercept': False}
    """

    def complete(cls: Any) -> Any:
        inherited: dict[str, _Parameter] = {}
        for base in reversed(cls.__bases__):
            inherited.update(getattr(base, "_parameters_given", {}))
        known = {name: one for name, one in inherited.items() if name not in without}
        known.update(_declared(cls))
        # What classes beside the estimators bring along comes last.
        others = (base for base in cls.__mro__ if not issubclass(base, BaseEstimator))
        beside = [vars(base).get("_parameters_given", {}) for base in others]
        known |= {name: known.pop(name) for own in beside for name in own if name in known}
        cls._parameters_given = known
        cls.__doc__ = _completed(cls, known.keys())
        cls._parameter_constraints = {name: one.allowed for name, one in known.items()}
        fields: list[Any] = []
        for name, one in known.items():
            default = {} if one.default is REQUIRED else {"default": one.default}
            fields.append((name, one.annotation, field(kw_only=one.by_keyword, **default)))
        made: Any = make_dataclass(cls.__name__, fields, eq=False, repr=False)
        cls.__init__ = made.__init__
        cls.__init__.__module__ = cls.__module__
        cls.__init__.__qualname__ = f"{cls.__qualname__}.__init__"
        if "fit" in vars(cls):
            cls.fit = with_rows_in_memory(cls.fit)
        take_files(cls)
        return update_abstractmethods(cls)  # one of them may have been __init__

    return complete


def _entries(doc: str, section: str) -> dict[tuple[str, ...], str]:
    """What a docstring says in one section, by the names that an entry is about."""
    found = re.search(rf"^{section}\n-+\n(.*?)(?=\n\n\w.*\n--|\Z)", doc, re.S | re.M)
    entries = re.findall(r"^\S.*\n(?: .*\n)*", found[1] + "\n" if found else "", re.M)
    return {tuple(one.split("\n")[0].partition(" : ")[0].split(", ")): one for one in entries}


def _completed(cls: type, known: Set[str]) -> str:
    """The docstring, with what the bases say of parameters and attributes that it leaves out."""
    doc = cleandoc(cls.__doc__ or "") + "\n"
    for section in ("Parameters", "Attributes"):
        own = _entries(doc, section)
        said, added = {name for names in own for name in names}, ""
        for base in cls.__mro__[1:]:
            if not own or not base.__module__.startswith("trueline"):
                continue
            for names, text in _entries(cleandoc(base.__doc__ or ""), section).items():
                if not said & set(names) and (section == "Attributes" or known >= set(names)):
                    added += text
                    said.update(names)
        last = list(own.values())[-1] if own else ""
        doc = doc.replace(last, last + added, 1)
    return indent(doc, "    ").strip() + "\n    "


def _declared(cls: type) -> dict[str, _Parameter]:
    """The parameters in the body of a class; their values are taken out of it."""
    found: dict[str, _Parameter] = {}
    by_keyword = False
    for name, annotation in get_annotations(cls).items():
        if "KW_ONLY" in str(annotation):
            by_keyword = True
        elif "ClassVar" not in str(annotation):
            value = vars(cls).get(name)
            if not isinstance(value, _Given):
                if annotation not in ("bool", bool) or value is None:
                    raise TypeError(
                        f"{cls.__name__}.{name} needs given(default, what is allowed); what a fit "
                        "finds is declared where it is set, or in a class without parameters."
                    )
                value = _Given(value, ("boolean",))
            delattr(cls, name)
            found[name] = _Parameter(annotation, value.default, value.constraints(), by_keyword)
    return found


def validate_changed(model: Any) -> None:
    """Raise for parameters that are out of range; those at their defaults need no look."""
    own, defaults = vars(model), _defaults(type(model))  # type: ignore[arg-type]
    changed = {name: own[name] for name, default in defaults if own[name] is not default}
    if changed:
        validate_parameter_constraints(
            model._parameter_constraints, changed, caller_name=type(model).__name__
        )


@cache
def _defaults(cls: type) -> tuple[tuple[str, Any], ...]:
    """Names and defaults of the parameters of an estimator."""
    parameters = list(signature(cls.__init__).parameters.values())[1:]  # type: ignore[misc]
    return tuple((parameter.name, parameter.default) for parameter in parameters)


# Parameters that say how to compute, not what: changing them changes neither statement nor model.
_HOW = frozenset(
    {"cache_size", "copy_X", "copy_X_train", "early_stopping", "max_iter", "n_iter_no_change"}
    | {"n_jobs", "n_restarts_optimizer", "precompute", "progress", "random_state", "record_updates"}
    | {"selection", "shrinking", "shuffle", "solver", "store_cv_results", "time_limit", "tol"}
    | {"trace", "validation_fraction", "verbose", "warm_start"}
)
# What a fit finds or chooses by itself, if it does.
_CHOSEN = ("coef_", "intercept_", "alpha_", "l1_ratio_", "C_", "lambda_", "scale_")
# Which columns a model takes, and what its scores are names of.
_NAMES = ("classes_", "n_features_in_", "feature_names_in_", "_is_multilabel", "_sparse")

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
    own = vars(model)
    found = {name: own[name] for name in _CHOSEN if name in own}
    if sp.issparse(found.get("coef_")):
        found["coef_"] = found["coef_"].toarray()
    return {**settings_of(model), **named_by(model), **found}


def named_by(model: Any) -> dict[str, Any]:
    """Columns and classes as the fit saw them."""
    own = vars(model)
    return {name: own[name] for name in _NAMES if name in own}


def marked(values: Mapping[str, Any]) -> dict[str, Any]:
    """What tells whether values have changed: digests of arrays, everything else as plain data.

    Examples
    --------
    >>> from trueline.estimators.shared.parameters import marked
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
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    check: Callable[[], Verification],
    **kept: bool,
) -> Verification:
    """The outcome of a check, which fails as well if the model is not as it was fitted.

    What cannot even be checked of a model that was changed is no error.

    Parameters
    ----------
    before : mapping of str to value
        What was :func:`marked` in the fit.
    now : mapping of str to value
        The values as they are.
    check : callable
    **kept : bool
        Other things of the model, and whether they are what the data make them.
    """
    marks = marked({name: value for name, value in now.items() if name in before})
    changed = [name for name in marks if before[name] != marks[name]]
    changed += [name for name, is_kept in kept.items() if not is_kept]
    found = f"changed: {', '.join(changed)}" if changed else "yes"
    try:
        verification = check()
    except (IndexError, TypeError, ValueError) as error:
        if not changed:
            raise
        verification = Verification.refused(error)
    tie = Check("model as fitted", "yes", found, not changed)
    return replace(verification, checks=(tie, *verification.checks))
