"""Averages of the weights over all visits, without adding them up at every visit.

If the update c_k x_k came at visit t_k, the weights after visit t are the sum of the updates with
t_k <= t, and their sum over the visits 1 to T is ``(T + 1) w - sum_k t_k c_k x_k`` with w the last
ones. (Freund and Schapire, "Large margin classification using the perceptron algorithm", Machine
Learning 37, 1999; the bookkeeping is H. Daume's.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["averaged"]


def averaged(last: NDArray[Any], later: NDArray[Any], visits: Any, start: float = 1.0) -> Any:
    """The mean of the weights after the visits ``start`` to ``visits``.

    Parameters
    ----------
    last : array
        The weights (or the intercept) after the last visit.
    later : array
        Sum of max(t_k, start) c_k x_k over the updates.

    Examples
    --------
    Weights 0, 2, 2 after three visits: the update of 2 came at the second.

    >>> import numpy as np
    >>> from trueline.online.average import averaged
    >>> averaged(np.array([2.0]), np.array([2 * 2.0]), 3).round(4).tolist()
    [1.3333]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return ((visits + 1.0) * last - later) / (visits - start + 1.0)
