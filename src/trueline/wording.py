"""Words that texts for people share."""

from __future__ import annotations

__all__ = ["counted", "relative", "times"]


def counted(number: int, noun: str) -> str:
    """A number with its noun, singular or plural.

    Examples
    --------
    >>> from trueline.wording import counted
    >>> counted(1, "step"), counted(0, "step"), counted(1200, "iteration")
    ('1 step', '0 steps', '1,200 iterations')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def relative(share: float) -> str:
    """A gap relative to the objective; where the objective is zero but for rounding, in words.

    Examples
    --------
    >>> from trueline.wording import relative
    >>> relative(2.5e-9), relative(3.6e213)
    ('relative 2.5e-09', 'more than the objective itself')
    """
    return f"relative {share:.2g}" if share <= 1.0 else "more than the objective itself"


def times(ratio: float) -> str:
    """How many times; numbers that nobody can picture in words.

    Examples
    --------
    >>> from trueline.wording import times
    >>> times(12.3456), times(3.6e213)
    ('12.3 times', 'more than a million times')
    """
    return f"{ratio:.3g} times" if ratio <= 1e6 else "more than a million times"
