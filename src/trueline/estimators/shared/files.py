"""Methods of rows that are given the path of files: ``verify("folder/*.parquet", target="y")``.

What ``fit`` does with a path it does by itself (``takes_batches``).
"""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import Any

from sklearn.utils import get_tags

from trueline.estimators.shared.validation import (
    names_of_columns,
    opening,
    refuse_batches,
    refuse_opening,
    rows_of,
)
from trueline.streams import Batches

# The methods whose first argument are rows, beside those that learn.
_METHODS = (
    "aic",
    "bic",
    "certify",
    "decision_function",
    "explain",
    "log_likelihood",
    "log_posterior",
    "objective",
    "predict",
    "predict_log_proba",
    "predict_proba",
    "score",
    "score_samples",
    "verify",
)


def take_files(cls: Any) -> None:
    """Let the methods of a class take paths and batches, which bring their target along."""
    # Transformers of another kind than those which learn from files may take texts.
    opens = hasattr(getattr(cls, "fit", None), "opens_files")
    for name in (*_METHODS, "transform") if opens else _METHODS:
        method = inspect.getattr_static(cls, name, None)
        if inspect.isfunction(method) and not hasattr(method, "takes_files"):
            setattr(cls, name, _taking_files(method))


def _taking_files(method: Any) -> Any:
    @functools.wraps(method)
    def with_files(self: Any, *given: Any, **named: Any) -> Any:
        X = given[0] if given else named.get("X")
        if not isinstance(X, Batches | str | Path):
            refuse_opening(method, named)
            return method(self, *given, **named)
        if method.__name__ == "verify" and not hasattr(type(self).fit, "takes_batches"):
            refuse_batches(self)
        call = _with_rows(method, self, given, named)
        return method(*call.args, **call.kwargs)

    with_files.takes_files = True  # type: ignore[attr-defined]
    return with_files


def _with_rows(
    method: Any, model: Any, given: tuple[Any, ...], named: dict[str, Any]
) -> inspect.BoundArguments:
    """The arguments of a method, with rows, target and weights in place of a path."""
    signature = inspect.signature(method)
    how = opening(named)
    call = signature.bind_partial(model, *given, **named)
    values = call.arguments
    X, y, weights = values["X"], values.get("y"), values.get("sample_weight")
    if isinstance(X, str | Path):
        how.setdefault("columns", names_of_columns(model))
    found = zip(("X", "y", "sample_weight"), rows_of(X, y, weights, how))
    for name, value in found:
        if name in signature.parameters and value is not None:
            values[name] = value
    if _wants_target(signature, model) and values.get("y") is None:
        method_name = method.__name__
        raise ValueError(
            f"{type(model).__name__}.{method_name} needs the target, and none is given. Name "
            f"its column: {method_name}(path, target='y'), or give y beside the path."
        )
    return call


def _wants_target(signature: inspect.Signature, model: Any) -> bool:
    """Whether a method takes a target, of a model that learns from one."""
    return "y" in signature.parameters and bool(get_tags(model).target_tags.required)
