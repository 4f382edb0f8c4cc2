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
NumPy dtype                                  ``{"$": "dtype", "name": "float64"}``
slice                                        ``{"$": "slice", "items": [0, 3, null]}``
array of Python objects (names, labels)      ``{"$": "objects", "shape": [2], "items": [...]}``
enumeration member                           ``{"$": "member", "class": ..., "name": ...}``
dataclass                                    ``{"$": "record", "class": ..., "fields": {...}}``
estimator                                    ``{"$": "estimator", "class": ..., "params": {...},
                                             "fitted": {...}, "requests": {...}}``
===========================================  ==========================================

Arrays that are one object in memory stay one object: the coefficients of an estimator and of its
certificate are stored once.

A file from a stranger must not cost more than its size, so some of what Python can do is refused
on both sides: deep nesting, very long integers, and large dictionaries with keys that can be
chosen to collide. Where a message would quote a value, it names its type instead: what an
estimator prints takes exponential time in how deeply estimators are nested.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np

from trueline.errors import ModelFileError
from trueline.persistence.registry import (
    FORMER_FIELDS,
    LABELS,
    SCHEMAS,
    find_class,
    is_estimator,
    label,
    unsaved,
)
from trueline.persistence.typecheck import misfit, misfit_attribute, misfit_parameter

#: Kinds of dtype an array in a file may have: booleans, integers, floats, complex, strings.
ARRAY_KINDS = "biufcU"
#: Digits of an integer in a file; Python's own limit, below which reading one takes no time.
LONGEST_INTEGER = 4300

# Lists and other containers, records and estimators in each other; models need about ten.
_DEEPEST = 100
# The hashes of strings are salted; those of numbers are not, so that a file can hold a million of
# them that fall into the same place of a dictionary, which takes hours to fill.
_MOST_NUMBERS_AS_KEYS = 1000
# Losses and penalties look at their arrays when they are made. A file that uses one array in many
# of them would have it looked at each time; in a model, every part has arrays of its own as well.
_LOOKS_PER_ELEMENT, _FREE_LOOKS = 100, 1_000_000

# Attributes that scikit-learn keeps on an estimator and that are not part of the model: requests
# are written in a form of their own, callbacks watched a fit that is over.
_NOT_THE_MODEL = frozenset({"_metadata_request", "_skl_callbacks", "_callback_fit_ctx"})

# Numbers of up to sixteen bytes, texts of up to six digits of length, objects.
_DTYPE = re.compile(r"[<>|=]?(?:[biufc](?:1|2|4|8|16)|U\d{1,6}|O)")
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
        self._depth = 0

    def encode(self, value: Any, where: str = "the model") -> Any:
        """The JSON of a value; ``where`` names it in error messages."""
        if value is None or isinstance(value, str | bool):
            return value
        if type(value) is int:
            _check_integer(value, where)
            return value
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ModelFileError(
                f"{where[:200]} is nested more than {_DEEPEST} levels deep, or holds itself; a "
                "model file cannot hold it."
            )
        node = self._encode(value, where)
        self._depth -= 1
        return node

    def _encode(self, value: Any, where: str) -> Any:
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
        if isinstance(value, np.dtype) and value.kind in ARRAY_KINDS + "O":
            return {"$": "dtype", "name": value.str}
        if isinstance(value, slice):
            items = [self.encode(x, where) for x in (value.start, value.stop, value.step)]
            return {"$": "slice", "items": items}
        if isinstance(value, type) and value in _SCALARS.values():
            return {"$": "type", "dtype": np.dtype(value).name}
        if type(value) in (list, tuple):  # not their subclasses, which would come back changed
            items = [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"$": "tuple", "items": items}
        if type(value) in (set, frozenset) and all(isinstance(item, str) for item in value):
            # Sorted, so that the same model makes the same file.
            return {"$": type(value).__name__, "items": sorted(value)}
        if isinstance(value, Mapping):
            _check_keys(value, where)
            return {"$": "dict", "items": self._items(value, where)}
        self._check_known(value, where)
        return self._record(value) if is_dataclass(value) else self._estimator(value)

    def _check_known(self, value: Any, where: str) -> None:
        cls = type(value)
        if find_class(label(cls)) is cls:
            return
        raise ModelFileError(
            f"{where} is a {cls.__module__}.{cls.__qualname__}, which a model file cannot hold. "
            "Model files hold numbers, strings, arrays, lists, tuples, dictionaries, trueline's "
            f"estimators, the transformers {', '.join(LABELS)} of scikit-learn, and registered "
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
        # Checked here as well: better a refusal to save than a file that cannot be loaded.
        if problem := misfit(cls, contents):
            raise ModelFileError(f"{problem}: this object cannot be saved.")
        return {"$": "record", "class": label(cls), "fields": self._attributes(cls, contents)}

    def _estimator(self, model: Any) -> Any:
        cls = type(model)
        skipped = unsaved(cls)
        params = {
            name: None if name in skipped else value
            for name, value in model.get_params(deep=False).items()
        }
        getattr(model, "certificate_", None)  # a proof that is pending is worked out now
        if settle := getattr(model, "_settle", None):  # and what else was left for later
            settle()
        fitted = {
            name: value
            for name, value in vars(model).items()
            if name not in params
            and name not in _NOT_THE_MODEL
            and name not in skipped
            and not isinstance(getattr(cls, name, None), cached_property)
        }
        # Checked here as well: better a refusal to save than a file that cannot be loaded.
        for name, value in fitted.items() if label(cls) in SCHEMAS else ():
            if problem := misfit_attribute(name, value, cls):
                raise ModelFileError(f"{problem}: this object cannot be saved.")
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
        self._depth = 0
        self._looks = _FREE_LOOKS + _LOOKS_PER_ELEMENT * sum(array.size for array in arrays)
        self._read: dict[str, Callable[[dict[str, Any]], Any]] = {
            "float": lambda node: {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[
                node["value"]
            ],
            "tuple": lambda node: tuple(self._items(node)),
            "dict": self._dict,
            "set": lambda node: set(self._strings(node)),
            "frozenset": lambda node: frozenset(self._strings(node)),
            "scalar": self._scalar,
            "type": lambda node: _SCALARS[node["dtype"]],
            "dtype": self._dtype,
            "slice": self._slice,
            "array": self._array,
            "objects": self._objects,
            "member": lambda node: self._find(node, Enum)[node["name"]],
            "record": self._record,
            "estimator": self._estimator,
        }

    def decode(self, node: Any) -> Any:
        """The value of a JSON node. Lists are decoded in place: the node is used up."""
        if type(node) is list:
            return self._list(node)
        return self._tagged(node) if type(node) is dict else node

    def _list(self, items: list[Any]) -> list[Any]:
        self._descend()
        for i, item in enumerate(items):
            if type(item) is list:
                self._list(item)
            elif type(item) is dict:
                items[i] = self._tagged(item)
        self._depth -= 1
        return items

    def _descend(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ModelFileError("its header is nested too deeply")

    def _tagged(self, node: dict[str, Any]) -> Any:
        tag = node.get("$")
        if not isinstance(tag, str) or tag not in self._read:
            raise ModelFileError(f"it uses an unknown kind of value, {tag!r}")
        self._descend()
        value = self._read[tag](node)
        self._depth -= 1
        return value

    def _items(self, node: dict[str, Any]) -> list[Any]:
        items = node["items"]
        if not isinstance(items, list):
            raise ModelFileError(f"the items of a {node['$']} are not a list")
        return self._list(items)

    def _dict(self, node: dict[str, Any]) -> dict[Any, Any]:
        pairs = self._items(node)
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise ModelFileError("an item of a dictionary is not a key and a value")
        _check_keys([key for key, _ in pairs], "a dictionary")
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ModelFileError("a dictionary repeats a key")
        return found

    def _strings(self, node: dict[str, Any]) -> list[str]:
        """The items of a set."""
        items = self._items(node)
        if not all(isinstance(item, str) for item in items):
            raise ModelFileError("a set holds something else than strings")
        return items

    def _scalar(self, node: dict[str, Any]) -> np.generic:
        value = self.decode(node["value"])
        if not isinstance(value, bool | int | float):
            raise ModelFileError("a NumPy number is not a number")
        return _SCALARS[node["dtype"]](value)

    def _dtype(self, node: dict[str, Any]) -> np.dtype[Any]:
        name = node["name"]
        if not isinstance(name, str) or not _DTYPE.fullmatch(name):
            raise ModelFileError("it names a type of number that is not known")
        return np.dtype(name)

    def _slice(self, node: dict[str, Any]) -> slice:
        items = self._items(node)
        if len(items) != 3 or not all(item is None or type(item) is int for item in items):
            raise ModelFileError("a slice is not made of three whole numbers")
        return slice(*items)

    def _find(self, node: dict[str, Any], base: type | None = None) -> Any:
        name = node["class"]
        cls = find_class(name) if isinstance(name, str) else None
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
        items = self._items(node)
        shape = node["shape"]
        # Each size by itself first: the product of many that are long takes hours.
        if not all(type(size) is int and 0 <= size <= len(items) for size in shape) or (
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
        contents = {
            FORMER_FIELDS.get(name, name): self.decode(item)
            for name, item in node["fields"].items()
        }
        expected = {field.name for field in fields(cls)}
        if unknown := contents.keys() - expected:
            raise ModelFileError(f"{node['class']} has no field {sorted(unknown)[0]!r}")
        if problem := misfit(cls, contents):
            raise ModelFileError(problem)
        self._looks -= sum(item.size for item in contents.values() if isinstance(item, np.ndarray))
        if self._looks < 0:
            raise ModelFileError("it uses the same arrays over and over")
        return cls(**contents)

    def _estimator(self, node: dict[str, Any]) -> Any:
        cls = self._find(node)
        if not is_estimator(cls):
            raise ModelFileError(f"{node['class']} is not an estimator")
        params = {name: self.decode(item) for name, item in node["params"].items()}
        if problem := misfit_parameter(cls, params):
            raise ModelFileError(problem)
        if any(params.get(name) is not None for name in unsaved(cls)):
            raise ModelFileError(f"{node['class']} names a folder of a machine")
        model = cls(**params)
        for name, item in node["fitted"].items():
            _check_attribute(cls, name)
            value = self.decode(item)
            if problem := misfit_attribute(name, value, cls):
                raise ModelFileError(problem)
            setattr(model, name, value)
        requests = self.decode(node["requests"]) if "requests" in node else {}
        for method, request in requests.items():
            _restore_request(model, method, request)
        return model


def _check_integer(value: int, where: str) -> None:
    # In bits, because the digits of a long integer take quadratic time to count.
    if value.bit_length() > LONGEST_INTEGER * 3:
        raise ModelFileError(f"{where} is an integer too long for a model file.")


def _check_keys(keys: Collection[Any], where: str) -> None:
    """Any number of strings and tuples of strings, few others."""
    if len(keys) > _MOST_NUMBERS_AS_KEYS:
        others = sum(not _is_text(key) for key in keys)
        if others > _MOST_NUMBERS_AS_KEYS:
            raise ModelFileError(
                f"{where} has {others} keys that are not strings, and a model file holds at most "
                f"{_MOST_NUMBERS_AS_KEYS} in one dictionary"
            )


def _is_text(key: Any) -> bool:
    return isinstance(key, str) or (type(key) is tuple and all(map(_is_text, key)))


def _check_attribute(cls: type, name: str) -> None:
    """Fitted attributes are data beside the methods; they may not stand in for one."""
    own = getattr(cls, name, None)
    is_code = callable(own) or isinstance(own, property | cached_property)
    if not name.isidentifier() or name.startswith("__") or is_code:
        raise ModelFileError(f"{name!r} is not a name for a fitted attribute of {cls.__name__}")


def _restore_request(model: Any, method: str, request: Mapping[str, Any]) -> None:
    """Scikit-learn's metadata routing, set again through its own methods."""
    from sklearn.utils._metadata_requests import SIMPLE_METHODS

    if method not in SIMPLE_METHODS:
        raise ModelFileError(f"{method!r} is not a method that takes metadata")
    getattr(model, f"set_{method}_request")(**request)
