"""What a loss is.

A loss is a convex function of the score z that is never negative, one number per sample and target:

    l(z) = loss(y, z),     its derivative l'(z),     its curvature l''(z),
    its conjugate          l*(u) = sup_z (u z - l(z)).

A concrete loss is a frozen dataclass in a file of its own that holds these formulas and nothing
else. What solvers may rely on is declared as data (``capabilities``), never discovered.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trueline.losses.noise import Noise

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LossProperties:
    """What a lecture asks of a loss.

    Attributes
    ----------
    is_convex, is_strictly_convex, is_differentiable : bool
        In the scores of a row.
    lipschitz : float
        The smallest L with abs(l(a) - l(b)) <= L abs(a - b) for a change of one score; ``inf`` if
        there is none.
    mistake_factor : float
        The smallest c such that c times the loss is at least the 0-1 loss; ``inf`` if there is
        none, as for losses of residuals.
    """

    is_convex: bool
    is_strictly_convex: bool
    is_differentiable: bool
    lipschitz: float
    mistake_factor: float


class Loss(ABC):
    """A pointwise convex loss.

    Attributes
    ----------
    name : str
        The name under which the loss is registered.
    formula : str
        The loss in plain text, as printed by ``explain()``.
    capabilities : frozenset of str
        What solvers may rely on:

        - ``"smooth"``: differentiable everywhere with a bounded second derivative;
        - ``"curvature"``: :meth:`curvature` is the second derivative (where it exists);
        - ``"quadratic"``: exactly 1/2 (z - y)^2, so that the sufficient statistics decide;
        - ``"conjugate"``: :meth:`conjugate` and :meth:`project_dual` give lower bounds;
        - ``"piecewise_linear"``: straight lines that meet at the kinks, so that
          :attr:`first_slope` and :attr:`jumps` say everything up to a constant;
        - ``"dual_box"``: l*(u) = u y + e abs(u) + h/2 u^2 on an interval, see :attr:`dual_box`;
        - ``"dual_entropy"``: l*(u) = p log p + (1 - p) log(1 - p) for p = -y u, y = -1 or 1;
        - ``"dual_classes"``: l*(u) = y.u for u + y in the simplex, y one-hot;
        - ``"maximum"``: what is minimised is the largest of the rows, not their sum;
        - ``"joined"``: smooth, and :meth:`total` joins the rows in another way than by a sum;
        - ``"ordered"``: straight lines, and the scores of a row must be in a stated order;
        - ``"hessian"``: :meth:`hessian_product` suits Newton's method with products of the Hessian;
        - ``"multinomial"``: :meth:`hessian_terms` gives probabilities p; products are p (e - p.e);
        - ``"log_link"``: the score is the logarithm of a mean, in whose units the target is;
        - ``"coupled"``: the scores of a row are coupled: derivatives are those of their sum, and
          :meth:`hessian_product` is the second one;
        - ``"margins"``: never negative and falling with the margin by which a row is on the right
          side: :meth:`least_margin` inverts it;
        - ``"nonconvex"``: no convex function after all: proofs are about neighbourhoods;
        - ``"self_concordant"``: a change e of the scores of a row leaves at least the factor
          exp(-abs(e)) of its curvature (of coupled scores exp(min e - max e));
        - ``"strictly_convex"``: below its chords, not on them.
    kinks : tuple of float
        Values of ``z - y`` where the loss is not twice differentiable.
    """

    name: ClassVar[str]
    formula: ClassVar[str]
    capabilities: ClassVar[frozenset[str]]

    @property
    def kinks(self) -> tuple[float, ...]:
        return ()

    @property
    def compiled(self) -> int:
        """The number of the loss in :mod:`trueline.losses.logistic`; zero if it is not there."""
        return 0

    @property
    def properties(self) -> LossProperties:
        """Whether the loss is convex, differentiable, Lipschitz, and above the 0-1 loss.

        Examples
        --------
        >>> from trueline.losses import Hinge, Squared
        >>> Squared().properties.lipschitz
        inf
        >>> Hinge().properties.mistake_factor
        1.0
        """
        able = self.capabilities
        least = self.least_at_mistake
        return LossProperties(
            is_convex="nonconvex" not in able,
            is_strictly_convex="strictly_convex" in able,
            is_differentiable=bool(able & {"smooth", "curvature", "joined"}),
            lipschitz=self.slope_bound,
            mistake_factor=1.0 / least if least > 0 else np.inf,
        )

    #: The noise whose negative log-likelihood this is; None if it is none.
    noise_model: ClassVar[Noise | None] = None

    @property
    def noise(self) -> str | None:
        """The noise whose negative log-likelihood this is, in words; None if it is none.

        Examples
        --------
        >>> from trueline.losses import Absolute
        >>> Absolute().noise
        'Laplace noise of scale phi'
        """
        return None if self.noise_model is None else self.noise_model.text

    @property
    def least_at_mistake(self) -> float:
        """The least loss of a row on the wrong side or on the boundary; zero without sides."""
        return 0.0

    def of_target(self, number: int) -> Loss:
        """The loss of one target, for losses that differ between targets."""
        return self

    @property
    def first_slope(self) -> Any:
        """The slope left of all kinks, for piecewise linear losses."""
        raise NotImplementedError(f"the {self.name} loss is not piecewise linear.")

    def first_slopes(self, y: Array) -> Array:
        """:attr:`first_slope` of every row, for losses where it depends on the target."""
        return np.full(np.shape(y), self.first_slope, dtype=np.float64)

    @property
    def jumps(self) -> tuple[float, ...]:
        """By how much the slope rises at each kink, for piecewise linear losses."""
        raise NotImplementedError(f"the {self.name} loss is not piecewise linear.")

    def row_jumps(self, y: Array) -> Array:
        """:attr:`jumps` of every row, of shape (kinks, n)."""
        return np.multiply.outer(np.array(self.jumps), np.ones(np.shape(y)))

    @property
    def dual_box(self) -> tuple[float, float, float, float]:
        """e, h and the ends of the interval, for losses with such a conjugate."""
        raise NotImplementedError(f"the conjugate of the {self.name} loss has another form.")

    def dual_boxes(self, y: Array) -> tuple[Array, Array, Array, Array]:
        """:attr:`dual_box` of every row, for losses where it depends on the target."""
        e, h, low, high = (np.full(np.shape(y), number) for number in self.dual_box)
        return e, h, low, high

    def target_size(self, y: Array) -> Array:
        """The magnitude of targets in the units of scores, elementwise."""
        return np.abs(y)

    @property
    def score_limit(self) -> float:
        """Up to which magnitude of the score values are in the range of single precision."""
        return np.inf

    @property
    def slope_bound(self) -> float:
        """The smallest L with abs(l') <= L everywhere (``inf`` if there is none)."""
        return np.inf

    def total(self, values: Array, weights: Array | None) -> Array:
        """What is minimised of the losses of all rows, per target: their weighted sum.

        Parameters
        ----------
        values : array of shape (n, k)
            As from :meth:`value`.
        weights : array of shape (n,), optional
            Weight zero leaves nothing, not even of infinity.
        """
        if weights is None:
            return values.sum(axis=0)
        factor = weights[:, None]
        weighted = np.multiply(values, factor, where=factor != 0, out=np.zeros_like(values))
        return np.asarray(weighted.sum(axis=0))

    def total_gradient(self, y: Array, z: Array, weights: Array | None) -> Array:
        """The derivatives of :meth:`total` by the scores; at a kink, one subgradient."""
        u = self.gradient(y, z)
        return u if weights is None else u * weights[:, None]

    def total_formula(self, is_weighted: bool) -> str:
        """:meth:`total` in plain text."""
        return f"sum_i {'s_i ' if is_weighted else ''}[{self.formula}]"

    @property
    def curvature_bound(self) -> float:
        """The smallest L with l'' <= L everywhere (``inf`` if there is none)."""
        return np.inf

    def check_target(self, y: Array) -> None:  # noqa: B027
        """Raise ``ValueError`` if the loss is not defined for this target; most take any."""

    @abstractmethod
    def value(self, y: Array, z: Array) -> Array:
        """l(z), elementwise."""

    @abstractmethod
    def gradient(self, y: Array, z: Array) -> Array:
        """l'(z), elementwise; at a kink, one subgradient."""

    def curvature(self, y: Array, z: Array) -> Array:
        """l''(z), elementwise; at a kink, one of the two limits. Zero for straight lines."""
        return np.zeros_like(z - y)

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array]:
        """l'(z) and l''(z), elementwise; losses whose terms serve both form them once."""
        return self.gradient(y, z), self.curvature(y, z)

    def eased(self, size: float) -> Loss:
        """A loss with curvature wherever abs(z - y) <= size, and this one for small sizes."""
        return self

    def least_curvature(self, y: Array, z: Array, reach: Array) -> Array:
        """A lower bound on l'' between z - reach and z + reach, elementwise; zero if not known."""
        return np.zeros_like(z - y)

    def most_curvature(self, y: Array, z: Array, reach: Array) -> Array:
        """An upper bound on l'' between z - reach and z + reach, elementwise."""
        return np.full_like(z - y, min(self.curvature_bound, 1e300))

    def gradient_and_terms(self, y: Array, z: Array) -> tuple[Array, Array]:
        """:meth:`gradient` and :meth:`hessian_terms`, which may share work."""
        return self.gradient(y, z), self.hessian_terms(y, z)

    def hessian_terms(self, y: Array, z: Array) -> Array:
        """What :meth:`hessian_product` needs to know of the scores, of the shape of z."""
        return self.curvature(y, z)

    def hessian_product(self, hessian_terms: Array, change: Array) -> Array:
        """The second derivative, applied to a change of the scores, row by row."""
        return hessian_terms * change

    def hessian_diagonal(self, hessian_terms: Array) -> Array:
        """:meth:`curvature`, from what :meth:`hessian_terms` gave."""
        return hessian_terms

    def least_margin(self, level: float) -> float:
        """The least margin at which the loss is no more than a level, for losses of margins."""
        raise NotImplementedError(f"the {self.name} loss is no function of margins.")

    def most_residual(self, losses: float, weight: float, norm: float, largest: float) -> float:
        """The most that sum_i s_i t_i r_i can be for residuals r of at most these losses in total.

        Parameters
        ----------
        losses : float
            sum_i s_i l(r_i).
        weight : float
            sum_i s_i.
        norm, largest : float
            (sum_i s_i t_i^2)^(1/2) and the largest abs(t_i).

        Returns
        -------
        float
            ``inf`` if there is no such bound.
        """
        return np.inf

    def constant(self, y: Array, weights: Array) -> Array | None:
        """The scores that are best for all rows together; None where no formula tells."""
        return None

    def conjugate(self, y: Array, u: Array) -> Array:
        """l*(u), elementwise; ``inf`` outside the dual domain. None where l is not convex."""
        raise NotImplementedError(f"the {self.name} loss is not convex: it has no dual.")

    def conjugate_magnitude(self, y: Array, u: Array) -> Array:
        """The size of the terms of which l*(u) is made: they round relative to it.

        The term u y of a conjugate may cancel against the rest of it.
        """
        return np.abs(self.conjugate(y, u)) + 2 * np.abs(u * y)

    def project_dual(self, y: Array, u: Array) -> Array:
        """The point of the domain of l* nearest to u, elementwise."""
        return np.clip(u, *self.dual_box[2:])


def labels_are_signs(loss: Loss, y: Array) -> None:
    """``check_target`` of losses of two classes: labels are -1 and +1."""
    wrong = y[np.abs(y) != 1]
    if len(wrong):
        raise ValueError(
            f"The {loss.name.replace('_', ' ')} loss is about labels -1 and +1; "
            f"y holds {np.unique(wrong)[:3].tolist()}."
        )


def rows_are_one_hot(loss: Loss, y: Array) -> None:
    """``check_target`` of losses of several classes: rows are one-hot."""
    if not (((y == 0) | (y == 1)).all() and (y.sum(axis=1) == 1).all()):
        raise ValueError(
            f"Targets of the {loss.name.replace('_', ' ')} loss are one-hot: one 1 in every row, "
            "else 0."
        )
