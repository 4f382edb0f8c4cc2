"""Transformers of scikit-learn that a model file may hold, each with its own schema.

A schema names the attributes that a fitted transformer has, with their types. A transformer that is
not listed, or an attribute that is not, is refused by name when saving and when loading. Functions
are never data: a ``FunctionTransformer`` is saved without a function, a vectorizer without a
tokenizer of one's own, a ``ColumnTransformer`` with the names or numbers of its columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LABELS", "SCHEMAS", "transformer_classes", "unsaved"]

_Numbers = NDArray[np.floating] | None
_Schema = Mapping[str, Any]

# What every transformer may have.
_COMMON: _Schema = {
    "n_features_in_": int,
    "feature_names_in_": NDArray[Any],
    "_sklearn_output_config": dict,
}
_CATEGORIES: _Schema = {
    "categories_": list,
    "_infrequent_enabled": bool,
    "_infrequent_indices": list,
    "_default_to_infrequent_mappings": list,
}
_WORDS: _Schema = {"vocabulary_": dict, "fixed_vocabulary_": bool, "stop_words_": set}

_HOMES: dict[str, tuple[str, _Schema]] = {
    "Pipeline": ("pipeline", {}),
    "ColumnTransformer": (
        "compose",
        {
            "transformers_": list,
            "sparse_output_": bool,
            "output_indices_": dict,
            "_columns": list,
            "_transformer_to_input_indices": dict,
            "_remainder": tuple,
            "_n_features": int,
        },
    ),
    "StandardScaler": (
        "preprocessing",
        {
            "mean_": _Numbers,
            "var_": _Numbers,
            "scale_": _Numbers,
            "n_samples_seen_": int | float | NDArray[np.floating],
        },
    ),
    "MinMaxScaler": (
        "preprocessing",
        {
            "min_": _Numbers,
            "scale_": _Numbers,
            "data_min_": _Numbers,
            "data_max_": _Numbers,
            "data_range_": _Numbers,
            "n_samples_seen_": int,
        },
    ),
    "MaxAbsScaler": (
        "preprocessing",
        {"max_abs_": _Numbers, "scale_": _Numbers, "n_samples_seen_": int},
    ),
    "RobustScaler": ("preprocessing", {"center_": _Numbers, "scale_": _Numbers}),
    "OneHotEncoder": (
        "preprocessing",
        {
            **_CATEGORIES,
            "drop_idx_": NDArray[Any] | None,
            "_drop_idx_after_grouping": NDArray[Any] | None,
            "_n_features_outs": list,
        },
    ),
    "OrdinalEncoder": ("preprocessing", {**_CATEGORIES, "_missing_indices": dict}),
    "PolynomialFeatures": (
        "preprocessing",
        {"n_output_features_": int, "_min_degree": int, "_max_degree": int, "_n_out_full": int},
    ),
    "FunctionTransformer": ("preprocessing", {}),
    "SimpleImputer": (
        "impute",
        {
            "statistics_": NDArray[Any],
            "indicator_": Any,
            "_fit_dtype": np.dtype,
            "_fill_dtype": np.dtype,
        },
    ),
    "MissingIndicator": (
        "impute",
        {"features_": NDArray[Any], "_n_features": int, "_precomputed": bool},
    ),
    "CountVectorizer": ("feature_extraction.text", _WORDS),
    "TfidfVectorizer": ("feature_extraction.text", {**_WORDS, "_tfidf": Any}),
    "TfidfTransformer": ("feature_extraction.text", {"idf_": _Numbers}),
}

#: The types of the fitted attributes, by the name of the class in model files.
SCHEMAS: dict[str, _Schema] = {
    f"sklearn.{name}": {**_COMMON, **schema} for name, (_, schema) in _HOMES.items()
}
#: The name in model files of each class, by the name that Python gives it: modules of scikit-learn
#: with an underscore move from one release to the next.
LABELS = {name: f"sklearn.{name}" for name in _HOMES}

# Places in the memory of one machine, and folders of it.
_OF_THE_MACHINE = {
    "CountVectorizer": {"_stop_words_id"},
    "TfidfVectorizer": {"_stop_words_id"},
    "Pipeline": {"memory"},
}


def unsaved(cls: type) -> set[str]:
    """Attributes and parameters that are not part of the model."""
    return _OF_THE_MACHINE.get(cls.__name__, set()) if _is_known(cls) else set()


def _is_known(cls: type) -> bool:
    return transformer_classes().get(LABELS.get(cls.__name__, "")) is cls


@cache
def transformer_classes() -> dict[str, type]:
    """The classes by their names in model files."""
    return {
        LABELS[name]: getattr(import_module(f"sklearn.{home}"), name)
        for name, (home, _) in _HOMES.items()
    }
