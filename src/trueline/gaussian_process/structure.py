r"""Which kernels are known by formula: sums of scaled stationary kernels, constants and noise.

scikit-learn's kernels are trees. A tree is known here if it is a sum of terms, each a product of
constants with at most one of RBF, Matern (nu = 1/2, 3/2, 5/2, infinity), RationalQuadratic and
WhiteKernel. Anything else goes by its own ``__call__``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import kernels as gp

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: The kernels of scikit-learn, which model files may hold.
KERNELS: tuple[type, ...] = (
    *(gp.RBF, gp.CompoundKernel, gp.ConstantKernel, gp.DotProduct, gp.Exponentiation),
    *(gp.ExpSineSquared, gp.Matern, gp.PairwiseKernel, gp.Product, gp.RationalQuadratic),
    *(gp.Sum, gp.WhiteKernel),
)

#: Names of kinds of terms beside the families of :mod:`trueline.gaussian_process.covariance`.
CONSTANT, NOISE = -1, -2
_MATERN = {0.5: 1, 1.5: 2, 2.5: 3, np.inf: 0}


@dataclass(frozen=True)
class Term:
    """One term of a sum of kernels.

    Attributes
    ----------
    family : int
        That of :mod:`trueline.gaussian_process.covariance`, or ``CONSTANT``, or ``NOISE``.
    fixed : float
        Product of the constants that are not searched for.
    factors : array of int
        Places in theta of the constants that are.
    lengths : array
        Length scales, one or one per column, if they are fixed.
    length_places : array of int
        Their places in theta, if they are not.
    shape, shape_place : float, int
        p of the rational quadratic kernel; the place is -1 if it is fixed.
    """

    family: int
    fixed: float
    factors: Indices
    lengths: Array
    length_places: Indices
    shape: float = 1.0
    shape_place: int = -1

    def amplitude(self, theta: Array) -> float:
        """The factor in front."""
        return float(self.fixed * np.exp(theta[self.factors].sum()))

    def length_scales(self, theta: Array) -> Array:
        """One length scale, or one per column."""
        places = self.length_places
        return np.exp(theta[places]) if len(places) else self.lengths

    def exponent(self, theta: Array) -> float:
        """p of the rational quadratic kernel."""
        return float(np.exp(theta[self.shape_place])) if self.shape_place >= 0 else self.shape


@dataclass(frozen=True)
class Structure:
    """A kernel as a sum of known terms."""

    terms: tuple[Term, ...]
    size: int


@dataclass
class _Leaf:
    kernel: Any
    places: dict[str, Indices]


def parsed(kernel: Any) -> Structure | None:
    """The structure of a kernel by its classes, or None."""
    counter = [0]
    products = _summands(kernel, counter)
    if products is None or counter[0] != kernel.n_dims:
        return None
    terms = [_term(leaves) for leaves in products]
    known = tuple(term for term in terms if term is not None)
    return Structure(known, counter[0]) if len(known) == len(terms) else None


def _summands(kernel: Any, counter: list[int]) -> list[list[_Leaf]] | None:
    if type(kernel) is gp.Sum:
        left = _summands(kernel.k1, counter)
        right = _summands(kernel.k2, counter) if left is not None else None
        return None if left is None or right is None else left + right
    factors = _factors(kernel, counter)
    return None if factors is None else [factors]


def _factors(kernel: Any, counter: list[int]) -> list[_Leaf] | None:
    if type(kernel) is gp.Product:
        left = _factors(kernel.k1, counter)
        right = _factors(kernel.k2, counter) if left is not None else None
        return None if left is None or right is None else left + right
    if type(kernel) not in (
        gp.ConstantKernel,
        gp.RBF,
        gp.Matern,
        gp.RationalQuadratic,
        gp.WhiteKernel,
    ):
        return None
    places = {}
    for parameter in kernel.hyperparameters:
        if not parameter.fixed:
            places[parameter.name] = np.arange(counter[0], counter[0] + parameter.n_elements)
            counter[0] += parameter.n_elements
    return [_Leaf(kernel, places)]


def _term(leaves: list[_Leaf]) -> Term | None:
    """The product of constants with at most one other kernel."""
    none = np.empty(0, dtype=np.intp)
    fixed, factors, other = 1.0, [], None
    for leaf in leaves:
        kernel = leaf.kernel
        if type(kernel) is gp.ConstantKernel or type(kernel) is gp.WhiteKernel:
            name = "constant_value" if type(kernel) is gp.ConstantKernel else "noise_level"
            if name in leaf.places:
                factors.append(leaf.places[name])
            else:
                fixed *= float(getattr(kernel, name))
        if type(kernel) is not gp.ConstantKernel:
            if other is not None:
                return None
            other = leaf
    places = np.concatenate(factors) if factors else none
    if other is None:
        return Term(CONSTANT, fixed, places, np.empty(0), none)
    kernel = other.kernel
    if type(kernel) is gp.WhiteKernel:
        return Term(NOISE, fixed, places, np.empty(0), none)
    lengths = np.atleast_1d(np.asarray(kernel.length_scale, dtype=np.float64))
    where = other.places.get("length_scale", none)
    if type(kernel) is gp.RationalQuadratic:
        shape_place = int(other.places["alpha"][0]) if "alpha" in other.places else -1
        return Term(4, fixed, places, lengths, where, float(kernel.alpha), shape_place)
    family = 0
    if type(kernel) is gp.Matern:
        if float(kernel.nu) not in _MATERN:
            return None
        family = _MATERN[float(kernel.nu)]
    return Term(family, fixed, places, lengths, where)
