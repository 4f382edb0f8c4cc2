"""What is to be said of a strength that is the smallest or the largest of those that were tried."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["edge_notes"]


def edge_notes(name: str, chosen: Any, tried: Any) -> list[str]:
    """A line for each end of the strengths that was chosen; none if the choice lies between.

    Nothing is beyond zero and infinity, so that they are no ends.

    Parameters
    ----------
    name : str
        Of the strength.
    chosen : float or array-like
        One number, or one per target or class.
    tried : array-like
        All strengths that were compared.

    Examples
    --------
    >>> from trueline.selection.edges import edge_notes
    >>> edge_notes("alpha", 10.0, [0.1, 1.0, 10.0])
    ['alpha = 10 is the largest of the 3 that were tried; a larger one may do better']
    >>> edge_notes("alpha", 1.0, [0.1, 1.0, 10.0])
    []
    """
    picks = np.atleast_1d(np.asarray(chosen, dtype=float))
    values = np.unique(np.asarray(tried, dtype=float))
    if len(values) < 2:
        return []
    notes = []
    for end, most, more in ((values[0], "smallest", "smaller"), (values[-1], "largest", "larger")):
        count = int((picks == end).sum())
        if count == 0 or end in (0.0, np.inf):
            continue
        where = "" if len(picks) == 1 else f", for {count} of {len(picks)} choices"
        notes.append(
            f"{name} = {end:g} is the {most} of the {len(values)} that were tried{where}; "
            f"a {more} one may do better"
        )
    return notes
