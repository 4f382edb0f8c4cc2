"""Limits of a stepwise search: parameters that contradict each other or the data are refused."""

from __future__ import annotations

from typing import Any

from trueline.selection.stepwise import Selection

__all__ = ["check_combination", "check_reached", "check_sizes"]


def check_combination(model: Any) -> None:
    """Raise for parameters that contradict each other."""
    if model.n_features_to_select is not None and model.direction == "both":
        raise ValueError(
            "n_features_to_select needs direction='forward' or 'backward': a search both ways "
            "ends where the criterion does. Use max_features to limit it."
        )
    if model.max_features is not None and model.direction == "backward":
        raise ValueError(
            "max_features limits what enters; with direction='backward' use n_features_to_select."
        )
    if model.k != 2.0 and model.criterion != "aic":
        raise ValueError(
            f"k={model.k!r} is the charge per parameter of criterion='aic'; "
            f"criterion={model.criterion!r} has its own."
        )


def check_sizes(model: Any, n_terms: int, is_grouped: bool) -> None:
    """Raise if more is asked for than there is."""
    for name in ("n_features_to_select", "max_features"):
        value = getattr(model, name)
        if value is not None and value > n_terms:
            what = "terms" if is_grouped else "columns"
            raise ValueError(f"{name}={value} is more than the {n_terms} {what} there are.")
    if None not in (model.max_features, model.n_features_to_select) and (
        model.max_features < model.n_features_to_select
    ):
        raise ValueError(
            f"max_features={model.max_features} is less than "
            f"n_features_to_select={model.n_features_to_select}."
        )


def check_reached(model: Any, found: Selection, rows: int) -> None:
    """Raise if so many columns as were asked for could not be chosen."""
    wanted = model.n_features_to_select
    reached = found.history[-1]["n_terms"]
    if wanted is not None and found.finished and reached < wanted:
        raise ValueError(
            f"n_features_to_select={wanted}, but only {reached} are linearly independent on "
            f"{rows} sample{'s' * (rows != 1)} (constant columns and combinations of others "
            "cannot be chosen)."
        )
