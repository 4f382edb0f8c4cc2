r"""The checker of proofs by search: the answer, the bound at the root, and what that leaves open.

Claimed is that no w with at most k non-zeros has a smaller value, up to the gap, of

    1/2 sum_i s_i (y_i - x_i.w - b)^2 + l2/2 ||w||^2 + alpha ||w||_0.

With G the Gram matrix of the centred columns (l2 on its diagonal), c their products with the
target, any v, and a diagonal E >= 0 with G - E positive semidefinite,

    D = theta E + (1 - theta) delta diag(G),      r = c - theta (G - E) v,

    value(w) >= 1/2 y'y - theta/2 v'(G - E)v - sum of the k largest max(r_j^2/(2 D_j) - alpha, 0)

for all w (theta = 1), or for those on columns whose correlation matrix has no eigenvalue below
delta. This is recomputed from the rows. The search claims more than that; supports for which the
same inequality leaves its claim open are fitted one by one where they are few
(:mod:`trueline.certificates.supports`). Where they are many, the search is not repeated, and the
check says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.checking import Check, check_objective
from trueline.certificates.quadratic import coercivity
from trueline.certificates.supports import fitted_supports, open_supports

__all__ = ["WITNESS", "check_search"]

Array = NDArray[np.float64]

#: What such a proof must bring.
WITNESS = (
    "k",
    "alpha",
    "delta",
    "columns",
    "diagonal",
    "theta",
    "dual",
    "root_bound",
    "search_bound",
)
_EPS = float(np.finfo(np.float64).eps)
# What is left of a copy of another column, relative to its square.
_COPY = 1e-11


@dataclass(frozen=True)
class _Claim:
    """What a certificate of a search says, read from its witness."""

    k: int
    alpha: float
    delta: float
    root: float
    search: float
    l2: float
    columns: NDArray[np.bool_]

    @classmethod
    def of(cls, certificate: Certificate) -> _Claim:
        witness = certificate.witness
        return cls(
            k=int(witness["k"]),
            alpha=float(witness["alpha"]),
            delta=float(witness["delta"]),
            root=float(witness["root_bound"]),
            search=float(witness["search_bound"]),
            l2=float(np.max(certificate.penalty.curvature)),
            columns=np.asarray(witness["columns"], dtype=bool),
        )


@dataclass(frozen=True)
class _Root:
    """What the root says of a support S: its value is at least ``constant`` - sum_S ``gain``."""

    constant: float
    gain: Array

    def bound(self, k: int) -> float:
        """The least of that over all supports of at most k columns."""
        largest = np.sort(np.maximum(self.gain, 0.0))[max(0, len(self.gain) - k) :]
        total = float(largest.sum()) if k else 0.0
        return self.constant - total * (1 + (k + 2) * _EPS)


def check_search(certificate: Certificate, rows: Any) -> list[Check]:
    """All checks of a proof by search; ``rows`` are those of the independent checker."""
    claim = _Claim.of(certificate)
    count = int(np.count_nonzero(certificate.coef))
    squares = replace(certificate, objective=certificate.objective - claim.alpha * count)
    kind = "conditioned search" if claim.delta > 0 else "search"
    sound = claim.k >= 0 and claim.alpha >= 0 and claim.delta >= 0
    sound = sound and certificate.coef.shape[1] == 1
    checks = [
        Check("kind of proof", certificate.kind, kind, certificate.kind == kind and sound),
        Check("non-zero coefficients", f"<= {claim.k}", str(count), count <= claim.k),
        check_objective(squares, rows),
    ]
    if not sound or claim.columns.shape != (rows.d,):
        found = f"columns of shape {claim.columns.shape}"
        return [*checks, Check("witness of the search", f"{rows.d} columns", found, False)]
    mean = rows.mean()[0] if certificate.fit_intercept else np.zeros(rows.d)
    level = float(rows.s @ rows.y[:, 0]) / rows.weight if certificate.fit_intercept else 0.0
    of_root, root = _check_root(certificate, rows, claim, mean, level)
    return [*checks, *of_root, _check_bound(certificate, rows, claim, root, mean, level)]


def _check_bound(
    certificate: Certificate,
    rows: Any,
    claim: _Claim,
    root: _Root | None,
    mean: Array,
    level: float,
) -> Check:
    """The bound of the search against the gap, and again by itself where that is possible."""
    top = certificate.objective + certificate.objective_rounding
    unit = 8 * _EPS * abs(top)
    search = claim.search
    honest = bool(search <= top + unit and certificate.gap >= top - search - unit)
    proven, name = f"{certificate.lower_bound:.12g}", "bound of the search"
    if search <= 0 or (root is not None and search <= root.bound(claim.k)):
        return Check(name, proven, f"{search:.12g}, by the root alone", honest)
    gain = np.ones(int(claim.columns.sum())) if root is None else root.gain
    need = -1.0 if root is None else root.constant - search
    supports = open_supports(gain, need, claim.k)
    if supports is None:
        return Check(name, proven, f"{search:.12g}, not repeated: many supports are open", honest)
    found = fitted_supports(
        rows, claim.columns, mean, level, claim.l2, claim.alpha, claim.delta, supports
    )
    looked = f"{len(supports):,} open support{'s' * (len(supports) != 1)}"
    if found.lowest < search:
        said = f"{found.lowest:.12g} on columns {list(found.support)}"
        return Check(name, proven, said, False)
    if found.unknown:
        said = f"not repeated: of {looked}, {found.unknown:,} are too nearly dependent"
        return Check(name, proven, f"{search:.12g}, {said}", honest)
    return Check(name, proven, f"{search:.12g}, repeated: {looked} fitted", honest)


def _check_root(
    certificate: Certificate, rows: Any, claim: _Claim, mean: Array, level: float
) -> tuple[list[Check], _Root | None]:
    witness, columns = certificate.witness, claim.columns
    copies = _are_copies(rows, columns, mean, claim.l2)
    said = "yes" if copies else "no"
    checks = [Check("columns left out", "copies or constant", said, copies)]
    if claim.root <= 0:
        said = "0, as no square is negative"
        return [*checks, Check("bound at the root", f">= {claim.root:.6g}", said, True)], None
    E, v = np.asarray(witness["diagonal"], float), np.asarray(witness["dual"], float)
    theta, m = float(witness["theta"]), int(columns.sum())
    weighs = theta == 1 or (0 <= theta < 1 and claim.delta > 0)
    usable = E.shape == v.shape == (m,) and (E >= 0).all()
    if not (usable and weighs and np.isfinite(E).all() and np.isfinite(v).all()):
        said = f"shape {E.shape}, {v.shape}"
        return [*checks, Check("witness of the root", f"{m} columns", said, False)], None
    is_below = True
    if E.any():
        blocks = ((where, block[:, columns]) for where, block in rows)
        centre = mean[columns] if certificate.fit_intercept else None
        with np.errstate(divide="ignore"):
            basis = 1.0 / np.sqrt(E)
        curvature = np.full(m, claim.l2)
        nu = coercivity(blocks, rows.s, basis, curvature, centre) if E.all() else 0.0
        is_below = bool(nu >= 1)
        checks.append(Check("diagonal below the Gram matrix", ">= 1", f"{nu:.6g}", is_below))
    root = _root(rows, claim, mean, level, E, v, theta)
    found = root.bound(claim.k)
    holds = bool(found >= claim.root)
    checks.append(Check("bound at the root", f">= {claim.root:.10g}", f"{found:.10g}", holds))
    return checks, root if is_below and np.isfinite(root.gain).all() else None


def _root(
    rows: Any, claim: _Claim, mean: Array, level: float, E: Array, v: Array, theta: float
) -> _Root:
    """The inequality of the module's text, on the safe side of rounding."""
    columns, l2 = claim.columns, claim.l2
    target = fitted = 0.0
    cross, pulled, reach, size = (np.zeros(len(v)) for _ in range(4))
    for where, block in rows:
        s, X = rows.s[where], block[:, columns] - mean[columns]
        y, z = rows.y[where, 0] - level, X @ v
        target += float(s @ y**2)
        fitted += float(s @ z**2)
        cross += X.T @ (s * y)
        pulled += X.T @ (s * z)
        size += s @ X**2
        reach += np.abs(X).T @ (s * (np.abs(y) + np.abs(X) @ np.abs(v)))
    terms = (rows.n + len(v) + 32) * _EPS
    r = cross - theta * (pulled + (l2 - E) * v)
    r_error = terms * (reach + (l2 + E) * np.abs(v))
    D = theta * E + (1 - theta) * claim.delta * (size * (1 - terms) + l2)
    with np.errstate(divide="ignore", invalid="ignore"):
        h = np.where(D > 0, (np.abs(r) + r_error) ** 2 / (2 * D), np.inf) * (1 + 8 * _EPS)
    square = fitted + float(((l2 - E) * v) @ v)
    rounding = terms * (target + fitted + float(((l2 + E) * v) @ v))
    return _Root(float(0.5 * target - 0.5 * theta * square - rounding), h - claim.alpha)


def _are_copies(rows: Any, columns: NDArray[np.bool_], mean: Array, l2: float) -> bool:
    """Whether every column left out is constant, or a copy of one that is there."""
    if columns.all():
        return True
    size, magnitude = np.zeros(rows.d), np.zeros(rows.d)
    products = np.zeros((int((~columns).sum()), int(columns.sum())))
    for where, block in rows:
        X, s = block - mean, rows.s[where]
        size += s @ X**2
        magnitude += s @ block**2
        products += (s[:, None] * X[:, ~columns]).T @ X[:, columns]
    for own, scale, dots in zip(size[~columns], magnitude[~columns], products):
        if own <= _COPY * scale:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            left = 1.0 - dots**2 / (own * size[columns])
        # Two copies share a squared penalty: there, both must take part.
        if l2 > 0 or not (left <= _COPY).any():
            return False
    return True
