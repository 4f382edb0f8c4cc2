r"""The checker of proofs by search: the answer, and the bound at the root of the search.

Claimed is that no w with at most k non-zeros has a smaller value, up to the gap, of

    1/2 sum_i s_i (y_i - x_i.w - b)^2 + l2/2 ||w||^2 + alpha ||w||_0.

With G the Gram matrix of the centred columns (l2 on its diagonal), c their products with the
target, any v, and a diagonal E >= 0 with G - E positive semidefinite,

    D = theta E + (1 - theta) delta diag(G),      r = c - theta (G - E) v,

    value(w) >= 1/2 y'y - theta/2 v'(G - E)v - sum of the k largest max(r_j^2/(2 D_j) - alpha, 0)

for all w (theta = 1), or for those on columns whose correlation matrix has no eigenvalue below
delta. This is recomputed from the rows. What the search has added to it is not repeated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate

if TYPE_CHECKING:
    from trueline.certificates.verify import Check

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


def check_search(certificate: Certificate, rows: Any) -> list[Check]:
    """All checks of a proof by search; ``rows`` are those of the independent checker."""
    from trueline.certificates.verify import Check, _check_objective

    witness = certificate.witness
    k, alpha = int(witness["k"]), float(witness["alpha"])
    delta, root = float(witness["delta"]), float(witness["root_bound"])
    search = float(witness["search_bound"])
    count = int(np.count_nonzero(certificate.coef))
    squares = replace(certificate, objective=certificate.objective - alpha * count)
    kind = "conditioned search" if delta > 0 else "search"
    top = certificate.objective + certificate.objective_rounding
    unit = 8 * _EPS * abs(top)
    proven = f"{certificate.lower_bound:.12g}"
    honest = search <= top + unit and certificate.gap >= top - search - unit
    sound = k >= 0 and alpha >= 0 and delta >= 0 and certificate.coef.shape[1] == 1
    return [
        Check("kind of proof", certificate.kind, kind, certificate.kind == kind and sound),
        Check("non-zero coefficients", f"<= {k}", str(count), count <= k),
        _check_objective(squares, rows),
        *_check_root(certificate, rows, k, alpha, delta, root),
        Check("bound of the search", proven, f"{search:.12g}, not repeated", honest),
    ]


def _check_root(
    certificate: Certificate, rows: Any, k: int, alpha: float, delta: float, root: float
) -> list[Check]:
    from trueline.certificates.verify import Check, coercivity

    witness = certificate.witness
    if root <= 0:
        return [Check("bound at the root", f">= {root:.6g}", "0, as no square is negative", True)]
    columns = np.asarray(witness["columns"], dtype=bool)
    E, v = np.asarray(witness["diagonal"], float), np.asarray(witness["dual"], float)
    theta, m = float(witness["theta"]), int(columns.sum())
    fitting = columns.shape == (rows.d,) and E.shape == v.shape == (m,)
    weighs = theta == 1 or (0 <= theta < 1 and delta > 0)
    if not (
        fitting and weighs and (E >= 0).all() and np.isfinite(E).all() and np.isfinite(v).all()
    ):
        return [Check("witness of the root", f"{m} columns", f"shape {E.shape}, {v.shape}", False)]
    l2 = float(np.max(certificate.penalty.curvature))
    mean = rows.mean()[0] if certificate.fit_intercept else np.zeros(rows.d)
    checks = []
    if E.any():
        blocks = ((where, block[:, columns]) for where, block in rows)
        centre = mean[columns] if certificate.fit_intercept else None
        with np.errstate(divide="ignore"):
            basis = 1.0 / np.sqrt(E)
        nu = coercivity(blocks, rows.s, basis, np.full(m, l2), centre) if E.all() else 0.0
        checks.append(Check("diagonal below the Gram matrix", ">= 1", f"{nu:.6g}", nu >= 1))
    copies = _are_copies(rows, columns, mean, l2)
    checks.append(
        Check("columns left out", "copies or constant", "yes" if copies else "no", copies)
    )
    found = _root_bound(
        rows, columns, mean, certificate.fit_intercept, l2, E, v, theta, delta, k, alpha
    )
    holds = found >= root
    return [*checks, Check("bound at the root", f">= {root:.10g}", f"{found:.10g}", bool(holds))]


def _root_bound(
    rows: Any,
    columns: NDArray[np.bool_],
    mean: Array,
    is_centred: bool,
    l2: float,
    E: Array,
    v: Array,
    theta: float,
    delta: float,
    k: int,
    alpha: float,
) -> float:
    """The bound of the module's text, on the safe side of rounding."""
    centre = mean[columns]
    level = float(rows.s @ rows.y[:, 0]) / rows.weight if is_centred else 0.0
    target = fitted = 0.0
    cross, pulled, reach, size = (np.zeros(len(v)) for _ in range(4))
    for where, block in rows:
        s, X = rows.s[where], block[:, columns] - centre
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
    D = theta * E + (1 - theta) * delta * (size * (1 - terms) + l2)
    with np.errstate(divide="ignore", invalid="ignore"):
        h = np.where(D > 0, (np.abs(r) + r_error) ** 2 / (2 * D), np.inf)
    largest = np.sort(np.maximum(h - alpha, 0.0))[max(0, len(h) - k) :].sum() if k else 0.0
    square = fitted + float(((l2 - E) * v) @ v)
    rounding = terms * (target + fitted + float(((l2 + E) * v) @ v) + largest)
    return float(0.5 * target - 0.5 * theta * square - largest - rounding)


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
