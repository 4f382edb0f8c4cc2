"""Values to JSON and arrays, and back.

JSON has no arrays of numbers at full precision, no infinities, no tuples and no classes, so those
become objects with a tag under ``"$"``:

===========================================  ==========================================
value                                        in the header
===========================================  ==========================================
None, bool, str, int, finite float, list     themselves
inf, -inf, nan                               ``{"$": "float", "value": "inf"}``
tuple                                        ``{"$": "tuple", "items": [...]}``
dict                                         ``{"$": "dict", "items": [[key, value], ...]}``
set or frozenset of strings                  ``{"$": "set", "items": [...]}``, ``"frozenset"``
NumPy scalar                                 ``{"$": "scalar", "dtype": "float32", "value": ...}``
array of numbers or fixed-width strings      ``{"$": "array", "index": 3}``
array of Python objects (names, labels)      ``{"$": "objects", "shape": [2], "items": [...]}``
enumeration member                           ``{"$": "member", "class": ..., "name": ...}``
dataclass                                    ``{"$": "record", "class": ..., "fields": {...}}``
estimator                                    ``{"$": "estimator", "class": ..., "params": {...},
                                             "fitted": {...}, "requests": {...}}``
===========================================  ==========================================

Arrays that are one object in memory stay one object: the coefficients of an estimator and of its
certificate are stored once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np

from trueline.errors import ModelFileError
from trueline.persistence.registry import is_estimator, known_classes, label
from trueline.persistence.typecheck import misfit, misfit_attribute

__all__ = ["ARRAY_KINDS", "Decoder", "Encoder"]

#: Kinds of dtype an array in a file may have: booleans, integers, floats, complex, strings.
ARRAY_KINDS = "biufcU"

# Attributes that scikit-learn keeps on an estimator and that are not part of the model: requests
# are written in a form of their own, callbacks watched a fit that is over.
_NOT_THE_MODEL = frozenset({"_metadata_request", "_skl_callbacks", "_callback_fit_ctx"})

_SIGNED = (np.int8, np.int16, np.int32, np.int64)
_UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
_SCALARS: dict[str, type[np.generic]] = {
    np.dtype(kind).name: kind
    for kind in (np.bool_, *_SIGNED, *_UNSIGNED, np.float16, np.float32, np.float64)
}


class Encoder:
    """Turns values into JSON, setting arrays aside in :attr:`arrays`.

    Examples
    --------
    >>> from trueline.persistence.codec import Encoder
    >>> Encoder().encode((1, "a"))
    {'$': 'tuple', 'items': [1, 'a']}
    """

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self._index: dict[int, int] = {}

    def encode(self, value: Any, where: str = "the model") -> Any:
        """The JSON of a value; ``where`` names it in error messages."""
        if value is None or isinstance(value, str | bool) or type(value) is int:
            return value
        if isinstance(value, Enum):
            self._check_known(value, where)
            return {"$": "member", "class": label(type(value)), "name": value.name}
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        if isinstance(value, float):
            finite = math.isfinite(value)
            return float(value) if finite else {"$": "float", "value": repr(float(value))}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, type) and value in _SCALARS.values():
            return {"$": "type", "dtype": np.dtype(value).name}
        if type(value) in (list, tuple):  # not their subclasses, which would come back changed
            items = [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"$": "tuple", "items": items}
        if type(value) in (set, frozenset) and all(isinstance(item, str) for item in value):
            # Sorted, so that the same model makes the same file.
            return {"$": type(value).__name__, "items": sorted(value)}
        if isinstance(value, Mapping):
            return {"$": "dict", "items": self._items(value, where)}
        self._check_known(value, where)
        return self._record(value) if is_dataclass(value) else self._estimator(value)

    def _check_known(self, value: Any, where: str) -> None:
        cls = type(value)
        if known_classes().get(label(cls)) is cls:
            return
        raise ModelFileError(
            f"{where} is a {cls.__module__}.{cls.__qualname__}, which a model file cannot hold. "
            "Model files hold numbers, strings, arrays, lists, tuples, dictionaries and registered "
            "classes (trueline.persistence.register)."
        )

    def _scalar(self, value: np.generic, where: str) -> Any:
        name = value.dtype.name
        if isinstance(value, np.str_):
            return str(value)
        if name not in _SCALARS:
            raise ModelFileError(f"{where} is a NumPy {name}, which a model file cannot hold.")
        return {"$": "scalar", "dtype": name, "value": self.encode(value.item(), where)}

    def _array(self, array: np.ndarray, where: str) -> Any:
        if array.dtype.hasobject:
            items = [self.encode(item, f"{where}[{i}]") for i, item in enumerate(array.flat)]
            return {"$": "objects", "shape": list(array.shape), "items": items}
        if array.dtype.kind not in ARRAY_KINDS:
            raise ModelFileError(f"{where} is of {array.dtype}, which a model file cannot hold.")
        if id(array) not in self._index:
            self._index[id(array)] = len(self.arrays)
            self.arrays.append(array)  # also keeps the array alive, so that its id stays its own
        return {"$": "array", "index": self._index[id(array)]}

    def _items(self, mapping: Mapping[Any, Any], where: str) -> list[list[Any]]:
        return [
            [self.encode(key, f"a key of {where}"), self.encode(value, f"{where}[{key!r}]")]
            for key, value in mapping.items()
        ]

    def _record(self, value: Any) -> Any:
        cls = type(value)
        contents = {field.name: getattr(value, field.name) for field in fields(cls)}
        # Checked here as well: better a refusal to save than a file that nobody can load.
        if problem := misfit(cls, contents):
            raise ModelFileError(f"{problem}: this object cannot be saved.")
        return {"$": "record", "class": label(cls), "fields": self._attributes(cls, contents)}

    def _estimator(self, model: Any) -> Any:
        cls = type(model)
        params = model.get_params(deep=False)
        getattr(model, "certificate_", None)  # a proof that is pending is worked out now
        if settle := getattr(model, "_settle", None):  # and what else was left for later
            settle()
        fitted = {
            name: value
            for name, value in vars(model).items()
            if name not in params
            and name not in _NOT_THE_MODEL
            and not isinstance(getattr(cls, name, None), cached_property)
        }
        node = {
            "$": "estimator",
            "class": label(cls),
            "params": self._attributes(cls, params),
            "fitted": self._attributes(cls, fitted),
        }
        if requests := getattr(model, "_metadata_request", None):
            node["requests"] = self.encode(requests._serialize(), "the metadata requests")
        return node

    def _attributes(self, cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: self.encode(value, f"{cls.__name__}.{name}") for name, value in values.items()
        }


class Decoder:
    """Turns JSON and arrays back into values, trusting neither.

    Parameters
    ----------
    arrays : list of arrays
        What the tags ``"array"`` point to.

    Examples
    --------
    >>> from trueline.persistence.codec import Decoder
    >>> Decoder([]).decode({"$": "tuple", "items": [1, "a"]})
    (1, 'a')
    """

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self._arrays = arrays
        self._read: dict[str, Callable[[dict[str, Any]], Any]] = {
            "float": lambda node: {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[
                node["value"]
            ],
            "tuple": lambda node: tuple(self.decode(item) for item in node["items"]),
            "dict": lambda node: {self.decode(k): self.decode(v) for k, v in node["items"]},
            "set": lambda node: set(self.decode(node["items"])),
            "frozenset": lambda node: frozenset(self.decode(node["items"])),
            "scalar": lambda node: _SCALARS[node["dtype"]](self.decode(node["value"])),
            "type": lambda node: _SCALARS[node["dtype"]],
            "array": self._array,
            "objects": self._objects,
            "member": lambda node: self._find(node, Enum)[node["name"]],
            "record": self._record,
            "estimator": self._estimator,
        }

    def decode(self, node: Any) -> Any:
        """The value of a JSON node."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        tag = node.get("$")
        if not isinstance(tag, str) or tag not in self._read:
            raise ModelFileError(f"it uses an unknown kind of value, {tag!r}")
        return self._read[tag](node)

    def _find(self, node: dict[str, Any], base: type | None = None) -> Any:
        name = node["class"]
        cls = known_classes().get(name) if isinstance(name, str) else None
        if cls is None or (base is not None and not issubclass(cls, base)):
            raise ModelFileError(
                f"it names the class {name!r}, which is not known here (a class of one's own has "
                "to be registered with trueline.persistence.register before loading)"
            )
        return cls

    def _array(self, node: dict[str, Any]) -> np.ndarray:
        index = node["index"]
        if type(index) is not int or not 0 <= index < len(self._arrays):
            raise ModelFileError(f"it refers to an array that is not there, {index!r}")
        return self._arrays[index]

    def _objects(self, node: dict[str, Any]) -> np.ndarray:
        items = self.decode(node["items"])
        shape = tuple(node["shape"])
        if not all(type(size) is int and size >= 0 for size in shape) or (
            math.prod(shape) != len(items)
        ):
            raise ModelFileError("an array of names does not have the size it claims")
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):  # a slice assignment would unpack nested sequences
            array[i] = item
        return array.reshape(shape)

    def _record(self, node: dict[str, Any]) -> Any:
        cls: Any = self._find(node)
        if not hasattr(cls, "__dataclass_fields__"):
            raise ModelFileError(f"{node['class']} is not a record")
        contents = {name: self.decode(item) for name, item in node["fields"].items()}
        expected = {field.name for field in fields(cls)}
        if unknown := contents.keys() - expected:
            raise ModelFileError(f"{node['class']} has no field {sorted(unknown)[0]!r}")
        if problem := misfit(cls, contents):
            raise ModelFileError(problem)
        return cls(**contents)

    def _estimator(self, node: dict[str, Any]) -> Any:
        cls = self._find(node)
        if not is_estimator(cls):
            raise ModelFileError(f"{node['class']} is not an estimator")
        model = cls(**{name: self.decode(item) for name, item in node["params"].items()})
        if hasattr(cls, "_parameter_constraints"):
            model._validate_params()
        for name, item in node["fitted"].items():
            _check_attribute(cls, name)
            value = self.decode(item)
            if problem := misfit_attribute(name, value):
                raise ModelFileError(problem)
            setattr(model, name, value)
        requests = self.decode(node["requests"]) if "requests" in node else {}
        for method, request in requests.items():
            _restore_request(model, method, request)
        return model


def _check_attribute(cls: type, name: str) -> None:
    """Fitted attributes are data beside the methods; they may not stand in for one."""
    own = getattr(cls, name, None)
    if not name.isidentifier() or name.startswith("__") or callable(own):
        raise ModelFileError(f"{name!r} is not a name for a fitted attribute of {cls.__name__}")


def _restore_request(model: Any, method: str, request: Mapping[str, Any]) -> None:
    """Scikit-learn's metadata routing, set again through its own methods."""
    from sklearn.utils._metadata_requests import SIMPLE_METHODS

    if method not in SIMPLE_METHODS:
        raise ModelFileError(f"{method!r} is not a method that takes metadata")
    getattr(model, f"set_{method}_request")(**request)
