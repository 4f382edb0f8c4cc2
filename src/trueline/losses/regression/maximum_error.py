r"""The largest error: Chebyshev's criterion.

    minimised    max over the rows with s_i > 0 of  abs(z_i - y_i)
    conjugate    sum_i u_i y_i                      for sum_i abs(u_i) <= 1

It is not a sum over the rows: :meth:`MaximumError.total` takes the largest of the absolute errors,
whose formulas the methods hold row by row. A row that occurs twice changes no maximum, so all
positive weights mean the same. The condition on u joins the rows, which is why the loss does not
claim a conjugate: its proofs are those of :mod:`trueline.certificates.maximum`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueline.losses.base import Array, Loss

__all__ = ["MaximumError"]


@dataclass(frozen=True)
class MaximumError(Loss):
    """The largest absolute error of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import MaximumError
    >>> loss = MaximumError()
    >>> errors = loss.value(np.array([[1.0], [2.0], [9.0]]), np.zeros((3, 1)))
    >>> loss.total(errors, None), loss.total(errors, np.array([1.0, 5.0, 0.0]))
    (array([9.]), array([2.]))
    """

    name: ClassVar[str] = "maximum_error"
    formula: ClassVar[str] = "|z - y|"
    capabilities: ClassVar[frozenset[str]] = frozenset({"maximum"})

    @property
    def kinks(self) -> tuple[float, ...]:
        return (0.0,)

    @property
    def curvature_bound(self) -> float:
        return np.inf

    @property
    def slope_bound(self) -> float:
        return 1.0

    def check_target(self, y: Array) -> None:
        """Every finite target is allowed."""

    def value(self, y: Array, z: Array) -> Array:
        return np.abs(z - y)

    def gradient(self, y: Array, z: Array) -> Array:
        return np.sign(z - y)

    def curvature(self, y: Array, z: Array) -> Array:
        return np.zeros_like(z - y)

    def conjugate(self, y: Array, u: Array) -> Array:
        return np.where(np.abs(u) <= 1, u * y, np.inf)

    def project_dual(self, y: Array, u: Array) -> Array:
        return np.clip(u, -1.0, 1.0)

    def total(self, values: Array, weights: Array | None) -> Array:
        """The largest value among rows that count."""
        counted = values if weights is None else values[weights > 0]
        return np.asarray(counted.max(axis=0, initial=0.0))

    def total_formula(self, is_weighted: bool) -> str:
        return f"max_i [{self.formula}]" + (" where s_i > 0" if is_weighted else "")
