r"""Inducing points: bounds on the log marginal likelihood whose cost grows with n alone.

With m points Z, Q = K_nm K_mm^{-1} K_mn, noise of variance v, S = Q + v I and t = tr(K - Q) >= 0,

    log N(y; 0, S) - t / (2 v)   <=   log p(y)   <=
        - n/2 log(2 pi) - 1/2 log |S| - 1/2 y.(Q + (v + t) I)^{-1} y

(M. Titsias, "Variational learning of inducing variables in sparse Gaussian processes", AISTATS
2009; for the upper bound his "Variational inference for Gaussian and determinantal point
processes", NIPS 2014). A little more on the diagonal of K_mm makes Q smaller, so that both hold
with it too. With K_mm = L L^T, A = L^{-1} K_mn / sqrt(v), B = I + A A^T, b = S^{-1} y and
P = K_mm^{-1} K_mn the derivatives of the lower bound are

    in K_mn      (P b) b^T + L^{-T} (I - B^{-1}) A / sqrt(v)
    in K_mm      - 1/2 [ (P b) (P b)^T + L^{-T} (B - 2 I + B^{-1}) L^{-1} ]
    in diag(K)   - 1 / (2 v)
    in v         1/2 (b.b - tr S^{-1}) + t / (2 v^2).

Points are chosen among the rows, one after the other, where the variance left by those before is
largest (D. R. Burt, C. E. Rasmussen, M. van der Wilk, J. Mach. Learn. Res. 21 (2020) 131).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

from trueline.gaussian_process.covariance import covariance, cross_covariance, diagonal, gradients
from trueline.gaussian_process.structure import NOISE, Structure

Array = NDArray[np.float64]

_JITTER = 1e-10
# Points are looked for among so many rows at most.
_CANDIDATES = 10_000


def _smooth(structure: Structure) -> Structure:
    """The terms without noise; places in theta stay."""
    terms = tuple(term for term in structure.terms if term.family != NOISE)
    return Structure(terms, structure.size)


def choose_points(
    structure: Structure, theta: Array, X: Array, count: int, generator: np.random.Generator
) -> Array:
    """Rows where the variance left by the rows chosen before is largest."""
    if len(X) > _CANDIDATES:
        X = X[generator.choice(len(X), _CANDIDATES, replace=False)]
    smooth = _smooth(structure)
    left = np.full(len(X), diagonal(smooth, theta))
    least = 1e-10 * float(left[0])
    columns = np.zeros((min(count, len(X)), len(X)))
    chosen: list[int] = []
    for k in range(len(columns)):
        i = int(np.argmax(left))
        if left[i] <= least:
            break
        column = cross_covariance(smooth, theta, X[i : i + 1], X)[0]
        column -= columns[:k, i] @ columns[:k]
        columns[k] = column / math.sqrt(left[i])
        left = np.maximum(left - columns[k] ** 2, 0.0)
        left[i] = 0.0
        chosen.append(i)
    return np.ascontiguousarray(X[chosen])


@dataclass(frozen=True)
class InducingFit:
    """What predictions need, and the two bounds.

    Attributes
    ----------
    points : array of shape (m, d)
    factor : array of shape (m, m)
        L.
    inner : array of shape (m, m)
        Lower factor of B.
    along : array of shape (m,)
        inner^{-1} A y / sqrt(v).
    lower, upper : float
    jitter : float
        What was added to the diagonal of K_mm.
    """

    points: Array
    factor: Array
    inner: Array
    along: Array
    lower: float
    upper: float
    jitter: float


class InducingBound:
    """The lower bound as a function of theta, with its gradient.

    Parameters
    ----------
    structure : Structure
    X : array of shape (n, d)
    y : array of shape (n,)
    noise : float
        Added to the noise of the kernel.
    points : array of shape (m, d)
    """

    def __init__(
        self, structure: Structure, X: Array, y: Array, noise: float, points: Array
    ) -> None:
        self.structure, self.smooth = structure, _smooth(structure)
        self.X, self.y, self.noise = np.ascontiguousarray(X), y, noise
        self.points = points
        self.square = float(y @ y)

    def variance(self, theta: Array) -> float:
        """v: all noise together."""
        return self.noise + diagonal(self.structure, theta) - diagonal(self.smooth, theta)

    def with_enough_noise(self, theta: Array) -> Array:
        """Theta with noise at least as large as the variance that the points leave, on average.

        With less the bound is so low that its maximum may be looked for where all is noise.
        """
        v, _, _, B, _, _ = self._factors(theta)
        left = self._trace(theta, v, B) / len(self.y)
        raised = theta.copy()
        for term in self.structure.terms:
            if term.family == NOISE and len(term.factors) and left > v:
                own = term.amplitude(theta)
                raised[term.factors[0]] += math.log((own + left - v) / own)
                break
        return raised

    def minus(self, theta: Array) -> tuple[float, Array]:
        """Minus the bound and its gradient, as minimisers want them."""
        try:
            value, gradient = self._evaluate(theta)
        except np.linalg.LinAlgError:
            return math.inf, np.zeros(len(theta))
        return -value, -gradient

    def _factors(self, theta: Array) -> tuple[float, Array, Array, Array, Array, float]:
        v, m = self.variance(theta), len(self.points)
        jitter = _JITTER * diagonal(self.smooth, theta)
        K = np.empty((m, m))
        covariance(self.smooth, theta, self.points, np.full(m, jitter), K)
        L = cholesky(np.tril(K) + np.tril(K, -1).T, lower=True, check_finite=False)
        A = cross_covariance(self.smooth, theta, self.points, self.X)
        A = solve_triangular(L, A, lower=True, overwrite_b=True, check_finite=False)
        A /= math.sqrt(v)
        B = A @ A.T
        B.flat[:: m + 1] += 1.0
        inner = cholesky(B, lower=True, check_finite=False)
        return v, L, A, B, inner, jitter

    def _trace(self, theta: Array, v: float, B: Array) -> float:
        """tr(K - Q)."""
        inside = v * (float(np.einsum("ii->", B)) - len(B))
        return max(len(self.y) * diagonal(self.smooth, theta) - inside, 0.0)

    def _value(self, v: float, inner: Array, along: Array, trace: float) -> float:
        n = len(self.y)
        logdet = 2 * float(np.log(np.diag(inner)).sum()) + n * math.log(v)
        fit = self.square / v - float(along @ along)
        return -0.5 * (n * math.log(2 * math.pi) + logdet + fit + trace / v)

    def _evaluate(self, theta: Array) -> tuple[float, Array]:
        v, L, A, B, inner, _ = self._factors(theta)
        n, m = len(self.y), len(B)
        projected = A @ self.y
        along = solve_triangular(inner, projected, lower=True, check_finite=False) / math.sqrt(v)
        trace = self._trace(theta, v, B)
        value = self._value(v, inner, along, trace)
        solved = cho_solve((inner, True), projected, check_finite=False)
        b = (self.y - solved @ A) / v
        inverse = cho_solve((inner, True), np.eye(m), check_finite=False)
        # P b = L^{-T} A b sqrt(v).
        Pb = solve_triangular(L, A @ b, lower=True, trans="T", check_finite=False) * math.sqrt(v)
        outer = np.eye(m) - inverse
        cross = solve_triangular(
            L, (outer / math.sqrt(v)) @ A, lower=True, trans="T", check_finite=False
        )
        cross += np.outer(Pb, b)
        half = solve_triangular(
            L, B - 2 * np.eye(m) + inverse, lower=True, trans="T", check_finite=False
        )
        own = solve_triangular(L, half.T, lower=True, trans="T", check_finite=False)
        own = -0.5 * (np.outer(Pb, Pb) + 0.5 * (own + own.T))
        gradient = gradients(self.smooth, theta, self.points, self.X, cross)[0]
        gradient += gradients(self.smooth, theta, self.points, None, own)[0]
        in_diagonal = -0.5 * n / v + _JITTER * float(np.einsum("ii->", own))
        trace_inverse = (n - m + float(np.einsum("ii->", inverse))) / v
        in_noise = 0.5 * (float(b @ b) - trace_inverse) + 0.5 * trace / v**2
        for term in self.structure.terms:
            slope = in_noise if term.family == NOISE else in_diagonal
            gradient[term.factors] += slope * term.amplitude(theta)
        return value, gradient

    def fit(self, theta: Array) -> InducingFit:
        """Everything that predictions need at theta."""
        v, L, A, B, inner, jitter = self._factors(theta)
        along = solve_triangular(inner, A @ self.y, lower=True, check_finite=False) / math.sqrt(v)
        trace = self._trace(theta, v, B)
        n = len(self.y)
        lower = self._value(v, inner, along, trace)
        # Q in its eigenvectors: those of A A^T, times v.
        values, vectors = np.linalg.eigh(B)
        weights = v * np.maximum(values - 1.0, 0.0)
        turned = vectors.T @ (A @ self.y) * math.sqrt(v)
        wide = v + trace
        fit = (self.square - float((turned**2 / (wide + weights)).sum())) / wide
        logdet = 2 * float(np.log(np.diag(inner)).sum()) + n * math.log(v)
        upper = -0.5 * (n * math.log(2 * math.pi) + logdet + fit)
        return InducingFit(self.points, L, inner, along, lower, upper, jitter)

    def rounding(self, theta: Array, fit: InducingFit, units: float) -> float:
        """A generous bound on the rounding of both bounds; infinite if they mean nothing.

        A errs by at most the magnitudes of L^{-1} times (m times those of L and A, and the units of
        the kernel), G in norm; that moves Q by q, its trace and its determinant, and the fit along
        with it.
        """
        v, n, m = self.variance(theta), len(self.y), len(fit.points)
        inverse = np.abs(solve_triangular(fit.factor, np.eye(m), lower=True))
        mixed = float(np.linalg.norm(inverse @ np.abs(fit.factor)))
        B = fit.inner @ fit.inner.T
        length = math.sqrt(max(v * (float(np.einsum("ii->", B)) - m), 0.0))
        values = math.sqrt(n * m) * diagonal(self.smooth, theta)
        G = (m + 8) * mixed * length + units * float(np.linalg.norm(inverse)) * values
        G *= 4 * np.finfo(np.float64).eps
        q = 2 * length * G + G**2
        if not q < 0.1 * v:
            return math.inf
        x = float(np.linalg.norm(solve_triangular(fit.inner, fit.along, lower=True, trans="T")))
        near = max(self.square / v - float(fit.along @ fit.along), 0.0)
        dual = math.sqrt((near + 1.0) / v)
        moved = (1 + near) * q / v + (2 * x * G + q**2 / v) * dual + (G * dual) ** 2
        moved += 2 * G * math.sqrt(m / v) + q**2 / v**2
        rough = n * length**2 * (m / v + (x + dual) * x / v)
        rough += n * (self.square / v + abs(math.log(v)) + 8.0)
        return moved + 16 * float(np.finfo(np.float64).eps) * rough
