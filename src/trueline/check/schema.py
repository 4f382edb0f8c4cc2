"""A certificate is data: every field has a type, an exact shape and a range.

A theorem lists the fields that it reads. What does not fit is refused before any arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from trueline.check.verdict import Refused


@dataclass(frozen=True)
class Field:
    """One field of a certificate.

    Attributes
    ----------
    shape : tuple of str and int
        Exact; a letter stands for a size. A letter that is not known yet takes the size it meets.
    kind : {"real", "integer", "boolean", "text", "any"}
    low, high : float
        Ends of the range, which belong to it.
    finite : bool
        Whether infinity is refused; NaN always is.
    optional : bool
        Whether it may be absent (it is None then).
    """

    shape: tuple[str | int, ...] = ()
    kind: str = "real"
    low: float = -np.inf
    high: float = np.inf
    finite: bool = True
    optional: bool = False


#: What numbers may be written as.
_PLAIN = frozenset({bool, int, float, list, tuple, np.ndarray, *np.sctypeDict.values()})

#: What every claim about an objective has.
CLAIMS = {
    "objective": Field(),
    "objective_rounding": Field(low=0.0),
    "gap": Field(low=0.0, finite=False),
}


def read(
    certificate: Any,
    fields: Mapping[str, Field],
    witness: Mapping[str, Field],
    sizes: dict[str, int],
) -> SimpleNamespace:
    """The fields as arrays and numbers of the types that the schema states.

    Parameters
    ----------
    certificate : object with attributes, or mapping
    fields : mapping of str to Field
        Of the certificate itself.
    witness : mapping of str to Field
        Of its ``witness``, which may hold nothing else.
    sizes : dict of str to int
        Known sizes by letter; those that are met for the first time are added.

    Raises
    ------
    Refused
        With the name of the field and what is wrong with it.
    """
    given = witness_of(certificate)
    unknown = sorted(str(name) for name in given if name not in witness)
    if unknown:
        raise Refused(f"the witness holds {', '.join(unknown)}, which this proof does not use")
    out = SimpleNamespace()
    for name, field in fields.items():
        setattr(out, name, _value(name, get(certificate, name), field, sizes))
    for name, field in witness.items():
        setattr(out, name, _value(name, given.get(name), field, sizes))
    return out


def get(certificate: Any, name: str) -> Any:
    """A field of a certificate, None if it has none of that name."""
    if isinstance(certificate, Mapping):
        return certificate.get(name)
    return getattr(certificate, name, None)


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of an array, before anything else is known of it."""
    try:
        return np.shape(value)
    except (TypeError, ValueError):
        raise Refused("what should be an array is none") from None


def witness_of(certificate: Any) -> Mapping[str, Any]:
    """The witness, an empty one if there is none."""
    given = get(certificate, "witness")
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise Refused("the witness is no mapping")
    return given


def _value(name: str, value: Any, field: Field, sizes: dict[str, int]) -> Any:
    if value is None:
        if field.optional:
            return None
        raise Refused(f"{name} is missing")
    if field.kind == "any":
        return value
    if field.kind == "text":
        if not issubclass(type(value), str):
            raise Refused(f"{name} is no text")
        return str.__str__(value)  # its letters, whatever a subclass says of them
    if type(value) not in _PLAIN:  # what turns itself into numbers may do so twice
        raise Refused(f"{name} is a {type(value).__name__}, not a number, list or array")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise Refused(f"{name} is no array: {error}") from None
    kinds = {"real": "fiu", "integer": "fiu", "boolean": "b"}[field.kind]
    if array.dtype.kind not in kinds or array.dtype.itemsize > 8:
        raise Refused(f"{name} has the type {array.dtype}, not {field.kind}")
    _fit_shape(name, array.shape, field.shape, sizes)
    if field.kind == "boolean":
        return array if array.ndim else bool(array)
    if np.isnan(array).any() or (field.finite and not np.isfinite(array).all()):
        raise Refused(f"{name} is not finite")
    if (array < field.low).any() or (array > field.high).any():
        raise Refused(f"{name} is not between {field.low:g} and {field.high:g}")
    if field.kind == "integer":
        if (array != np.floor(array)).any() or (np.abs(array.astype(np.float64)) > 2.0**53).any():
            raise Refused(f"{name} holds numbers that are not whole, or too large")
        whole = array.astype(np.int64)
        return whole if array.ndim else int(whole)
    doubles = array.astype(np.float64)
    if array.dtype.kind in "iu" and (doubles.astype(array.dtype) != array).any():
        raise Refused(f"{name} holds integers that no double is equal to")
    return doubles if array.ndim else float(doubles)


def _fit_shape(
    name: str, found: tuple[int, ...], wanted: tuple[str | int, ...], sizes: dict[str, int]
) -> None:
    if len(found) == len(wanted):
        expected = tuple(
            size if isinstance(size, int) else sizes.setdefault(size, own)
            for size, own in zip(wanted, found, strict=True)
        )
        if expected == found:
            return
    text = ", ".join(str(sizes.get(str(size), size)) for size in wanted)
    raise Refused(f"{name} has the shape {found}, not ({text})")


def is_builtin(part: Any, package: str) -> bool:
    """Whether a loss, penalty or kernel is one of the library's own, or plain data."""
    if isinstance(part, Mapping):
        return True
    return type(part).__module__.startswith(f"trueline.{package}.")


def parameters(part: Any) -> dict[str, Any]:
    """Name and parameters of a loss, penalty or kernel as plain data."""
    if isinstance(part, Mapping):
        own, name = dict(part), part.get("name")
    elif hasattr(part, "__dict__"):
        own = {key: value for key, value in vars(part).items() if not key.startswith("_")}
        name = own.get("name", getattr(part, "name", None))
    else:
        raise Refused(f"{type(part).__name__} is no loss, penalty or kernel")
    return {**own, "name": name if isinstance(name, str) else None}
