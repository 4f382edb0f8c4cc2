r"""Certificates of kernel support vector machines: primal and dual objective, and their gap.

For f of the kernel's space, an intercept b, and multipliers beta of the rows:

    primal   1/2 ||f||^2 + sum_i C_i loss(y_i, f(x_i) + b)
    dual     sum_i t_i beta_i - eps sum_i |beta_i| - 1/2 beta'K beta

No f has a primal value below the dual value of any feasible beta, provided that the kernel is
positive semi-definite. For kernels of which that is not known (sigmoid, given matrices and
functions) nothing but stationarity is claimed: no pair of multipliers of any group improves the
dual objective by more than its violation.

The numbers of a support vector machine's certificate, worked out from the training data.

Kernel values are computed in double precision by matrix products, with bounds on their error, and
all sums are taken on the safe side. That the multipliers add up as they must is arranged in exact
terms: what the sum of the doubles is off by is taken from one multiplier that has room for it, and
what that costs the dual objective is charged to the gap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from trueline.wording import Readable, relative

__all__ = ["SUPPORT_VECTOR_KINDS", "SupportVectorCertificate", "certify_support_vectors"]

if TYPE_CHECKING:
    from trueline.check import Verification

Array = NDArray[np.float64]

#: The kinds of proof, and what each one says in a sentence.
SUPPORT_VECTOR_KINDS: dict[str, str] = {
    "kernel duality": (
        "no function of the kernel's space and no intercept give an objective lower than the one "
        "reached by more than the gap"
    ),
    "kernel stationarity": (
        "local: the kernel is not known to be positive semi-definite, so nothing is claimed about "
        "other functions; no two multipliers can be moved against each other with a gain above "
        "the stated violation"
    ),
}


@dataclass(frozen=True, repr=False)
class SupportVectorCertificate(Readable):
    """The objective reached, a proven lower bound, and everything that verifies both.

    Attributes
    ----------
    kind : {"kernel duality", "kernel stationarity"}
        :attr:`statement` says it in words.
    machine : {"svc", "nu_svc", "svr", "nu_svr", "one_class"}
    objective : float
        The primal objective; with several pairs of classes the sum of theirs.
    objective_rounding : float
        Bound on the error made in evaluating it.
    gap : float
        Proven upper bound on objective minus optimum; infinite if the statement is local.
    violation : float
        The largest gain that moving two multipliers against each other still has.
    kernel : KernelFunction or callable
    parameters : mapping of str to float
        C, epsilon, nu, as far as the machine has them.
    classes, class_weight : arrays of shape (k,)
        Empty for machines without classes.
    support : array of int of shape (m,)
        Rows of the training data.
    coef : array of shape (1, m) or (k - 1, m)
        Dual coefficients, in the layout and with the signs of ``dual_coef_``.
    intercept : array
    witness : mapping of str to array
        What :meth:`verify` needs beside data and coefficients.
    """

    kind: str
    machine: str
    objective: float
    objective_rounding: float
    gap: float
    violation: float
    kernel: Any
    parameters: Mapping[str, float]
    classes: Any
    class_weight: Array
    support: NDArray[np.intp]
    coef: Array
    intercept: Array
    witness: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lower_bound(self) -> float:
        """A number that the optimum is proven not to lie below; minus infinity if local."""
        return self.objective - self.objective_rounding - self.gap

    @property
    def dual_objective(self) -> float:
        """The dual objective, on the safe side of rounding."""
        return self.lower_bound

    @property
    def relative_gap(self) -> float:
        """The gap divided by the objective; infinite if local."""
        if self.gap <= 1e-280:
            return 0.0
        if self.objective == 0 or math.isinf(self.gap):
            return math.inf
        return self.gap / abs(self.objective)

    @property
    def statement(self) -> str:
        """What is proven, in a sentence."""
        return SUPPORT_VECTOR_KINDS[self.kind]

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
        """Check every claim against the data, independently of the solver.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows that were fitted; the kernel matrix, if it is precomputed.
        y : array-like of shape (n,)
            Labels or targets; not needed for the machine with one class.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        verification : Verification
        """
        from trueline.check import verify

        return verify(self, X, y, sample_weight)

    def __str__(self) -> str:
        if self.kind == "kernel duality":
            return (
                f"objective {self.objective:.10g}, proven within {self.gap:.3g} of the optimum "
                f"({relative(self.relative_gap)})"
            )
        return (
            f"objective {self.objective:.10g}, violation {self.violation:.3g} (local: the kernel "
            "is not known to be positive semi-definite)"
        )


Index = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
_BLOCK_VALUES = 2_000_000
_TINY = 1e-300


# --- kernel values and their error --------------------------------------------------------------


class _Kernel:
    """Blocks of K between all rows and some of them, with a bound on the error of each row.

    The bound is relative: |fl(k) - k| <= relative_i |fl(k)| + absolute_i for row i of a block.
    """

    def __init__(self, X: Any, kernel: Any) -> None:
        self.kernel = kernel
        self.name = "precomputed" if callable(kernel) else kernel.name
        if callable(kernel):
            K = kernel(X, X)
            X = K.toarray() if sp.issparse(K) else K
        if sp.issparse(X):
            self.X: Any = sp.csr_array(X).astype(np.float64)
            self.d = int(np.diff(self.X.indptr).max(initial=0))
        else:
            self.X = np.asarray(X, dtype=np.float64)
            self.d = self.X.shape[1]
        if self.name == "rbf" and not sp.issparse(self.X):
            self.raw = self.X
            self.X = self.X - self.X.mean(axis=0)
        self.n = self.X.shape[0]
        self.norms = np.sqrt(self._squares()) if self.name != "precomputed" else np.zeros(self.n)
        self.reach = float(self.norms.max(initial=0.0))

    def _squares(self) -> Array:
        if sp.issparse(self.X):
            return np.asarray(self.X.multiply(self.X).sum(axis=1)).ravel()
        return np.einsum("ij,ij->i", self.X, self.X)

    def scores(self, rows: Index, columns: Index, coef: Array) -> tuple[Array, Array]:
        """f = K[rows, columns] @ coef, and a bound on its error."""
        f, error = np.empty(len(rows)), np.empty(len(rows))
        step = max(1, _BLOCK_VALUES // max(1, len(columns)))
        size = np.abs(coef)
        for start in range(0, len(rows), step):
            some = slice(start, min(start + step, len(rows)))
            K, relative, absolute = self._block(rows[some], columns)
            f[some] = K @ coef
            carried = np.abs(K) @ size
            # The product itself errs by (terms + 2) eps of the magnitudes.
            error[some] = (relative + (len(columns) + 4) * _EPS) * carried
            error[some] += absolute @ size if absolute.ndim == 2 else absolute * size.sum()
        return f, error * (1 + 8 * _EPS) + _TINY

    def diagonal(self, rows: Index) -> Array:
        """k(x, x), rounded up."""
        values = np.empty(len(rows))
        for place, row in enumerate(rows):
            K, relative, absolute = self._block(np.array([row]), np.array([row]))
            values[place] = float(K[0, 0] + relative[0] * abs(K[0, 0]) + absolute.max())
        return values

    def _block(self, rows: Index, columns: Index) -> tuple[Array, Array, Array]:
        zero = np.zeros(len(rows))
        if self.name == "precomputed":
            return self.X[np.ix_(rows, columns)], zero, zero
        if self.name == "rbf":
            return self._rbf(rows, columns)
        products = self.X[rows] @ self.X[columns].T
        K = products.toarray() if sp.issparse(products) else products
        off = (self.d + 4) * _EPS * self.norms[rows] * self.reach
        if self.name == "linear":
            return K, zero, off
        gamma, coef0 = float(self.kernel.gamma), float(self.kernel.coef0)
        inner = gamma * K + coef0
        size = np.abs(inner).max(axis=1, initial=0.0)
        off = abs(gamma) * off * (1 + 4 * _EPS) + 4 * _EPS * (size + 2 * abs(coef0))
        if self.name == "sigmoid":
            return np.tanh(inner), np.full(len(rows), 8 * _EPS), off
        degree = int(self.kernel.degree)
        # |(p + h)^m - p^m| <= m |h| (|p| + |h|)^(m - 1), for each value: powers differ widely.
        absolute = degree * off[:, None] * (np.abs(inner) + off[:, None]) ** max(degree - 1, 0)
        return inner**degree, np.full(len(rows), (degree + 8) * _EPS), absolute

    def _rbf(self, rows: Index, columns: Index) -> tuple[Array, Array, Array]:
        gamma = float(self.kernel.gamma)
        mine = self.norms[rows]
        # Of gamma (|x|^2 + |z|^2 - 2 x.z), centring included.
        off = gamma * (self.d + 12) * _EPS * (mine + self.reach) ** 2
        if sp.issparse(self.X) or float(off.max(initial=0.0)) < 1e-9:
            products = self.X[rows] @ self.X[columns].T
            K = products.toarray() if sp.issparse(products) else products
            K *= 2.0
            K -= (mine**2)[:, None]
            K -= self.norms[columns] ** 2
            K *= gamma
            np.minimum(K, 0.0, out=K)
            size = np.zeros(len(rows))
        else:
            K = -gamma * cdist(self.raw[rows], self.raw[columns], "sqeuclidean")
            # Relative errors of the exponent; beyond 745 the value is zero anyway.
            off = np.full(len(rows), 750.0 * (self.d + 6) * _EPS)
            size = np.zeros(len(rows))
        np.exp(K, out=K)
        return K, np.expm1(np.minimum(off, 700.0)) + 8 * _EPS, size + _TINY


# --- the binary machines that the coefficients are made of --------------------------------------


@dataclass(frozen=True)
class Part:
    """One quadratic program, as the data state it, and the point that is claimed for it."""

    rows: Index
    target: Array
    low: Array
    high: Array
    beta: Array
    intercept: float
    epsilon: float
    machine: str
    scale: float = 1.0  # rho of the nu machines
    nu_weight: float = 0.0  # what multiplies rho or epsilon in the primal objective

    total: Fraction = Fraction(0)  # the same, exactly

    @property
    def epsilon_of_dual(self) -> float:
        """What |beta| costs in the dual; the width that NuSVR chooses costs nothing there."""
        return self.epsilon if self.machine == "svr" else 0.0

    @property
    def gain_target(self) -> Array:
        """What beta gains in the dual; nothing in machines whose margin is chosen."""
        return self.target if self.machine in ("svc", "svr", "nu_svr") else 0.0 * self.target


def _parts(certificate: SupportVectorCertificate, X: Any, y: Any, weights: Array) -> list[Part]:
    machine = certificate.machine
    n = len(weights)
    coef, support = certificate.coef, certificate.support
    used = np.flatnonzero(weights > 0)
    C = float(certificate.parameters.get("C", 1.0))
    nu = float(certificate.parameters.get("nu", 0.0))
    if machine in ("svc", "nu_svc"):
        return _class_parts(certificate, y, weights, used)
    dense = np.zeros(n)
    dense[support] = coef[0]
    if machine == "one_class":
        zeros = np.zeros(len(used))
        exactly = Fraction(nu) * _exact_sum(weights[used])
        return [
            Part(used, zeros, zeros, weights[used], dense[used], float(certificate.intercept[0]),
                 0.0, machine, -float(certificate.intercept[0]), float(exactly), exactly)
        ]  # fmt: skip
    target = np.asarray(y, dtype=np.float64).reshape(-1)
    box = C * weights[used]
    epsilon = certificate.parameters.get("epsilon", 0.0)
    nu_weight = 0.0
    if machine == "nu_svr":
        epsilon = float(certificate.witness["epsilon"])
        nu_weight = nu * math.fsum(box)
    return [
        Part(used, target[used], -box, box, dense[used], float(certificate.intercept[0]),
             float(epsilon), machine, 1.0, nu_weight)
    ]  # fmt: skip


def _class_parts(
    certificate: SupportVectorCertificate, y: Any, weights: Array, used: Index
) -> list[Part]:
    """One versus one: SVs of class a have their coefficient against b in row b - 1 or b."""
    labels = np.asarray(y).reshape(-1)
    classes = certificate.classes
    codes = np.full(len(labels), -1)
    for code, label in enumerate(classes):
        codes[labels == label] = code
    k = len(classes)
    coef, support = certificate.coef, certificate.support
    scales = certificate.witness.get("scale")
    # For two classes the positive one is the second.
    sign = -1.0 if k == 2 else 1.0
    parts, number = [], 0
    for a in range(k):
        for b in range(a + 1, k):
            dense = np.zeros(len(labels))
            of_a, of_b = codes[support] == a, codes[support] == b
            dense[support[of_a]] = sign * coef[b - 1, of_a]
            dense[support[of_b]] = sign * coef[a, of_b]
            rows = np.concatenate([used[codes[used] == a], used[codes[used] == b]])
            t = np.where(codes[rows] == a, 1.0, -1.0)
            beta, level = dense[rows], sign * float(certificate.intercept[number])
            if certificate.machine == "svc":
                C = float(certificate.parameters["C"])
                box = C * certificate.class_weight[codes[rows]] * weights[rows]
                low, high = np.minimum(0.0, t * box), np.maximum(0.0, t * box)
                parts.append(Part(rows, t, low, high, beta, level, 0.0, "svc"))
            else:
                assert scales is not None
                scale, box = float(scales[number]), weights[rows]
                given = certificate.witness["multipliers"][number]
                unscaled = np.zeros(len(labels))
                unscaled[support] = given
                low, high = np.minimum(0.0, t * box), np.maximum(0.0, t * box)
                exactly = Fraction(float(certificate.parameters["nu"])) * _exact_sum(box)
                parts.append(
                    Part(rows, t, low, high, unscaled[rows], level * scale, 0.0, "nu_svc",
                         scale, float(exactly), exactly)
                )  # fmt: skip
            number += 1
    return parts


# --- objective and gap --------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """What the data say about a point, on the safe side of rounding."""

    objective: float
    rounding: float
    gap: float
    violation: float
    in_boxes: bool


def _evaluate(certificate: SupportVectorCertificate, X: Any, y: Any, weights: Array) -> Found:
    """Objective, gap and violation, added up over the parts."""
    K = _Kernel(X, certificate.kernel)
    objective = rounding = gap = 0.0
    violation, in_boxes = 0.0, True
    for part in _parts(certificate, X, y, weights):
        found = _evaluate_part(part, K)
        objective += found.objective
        rounding += found.rounding
        gap += found.gap
        violation = max(violation, found.violation)
        in_boxes = in_boxes and found.in_boxes
    rounding += 8 * _EPS * abs(objective)
    if certificate.kind != "kernel duality":
        gap = math.inf
    return Found(objective, rounding, gap, violation, in_boxes)


def _evaluate_part(part: Part, K: _Kernel) -> Found:
    beta, n = part.beta, len(part.rows)
    used = np.flatnonzero(beta)
    f, error = K.scores(part.rows, part.rows[used], beta[used])
    units = (n + 16) * _EPS
    square = float(beta @ f)
    square_error = float(np.abs(beta) @ error) + units * float(np.abs(beta * f).sum())
    losses, losses_error = _losses(part, f, error)
    box, half, short = np.maximum(part.high, -part.low), 0.5, 0.0
    if np.isinf(box).any():
        # Margins short by this much hold for the function divided by one minus it.
        short = float((losses + losses_error).max())
        loss, loss_error = 0.0, 4 * square * float(losses_error.max())
        if part.machine == "svc":
            half = 0.5 / (1.0 - short) ** 2 if short < 1 else math.inf
            short = 0.0
    else:
        loss = float((box * losses).sum())
        loss_error = float((box * losses_error).sum()) + units * float((box * losses).sum())
    extra, extra_error = _priced(part)
    objective = half * square + loss + extra
    rounding = half * square_error + loss_error + extra_error + units * abs(objective)
    gain = float(part.gain_target @ beta) - part.epsilon_of_dual * float(np.abs(beta).sum())
    gain_error = 4 * units * float(np.abs(part.gain_target * beta).sum())
    gain_error += 4 * units * part.epsilon_of_dual * float(np.abs(beta).sum())
    off, off_error = _balanced(part, f, error, K)
    gap = (half + 0.5) * square + loss + extra - gain + off
    gap += 2 * half * square_error + loss_error + extra_error + gain_error + off_error
    gap += units * (abs(square) + abs(loss) + abs(extra) + abs(gain))
    in_boxes = bool(((beta >= part.low) & (beta <= part.high)).all())
    sizes = np.abs(f).max() + np.abs(part.gain_target).max() + part.epsilon
    violation = _violation(part, f) + 4 * float(error.max()) + 16 * _EPS * float(sizes)
    violation = max(violation, short)
    return Found(objective, rounding, max(gap, 0.0), violation, in_boxes)


def _losses(part: Part, f: Array, error: Array) -> tuple[Array, Array]:
    """Losses of the rows, and bounds on their error."""
    score = f + part.intercept if part.machine != "one_class" else f
    slack = error + 4 * _EPS * (np.abs(f) + abs(part.intercept) + np.abs(part.target) + 1.0)
    if part.machine in ("svc", "nu_svc"):
        margin = 1.0 if part.machine == "svc" else part.scale
        losses = np.maximum(margin - part.target * score, 0.0)
    elif part.machine == "one_class":
        losses = np.maximum(part.scale - score, 0.0)
    else:
        losses = np.maximum(np.abs(part.target - score) - part.epsilon, 0.0)
    return losses, slack + 4 * _EPS * (abs(part.scale) + part.epsilon)


def _priced(part: Part) -> tuple[float, float]:
    """-nu rho, or nu epsilon: what the nu machines pay for the width that they choose."""
    if part.machine in ("one_class", "nu_svc"):
        value = -part.nu_weight * part.scale
    elif part.machine == "nu_svr":
        value = part.nu_weight * part.epsilon
    else:
        return 0.0, 0.0
    return value, 8 * _EPS * abs(value)


def _balanced(part: Part, f: Array, error: Array, K: _Kernel) -> tuple[float, float]:
    """What it costs the dual objective to make the multipliers add up exactly.

    Moving beta_j by -s changes the dual objective by at most
    |s| (|t_j| + eps + |f_j|) + s^2 K_jj / 2.
    """
    cost = 0.0
    for group, total in _sums(part):
        s = _exact_sum(part.beta[group]) - total
        if s == 0:
            continue
        bound = float(abs(s)) * (1 + 4 * _EPS)
        beta = part.beta[group]
        room = beta - part.low[group] if s > 0 else part.high[group] - beta
        able = group[room * (1 - 4 * _EPS) >= bound]
        if not len(able):
            return math.inf, 0.0
        slope = (
            np.abs(part.gain_target[able]) + part.epsilon_of_dual + np.abs(f[able]) + error[able]
        )
        j = able[int(np.argmin(slope))]
        curvature = float(K.diagonal(part.rows[[j]])[0])
        cost += bound * float(slope.min()) + 0.5 * bound**2 * abs(curvature)
    if part.machine == "nu_svr":
        # sum |beta| <= nu sum C: where rounding has it above, all multipliers shrink a little.
        size = math.fsum(np.abs(part.beta))
        excess = size - part.nu_weight + 8 * _EPS * (size + part.nu_weight)
        if excess > 0:
            worth = float(np.abs(part.target * part.beta).sum() + np.abs(part.beta * f).sum())
            cost += 2 * (excess / max(size, _TINY)) * worth
    return cost, 8 * _EPS * cost


def _exact_sum(numbers: Array) -> Fraction:
    """The sum of doubles as it is."""
    rounded = math.fsum(numbers)
    # What rounding left out is the rounded sum of all numbers and its negative; and so on.
    rest = math.fsum([*numbers.tolist(), -rounded])
    last = math.fsum([*numbers.tolist(), -rounded, -rest])
    return Fraction(rounded) + Fraction(rest) + Fraction(last)


def _sums(part: Part) -> list[tuple[Index, Fraction]]:
    """Groups of multipliers, and what each must add up to."""
    everything = np.arange(len(part.beta))
    if part.machine == "one_class":
        return [(everything, part.total)]
    if part.machine == "nu_svc":
        positive = part.target > 0
        return [
            (everything[positive], part.total / 2),
            (everything[~positive], -part.total / 2),
        ]
    return [(everything, Fraction(0))]


def _violation(part: Part, f: Array) -> float:
    """The largest gain that is left in moving two multipliers of a group against each other."""
    beta, epsilon = part.beta, part.epsilon
    room = part.gain_target - f
    up = np.where(beta < 0, room + epsilon, room - epsilon)
    down = np.where(beta > 0, room - epsilon, room + epsilon)
    up, down = np.where(beta < part.high, up, -np.inf), np.where(beta > part.low, down, np.inf)
    groups = [group for group, _ in _sums(part)]
    worst = max(float(up[g].max() - down[g].min()) for g in groups if len(g))
    return max(worst, 0.0)


# --- claims -------------------------------------------------------------------------------------


def certify_support_vectors(
    certificate: SupportVectorCertificate, X: Any, y: Any, weights: Array
) -> SupportVectorCertificate:
    """The certificate with its numbers worked out from the data."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        found = _evaluate(certificate, X, y, weights)
    gap = found.gap if found.in_boxes and not math.isnan(found.gap) else math.inf
    return replace(
        certificate,
        objective=found.objective,
        # Another order of summation gives another number within the same bounds.
        objective_rounding=2 * found.rounding + 1e-290,
        gap=gap * (1 + 1e-3) + 2 * found.rounding + 1e-290,
        violation=found.violation * (1 + 1e-6) + 1e-290,
    )
