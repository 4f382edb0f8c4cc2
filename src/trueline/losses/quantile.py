r"""The quantile (pinball) loss, the absolute loss, which is twice its middle, and the largest
error.

    quantile    l(z) = q max(0, y - z) + (1 - q) max(0, z - y)      0 < q < 1
                l*(u) = u y                                         for -q <= u <= 1 - q
    absolute    l(z) = abs(z - y)
                l*(u) = u y                                         for abs(u) <= 1

Its minimiser over constants is the q-th quantile of y. Several q, one per target, make one loss.

R. Koenker and G. Bassett, "Regression quantiles", Econometrica 46 (1978) 33-50.

The largest error is Chebyshev's criterion:

    minimised    max over the rows with s_i > 0 of  abs(z_i - y_i)
    conjugate    sum_i u_i y_i                      for sum_i abs(u_i) <= 1

It is not a sum over the rows: :meth:`MaximumError.total` takes the largest of the absolute errors,
whose formulas the methods hold row by row. A row that occurs twice changes no maximum, so all
positive weights mean the same. The condition on u joins the rows, which is why the loss does not
claim a conjugate: its proofs are those of :mod:`trueline.certificates.special.maximum`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueline.losses.base import Array, Loss
from trueline.losses.noise import LAPLACE, UNIFORM, Noise, asymmetric_laplace


class _OneKink(Loss):
    """Two straight lines that meet at z = y, written once in terms of their slopes."""

    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"conjugate", "piecewise_linear", "dual_box"}
    )

    @property
    def slopes(self) -> tuple[Any, Any]:
        """Left and right of the target; arrays for a loss that differs between targets."""
        return self.first_slope, self.first_slope + self.jumps[0]

    @property
    def kinks(self) -> tuple[float, ...]:
        return (0.0,)

    @property
    def slope_bound(self) -> float:
        left, right = self.slopes
        return float(np.maximum(-left, right).max())

    @property
    def dual_box(self) -> tuple[float, float, float, float]:
        return 0.0, 0.0, *self.slopes

    def most_residual(self, losses: float, weight: float, norm: float, largest: float) -> float:
        left, right = self.slopes
        return largest * losses / float(np.minimum(-left, right).min())

    def value(self, y: Array, z: Array) -> Array:
        residual = z - y
        left, right = self.slopes
        return np.maximum(left * residual, right * residual)

    def gradient(self, y: Array, z: Array) -> Array:
        left, right = self.slopes
        out = np.where(z < y, left, right)
        out[z == y] = 0.0
        return out.astype(np.result_type(y, z), copy=False)

    def conjugate(self, y: Array, u: Array) -> Array:
        left, right = self.slopes
        return np.where((u >= left) & (u <= right), u * y, np.inf)

    def conjugate_magnitude(self, y: Array, u: Array) -> Array:
        return 3 * np.abs(u * y)  # in the domain; elsewhere the conjugate is infinite


@dataclass(frozen=True)
class Quantile(_OneKink):
    """The pinball loss, whose minimiser is a conditional quantile.

    Parameters
    ----------
    q : float or tuple of float, default=0.5
        Which quantile, between 0 and 1: predictions below the target cost q, above it 1 - q. A
        tuple gives each target a quantile of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import Quantile
    >>> Quantile(q=0.9).value(np.array([1.0, 1.0]), np.array([0.0, 2.0]))
    array([0.9, 0.1])
    """

    q: float | tuple[float, ...] = 0.5

    name: ClassVar[str] = "quantile"
    formula: ClassVar[str] = "q max(0, y - z) + (1 - q) max(0, z - y)"

    def __post_init__(self) -> None:
        q = np.asarray(self.q, dtype=float)
        if not q.size or not ((q > 0) & (q < 1)).all():
            raise ValueError(f"q must lie strictly between 0 and 1, got {self.q!r}.")

    @property
    def noise_model(self) -> Noise | None:  # type: ignore[override]
        return None if isinstance(self.q, tuple) else asymmetric_laplace(self.q)

    def of_target(self, number: int) -> Quantile:
        return Quantile(self.q[number]) if isinstance(self.q, tuple) else self

    @property
    def first_slope(self) -> Any:
        return -np.array(self.q) if isinstance(self.q, tuple) else -self.q

    @property
    def jumps(self) -> tuple[float, ...]:
        return (1.0,)


@dataclass(frozen=True)
class OrderedQuantiles(Quantile):
    """The pinball losses of several quantiles whose predictions must not cross.

    The value is that of :class:`Quantile`. The order, z of a lower quantile at most z of a higher
    one at every row that is fitted, couples the targets: solvers must ask for ``"ordered"``.

    Examples
    --------
    >>> from trueline.losses import OrderedQuantiles
    >>> OrderedQuantiles((0.9, 0.1, 0.5)).ranks
    array([1, 2, 0])
    """

    name: ClassVar[str] = "ordered_quantiles"
    formula: ClassVar[str] = "q max(0, y - z) + (1 - q) max(0, z - y), z in the order of q"
    capabilities: ClassVar[frozenset[str]] = frozenset({"conjugate", "ordered"})

    @property
    def ranks(self) -> Any:
        """Numbers of the targets in ascending order of their quantiles."""
        return np.argsort(np.atleast_1d(self.q), kind="stable")


@dataclass(frozen=True)
class Absolute(_OneKink):
    """The absolute error; its minimiser is a conditional median.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import Absolute
    >>> Absolute().value(np.array([1.0, 1.0]), np.array([0.0, 3.0]))
    array([1., 2.])
    """

    name: ClassVar[str] = "absolute"
    noise_model: ClassVar[Noise | None] = LAPLACE
    formula: ClassVar[str] = "|z - y|"

    @property
    def first_slope(self) -> float:
        return -1.0

    @property
    def jumps(self) -> tuple[float, ...]:
        return (2.0,)


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
    noise_model: ClassVar[Noise | None] = UNIFORM
    formula: ClassVar[str] = "|z - y|"
    capabilities: ClassVar[frozenset[str]] = frozenset({"maximum"})

    @property
    def kinks(self) -> tuple[float, ...]:
        return (0.0,)

    @property
    def slope_bound(self) -> float:
        return 1.0

    def value(self, y: Array, z: Array) -> Array:
        return np.abs(z - y)

    def gradient(self, y: Array, z: Array) -> Array:
        return np.sign(z - y)

    def conjugate(self, y: Array, u: Array) -> Array:
        return np.where(np.abs(u) <= 1, u * y, np.inf)

    def project_dual(self, y: Array, u: Array) -> Array:
        return np.clip(u, -1.0, 1.0)

    def total(self, values: Array, weights: Array | None) -> Array:
        """The largest value among rows that count."""
        counted = values if weights is None else values[weights > 0]
        return np.asarray(counted.max(axis=0, initial=0.0))

    def total_gradient(self, y: Array, z: Array, weights: Array | None) -> Array:
        """The slope of the largest error alone, the first of equal ones."""
        values = self.value(y, z)
        values = values if weights is None else np.where(weights[:, None] > 0, values, -1.0)
        largest = np.arange(len(z))[:, None] == values.argmax(axis=0)
        return largest * self.gradient(y, z)

    def total_formula(self, is_weighted: bool) -> str:
        return f"max_i [{self.formula}]" + (" where s_i > 0" if is_weighted else "")
