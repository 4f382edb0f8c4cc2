"""The independent check of what is claimed about a perceptron.

Recounted from the rows: the training errors of the coefficients; R and the margin of the separator;
and the sum of the updates, which must be the weights that the run ended with. The theorem is in
:mod:`trueline.certificates.mistakes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.checking import EPS, ROWS, Check, Verification
from trueline.certificates.kernel_mistakes_check import check_kernel_bound
from trueline.wording import counted

__all__ = ["KINDS_OF_MISTAKES", "check_mistakes"]

Array = NDArray[np.float64]

KINDS_OF_MISTAKES = ("training errors", "mistake bound", "kernel mistake bound")
_WITNESS = (
    "counts",
    "last",
    "last_intercept",
    "separator",
    "separator_intercept",
    "rate",
    "threshold",
    "intercept_step",
    "largest",
    "direct",
    "precision",
    "mistakes",
    "gamma",
    "radius",
    "bound",
)


class _Data:
    """The rows as the checker reads them: dense blocks of float64, classes, weights."""

    def __init__(self, X: Any, y: Any, sample_weight: Any, certificate: Certificate) -> None:
        self.X: Any = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        self.y = np.asarray(y, dtype=np.float64).ravel()
        self.n = self.X.shape[0]
        self.k = certificate.coef.shape[1]
        given = 1.0 if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.plain = np.broadcast_to(given, (self.n,)).astype(np.float64)
        self.of_class = np.atleast_1d(certificate.witness.get("class_weights", np.empty(0)))

    def trouble(self, certificate: Certificate) -> str | None:
        """What makes these data unfit for the certificate, or None."""
        classes = max(2, self.k)
        if self.X.ndim != 2 or self.X.shape[1] != len(certificate.coef):
            return f"X of shape {self.X.shape}"
        if self.y.shape != (self.n,) or self.n == 0:
            return f"y of shape {self.y.shape}"
        labels = (-1.0, 1.0) if self.k == 1 else np.arange(classes)
        if not np.isin(self.y, labels).all():
            return "y holds other labels than " + ("-1 and +1" if self.k == 1 else "class numbers")
        if self.of_class.shape != (classes,) or not (self.of_class >= 0).all():
            return "class weights"
        if not (np.isfinite(self.plain).all() and (self.plain >= 0).all()):
            return "sample weights"
        values = self.X.data if sp.issparse(self.X) else self.X
        if not np.isfinite(values).all():
            return "X not finite"
        if not (np.isfinite(certificate.coef).all() and np.isfinite(certificate.intercept).all()):
            return "coefficients not finite"
        if certificate.intercept.shape != (self.k,):
            return "intercept"
        if not certificate.fit_intercept and certificate.intercept.any():
            return "an intercept where there is none"
        return None

    def blocks(self) -> Any:
        """Slices and dense rows."""
        for start in range(0, self.n, ROWS):
            part = slice(start, min(start + ROWS, self.n))
            block = self.X[part]
            block = block.toarray() if sp.issparse(block) else block
            yield part, np.asarray(block, dtype=np.float64)

    def class_of_rows(self) -> NDArray[np.intp]:
        """Number of the class of each row."""
        return (self.y > 0).astype(int) if self.k == 1 else self.y.astype(int)


def check_mistakes(
    certificate: Certificate, X: Any, y: Any, sample_weight: Any = None
) -> Verification:
    """All checks of such a certificate."""
    data = _Data(X, y, sample_weight, certificate)
    trouble = data.trouble(certificate)
    d, k = certificate.coef.shape
    shape = Check(
        "data fit the model",
        f"{counted(d, 'column')}, {counted(k, 'score')}",
        trouble or "yes",
        not trouble,
    )
    if trouble:
        return Verification((shape,))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        checks = [shape, _errors(certificate, data), _no_more_than_errors(certificate)]
        if certificate.kind == "mistake bound":
            lacks = [name for name in _WITNESS if name not in certificate.witness]
            if lacks:
                checks.append(Check("witness", "complete", f"lacks {lacks}", False))
            else:
                checks += _bound_checks(certificate, data)
        elif certificate.kind == "kernel mistake bound":
            dense = np.concatenate([block for _, block in data.blocks()])
            checks += check_kernel_bound(certificate, dense, data.y, data.plain)
    return Verification(tuple(checks))


def _errors(certificate: Certificate, data: _Data) -> Check:
    """The weight of the rows on the wrong side."""
    s = data.plain * data.of_class[data.class_of_rows()]
    found = unsure = 0.0
    for part, z, reach in _margins(data, data.y, certificate.coef, certificate.intercept):
        found += float(s[part][z <= 0].sum())
        unsure += float(s[part][np.abs(z) <= reach].sum())
    unsure += (data.n + 8) * EPS * float(s.sum())
    allowed = certificate.objective_rounding
    holds = abs(found - certificate.objective) + unsure <= allowed
    claimed = f"{certificate.objective:.12g} within {allowed:.2g}"
    return Check("training errors", claimed, f"{found:.12g} within {unsure:.2g}", bool(holds))


def _no_more_than_errors(certificate: Certificate) -> Check:
    """Nothing but "not below zero" is claimed about the fewest possible errors."""
    bound = certificate.objective - certificate.gap
    return Check("fewest errors, at least", f"{bound:.6g}", "0", bool(bound <= 0))


def _margins(data: _Data, y: Array, W: Array, b: Array) -> Any:
    """By how much rows are right, block by block, and the rounding in that."""
    for part, block in data.blocks():
        terms = int(np.count_nonzero(block, axis=1).max(initial=0))
        scores = block @ W + b
        reach = (terms + 2) * EPS * (np.abs(block) @ np.abs(W) + np.abs(b))
        if W.shape[1] == 1:
            yield part, y[part] * scores[:, 0], reach[:, 0]
            continue
        gold, at = y[part].astype(int), np.arange(len(block))
        others = scores.copy()
        others[at, gold] = -np.inf
        yield part, scores[at, gold] - others.max(axis=1), reach[at, gold] + reach.max(axis=1)


def _bound_checks(certificate: Certificate, data: _Data) -> list[Check]:
    """R, margin and bound of every problem, the number of mistakes, and the sum of the updates."""
    w = {name: np.asarray(certificate.witness[name], dtype=np.float64) for name in _WITNESS}
    d, k, direct = len(certificate.coef), data.k, bool(w["direct"])
    problems = 1 if direct else k
    shapes = {
        "counts": (data.n, k),
        "last": (d, k),
        "last_intercept": (k,),
        "separator": (d, k),
        "separator_intercept": (k,),
        **dict.fromkeys(("mistakes", "gamma", "radius", "bound", "largest"), (problems,)),
        **dict.fromkeys(("rate", "threshold", "intercept_step", "precision"), ()),
    }
    wrong = [name for name, shape in shapes.items() if w[name].shape != shape]
    sane = (
        not wrong
        and not (direct and k == 1)
        and float(w["rate"]) > 0
        and float(w["threshold"]) >= 0
        and float(w["intercept_step"]) >= 0
        and EPS / 2 <= float(w["precision"]) <= 1e-6
        and all(np.isfinite(w[name]).all() for name in ("last", "last_intercept", "separator"))
        and (w["counts"] >= 0).all()
        and (w["counts"] == np.floor(w["counts"])).all()
        and (float(w["intercept_step"]) > 0 or not w["separator_intercept"].any())
    )
    checks = [Check("witness", "makes sense", "yes" if sane else f"no {wrong}", bool(sane))]
    if not sane:
        return checks
    for r in range(problems):
        checks += _one_problem(w, data, r, direct)
    checks.append(_updates(w, data, direct))
    return checks


def _one_problem(w: dict[str, Array], data: _Data, r: int, direct: bool) -> list[Check]:
    label = f" of class {r}" if data.k > 1 and not direct else ""
    made = w["counts"].sum() if direct else w["counts"][:, r].sum()
    mistakes = Check(
        f"updates{label}", f"{w['mistakes'][r]:.0f}", f"{made:.0f}", bool(made == w["mistakes"][r])
    )
    if not np.isfinite(w["bound"][r]):
        return [mistakes]  # no separator, nothing claimed
    y, steps = _problem(w, data, r, direct)
    U, u = w["separator"], w["separator_intercept"]
    if not direct:
        U, u = U[:, r : r + 1], u[r : r + 1]
    gamma, square = np.inf, 0.0
    part_of = steps > 0
    for part, z, reach in _margins(data, y, U, u):
        safe = (z - reach)[part_of[part]]
        gamma = min(gamma, float(safe.min(initial=np.inf)))
    for part, block in data.blocks():
        squares = (block[part_of[part]] ** 2).sum(axis=1)
        square = max(square, float(squares.max(initial=0.0)))
    constant = float(w["intercept_step"])
    extra = float((u**2).sum()) / constant if constant > 0 else 0.0
    length = np.sqrt(float((U**2).sum()) + extra) * (1 + (U.size + 4) * EPS)
    gamma /= length
    radius = np.sqrt((square + constant) * (1 + (len(U) + 4) * EPS))
    low = float(steps[part_of].min(initial=np.inf))
    high = max(float(steps[part_of].max(initial=0.0)), float(w["largest"][r]))
    twice = 2.0 if direct else 1.0
    bound = (twice * high * w["radius"][r] ** 2 + 2 * float(w["threshold"])) / (
        low * w["gamma"][r] ** 2
    )
    return [
        mistakes,
        Check(
            f"margin{label}",
            f"{w['gamma'][r]:.6g}",
            f"{gamma:.6g}",
            bool(0 < w["gamma"][r] <= gamma * (1 - 4 * EPS)),
        ),
        Check(
            f"R{label}", f"{w['radius'][r]:.6g}", f"{radius:.6g}", bool(w["radius"][r] >= radius)
        ),
        Check(
            f"bound on updates{label}",
            f"{w['bound'][r]:.6g}",
            f"{bound:.6g}",
            bool(w["bound"][r] >= bound * (1 + 4 * EPS)),
        ),
        Check(
            f"updates within the bound{label}",
            f"{made:.0f} <= {w['bound'][r]:.6g}",
            "yes" if made <= w["bound"][r] else "no",
            bool(made <= w["bound"][r]),
        ),
    ]


def _problem(w: dict[str, Array], data: _Data, r: int, direct: bool) -> tuple[Array, Array]:
    """Target and steps of one problem: all classes together, two, or one against the rest."""
    own = data.of_class[data.class_of_rows()]
    rate = float(w["rate"])
    if direct or data.k == 1:
        return data.y, rate * data.plain * own
    mine = data.y == r
    return np.where(mine, 1.0, -1.0), rate * data.plain * np.where(mine, own, 1.0)


def _updates(w: dict[str, Array], data: _Data, direct: bool) -> Check:
    """sum of (updates by a row) (its step) (the row), against the weights at the end of the run."""
    change = np.zeros((data.n, data.k))
    if direct:
        _, steps = _problem(w, data, 0, direct)
        change -= w["counts"] * steps[:, None]
        gold = data.class_of_rows()
        change[np.arange(data.n), gold] += (w["counts"] * steps[:, None]).sum(axis=1)
        legal = not w["counts"][np.arange(data.n), gold].any()
    else:
        for r in range(data.k):
            y, steps = _problem(w, data, r, direct)
            change[:, r] = w["counts"][:, r] * steps * y
        legal = not w["counts"][data.plain == 0].any()
    total, size = np.zeros_like(w["last"]), np.zeros_like(w["last"])
    for part, block in data.blocks():
        total += block.T @ change[part]
        size += np.abs(block).T @ np.abs(change[part])
    level = change.sum(axis=0) * float(w["intercept_step"])
    level_size = np.abs(change).sum(axis=0) * float(w["intercept_step"])
    # Every addition of the run rounds a partial sum, which the sum of magnitudes bounds.
    terms = float(w["counts"].sum()) + data.n + 8
    slack = terms * (float(w["precision"]) + EPS)
    off = np.abs(total - w["last"]) <= slack * size
    level_off = np.abs(level - w["last_intercept"]) <= slack * level_size
    holds = legal and bool(off.all() and level_off.all())
    return Check("sum of the updates", "the weights at the end", "yes" if holds else "no", holds)
