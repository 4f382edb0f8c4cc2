"""The penalties by name. One file and one line here; the laws are then tested."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from trueline.penalties.base import Array, NoPenalty, Penalty
from trueline.penalties.bounded import Bounded, NonNegative
from trueline.penalties.elastic_net import L1, L2, ElasticNet
from trueline.penalties.group import Group, MultiTask

PENALTIES: dict[str, type[Penalty]] = {
    cls.name: cls for cls in (NoPenalty, L2, L1, ElasticNet, NonNegative, Bounded, Group, MultiTask)
}


def as_penalty(
    penalty: str | Penalty | None, alpha: float | Array = 1.0, **options: Any
) -> Penalty:
    """A penalty from its name and strength, or the object itself.

    Options that the penalty does not have are ignored, so that one estimator can offer them all.

    Examples
    --------
    >>> from trueline.penalties import as_penalty
    >>> as_penalty("l2", 0.5)
    L2(alpha=0.5)
    """
    if isinstance(penalty, Penalty):
        return penalty
    if penalty is None:
        return NoPenalty()
    if isinstance(penalty, str) and penalty in PENALTIES:
        cls = PENALTIES[penalty]
        known = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        given = {"alpha": alpha, **options}
        return cls(**{name: value for name, value in given.items() if name in known})
    raise ValueError(
        f"penalty={penalty!r} is not known. Give one of {sorted(PENALTIES)}, None, or an "
        "instance of trueline.penalties.Penalty."
    )
