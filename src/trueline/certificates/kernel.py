r"""Certificates of kernel methods: what is proven about dual coefficients and kernel parameters.

*Equations.* With the kernel matrix K, noise N on its diagonal and targets t, dual coefficients a
solve

    (K + diag(N)) a = t.

Three kinds of statement are made about them:

- *kernel equations*: they do, up to a residual r. If K is positive semi-definite and N = alpha / s,
  they minimise 1/2 sum_i s_i (t_i - f_i)^2 + alpha/2 |f|^2 over all functions f of the kernel's
  space, up to the gap 1/2 sum_i s_i r_i^2 (the lower bound is that of the dual point alpha a).
- *stationary point*: besides, the log marginal likelihood is level in the parameters of the kernel,
  up to the stated slope. This is local: another maximum may be higher.
- *evidence bounds*: besides, the log marginal likelihood at these parameters lies between two
  numbers that inducing points give.

What holds is checked by :mod:`trueline.check`, by the formulas of scikit-learn's kernels; for other
kernels, for the matrices that they evaluate to.

*Support vector machines* have a primal and a dual objective. For f of the kernel's space, an
intercept b, and multipliers beta of the rows:

    primal   1/2 ||f||^2 + sum_i C_i loss(y_i, f(x_i) + b)
    dual     sum_i t_i beta_i - eps sum_i |beta_i| - 1/2 beta'K beta

No f has a primal value below the dual value of any feasible beta, provided that the kernel is
positive semi-definite. For kernels of which that is not known (sigmoid, given matrices and
functions) nothing but stationarity is claimed: no pair of multipliers of any group improves the
dual objective by more than its violation.

Kernel values are computed in double precision by matrix products, with bounds on their error, and
all sums are taken on the safe side. That the multipliers add up as they must is arranged in exact
terms: what the sum of the doubles is off by is taken from one multiplier that has room for it, and
what that costs the dual objective is charged to the gap.

*Rounding of kernel values.* Products x.z of d terms err by about d units of |x| |z|, squared
distances made of them by d units of (|x| + |z|)^2; the formula of the kernel carries that on. The
bounds are generous, and cost no more than products with vectors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from trueline.certificates.base import Proof
from trueline.wording import relative

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
class SupportVectorCertificate(Proof):
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
    _statements = SUPPORT_VECTOR_KINDS

    @property
    def dual_objective(self) -> float:
        """The dual objective, on the safe side of rounding."""
        return self.lower_bound

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
# Products of sparse rows are slower than those of dense ones where more than this share is filled.
_FILLED = 0.1
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
        if sp.issparse(X) and X.nnz > _FILLED * X.shape[0] * X.shape[1]:
            X = X.toarray()
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
        both = np.column_stack([coef, size])
        for start in range(0, len(rows), step):
            some = slice(start, min(start + step, len(rows)))
            K, relative, absolute = self._block(rows[some], columns)
            if self.name == "rbf":  # no value is negative: both sums read them once
                f[some], carried = (K @ both).T
            else:
                f[some], carried = K @ coef, np.abs(K) @ size
            # The product itself errs by (terms + 2) eps of the magnitudes.
            error[some] = (relative + (len(columns) + 4) * _EPS) * carried
            error[some] += absolute @ size if absolute.ndim == 2 else absolute * size.sum()
        return f, error * (1 + 8 * _EPS) + _TINY

    def diagonal(self, row: int) -> float:
        """K_ii, rounded up."""
        K, relative, absolute = self._block(np.array([row]), np.array([row]))
        return float(K[0, 0] + relative[0] * abs(K[0, 0]) + absolute.max())

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
    """One quadratic program, as the data state it, and the point that is claimed for it.

    ``margin`` is 1, or rho of the nu machines; none in regression. ``gain`` is what multipliers
    gain in the dual, ``dual_epsilon`` what |beta| costs there, ``paid`` what the nu machines pay
    for the width that they choose, ``sums`` what groups of multipliers add up to and ``most`` what
    all magnitudes add up to at the most.
    """

    rows: Index
    target: Array
    price: Array
    beta: Array
    intercept: float
    sums: tuple[tuple[Index, Fraction], ...]
    gain: Array
    margin: float | None = None
    epsilon: float = 0.0
    dual_epsilon: float = 0.0
    paid: float = 0.0
    most: float | None = None

    @property
    def low(self) -> Array:
        """What multipliers are at least."""
        return -self.price if self.margin is None else np.minimum(0.0, self.target * self.price)

    @property
    def high(self) -> Array:
        """What multipliers are at most."""
        return self.price if self.margin is None else np.maximum(0.0, self.target * self.price)


def _parts(certificate: SupportVectorCertificate, y: Any, weights: Array) -> list[Part]:
    machine, used = certificate.machine, np.flatnonzero(weights > 0)
    if machine in ("svc", "nu_svc"):
        labels = np.asarray(y).reshape(-1)
        codes = np.full(len(labels), -1)
        for code, label in enumerate(certificate.classes):
            codes[labels == label] = code
        pairs = combinations(range(len(certificate.classes)), 2)
        return [_pair(certificate, codes, weights, used, i, *pair) for i, pair in enumerate(pairs)]
    s, beta, b = weights[used], np.zeros(len(weights)), float(certificate.intercept[0])
    beta[certificate.support] = certificate.coef[0]
    beta, everything = beta[used], np.arange(len(used))
    given = {name: float(value) for name, value in certificate.parameters.items()}
    if machine == "one_class":
        total, ones = Fraction(given["nu"]) * _exact_sum(s), np.ones(len(s))
        sums, paid = ((everything, total),), float(total) * b
        return [Part(used, ones, s, beta, 0.0, sums, 0.0 * s, margin=-b, paid=paid)]
    target, price = np.asarray(y, dtype=np.float64).reshape(-1)[used], given["C"] * s
    sums = ((everything, Fraction(0)),)
    if machine == "svr":
        e = given["epsilon"]
        return [Part(used, target, price, beta, b, sums, target, epsilon=e, dual_epsilon=e)]
    e, most = float(certificate.witness["epsilon"]), given["nu"] * math.fsum(price)
    return [Part(used, target, price, beta, b, sums, target, epsilon=e, paid=most * e, most=most)]


def _pair(
    certificate: SupportVectorCertificate,
    codes: Index,
    weights: Array,
    used: Index,
    number: int,
    a: int,
    b: int,
) -> Part:
    """One versus one: SVs of class a have their coefficient against b in row b - 1 or b."""
    coef, support, own = certificate.coef, certificate.support, codes[certificate.support]
    # For two classes the positive one is the second.
    sign = -1.0 if len(certificate.classes) == 2 else 1.0
    rows = np.concatenate([used[codes[used] == c] for c in (a, b)])
    t, level = np.where(codes[rows] == a, 1.0, -1.0), sign * float(certificate.intercept[number])
    beta, everything = np.zeros(len(codes)), np.arange(len(rows))
    if certificate.machine == "svc":
        beta[support[own == a]] = sign * coef[b - 1, own == a]
        beta[support[own == b]] = sign * coef[a, own == b]
        price = certificate.parameters["C"] * certificate.class_weight[codes[rows]] * weights[rows]
        return Part(rows, t, price, beta[rows], level, ((everything, Fraction(0)),), t, margin=1.0)
    beta[support] = certificate.witness["multipliers"][number]
    rho, price = float(certificate.witness["scale"][number]), weights[rows]
    total = Fraction(float(certificate.parameters["nu"])) * _exact_sum(price)
    halves = (everything[t > 0], total / 2), (everything[t < 0], -total / 2)
    paid = -float(total) * rho
    return Part(rows, t, price, beta[rows], level * rho, halves, 0.0 * t, margin=rho, paid=paid)


# --- objective and gap --------------------------------------------------------------------------


class Found(NamedTuple):
    """What the data say about a point, on the safe side of rounding."""

    objective: float
    rounding: float
    gap: float
    violation: float


def _evaluate(part: Part, K: _Kernel) -> Found:
    beta, size, units = part.beta, np.abs(part.beta), (len(part.rows) + 16) * _EPS
    used = np.flatnonzero(beta)
    f, error = K.scores(part.rows, part.rows[used], beta[used])
    square = float(beta @ f)
    square_error = float(size @ error) + units * float(np.abs(beta * f).sum())
    losses, slack = _losses(part, f, error)
    half, short = 0.5, 0.0
    if np.isinf(part.price).any():
        # Margins short by this much hold for the function divided by one minus it.
        short = float((losses + slack).max())
        loss, loss_error = 0.0, 4 * square * float(slack.max())
        if part.margin is not None:
            half, short = 0.5 / (1.0 - short) ** 2 if short < 1 else math.inf, 0.0
    else:
        loss = float((part.price * losses).sum())
        loss_error = float((part.price * slack).sum()) + units * loss
    loss, loss_error = loss + part.paid, loss_error + (8 * _EPS + units) * abs(part.paid)
    objective = half * square + loss
    rounding = half * square_error + loss_error + units * abs(objective)
    gain = float(part.gain @ beta) - part.dual_epsilon * float(size.sum())
    whole = float(np.abs(part.gain * beta).sum()) + part.dual_epsilon * float(size.sum())
    gap = (half + 0.5) * square + loss - gain + _balance(part, f, error, K)
    gap += 2 * half * square_error + loss_error + 4 * units * whole
    gap += units * (abs(square) + abs(loss) + 2 * abs(part.paid) + abs(gain))
    if not ((beta >= part.low) & (beta <= part.high)).all():
        gap = math.inf
    sizes = np.abs(f).max() + np.abs(part.gain).max() + part.epsilon
    violation = _violation(part, f) + 4 * float(error.max()) + 16 * _EPS * float(sizes)
    return Found(objective, rounding, max(gap, 0.0), max(violation, short))


def _losses(part: Part, f: Array, error: Array) -> tuple[Array, Array]:
    """Losses of the rows, and bounds on their error."""
    score, margin = f + part.intercept, part.margin
    lack = np.abs(part.target - score) - part.epsilon
    if margin is not None:
        lack = margin - part.target * score
    sizes = np.abs(f) + abs(part.intercept) + np.abs(part.target) + 2.0 + part.epsilon
    return np.maximum(lack, 0.0), error + 4 * _EPS * (sizes + abs(margin or 0.0))


def _balance(part: Part, f: Array, error: Array, K: _Kernel) -> float:
    """What it costs the dual objective to make the multipliers add up exactly.

    Moving beta_j by -s changes the dual objective by at most
    |s| (|t_j| + eps + |f_j|) + s^2 K_jj / 2.
    """
    cost, size = 0.0, math.fsum(np.abs(part.beta))
    slopes = np.abs(part.gain) + part.dual_epsilon + np.abs(f) + error
    for group, total in part.sums:
        s = _exact_sum(part.beta[group]) - total
        if s == 0:
            continue
        bound = float(abs(s)) * (1 + 4 * _EPS)
        room = (part.beta - part.low if s > 0 else part.high - part.beta)[group]
        able = group[room * (1 - 4 * _EPS) >= bound]
        if not len(able):
            return math.inf
        j = able[int(np.argmin(slopes[able]))]
        cost += bound * float(slopes[j]) + 0.5 * bound**2 * abs(K.diagonal(part.rows[j]))
    if part.most is not None:
        # sum |beta| <= nu sum C: where rounding has it above, all multipliers shrink a little.
        excess = size - part.most + 8 * _EPS * (size + part.most)
        worth = float(np.abs(part.target * part.beta).sum() + np.abs(part.beta * f).sum())
        cost += 2 * (max(excess, 0.0) / max(size, _TINY)) * worth
    return cost * (1 + 8 * _EPS)


def _exact_sum(numbers: Array) -> Fraction:
    """The sum of doubles as it is."""
    rounded = math.fsum(numbers)
    # What rounding left out is the rounded sum of all numbers and its negative; and so on.
    rest = math.fsum([*numbers.tolist(), -rounded])
    last = math.fsum([*numbers.tolist(), -rounded, -rest])
    return Fraction(rounded) + Fraction(rest) + Fraction(last)


def _violation(part: Part, f: Array) -> float:
    """The largest gain that is left in moving two multipliers of a group against each other."""
    beta, epsilon, room = part.beta, part.epsilon, part.gain - f
    up = np.where(beta < 0, room + epsilon, room - epsilon)
    down = np.where(beta > 0, room - epsilon, room + epsilon)
    up, down = np.where(beta < part.high, up, -np.inf), np.where(beta > part.low, down, np.inf)
    return max([0.0, *(float(up[g].max() - down[g].min()) for g, _ in part.sums if len(g))])


# --- claims -------------------------------------------------------------------------------------


@np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore")
def certify_support_vectors(
    certificate: SupportVectorCertificate, X: Any, y: Any, weights: Array
) -> SupportVectorCertificate:
    """The certificate with its numbers worked out from the data."""
    K = _Kernel(X, certificate.kernel)
    found = [_evaluate(part, K) for part in _parts(certificate, y, weights)]
    objective, rounding, gap = (sum(part[i] for part in found) for i in range(3))
    rounding += 8 * _EPS * abs(objective)
    if certificate.kind != "kernel duality" or math.isnan(gap):
        gap = math.inf
    return replace(
        certificate,
        objective=objective,
        # Another order of summation gives another number within the same bounds.
        objective_rounding=2 * rounding + 1e-290,
        gap=gap * (1 + 1e-3) + 2 * rounding + 1e-290,
        violation=max(part.violation for part in found) * (1 + 1e-6) + 1e-290,
    )


#: The kinds of proof, and what each one says in a sentence.
KERNEL_KINDS: dict[str, str] = {
    "kernel equations": (
        "the dual coefficients solve their equations to the stated residual; no function of the "
        "space of the positive semi-definite kernel has an objective lower than the one reached by "
        "more than the gap (if the kernel is not known to be positive semi-definite the gap is "
        "infinite, and nothing is said about other functions)"
    ),
    "stationary point": (
        "local: within the bounds the log marginal likelihood is level in the parameters of the "
        "kernel, up to the stated slope, and the dual coefficients solve their equations to the "
        "stated residual; another maximum may be higher"
    ),
    "given parameters": (
        "for the parameters of the kernel as given: the log marginal likelihood has the stated "
        "value, and the dual coefficients solve their equations to the stated residual"
    ),
    "evidence bounds": (
        "for these parameters of the kernel the log marginal likelihood of all rows lies between "
        "the stated bounds; nothing is said about other parameters"
    ),
}


@dataclass(frozen=True, repr=False)
class KernelCertificate(Proof):
    """The objective reached, how well its equations hold, and what verifies both.

    Attributes
    ----------
    kind : {"kernel equations", "stationary point", "given parameters", "evidence bounds"}
        :attr:`statement` says it in words.
    objective : float
        Of kernel ridge regression, or minus the log marginal likelihood.
    objective_rounding : float
        Bound on the error made in evaluating it.
    gap : float
        Proven upper bound on objective minus optimum; infinite for statements that are local.
    residual : float
        Largest residual of the equations, relative to the largest target.
    slope : float
        Largest derivative of the log marginal likelihood in a parameter (a logarithm) that is free
        to move.
    kernel : kernel of scikit-learn, or mapping
        What the matrix is computed with.
    coef : array of shape (n, k)
        Dual coefficients.
    witness : mapping of str to array
        What :meth:`verify` needs beside data and coefficients.
    """

    kind: str
    objective: float
    objective_rounding: float
    gap: float
    residual: float
    slope: float
    kernel: Any
    coef: Array
    witness: Mapping[str, Any] = field(default_factory=dict)
    _statements = KERNEL_KINDS

    def __str__(self) -> str:
        if self.kind == "kernel equations" and math.isinf(self.gap):
            return (
                f"objective {self.objective:.10g}, equations solved to {self.residual:.2g}; the "
                "kernel is not positive semi-definite, so nothing is said about other functions"
            )
        if self.kind == "kernel equations":
            return (
                f"objective {self.objective:.10g}, proven within {self.gap:.3g} of the optimum "
                f"({relative(self.relative_gap)})"
            )
        if self.kind == "evidence bounds":
            return (
                f"log marginal likelihood between {-self.objective:.10g} and "
                f"{float(self.witness['upper']):.10g}"
            )
        level = (
            f", slope at most {self.slope:.3g} (local)" if self.kind != "given parameters" else ""
        )
        return (
            f"log marginal likelihood {-self.objective:.10g}{level}, equations solved to "
            f"{self.residual:.2g}"
        )


def is_definite(recipe: Mapping[str, Any]) -> bool:
    """Whether every matrix of this kernel is positive semi-definite, by its formula.

    Examples
    --------
    >>> from trueline.certificates.kernel import is_definite
    >>> is_definite({"metric": "rbf", "gamma": 0.5}), is_definite({"metric": "precomputed"})
    (True, False)
    """
    metric = recipe["metric"]
    if metric in ("poly", "polynomial"):
        return float(recipe["degree"]).is_integer() and recipe["coef0"] >= 0
    return isinstance(metric, str) and metric in ("linear", "rbf", "laplacian", "cosine", "chi2")


def score_error(recipe: Mapping[str, Any], X: Any, sizes: Array, carried: Array) -> Array:
    """A bound on the error of sum_j c_j k(x_i, x_j) that the kernel values leave.

    Parameters
    ----------
    recipe : mapping
        The kernel, ``metric``, and its parameters.
    X : array or sparse matrix of shape (n, d)
    sizes : array of shape (k,)
        sum_j |c_j|.
    carried : array of shape (n, k)
        sum_j |k(x_i, x_j)| |c_j|.

    Returns
    -------
    error : array of shape (n, k)
    """
    metric = recipe["metric"]
    if callable(metric) or metric == "precomputed":
        return np.zeros(carried.shape)
    d = X.shape[1]
    unit = 8.0 * (d + 16) * _EPS
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    lengths = np.sqrt(np.asarray(squares, dtype=np.float64)).reshape(-1, 1)
    reach = float(lengths.max(initial=0.0))
    gamma = recipe.get("gamma")
    gamma = 1.0 / max(d, 1) if gamma is None else float(gamma)
    if metric == "rbf":
        with np.errstate(over="ignore"):
            relative = np.expm1(np.minimum(gamma * unit * (lengths + reach) ** 2, 700.0)) + unit
        # Values lie between 0 and 1, and so do those of the formula.
        return np.minimum(relative * carried, (1.0 + unit) * sizes)
    if metric in ("laplacian", "chi2", "additive_chi2"):
        return 750.0 * unit * carried
    if metric == "linear":
        return unit * lengths * reach * sizes
    if metric == "cosine":
        return unit * np.ones_like(lengths) * sizes
    inner = gamma * lengths * reach + abs(float(recipe["coef0"]))
    if metric == "sigmoid":
        return unit * (inner + 1.0) * sizes
    degree = float(recipe["degree"])
    return unit * (degree + 1) * inner**degree * sizes
