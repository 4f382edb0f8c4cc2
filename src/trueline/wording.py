"""Words that texts for people share."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, noun: str) -> str:
    """A number with its noun, singular or plural.

    Examples
    --------
    >>> from trueline.wording import counted
    >>> counted(1, "step"), counted(0, "step"), counted(1200, "iteration")
    ('1 step', '0 steps', '1,200 iterations')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
