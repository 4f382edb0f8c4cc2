"""Prices of errors that the squares of sums must not carry out of the range of doubles."""

from __future__ import annotations

__all__ = ["require_price"]

_SMALLEST, _LARGEST = 1e-90, 1e90


def require_price(C: float, largest: float) -> None:
    """Raise if C, or C times the largest sample weight, cannot be squared.

    Parameters
    ----------
    C : float
    largest : float
        C times the largest sample weight.
    """
    if not _SMALLEST <= largest <= _LARGEST:
        raise ValueError(
            f"C={C:.3g} times the largest sample weight is {largest:.3g}: its square leaves the "
            "range of double precision. Bring C, or the weights, nearer to one."
        )
