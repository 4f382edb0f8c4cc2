"""The cases: rows that are separable, barely, hardly not, and not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CASES", "PROBLEMS", "TARGETS", "Case"]

Rows = tuple[Any, NDArray[np.float64]]


def two_classes(scale: float, *, n: int, d: int, kind: str, seed: int) -> Rows:
    """Normal rows, and the side of a hyperplane.

    ``wide``: pushed apart by a tenth; ``barely``: as they are, so that the margin is about 1 / n;
    ``few``: five rows near the hyperplane on the wrong side; ``noisy``: a tenth of them.
    """
    n = max(60, round(n * scale))
    d = max(2, round(d * np.sqrt(scale)))
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    w /= np.linalg.norm(w)
    score = X @ w + 0.3
    y = np.where(score > 0, 1.0, -1.0)
    if kind == "wide":
        X += 0.1 * y[:, None] * w
    elif kind == "few":
        y[np.argsort(np.abs(score))[n // 50 : n // 50 + 5]] *= -1
    elif kind == "noisy":
        y[rng.random(n) < 0.1] *= -1
    return X, y


@dataclass(frozen=True)
class Case:
    """What is decided on which rows.

    Attributes
    ----------
    title : str
    problem : str
    limit : float
        Seconds for one call.
    task : str
        Contestants that are tuned for it take part.
    """

    title: str
    problem: str
    limit: float
    task: str = "separability"


_KINDS = {
    "wide": "Separable, rows pushed apart",
    "barely": "Separable, hardly any margin",
    "few": "Not separable for five rows",
    "noisy": "Not separable, a tenth of the labels wrong",
}
_SIZES = {"1e4x20": (10_000, 20, 30.0), "1e5x50": (100_000, 50, 120.0)}

#: From the scale (1 is the size of the name) to X and y.
PROBLEMS: dict[str, Callable[[float], Rows]] = {
    f"{kind}_{size}": partial(two_classes, n=n, d=d, kind=kind, seed=7)
    for size, (n, d, _) in _SIZES.items()
    for kind in _KINDS
}
CASES = {
    f"{kind}_{size}": Case(f"{words}, n = {n:,}, d = {d}", f"{kind}_{size}", limit)
    for size, (n, d, limit) in _SIZES.items()
    for kind, words in _KINDS.items()
}
#: The fastest peer's time over ours, at least.
TARGETS = {name: 20.0 for name in CASES if name.endswith("1e5x50")}
