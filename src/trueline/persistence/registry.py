"""Which classes a model file may name.

The package's own losses, penalties and estimators are known because they are in their registries,
scikit-learn's usual transformers because each has a schema here; anything else is one call of
:func:`register`.

A schema names the attributes that a fitted transformer has, with their types. A transformer that is
not listed, or an attribute that is not, is refused by name when saving and when loading. Functions
are never data: a ``FunctionTransformer`` is saved without a function, a vectorizer without a
tokenizer of one's own, a ``ColumnTransformer`` with the names or numbers of its columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Numbers = NDArray[np.floating] | None
_Schema = Mapping[str, Any]

# The fitted attributes of transformers, by their type: it is the same in all that have one.
_TYPES: _Schema = {
    name: kind
    for kind, names in (
        (int, "n_features_in_ n_samples_seen_ _n_features n_output_features_ _n_out_full"),
        (int, "_min_degree _max_degree"),
        (bool, "sparse_output_ _infrequent_enabled fixed_vocabulary_ _precomputed"),
        (list, "transformers_ _columns categories_ _infrequent_indices _n_features_outs"),
        (list, "_default_to_infrequent_mappings"),
        (dict, "_sklearn_output_config output_indices_ _transformer_to_input_indices"),
        (dict, "_missing_indices vocabulary_"),
        (tuple, "_remainder"),
        (set, "stop_words_"),
        (np.dtype, "_fit_dtype _fill_dtype"),
        (_Numbers, "mean_ var_ scale_ min_ data_min_ data_max_ data_range_ max_abs_ center_ idf_"),
        (NDArray[Any], "feature_names_in_ statistics_ features_"),
        (NDArray[Any] | None, "drop_idx_ _drop_idx_after_grouping"),
        (Any, "indicator_ _tfidf"),
    )
    for name in names.split()
}
_COMMON = "n_features_in_ feature_names_in_ _sklearn_output_config"
_CATEGORIES = "categories_ _infrequent_enabled _infrequent_indices _default_to_infrequent_mappings"
_WORDS = "vocabulary_ fixed_vocabulary_ stop_words_"

# The classes of each module, and the attributes that a class may have beside the common ones.
_TRANSFORMERS: dict[str, dict[str, str]] = {
    "pipeline": {"Pipeline": ""},
    "compose": {
        "ColumnTransformer": "transformers_ sparse_output_ output_indices_ _columns _remainder "
        "_transformer_to_input_indices _n_features"
    },
    "preprocessing": {
        "StandardScaler": "mean_ var_ scale_ n_samples_seen_",
        "MinMaxScaler": "min_ scale_ data_min_ data_max_ data_range_ n_samples_seen_",
        "MaxAbsScaler": "max_abs_ scale_ n_samples_seen_",
        "RobustScaler": "center_ scale_",
        "OneHotEncoder": f"{_CATEGORIES} drop_idx_ _drop_idx_after_grouping _n_features_outs",
        "OrdinalEncoder": f"{_CATEGORIES} _missing_indices",
        "PolynomialFeatures": "n_output_features_ _min_degree _max_degree _n_out_full",
        "FunctionTransformer": "",
    },
    "impute": {
        "SimpleImputer": "statistics_ indicator_ _fit_dtype _fill_dtype",
        "MissingIndicator": "features_ _n_features _precomputed",
    },
    "feature_extraction.text": {
        "CountVectorizer": _WORDS,
        "TfidfVectorizer": f"{_WORDS} _tfidf",
        "TfidfTransformer": "idf_",
    },
}
_HOME_OF = {name: home for home, classes in _TRANSFORMERS.items() for name in classes}

#: The types of the fitted attributes, by the name of the class in model files.
SCHEMAS: dict[str, dict[str, Any]] = {
    f"sklearn.{name}": {one: _TYPES[one] for one in f"{_COMMON} {own}".split()}
    for classes in _TRANSFORMERS.values()
    for name, own in classes.items()
}
# One number for each column where values are missing.
SCHEMAS["sklearn.StandardScaler"]["n_samples_seen_"] = int | float | NDArray[np.floating]
#: The name in model files of each class, by the name that Python gives it: modules of scikit-learn
#: with an underscore move from one release to the next.
LABELS = {name: f"sklearn.{name}" for name in _HOME_OF}

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
        for name, home in _HOME_OF.items()
    }


_Class = TypeVar("_Class", bound=type)

_registered: dict[str, type] = {}


def is_estimator(cls: type) -> bool:
    """Whether a class keeps scikit-learn's contract: parameters by name, ``get_params``."""
    return hasattr(cls, "get_params") and hasattr(cls, "set_params")


def label(cls: type) -> str:
    """The name of a class in model files.

    The package's own classes go by their room and name (``penalties.L2``), so that moving a class
    from one file to another does not orphan the models people have saved.

    Examples
    --------
    >>> from trueline.penalties import L2
    >>> from trueline.persistence.registry import label
    >>> label(L2)
    'penalties.L2'
    """
    package, _, rest = cls.__module__.partition(".")
    if package == "trueline":
        return f"{rest.partition('.')[0]}.{cls.__qualname__}"
    if package == "sklearn" and cls.__qualname__ in LABELS:
        return LABELS[cls.__qualname__]
    return f"{cls.__module__}.{cls.__qualname__}"


def register(cls: _Class) -> _Class:
    """Allow a class in model files; also usable as a decorator.

    Parameters
    ----------
    cls : type
        A dataclass, an enumeration, or an estimator.

    Returns
    -------
    cls : type
        The same class.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from trueline.persistence import known_classes, register
    >>> @register
    ... @dataclass(frozen=True)
    ... class Recipe:
    ...     degree: int
    >>> Recipe in known_classes().values()
    True
    """
    if not (is_dataclass(cls) or issubclass(cls, Enum) or is_estimator(cls)):
        raise TypeError(
            f"{cls.__name__} cannot be registered: model files hold dataclasses, enumerations and "
            "estimators (classes with get_params and set_params)."
        )
    # A class that is defined again (a reloaded module, a notebook cell) replaces itself.
    _registered[label(cls)] = cls
    return cls


def known_classes() -> dict[str, type]:
    """Every class that a model file may name, by the name it has there."""
    return {**_own_classes(), **_registered}


def find_class(name: str) -> type | None:
    """The class of this name in model files, or None; ``known_classes`` for a single name."""
    room, dot, rest = name.partition(".")
    today = f"{_FORMER_ROOMS.get(room, room)}{dot}{rest}"
    return _registered.get(name) or _own_classes().get(today)


# Folders that were renamed, as files written before name them, and their names today.
_FORMER_ROOMS = {
    "bayes": "bayesian",
    "halfspaces": "separation",
    "planner": "plan",
    "processes": "gaussian_process",
    "subset": "best_subset",
}


# Fields of records that were renamed, likewise.
FORMER_FIELDS = {"successors": "fallbacks"}


# Classes of the package that are in none of its own registries, by their module.
_HOMES = {
    "bayesian": "NormalInverseGamma",
    "certificates": "Certificate",
    "certificates.kernel": "KernelCertificate SupportVectorCertificate",
    "certificates.special.separation": "Combination MarginCertificate SeparationCertificate",
    "estimators.multiclass.parts": "ConstantPredictor",
    "features.text": "Counter",
    "features.chained": "Stage",
    "features.tables.encoders": "Booleans Categories Dates Numbers Texts",
    "features.translation_models": "LanguageModel Lexicon Vocabulary",
    "features.translation": "Side",
    "separation.margin": "MaximumMargin",
    "separation.separate": "Separability",
    "kernels": "KernelFunction",
    "losses": "CrammerSinger HardMargin LocalDeviance OrderedQuantiles Softmax ZeroOne",
    "moments": "Moments",
    "online.passes": "Record",
    "online.stream": "Progress",
    "plan": "Candidate Plan",
    "gaussian_process.inducing": "InducingFit",
    "gaussian_process.structure": "Structure Term",
    "solution": "Solution Status",
    "solvers.base": "Cost Facts",
    "trace": "Trace",
}


@cache
def _own_classes() -> dict[str, type]:
    """The package's classes, imported at the first save or load rather than with the package."""
    import trueline
    from trueline.gaussian_process.structure import KERNELS
    from trueline.losses import LOSSES
    from trueline.penalties import PENALTIES

    exported = (getattr(trueline, name) for name in trueline.__all__)
    models = (item for item in exported if isinstance(item, type) and is_estimator(item))
    parts = (
        getattr(import_module(f"trueline.{home}"), name)
        for home, names in _HOMES.items()
        for name in names.split()
    )
    classes = (*LOSSES.values(), *PENALTIES.values(), *parts, *KERNELS, *models)
    return {**{label(cls): cls for cls in classes}, **transformer_classes()}
