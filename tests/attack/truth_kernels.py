"""Claims about kernel methods: support vector machines, kernel ridge, Gaussian processes."""

from __future__ import annotations

import copy
import warnings

import numpy as np
from mpmath import mp, mpf

from .exactly import Meaningless, dense, number, numbers, parts

__all__ = ["equations", "evidence", "machine", "machine_objective", "process", "ridge_objective"]


def _weights(weight, n):
    s = np.ones(n) if weight is None else np.broadcast_to(np.asarray(weight, dtype=float), (n,))
    if not np.isfinite(s).all():
        raise Meaningless("weights that are not finite")
    return s


def _matrix(kernel, X):
    """The kernel matrix of support vector machines, in high precision."""
    if callable(kernel):
        K = kernel(X, X)
        return numbers(np.asarray(dense(K), dtype=float))
    return _recipe_matrix(kernel, X)


def _is_semidefinite(kernel):
    if callable(kernel):
        return False
    own = _recipe(kernel)
    if own.get("gamma") is not None and number(own["gamma"]) < 0:
        return own["metric"] == "linear"
    if own["metric"] in ("poly", "polynomial"):
        return number(own["coef0"]) >= 0
    return own["metric"] in ("linear", "rbf", "laplacian")


def _recipe(kernel):
    """Metric and parameters of a kernel, however they are written."""
    own = parts(kernel)
    own.setdefault("metric", own.get("name"))
    if set(own) - {"metric", "name", "gamma", "degree", "coef0"}:
        raise Meaningless("a recipe with rows of its own, or what else")
    return own


# --- support vector machines ----------------------------------------------------------------------


class _Part:
    """One machine of two classes, or of a regression: rows, prices, function and level."""

    def __init__(self, rows, target, price, beta, level, epsilon=0, width=None, total=None):
        self.rows, self.target, self.price, self.beta = rows, target, price, beta
        self.level, self.epsilon, self.width, self.total = level, epsilon, width, total


def _machine_parts(claim, y, weight, n):
    s = _weights(weight, n)
    coef, support = np.asarray(claim.coef), np.asarray(claim.support)
    if support.dtype.kind == "f" and (support == np.floor(support)).all():
        support = support.astype(int)  # the same rows, written otherwise
    if support.ndim != 1 or support.dtype.kind not in "iu" or coef.ndim != 2:
        raise Meaningless("support vectors of another shape")
    if coef.shape[1] != len(support) or (support < 0).any() or (support >= n).any():
        raise Meaningless("support vectors that are no rows")
    if len(np.unique(support)) != len(support):
        raise Meaningless("a row twice among the support vectors")
    if (s[support] <= 0).any() or (s < 0).any():
        raise Meaningless("support vectors without weight")
    used = np.flatnonzero(s > 0)
    name, given = claim.machine, dict(claim.parameters)
    if name in ("svc", "nu_svc"):
        return _pairs(claim, y, s, used, coef, support)
    if coef.shape[0] != 1:
        raise Meaningless("rows of coefficients that belong to nothing")
    beta = [mpf(0)] * n
    for i, v in zip(support, numbers(coef)[0]):
        beta[i] = v
    level = numbers(claim.intercept, (1,))[0]
    if name == "one_class":
        nu = number(given["nu"])
        if not 0 < nu <= 1:
            raise Meaningless("nu beyond 0 and 1")
        price = [mpf(float(v)) for v in s]
        total = nu * mp.fsum(price[i] for i in used)
        return [_Part(used, None, price, beta, mpf(0), 0, -level, total)]
    target = np.asarray(y, dtype=float).reshape(-1)
    if target.shape != (n,):
        raise Meaningless("targets of another shape")
    C = number(given["C"])
    if C <= 0:
        raise Meaningless("a price that is not positive")
    price = [C * mpf(float(v)) for v in s]
    if name == "svr":
        epsilon = number(given["epsilon"])
        if epsilon < 0:
            raise Meaningless("a negative width")
        return [_Part(used, numbers(target), price, beta, level, epsilon)]
    if name != "nu_svr":
        raise Meaningless(f"the machine {name!r}")
    epsilon = number(claim.witness_or("epsilon"))
    if epsilon < 0:
        raise Meaningless("a negative width")
    total = number(given["nu"]) * mp.fsum(price[i] for i in used)
    return [_Part(used, numbers(target), price, beta, level, epsilon, None, total)]


def _pairs(claim, y, s, used, coef, support):
    classes, labels = np.asarray(claim.classes), np.asarray(y).reshape(-1)
    k = len(classes)
    if labels.shape != s.shape or not np.isin(labels[used], classes).all():
        raise Meaningless("labels that are not among the classes")
    if coef.shape[0] != k - 1 or len(np.unique(classes)) != k:
        raise Meaningless("coefficients of another number of classes")
    levels = numbers(claim.intercept, (k * (k - 1) // 2,))
    codes = np.array([int(np.argmax(classes == label)) for label in labels])
    values, sign = numbers(coef), -1 if k == 2 else 1
    own = numbers(claim.class_weight, (k,)) if claim.machine == "svc" else None
    out, number_of = [], 0
    scales = claim.witness_or("scale")
    for a in range(k):
        for b in range(a + 1, k):
            beta = [mpf(0)] * len(s)
            for place, i in enumerate(support):
                if codes[i] == a:
                    beta[i] = sign * values[b - 1][place]
                elif codes[i] == b:
                    beta[i] = sign * values[a][place]
            rows = [i for i in used if codes[i] in (a, b)]
            t = [mpf(1) if code == a else mpf(-1) for code in codes]
            level = sign * levels[number_of]
            if claim.machine == "svc":
                C = np.asarray(claim.parameters["C"], dtype=float)
                if np.isnan(C) or C <= 0 or min(own) < 0:
                    raise Meaningless("a price that is not positive")
                C = mp.inf if np.isinf(C) else mpf(float(C))
                price = [C * own[c] * mpf(float(v)) for c, v in zip(codes, s)]
                out.append(_Part(rows, t, price, beta, level))
            else:
                scale = number(np.asarray(scales)[number_of])
                if scale <= 0:
                    raise Meaningless("a scale that is not positive")
                price = [mpf(float(v)) for v in s]
                total = number(claim.parameters["nu"]) * mp.fsum(price[i] for i in rows)
                beta = [v * scale for v in beta]
                out.append(_Part(rows, t, price, beta, level * scale, 0, scale, total))
            number_of += 1
    return out


def _part_objective(part, K, name):
    used = [i for i in part.rows if part.beta[i] != 0]
    f = {i: mp.fsum(part.beta[j] * K[i][j] for j in used) for i in part.rows}
    total = mp.fsum(part.beta[i] * f[i] for i in used) / 2
    if name == "svc" and not mp.isfinite(max(part.price)):
        # A hard margin: the function is made longer by what its margins lack.
        least = min(part.target[i] * (f[i] + part.level) for i in part.rows)
        return total / min(least, mpf(1)) ** 2 if least > 0 else mp.inf
    for i in part.rows:
        if name == "one_class":
            loss = max(part.width - f[i], mpf(0))
        elif name == "svc":
            loss = max(1 - part.target[i] * (f[i] + part.level), mpf(0))
        elif name == "nu_svc":
            loss = max(part.width - part.target[i] * (f[i] + part.level), mpf(0))
        else:
            loss = max(abs(part.target[i] - f[i] - part.level) - part.epsilon, mpf(0))
        if loss > 0:
            total += part.price[i] * loss
    if name in ("one_class", "nu_svc"):
        total -= part.total * part.width
    if name == "nu_svr":
        total += part.total * part.epsilon
    return total


def _rows(X):
    return X.shape[0] if hasattr(X, "shape") else len(X)


def machine_objective(claim, X, y, weight):
    """The primal objective of the function and the level that are claimed."""
    K = _matrix(claim.kernel, X)
    found = _machine_parts(claim, y, weight, _rows(X))
    return mp.fsum(_part_objective(part, K, claim.machine) for part in found)


def machine(claim, X, y, weight, hints):
    """Objective, and no function of the kernel's space that is lower by more than the gap."""
    from .truth import _Claim, gap_of, within

    reached = machine_objective(claim, X, y, weight)
    if not mp.isfinite(reached):
        return None if np.isinf(claim.gap) else "the objective is infinite"
    wrong = within(claim, reached)
    if wrong:
        return wrong
    gap = gap_of(claim)
    if claim.kind == "kernel stationarity":
        return None if not mp.isfinite(gap) else "a gap where nothing is known"
    if not _is_semidefinite(claim.kernel):
        return "the kernel is not known to be positive semi-definite"
    others = [_Claim(hint) for hint in hints]
    again = _fitted_again(claim, X, y, weight) if claim.thorough else None
    others += [] if again is None else [_Claim(again)]
    for other in others:
        if other.machine != claim.machine:
            continue
        try:
            point = _Borrowed(claim, other)
            low = machine_objective(point, X, y, weight)
        except Meaningless:
            continue
        if low < reached - gap:
            return f"another function has {mp.nstr(low, 12)}; {mp.nstr(reached, 12)} was reached"
    return None


class _Borrowed:
    """The point of another certificate for the problem of this one."""

    def __init__(self, claim, other):
        self._claim, self._other = claim, other

    def __getattr__(self, name):
        own = ("machine", "parameters", "kernel", "classes", "class_weight")
        return getattr(self._claim if name in own else self._other, name)


def _fitted_again(claim, X, y, weight):
    """The certificate of the library's own fit of the same machine."""
    import trueline as tl

    kernel = claim.kernel
    names = {"svc": tl.SVC, "nu_svc": tl.NuSVC, "svr": tl.SVR, "nu_svr": tl.NuSVR}
    names["one_class"] = tl.OneClassSVM
    try:
        own = {"kernel": kernel} if callable(kernel) else {
            "kernel": kernel.name, "gamma": kernel.gamma or 1.0, "degree": kernel.degree,
            "coef0": kernel.coef0,
        }  # fmt: skip
        if claim.machine == "svc":
            own["class_weight"] = dict(zip(np.asarray(claim.classes).tolist(), claim.class_weight))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = names[claim.machine](**own, **dict(claim.parameters), tol=1e-8, max_iter=20000)
            return model.fit(X, y, sample_weight=weight).certificate_
    except Exception:  # a hint less
        return None


# --- kernel ridge regression ----------------------------------------------------------------------


def _recipe_matrix(recipe, X):
    """The kernels of scikit-learn that are used here, by their formulas."""
    recipe = _recipe(recipe)
    rows = numbers(np.asarray(dense(X), dtype=float))
    name = recipe.get("metric")
    if name == "precomputed":
        return numbers(np.asarray(dense(X), dtype=float), (len(rows), len(rows)))
    if name == "linear":
        return [[mp.fdot(zip(a, b)) for b in rows] for a in rows]
    gamma = recipe.get("gamma")
    gamma = 1 / mpf(len(rows[0])) if gamma is None else number(gamma)
    if name in ("poly", "polynomial", "sigmoid"):
        coef0, degree = number(recipe["coef0"]), number(recipe["degree"])
        inner = [[gamma * mp.fdot(zip(a, b)) + coef0 for b in rows] for a in rows]
        if name == "sigmoid":
            return [[mp.tanh(v) for v in row] for row in inner]
        if degree < 0 or (degree != int(degree) and min(map(min, inner)) < 0):
            raise Meaningless("a degree that is negative, or not whole")
        return [
            [v ** (int(degree) if degree == int(degree) else degree) for v in row] for row in inner
        ]
    if name == "rbf":
        return [
            [mp.exp(-gamma * mp.fsum((u - v) ** 2 for u, v in zip(a, b))) for b in rows]
            for a in rows
        ]
    if name == "laplacian":
        return [
            [mp.exp(-gamma * mp.fsum(abs(u - v) for u, v in zip(a, b))) for b in rows] for a in rows
        ]
    raise Meaningless(f"the kernel {name!r}")


def _ridge(claim, X, y, weight):
    Y = np.asarray(y, dtype=float)
    Y = Y.reshape(-1, 1) if Y.ndim == 1 else Y
    n, k = Y.shape
    s = _weights(weight, n)
    a = numbers(claim.coef, (n, k))
    if any(v != 0 for row, w in zip(a, s) for v in row if w <= 0):
        raise Meaningless("coefficients of rows without weight")
    alpha = np.asarray(claim.witness_or("alpha"))
    fits = alpha.dtype.kind in "fiu" and alpha.shape in ((), (k,))
    if not fits and alpha.shape != (1,):
        raise Meaningless("strengths of another shape")
    alpha = [number(v) for v in np.broadcast_to(alpha, (k,))]
    if min(alpha) < 0:
        raise Meaningless("a negative strength")
    K = _recipe_matrix(claim.kernel, X)
    if len(K) != n:
        raise Meaningless("another number of rows")
    keep = [i for i in range(n) if s[i] > 0]
    K = [[K[i][j] for j in keep] for i in keep]
    Y = numbers(Y)
    return K, [Y[i] for i in keep], [a[i] for i in keep], [mpf(float(s[i])) for i in keep], alpha


def _ridge_value(K, Y, a, s, alpha):
    n, k = len(K), len(alpha)
    total = mpf(0)
    for t in range(k):
        f = [mp.fsum(K[i][j] * a[j][t] for j in range(n)) for i in range(n)]
        total += mp.fsum(s[i] * (Y[i][t] - f[i]) ** 2 for i in range(n)) / 2
        total += alpha[t] / 2 * mp.fsum(a[i][t] * f[i] for i in range(n))
    return total


def ridge_objective(claim, X, y, weight):
    """1/2 sum_i s_i (y_i - f_i)^2 + alpha/2 |f|^2."""
    return _ridge_value(*_ridge(claim, X, y, weight))


def equations(claim, X, y, weight, hints):
    """Objective, residual and gap of kernel ridge regression."""
    from .truth import gap_of, within

    K, Y, a, s, alpha = _ridge(claim, X, y, weight)
    n, k = len(K), len(alpha)
    reached = _ridge_value(K, Y, a, s, alpha)
    size = mp.fsum(
        abs(a[i][t] * K[i][j] * a[j][t]) for t in range(k) for i in range(n) for j in range(n)
    ) + mp.fsum(s[i] * Y[i][t] ** 2 for i in range(n) for t in range(k))
    wrong = within(claim, reached)
    if wrong:
        return wrong
    low = mpf(0)
    for t in range(k):
        A = mp.matrix(n, n)
        for i in range(n):
            for j in range(n):
                A[i, j] = K[i][j]
            A[i, i] += alpha[t] / s[i] + mpf(10) ** -40
        try:
            best = mp.lu_solve(A, mp.matrix([Y[i][t] for i in range(n)]))
        except ZeroDivisionError:
            return None
        low += _ridge_value(K, [[Y[i][t]] for i in range(n)], [[v] for v in best], s, [alpha[t]])
    if mp.isfinite(low) and low < reached - gap_of(claim) - mpf(10) ** -30 * size:
        return f"the optimum is {mp.nstr(low, 12)}; {mp.nstr(reached, 12)} was reached"
    return None


# --- Gaussian processes ---------------------------------------------------------------------------


def _likelihood(claim, X, y, coef=True):
    """K with its noise, and the targets as they are explained."""
    kernel = claim.kernel
    Y = np.asarray(y, dtype=float)
    Y = Y.reshape(-1, 1) if Y.ndim == 1 else Y
    n, k = Y.shape
    shift, scale = np.asarray(claim.witness_or("level")), np.asarray(claim.witness_or("scale"))
    noise = np.asarray(claim.witness_or("noise"))
    for given, shapes in ((shift, ((), (k,), (1,))), (scale, ((), (k,), (1,))),
                          (noise, ((), (n,), (1,)))):  # fmt: skip
        if given.dtype.kind not in "fiu" or given.shape not in shapes:
            raise Meaningless("a level, scale or noise of another shape")
        if not np.isfinite(given).all():
            raise Meaningless("a level, scale or noise that is not finite")
    if (scale <= 0).any() or (noise < 0).any():
        raise Meaningless("a scale or noise that is negative")
    T = (Y - shift) / scale
    rows = numbers(np.asarray(X, dtype=float))
    try:
        A = _covariance(kernel, rows)
    except (AttributeError, TypeError) as error:
        raise Meaningless(f"no kernel: {error}") from None
    own = np.broadcast_to(noise.astype(float), (n,))
    for i in range(n):
        A[i, i] += mpf(float(own[i]))
    try:
        L = mp.cholesky(A)
    except (ValueError, ZeroDivisionError):
        raise Meaningless("a kernel matrix that is not positive definite") from None
    inverse = A**-1
    fit = mpf(0)
    for t in range(k):
        v = mp.matrix(T[:, t].tolist())
        fit += (v.T * inverse * v)[0]
    logdet = 2 * mp.fsum(mp.log(L[i, i]) for i in range(n))
    value = -(fit + k * logdet + k * n * mp.log(2 * mp.pi)) / 2
    # (y - level) / scale is rounded twice.
    slack = mpf(10) ** -15 * abs(fit) + mpf(10) ** -30
    return value, slack, T, A, inverse


def _covariance(kernel, rows):
    """The kernels of Gaussian processes that are used here, by their formulas."""
    n, name = len(rows), type(kernel).__name__
    if name in ("Sum", "Product"):
        left, right = _covariance(kernel.k1, rows), _covariance(kernel.k2, rows)
        out = mp.matrix(n, n)
        for i in range(n):
            for j in range(n):
                a, b = left[i, j], right[i, j]
                out[i, j] = a + b if name == "Sum" else a * b
        return out
    if name == "ConstantKernel":
        value = _positive(kernel.constant_value)
        return _filled(n, lambda i, j: value)
    if name == "WhiteKernel":
        value = _positive(kernel.noise_level)
        return _filled(n, lambda i, j: value if i == j else mpf(0))
    if name == "DotProduct":
        value = _positive(kernel.sigma_0)
        return _filled(n, lambda i, j: mp.fdot(zip(rows[i], rows[j])) + value**2)
    lengths = kernel.length_scale if isinstance(kernel.length_scale, list) else None
    lengths = lengths or [_positive(v) for v in np.ravel(kernel.length_scale)]
    if len(lengths) not in (1, len(rows[0])) or (len(lengths) > 1 and name != "RBF"):
        raise Meaningless("length scales of another number")
    lengths = lengths * (len(rows[0]) if len(lengths) == 1 else 1)

    def square(i, j):
        return mp.fsum(((u - v) / s) ** 2 for u, v, s in zip(rows[i], rows[j], lengths))

    if name == "RBF":
        return _filled(n, lambda i, j: mp.exp(-square(i, j) / 2))
    if name == "RationalQuadratic":
        alpha = _positive(kernel.alpha)
        # 1 + s / (2 alpha) is 1 in fifty digits where alpha is large.
        return _filled(n, lambda i, j: mp.exp(-alpha * mp.log1p(square(i, j) / (2 * alpha))))
    raise Meaningless(f"the kernel {name}")


def _positive(value):
    if isinstance(value, _Number):
        return mpf(value)
    found = number(np.asarray(value).ravel()[0] if np.size(value) == 1 else value)
    if found <= 0:
        raise Meaningless("a parameter of a kernel that is not positive")
    return found


def _filled(n, entry):
    out = mp.matrix(n, n)
    for i in range(n):
        for j in range(n):
            out[i, j] = entry(i, j)
    return out


def process(claim, X, y, weight, hints):
    """Likelihood, residual and slope of a Gaussian process."""
    value, slack, T, A, inverse = _likelihood(claim, X, y)
    n, k = T.shape
    a = numbers(claim.coef, (n, k))
    off = abs(-value - number(claim.objective))
    rounding = np.asarray(claim.objective_rounding, dtype=float)
    if np.isnan(rounding) or rounding < 0:
        raise Meaningless("a rounding that is no number")
    if np.isfinite(rounding) and off > mpf(float(rounding)) + slack:
        return f"the likelihood is {mp.nstr(value, 12)}"
    largest = max((abs(v) for v in T.ravel()), default=0.0) or 1.0
    size = mpf(0)
    for i in range(n):
        for t in range(k):
            f = mp.fsum(A[i, j] * a[j][t] for j in range(n))
            size = max(size, abs(mpf(float(T[i, t])) - f) / mpf(float(largest)))
    if size > number(claim.residual) * (1 + mpf(10) ** -6) + mpf(10) ** -13:
        return f"the residual is {mp.nstr(size, 4)}"
    if claim.kind != "stationary point":
        return None
    if float(claim.slope) == np.inf:
        return None
    free = [own for own in claim.kernel.hyperparameters if not own.fixed]
    # Logarithms of single precision are not those of the numbers that are stated.
    values = [np.ravel(claim.kernel.get_params()[own.name]) for own in free]
    theta = np.log(np.concatenate([np.empty(0), *values]).astype(float))
    bounds = np.log(np.vstack([np.empty((0, 2)), *(own.bounds for own in free)]).astype(float))
    places = [(own.name, i) for own in free for i in range(own.n_elements)]
    if not ((theta >= bounds[:, 0] - 1e-8) & (theta <= bounds[:, 1] + 1e-8)).all():
        return "parameters beyond their bounds"
    rows = numbers(np.asarray(X, dtype=float))
    best = [inverse * mp.matrix(T[:, t].tolist()) for t in range(k)]
    steepest = mpf(0)
    for p in range(len(theta)):
        gradient = _derivative(claim.kernel, rows, *places[p])
        slope = mpf(0)
        for i in range(n):
            for j in range(n):
                own = mp.fsum(v[i] * v[j] for v in best) - k * inverse[i, j]
                slope += own * gradient[i, j] / 2
        if (slope > 0 and theta[p] < bounds[p, 1] - 1e-7) or (
            slope < 0 and theta[p] > bounds[p, 0] + 1e-7
        ):
            steepest = max(steepest, abs(slope))
    if steepest > number(claim.slope) * (1 + mpf(10) ** -6) + slack + mpf(10) ** -9:
        return f"the slope is {mp.nstr(steepest, 4)}"
    return None


def _derivative(kernel, rows, name, place):
    """The derivative in the logarithm of one parameter, by differences in 50 digits."""
    h = mpf(10) ** -18
    sides = []
    for t in (-h, h):
        moved = copy.deepcopy(kernel)
        *path, last = name.split("__")
        part = moved
        for step in path:
            part = getattr(part, step)
        values = [_Number(_positive(v)) for v in np.ravel(getattr(part, last))]
        values[place] = _Number(values[place] * mp.exp(t))
        setattr(part, last, values if last == "length_scale" else values[0])
        sides.append(_covariance(moved, rows))
    return (sides[1] - sides[0]) / (2 * h)


class _Number(mpf):
    """A parameter with more digits than a double has."""


def evidence(claim, X, y, weight, hints):
    """The likelihood lies between the bounds."""
    value, slack, _, _, _ = _likelihood(claim, X, y)
    if np.isposinf(claim.objective_rounding):
        return None
    rounding = number(claim.objective_rounding)
    if rounding < 0:
        raise Meaningless("a negative rounding")
    if -number(claim.objective) - rounding > value + slack:
        return f"the likelihood {mp.nstr(value, 12)} is below the lower bound"
    if number(claim.witness_or("upper")) + rounding < value - slack:
        return f"the likelihood {mp.nstr(value, 12)} is above the upper bound"
    return None
