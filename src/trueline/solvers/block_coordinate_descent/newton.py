r"""A Newton step on blocks that are not zero, where the objective is smooth.

With u_b = W_b / ||W_b|| the Hessian of 1/2 <W, W G> + sum_b l_b ||W_b|| + a/2 ||W||^2 acts as

    H D = D G + a D + (l_b / ||W_b||) (D_b - u_b <u_b, D_b>).

Its systems are solved by conjugate gradients, with the targets' average of H for a preconditioner:
u_b <u_b, .> is replaced by (1/k) sum_t u_bt u_bt^T, the same for all targets. It is H itself if
there is one target.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from trueline.solvers.block_coordinate_descent.kernels import block_norms
from trueline.solvers.conjugate_gradients import conjugate_gradients
from trueline.solvers.line_search import minimise_along

__all__ = ["newton_step"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# So few unknowns are solved for directly.
_FEW_UNKNOWNS = 400
_MAX_PRODUCTS = 60
# How far the residual of the system is reduced: the step then wins three digits.
_REDUCTION = 1e-3
_STEPS = (1.0, 0.5, 0.25, 0.125, 0.03125)
# Along the step a block ends at zero that has come so far on its way.
_ALMOST = 0.99
# Just beyond the place where a block passes zero.
_PAST = 1.001
# The objective must fall by this share of what the slope promises.
_SHARE = 1e-3
# Dependent columns without a norm leave the matrix singular; so little does not slow others.
_RIDGE = 1e-12


class _Smooth(NamedTuple):
    """The objective around W: norms and their curvature, spread over the columns."""

    G: Array
    start: Integers
    W: Array
    norm: Array
    stiffness: Array  # l_b / ||W_b||
    bend: float

    def inner(self, D: Array) -> Array:
        """<u_b, D_b>, spread."""
        sums = np.add.reduceat((self.W * D).sum(axis=0), self.start[:-1])
        return np.repeat(sums, np.diff(self.start)) / self.norm

    def hessian(self, D: Array, image: Array) -> Array:
        """H D, given D G."""
        along = self.W * (self.inner(D) / self.norm)
        return image + self.bend * D + self.stiffness * (D - along)


def newton_step(G: Array, start: Integers, linear: Array, bend: float, W: Array, Q: Array) -> bool:
    """Move W and Q by a Newton step, shortened if need be; whether it ended with blocks at zero.

    No block of W is zero before. A block that the step would lead through zero stops there, if it
    has a norm to keep it: with the whole step of the others where the objective falls so, else
    where the objective is least along the step.
    """
    widths = np.diff(start)
    norm = np.repeat(block_norms(W, start), widths)
    stiffness = np.repeat(linear, widths) / norm
    smooth = _Smooth(G, start, W, norm, stiffness, bend)
    descent = Q - (bend + stiffness) * W
    system = _direct(smooth, descent) if W.size <= _FEW_UNKNOWNS else _iterate(smooth, descent)
    if system is None:
        return False
    D, image = system
    slope = float(np.vdot(descent, D))
    if slope <= 0:
        return False
    inward = smooth.inner(D)
    for length in (*_STEPS, None):
        t = _exact_length(smooth, linear, D, image, slope) if length is None else length
        passes = (t * inward <= -_ALMOST * norm) & (stiffness > 0)
        move = np.where(passes, -W, t * D)
        moved = move @ G if passes.any() else t * image
        change = _change(smooth, linear, descent, move, moved)
        if change < (0.0 if length is None else -_SHARE * t * slope):
            W += move
            W[:, passes] = 0.0
            Q -= moved
            return bool(passes.any())
    # Columns that are nearly the same leave a block that is nearly zero too much to give up.
    W += t * D
    Q -= t * image
    return False


def _exact_length(smooth: _Smooth, linear: Array, D: Array, image: Array, slope: float) -> float:
    """Where the objective is least along W + t D.

    The slope jumps where a block passes zero: first between which of these places it changes its
    sign, or at which of them.
    """
    first = smooth.start[:-1]
    length, inward = block_norms(D, smooth.start) ** 2, smooth.inner(D)[first]
    norm = smooth.norm[first]
    along = inward * norm
    straight = slope + float(linear @ inward)  # that of the squares alone, downwards
    bend = float(np.vdot(D, image + smooth.bend * D))

    def slopes(t: Array) -> tuple[Array, Array]:
        inner = along[:, None] + t * length[:, None]
        # ||W_b + t D_b||, of blocks that pass zero no less than rounding
        square = norm[:, None] ** 2 + t * (along[:, None] + inner)
        new = np.sqrt(np.maximum(square, (_EPS * norm[:, None]) ** 2))
        across = np.maximum(length[:, None] - (inner / new) ** 2, 0.0)
        return t * bend - straight + linear @ (inner / new), bend + linear @ (across / new)

    passing = np.sort(-norm[inward < 0] / inward[inward < 0])
    low, high = 0.0, np.inf
    if len(passing):
        beyond = int(np.count_nonzero(slopes(_PAST * passing)[0] < 0))
        low = _PAST * passing[beyond - 1] if beyond else 0.0
        if beyond < len(passing):
            high = passing[beyond] / _PAST
            if high <= low or slopes(np.array([high]))[0][0] < 0:
                return float(passing[beyond])

    def slope_at(t: float) -> tuple[float, float]:
        at, curvature = slopes(np.array([low + t]))
        return float(at[0]), float(curvature[0])

    return float(low + minimise_along(slope_at, slope_at(0.0)[0], high - low))


def _direct(smooth: _Smooth, descent: Array) -> tuple[Array, Array] | None:
    """D with H D = descent and D G, by a factor of H itself: k m unknowns, target by target."""
    k, m = smooth.W.shape
    H = np.zeros((k, m, k, m))
    for t in range(k):
        H[t, :, t, :] = smooth.G
    unit = smooth.W / smooth.norm
    for first, last in zip(smooth.start[:-1], smooth.start[1:], strict=True):
        inside = slice(first, last)
        part = unit[:, inside]
        H[:, inside, :, inside] -= smooth.stiffness[first] * np.multiply.outer(part, part)
    M = H.reshape(k * m, k * m)
    diagonal = np.einsum("ii->i", M)
    diagonal += np.tile(smooth.bend + smooth.stiffness, k)
    diagonal += _RIDGE * float(diagonal.max(initial=0.0))
    factor, info = dpotrf(M.T, lower=1, clean=0, overwrite_a=1)
    if info:
        return None
    D = dpotrs(factor, descent.ravel(), lower=1)[0].reshape(k, m)
    return D, D @ smooth.G


def _iterate(smooth: _Smooth, descent: Array) -> tuple[Array, Array] | None:
    """D with H D = descent, nearly, and D G, by conjugate gradients."""
    factor = _factor(smooth)
    if factor is None:
        return None
    D, _ = conjugate_gradients(
        lambda D: smooth.hessian(D, D @ smooth.G),
        descent,
        lambda R: dpotrs(factor, R.T, lower=1)[0].T,
        most=_MAX_PRODUCTS,
        enough=_REDUCTION**2,
    )
    return D, D @ smooth.G


def _factor(smooth: _Smooth) -> Array | None:
    """Cholesky factor of the averaged Hessian."""
    k = len(smooth.W)
    M = np.array(smooth.G.T, order="F")  # symmetric: the transpose is contiguous as it is
    unit = smooth.W / smooth.norm
    for first, last in zip(smooth.start[:-1], smooth.start[1:], strict=True):
        if last - first > 1:
            part = unit[:, first:last]
            M[first:last, first:last] -= smooth.stiffness[first] * (part.T @ part) / k
    diagonal = np.einsum("ii->i", M)
    diagonal += smooth.bend + smooth.stiffness
    single = np.repeat(np.diff(smooth.start) == 1, np.diff(smooth.start))
    diagonal -= np.where(single, smooth.stiffness * (unit * unit).sum(axis=0) / k, 0.0)
    diagonal += _RIDGE * float(diagonal.max(initial=0.0))
    factor, info = dpotrf(M, lower=1, clean=0, overwrite_a=1)
    return None if info else factor


def _change(smooth: _Smooth, linear: Array, descent: Array, D: Array, image: Array) -> float:
    """What the objective changes by from W to W + D, without cancellation.

    ||w + d|| - ||w|| - <u, d> = (||d||^2 - <u, d>^2) / (||w + d|| + ||w|| + <u, d>), except where
    d leads through zero.
    """
    first = smooth.start[:-1]
    along, norm = smooth.inner(D)[first], smooth.norm[first]
    length, new = block_norms(D, smooth.start), block_norms(smooth.W + D, smooth.start)
    across = np.maximum(length**2 - along**2, 0.0)
    below = new + norm + along
    through = below <= 1e-3 * norm
    curved = np.divide(across, below, out=new - norm - along, where=~through)
    quadratic = 0.5 * float(np.vdot(D, image + smooth.bend * D))
    return quadratic + float(linear @ curved) - float(np.vdot(descent, D))
