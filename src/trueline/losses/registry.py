"""The losses by name. A loss is added by one file and one line here; its laws are then tested."""

from __future__ import annotations

from trueline.losses.base import Loss
from trueline.losses.deviance import Gamma, Poisson, Tweedie
from trueline.losses.epsilon_insensitive import (
    EpsilonInsensitive,
    SquaredEpsilonInsensitive,
)
from trueline.losses.hinge import Hinge, SquaredHinge
from trueline.losses.logistic import Logistic
from trueline.losses.quantile import Absolute, MaximumError, Quantile
from trueline.losses.squared import Huber, Squared

LOSSES: dict[str, type[Loss]] = {
    cls.name: cls
    for cls in (
        Squared,
        Absolute,
        Quantile,
        Huber,
        Logistic,
        EpsilonInsensitive,
        SquaredEpsilonInsensitive,
        MaximumError,
        Hinge,
        SquaredHinge,
        Poisson,
        Gamma,
        Tweedie,
    )
}


def as_loss(loss: str | Loss) -> Loss:
    """A loss from its name, or the object itself.

    Examples
    --------
    >>> from trueline.losses import as_loss
    >>> as_loss("squared")
    Squared()
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    raise ValueError(
        f"loss={loss!r} is not known. Give one of {sorted(LOSSES)} or an instance of "
        "trueline.losses.Loss."
    )
