"""Which classes a model file may name.

The package's own losses, penalties and estimators are known because they are in their registries,
scikit-learn's usual transformers because of :mod:`trueline.persistence.transformers`; anything else
is one call of :func:`register`.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from typing import TypeVar

from trueline.persistence.transformers import LABELS, transformer_classes

__all__ = ["find_class", "is_estimator", "known_classes", "label", "register"]

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


# Classes of the package that are in none of its own registries, by their module.
_HOMES = {
    "bayesian": "NormalInverseGamma",
    "certificates": "Certificate",
    "certificates.kernel": "KernelCertificate SupportVectorCertificate",
    "certificates.special.separation": "Combination MarginCertificate SeparationCertificate",
    "estimators.multiclass.parts": "ConstantPredictor",
    "features.counters": "Counter",
    "features.stages": "Stage",
    "features.tables.categories": "Categories",
    "features.tables.dates": "Dates",
    "features.tables.encoders": "Booleans Numbers Texts",
    "features.translation.corpus": "Vocabulary",
    "features.translation.language_model": "LanguageModel",
    "features.translation.lexicon": "Lexicon",
    "features.translation.transformer": "Side",
    "separation.margin": "MaximumMargin",
    "separation.result": "Separability",
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
