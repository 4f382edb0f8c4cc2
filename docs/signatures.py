"""Where signatures and defaults differ from scikit-learn's, with the reason for each difference.

``found()`` compares every class and function that scikit-learn has too; REASONS says why each
difference exists. A test fails if one is without a reason, or a reason without a difference, so
that the page of differences cannot be wrong.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["REASONS", "Difference", "found", "namesakes"]

_PLAN = "scikit-learn's names are understood; the function that is minimised decides the answer"
_ONLINE = "variants of the textbooks; the default is scikit-learn's algorithm"
_STEPS = "where gradient descent begins and how long its steps are, for the solvers of textbooks"
_EXPOSURE = "time or people at risk of each row; by keyword only"
_WEIGHTS = "scikit-learn has them for its other online learners"

#: Why a parameter of a class, or of a method ("fit: offset"), differs.
REASONS: dict[str, str] = {
    "batch_size": _STEPS,
    "bias": _ONLINE,
    "bounds": "limits of single coefficients",
    "code": "other books of codes; the default is scikit-learn's",
    "coupling": "how probabilities of pairs become those of classes (``predict_proba``)",
    "decoding": "other distances of codes; the default is scikit-learn's",
    "eta0": _STEPS,
    "feature_weights": "a factor for the penalty of each coefficient",
    "fit: coef_init": _STEPS,
    "fit: exposure": _EXPOSURE,
    "fit: intercept_init": _STEPS,
    "fit: offset": _EXPOSURE,
    "fit: sample_weight": _WEIGHTS,
    "intercept_step": _ONLINE,
    "l1_ratio": "squares in the penalty; the default is the penalty of absolute values alone",
    "margin": _ONLINE,
    "multiclass": _ONLINE,
    "non_crossing": "of several quantiles",
    "normalize_rows": _ONLINE,
    "partial_fit: sample_weight": _WEIGHTS,
    "predict: exposure": _EXPOSURE,
    "predict: offset": _EXPOSURE,
    "record_updates": "keeps the mistakes, for plots and proofs",
    "rule": "the largest strength within a standard error of the best",
    "sample_y: noise": "functions without the noise of the kernel; by keyword only",
    "score: exposure": _EXPOSURE,
    "score: offset": _EXPOSURE,
    "schedule": _STEPS,
    "sign_of_zero": _ONLINE,
    "smoothing": 'how far kinks are rounded, for ``solver="smoothed"``',
    "solver": _PLAN,
    "trace": "keeps objective and gap of every iteration",
    "variant": _ONLINE,
}

# Methods that scikit-learn makes from the signature of others.
_MADE = ("set_", "get_metadata_routing")
# What stands in classes of scikit-learn by accident: no method, and not documented.
_INNER = {"param", "unused_param", "loss_functions"}


class Difference(NamedTuple):
    """One parameter of one class."""

    owner: str
    parameter: str
    here: str
    there: str

    @property
    def reason(self) -> str:
        return REASONS.get(self.parameter, "")


def namesakes() -> dict[str, tuple[Any, Any]]:
    """What both libraries have under the same name: ours and theirs."""
    from sklearn import linear_model
    from sklearn.utils import all_estimators

    import trueline

    theirs = {**dict(all_estimators()), **vars(linear_model)}
    return {
        name: (getattr(trueline, name), theirs[name])
        for name in sorted(set(trueline.__all__) & set(theirs))
        if callable(getattr(trueline, name))
    }


def found() -> list[Difference]:
    """Every parameter that one of both does not have, or that has another default or place."""
    differences: list[Difference] = []
    for name, (ours, theirs) in namesakes().items():
        for label, here, there in _signatures(ours, theirs):
            differences += _compared(name, label, here, there)
    return differences


def _signatures(ours: Any, theirs: Any) -> Iterator[tuple[str, Any, Any]]:
    """The signatures to compare: of the function, or of the class and its methods."""
    if not inspect.isclass(ours):
        yield "", ours, theirs
        return
    yield "", ours.__init__, theirs.__init__
    for name in dir(theirs):
        if name.startswith("_") or name.startswith(_MADE) or name in _INNER:
            continue
        here, there = getattr(ours, name, None), getattr(theirs, name, None)
        if here is None:
            yield f"{name}: ", None, there
        elif inspect.isfunction(here) and inspect.isfunction(there):
            yield f"{name}: ", here, there


def _compared(owner: str, label: str, ours: Any, theirs: Any) -> list[Difference]:
    if ours is None:
        return [Difference(owner, label, "missing", "a method or attribute")]
    here, there = (_parameters(callable_) for callable_ in (ours, theirs))
    names = [*there, *(name for name in here if name not in there)]
    return [
        Difference(owner, label + name, here.get(name, "none"), there.get(name, "none"))
        for name in names
        if not _is_same(here.get(name), there.get(name))
    ]


def _is_same(here: str | None, there: str | None) -> bool:
    """What may be given by keyword there may be given by place, too, here."""
    if here is not None and there is not None and "argument" not in there:
        here = here.split(", argument")[0]
    return here == there


def _parameters(callable_: Any) -> dict[str, str]:
    """Defaults by name, as text; with the place for those that may be given by place."""
    out = {}
    for place, (name, one) in enumerate(inspect.signature(callable_).parameters.items()):
        default = "required" if one.default is inspect.Parameter.empty else repr(one.default)
        is_by_place = one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        out[name] = f"{default}, argument {place}" if is_by_place else default
    return out
