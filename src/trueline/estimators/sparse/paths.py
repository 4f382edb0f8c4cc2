"""Paths of solutions: scikit-learn's functions, and an object that knows more."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_consistent_length
from sklearn.utils._param_validation import Hidden, Interval, StrOptions, validate_params

from trueline.design import Design, as_design
from trueline.design.columns import submatrix
from trueline.estimators.shared.validation import (
    check_array,
    row_weights,
    rows_and_target,
)
from trueline.guard import Verdict, warn_of_gaps
from trueline.losses import Squared
from trueline.moments import Moments
from trueline.penalties import L2, MultiTask, Penalty
from trueline.planner import execute_paths, make_set_plans
from trueline.problem import Array, Problem
from trueline.problem_set import Member, ProblemSet
from trueline.selection import criteria
from trueline.selection.cross_validation import largest_correlation, largest_strength, strengths
from trueline.solvers.base import Options
from trueline.wording import Readable, counted


@contextmanager
def said_of(X: Any) -> Iterator[None]:
    """Numbers that are not finite show in the first sums: only then is X looked through."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except FloatingPointError as error:
        with np.errstate(invalid="ignore"):
            assert_all_finite(X, input_name="X")
        raise ValueError(
            f"The squares of these numbers leave the range of double precision ({error}). Divide "
            "the columns or the target by a power of ten first."
        ) from error


@dataclass(frozen=True, repr=False)
class RegularizationPath(Readable):
    """The solutions of lasso, elastic net or ridge regression over a grid of strengths.

    Made by :func:`regularization_path`.

    Attributes
    ----------
    alphas : array of shape (m,)
        Decreasing.
    coefs : sparse array of shape (d, m)
    intercepts : array of shape (m,)
    objectives : array of shape (m,)
        The objective of :class:`~trueline.ElasticNet` at each solution.
    gaps : array of shape (m,)
        Its distance to the optimum is at most this, up to rounding: the duality gap.
    residual_squares : array of shape (m,)
        sum_i s_i (residual of row i)^2.
    l1_ratio : float
    total_weight : float
        Sum of the weights, the number of rows without.
    feature_names : array of str, optional

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import regularization_path
    >>> X, y = load_diabetes(return_X_y=True)
    >>> path = regularization_path(X, y, alphas=50)
    >>> path.n_nonzero[[0, 10, 49]]
    array([ 0,  4, 10])
    >>> path.best("bic")
    27
    >>> path.predict(X[:2], alpha=0.5).round(1)
    array([194.8,  92.1])
    """

    alphas: Array
    coefs: sp.csc_array
    intercepts: Array
    objectives: Array
    gaps: Array
    residual_squares: Array
    l1_ratio: float
    total_weight: float
    fit_intercept: bool
    feature_names: NDArray[Any] | None = None
    _gram: tuple[NDArray[np.intp], Array, Array] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.alphas)

    def __str__(self) -> str:
        counts = self.n_nonzero
        return (
            f"RegularizationPath: {counted(len(self), 'alpha')} from {self.alphas[0]:.4g} to "
            f"{self.alphas[-1]:.4g}, l1_ratio {self.l1_ratio:g}\n"
            f"non-zero coefficients: {counts[0]} to {counts[-1]} of {self.coefs.shape[0]}\n"
            f"objectives: each within {self.gaps.max():.2g} of its optimum"
        )

    @property
    def n_nonzero(self) -> NDArray[np.intp]:
        """How many coefficients are not zero, at each strength."""
        return np.diff(self.coefs.indptr).astype(np.intp)

    @cached_property
    def degrees_of_freedom(self) -> Array:
        """Effective number of parameters at each strength, the intercept included.

        For the lasso the number of coefficients that are not zero (H. Zou, T. Hastie, R.
        Tibshirani, "On the degrees of freedom of the lasso", Ann. Statist. 35 (2007) 2173-2192);
        with a squared penalty, the trace of the hat matrix of their columns.
        """
        freedom = self.n_nonzero.astype(float)
        if self._gram is not None:
            columns, gram, curvature = self._gram
            if (self.n_nonzero == len(columns)).all() and (curvature == curvature[0]).all():
                values = np.maximum(np.linalg.eigvalsh(gram), 0.0)[:, None]
                held = self.alphas * self.total_weight * curvature[0]
                return (values / (values + held)).sum(axis=0) + float(self.fit_intercept)
            place = np.full(self.coefs.shape[0], -1)
            place[columns] = np.arange(len(columns))
            for i, alpha in enumerate(self.alphas):
                used = self.coefs.indices[self.coefs.indptr[i] : self.coefs.indptr[i + 1]]
                G = gram[np.ix_(place[used], place[used])]
                H = G + np.diag(alpha * self.total_weight * curvature[used])
                freedom[i] = np.trace(np.linalg.solve(H, G)) if len(used) else 0.0
        return freedom + float(self.fit_intercept)

    def aic(self) -> Array:
        """Akaike's criterion at each strength; smaller is better."""
        return self._criterion(criteria.aic)

    def aicc(self) -> Array:
        """Akaike's criterion corrected for few rows."""
        return self._criterion(criteria.aicc)

    def bic(self) -> Array:
        """Schwarz's criterion at each strength."""
        return self._criterion(criteria.bic)

    def _criterion(self, formula: Any) -> Array:
        return np.asarray(
            formula(self.total_weight, self.residual_squares, self.degrees_of_freedom)
        )

    def best(self, criterion: str = "bic") -> int:
        """The number of the strength with the smallest "aic", "aicc" or "bic"."""
        if criterion not in ("aic", "aicc", "bic"):
            raise ValueError(f"criterion={criterion!r} is not known: 'aic', 'aicc' or 'bic'.")
        return int(np.argmin(getattr(self, criterion)()))

    def coef(self, alpha: float) -> Array:
        """The coefficients at any strength.

        Between two strengths of the grid they are interpolated, which is exact for the lasso
        wherever no coefficient enters or leaves in between: its path is piecewise linear.
        """
        left, right, share = self._between(alpha)
        if left == right:
            return self.coefs[:, [left]].toarray().ravel()
        pair = self.coefs[:, [left, right]].toarray()
        return pair @ np.array([1 - share, share])

    def intercept(self, alpha: float) -> float:
        """The intercept at any strength."""
        left, right, share = self._between(alpha)
        return float((1 - share) * self.intercepts[left] + share * self.intercepts[right])

    def _between(self, alpha: float) -> tuple[int, int, float]:
        top, low = float(self.alphas[0]), float(self.alphas[-1])
        if not low <= alpha <= top and not np.isclose(alpha, [low, top]).any():
            raise ValueError(f"alpha={alpha!r} is not on the path, which goes from {top} to {low}.")
        right = int(np.searchsorted(-self.alphas, -alpha))
        right = min(right, len(self) - 1)
        left = max(right - 1, 0)
        span = self.alphas[left] - self.alphas[right]
        share = 1.0 if span == 0 else float(np.clip((self.alphas[left] - alpha) / span, 0, 1))
        return (right, right, 0.0) if share == 1.0 else (left, right, share)

    def predict(self, X: Any, alpha: float) -> Array:
        """Predictions at any strength between the largest and the smallest."""
        X = check_array(X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])
        return np.asarray(X @ self.coef(alpha)) + self.intercept(alpha)

    def table(self) -> list[dict[str, Any]]:
        """One row per strength."""
        columns = {
            "alpha": self.alphas,
            "nonzero": self.n_nonzero,
            "degrees of freedom": self.degrees_of_freedom,
            "objective": self.objectives,
            "gap": self.gaps,
            "aic": self.aic(),
            "bic": self.bic(),
        }
        return [
            {name: values[i].item() for name, values in columns.items()} for i in range(len(self))
        ]


def regularization_path(
    X: Any,
    y: Any = None,
    *,
    l1_ratio: float = 1.0,
    alphas: Any = 100,
    eps: float | None = None,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    positive: bool = False,
    feature_weights: Any = None,
    bounds: Any = None,
    tol: float = 1e-6,
) -> RegularizationPath:
    """The solutions of lasso, elastic net or ridge regression over a grid of strengths.

    For each alpha, minimises over w and b, with S the sum of the weights::

        1/(2 S) sum_i s_i (y_i - x_i.w - b)^2
            + alpha l1_ratio ||w||_1 + alpha (1 - l1_ratio)/2 ||w||^2

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d), or batches of :func:`trueline.open`
        Batches are read once, whatever the number of strengths.
    y : array-like of shape (n,)
        Batches bring theirs along.
    l1_ratio : float, default=1.0
        1 is the lasso, 0 is ridge regression: ``Ridge(S alpha)``.
    alphas : int or array-like, default=100
        Their number, from the smallest strength at which nothing is selected down to ``eps`` times
        that; or the strengths themselves. For the ridge the largest is 100 times the sum of the
        variances of the columns, where less than 1% is left of every direction.
    eps : float, optional
        By default 1e-3, and 1e-6 for the ridge.
    fit_intercept : bool, default=True
    sample_weight : array-like of shape (n,), optional
    positive : bool, default=False
    feature_weights : array-like of shape (d,), optional
        Multiplies the penalty of each coefficient; 0 leaves it unpenalised.
    bounds : pair of floats or array-likes, optional
        (lower, upper) bounds on the coefficients.
    tol : float, default=1e-6
        The gap asked for, relative to half the squared norm of the target.

    Returns
    -------
    path : RegularizationPath
        An interrupt from the keyboard ends the path early, with a warning: what was found is kept.
    """
    from trueline.estimators.sparse.elastic_net import elastic_net_penalty

    names = getattr(X, "columns", None)
    X, y, sample_weight = rows_and_target(X, y, sample_weight)
    assert_all_finite(y, input_name="y")
    weights = None
    if sample_weight is not None:
        weights = row_weights(sample_weight, X)
    if not 0 <= l1_ratio <= 1:
        raise ValueError(f"l1_ratio must lie between 0 and 1, got {l1_ratio!r}.")
    is_ridge = l1_ratio == 0 and not positive and feature_weights is None and bounds is None
    # One decomposition serves all strengths of a plain ridge regression.
    penalty: Callable[[float], Penalty] = (
        L2
        if is_ridge
        else partial(
            elastic_net_penalty,
            l1_ratio=l1_ratio,
            n_features=X.shape[1],
            positive=positive,
            feature_weights=feature_weights,
            bounds=bounds,
        )
    )
    Y = y.astype(np.float64)[:, None]
    problem = Problem(as_design(X), Y, Squared(), penalty(1.0), fit_intercept, weights)
    with said_of(X):
        if l1_ratio > 0:
            top = largest_strength(problem, penalty) / problem.total_weight
        else:
            top = _HEAVY * _spread(problem)
        eps = eps if eps is not None else _REACH if l1_ratio > 0 else _RIDGE_REACH
        grid = strengths(alphas, top, eps)
        found = _follow(problem, penalty, grid, tol)
    done = found.coefs.shape[2]
    if done < len(grid):
        warnings.warn(
            f"The path was interrupted after {done} of {len(grid)} strengths.", stacklevel=2
        )
    warn_of_gaps("regularization_path", "strengths", found.verdicts)
    return _described(problem, penalty, grid[:done], found, l1_ratio, names)


# The ends of the grids: the smallest over the largest strength.
_REACH, _RIDGE_REACH = 1e-3, 1e-6
# The largest strength of a ridge path, in units of what no direction varies more than.
_HEAVY = 100.0


def _spread(problem: Problem) -> float:
    """The sum of the variances of the columns (of their squares, without an intercept)."""
    if problem.design.is_sequential:
        return float(np.trace(_about(problem).gram)) / problem.total_weight
    mean = problem.design.column_means(problem.weights) if problem.fit_intercept else None
    squares = problem.design.column_squares(problem.weights, mean)
    return float(squares.sum()) / problem.total_weight


def _about(problem: Problem) -> Moments:
    """The moments of the rows, about zero without an intercept."""
    moments = Moments.from_rows(problem.design, problem.target, problem.weights)
    return moments if problem.fit_intercept else moments.about_zero()


class _Found(NamedTuple):
    """Coefficients of shape (d, k, m), intercepts (k, m), verdicts and sweeps of a path."""

    coefs: Array
    intercepts: Array
    verdicts: list[Verdict]
    sweeps: list[int]


def _follow(
    problem: Problem,
    penalty: Callable[[float], Penalty],
    grid: Array,
    tol: float,
    start: Any = None,
) -> _Found:
    """The solutions over a grid of strengths, those that an interrupt from the keyboard left."""
    penalties = [penalty(float(alpha) * problem.total_weight) for alpha in grid]
    members = [Member(problem.target, each, problem.weights) for each in penalties]
    if start is not None:
        W = np.atleast_2d(np.array(start, dtype=np.float64)).T
        members[0] = members[0]._replace(start=(W, np.zeros(W.shape[1])))
    problems = ProblemSet(problem.design, problem.loss, tuple(members), problem.fit_intercept)
    paths, verdicts = execute_paths(problems, make_set_plans(problems), Options(tol=tol))
    if len(paths) == 1:
        path = paths[0]
        return _Found(path.coefs, path.intercepts, verdicts, list(path.n_iter))
    order = np.argsort([number for path in paths for number in path.numbers])
    coefs = np.concatenate([path.coefs for path in paths], axis=2)[..., order]
    intercepts = np.concatenate([path.intercepts for path in paths], axis=1)[:, order]
    sweeps = np.concatenate([path.n_iter for path in paths])[order].tolist()
    return _Found(coefs, intercepts, verdicts, sweeps)


def _described(
    problem: Problem,
    penalty: Callable[[float], Penalty],
    grid: Array,
    found: _Found,
    l1_ratio: float,
    names: Any,
) -> RegularizationPath:
    """The path with what is known of its solutions."""
    W, b, total = found.coefs[:, 0], found.intercepts[0], problem.total_weight
    used = np.flatnonzero(W.any(axis=1))
    narrow: Moments | None
    if problem.design.is_sequential:
        about = _about(problem)
        squares = about.targets(np.zeros(W.shape[1], np.intp)).residual_square(W)[0]
        narrow = about.columns(used) if l1_ratio < 1 else None
    else:
        X = submatrix(problem.design, np.arange(problem.n_samples), used)
        residual = problem.target - X @ W[used] - b
        squares = problem.weigh(residual**2).sum(axis=0)
        narrow = _about(replace(problem, design=as_design(X))) if l1_ratio < 1 else None
    costs = [penalty(float(alpha) * total).value(W[:, [i]]) for i, alpha in enumerate(grid)]
    gram = None
    if narrow is not None:
        curvature = np.broadcast_to(penalty(1.0).curvature, (problem.n_features, 1))[:, 0]
        gram = (used, narrow.gram, curvature)
    return RegularizationPath(
        alphas=grid,
        coefs=sp.csc_array(W),
        intercepts=b,
        objectives=(0.5 * squares + costs) / total,
        gaps=np.array([verdict.gap for verdict in found.verdicts]) / total,
        residual_squares=squares,
        l1_ratio=l1_ratio,
        total_weight=total,
        fit_intercept=problem.fit_intercept,
        feature_names=None if names is None else np.asarray(names, dtype=object),
        _gram=gram,
    )


_PATH_PARAMETERS: dict[str, list[Any]] = {
    "X": ["array-like", "sparse matrix"],
    "y": ["array-like", "sparse matrix"],
    "eps": [Interval(Real, 0, None, closed="neither"), None],
    "n_alphas": [Interval(Integral, 1, None, closed="left"), Hidden(StrOptions({"deprecated"}))],
    "alphas": [
        Interval(Integral, 1, None, closed="left"),
        "array-like",
        None,
        Hidden(StrOptions({"warn"})),
    ],
    "precompute": [StrOptions({"auto"}), "boolean", "array-like"],
    "Xy": ["array-like", None],
    "copy_X": ["boolean"],
    "coef_init": ["array-like", None],
    "verbose": ["verbose"],
    "return_n_iter": ["boolean"],
    "positive": ["boolean"],
}


@validate_params(_PATH_PARAMETERS, prefer_skip_nested_validation=True)
def lasso_path(
    X: Any,
    y: Any,
    *,
    eps: float = 1e-3,
    n_alphas: Any = "deprecated",
    alphas: Any = "warn",
    precompute: Any = "auto",
    Xy: Any = None,
    copy_X: bool = True,
    coef_init: Any = None,
    verbose: Any = False,
    return_n_iter: bool = False,
    positive: bool = False,
    **params: Any,
) -> Any:
    """The lasso over a grid of strengths, without an intercept.

    For each alpha, minimises over w::

        1/(2 n) ||y - X w||^2 + alpha ||w||_1

    (for several targets the sum of the norms of the rows of W instead of ||w||_1). A drop-in for
    ``sklearn.linear_model.lasso_path``; :func:`regularization_path` gives an object that has more
    to say.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,) or (n, k)
    eps : float, default=1e-3
        Smallest over largest strength of a grid that is made here.
    n_alphas : int
        Deprecated: give the number of strengths as ``alphas``.
    alphas : int or array-like, default=100
        The number of strengths, or the strengths.
    precompute, Xy, copy_X
        Accepted for compatibility: how the solutions are found is planned.
    coef_init : array-like of shape (d,), optional
        Where the first solution is looked for.
    verbose : bool or int, default=False
    return_n_iter : bool, default=False
        Whether to return the numbers of sweeps too.
    positive : bool, default=False
        Keep all coefficients at or above zero.
    **params
        ``tol``: the gap asked for, relative to the squared norm of y; ``sample_weight``; the
        others that scikit-learn takes make no difference here.

    Returns
    -------
    alphas : array of shape (m,)
    coefs : array of shape (d, m) or (k, d, m)
    dual_gaps : array of shape (m,)
    n_iters : list of int
        If ``return_n_iter``.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import lasso_path
    >>> X = np.array([[1.0, 2.0, 3.1], [2.3, 5.4, 4.3]]).T
    >>> y = np.array([1.0, 2.0, 3.1])
    >>> alphas, coefs, gaps = lasso_path(X, y, alphas=[5.0, 1.0, 0.5])
    >>> coefs.round(4)
    array([[0.    , 0.    , 0.4692],
           [0.2159, 0.4426, 0.2367]])
    """
    return enet_path(
        X,
        y,
        l1_ratio=1.0,
        eps=eps,
        alphas=_number_of_strengths(alphas, n_alphas),
        precompute=precompute,
        Xy=Xy,
        copy_X=copy_X,
        coef_init=coef_init,
        verbose=verbose,
        return_n_iter=return_n_iter,
        positive=positive,
        **params,
    )


def _number_of_strengths(alphas: Any, n_alphas: Any) -> Any:
    """What alphas means, with the deprecated ways to say it."""
    if n_alphas != "deprecated":
        warnings.warn(
            "'n_alphas' was deprecated in scikit-learn 1.9: give the number of strengths as "
            "'alphas'.",
            FutureWarning,
            stacklevel=4,
        )
    if alphas is None:
        warnings.warn(
            "'alphas=None' was deprecated in scikit-learn 1.9: use 'alphas=100'.",
            FutureWarning,
            stacklevel=4,
        )
    if alphas is None or (isinstance(alphas, str) and alphas == "warn"):
        return 100 if n_alphas == "deprecated" else n_alphas
    return alphas


@validate_params(
    _PATH_PARAMETERS
    | {"l1_ratio": [Interval(Real, 0.0, 1.0, closed="both")], "check_input": ["boolean"]},
    prefer_skip_nested_validation=True,
)
def enet_path(
    X: Any,
    y: Any,
    *,
    l1_ratio: float = 0.5,
    eps: float = 1e-3,
    n_alphas: Any = "deprecated",
    alphas: Any = "warn",
    precompute: Any = "auto",
    Xy: Any = None,
    copy_X: bool = True,
    coef_init: Any = None,
    verbose: Any = False,
    return_n_iter: bool = False,
    positive: bool = False,
    check_input: bool = True,
    **params: Any,
) -> Any:
    """The elastic net over a grid of strengths, without an intercept.

    For each alpha, minimises over w::

        1/(2 n) ||y - X w||^2 + alpha l1_ratio ||w||_1 + alpha (1 - l1_ratio)/2 ||w||^2

    (for several targets the sum of the norms of the rows of W instead of ||w||_1). A drop-in for
    ``sklearn.linear_model.enet_path``; :func:`regularization_path` gives an object that has more
    to say.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,) or (n, k)
    l1_ratio : float, default=0.5
        Share of the absolute values.
    eps, n_alphas, alphas, precompute, Xy, copy_X, coef_init, verbose, return_n_iter, positive
        As in :func:`lasso_path`.
    check_input : bool, default=True
        Accepted for compatibility.
    **params
        As in :func:`lasso_path`.

    Returns
    -------
    alphas : array of shape (m,)
    coefs : array of shape (d, m) or (k, d, m)
    dual_gaps : array of shape (m,)
    n_iters : list of int
        If ``return_n_iter``.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from trueline import enet_path
    >>> X, y = make_regression(n_samples=100, n_features=5, n_informative=2, random_state=0)
    >>> alphas, coefs, gaps = enet_path(X, y, alphas=3)
    >>> coefs.shape, bool((gaps < 1e-8).all())
    ((5, 3), True)
    """
    from trueline.estimators.sparse.elastic_net import elastic_net_penalty

    alphas = _number_of_strengths(alphas, n_alphas)
    weights, tol = params.pop("sample_weight", None), params.pop("tol", 1e-4)
    if params.pop("selection", "cyclic") not in ("random", "cyclic"):
        raise ValueError("selection should be either random or cyclic.")
    for ignored in ("X_offset", "X_scale", "max_iter", "random_state", "do_screening"):
        params.pop(ignored, None)
    if params:
        raise ValueError("Unexpected parameters in params", params.keys())
    if not isinstance(X, Design):
        X = check_array(
            X, accept_sparse=["csc", "csr"], dtype=[np.float64, np.float32], ensure_all_finite=False
        )
    y = check_array(y, dtype=X.dtype.type, ensure_2d=False)
    check_consistent_length(X, y)
    if y.ndim != 1 and positive:
        raise ValueError("positive=True is not allowed for multi-output (y.ndim != 1)")
    if isinstance(alphas, Integral) and l1_ratio == 0:
        raise ValueError(
            "No strength makes all coefficients zero with l1_ratio=0: give the alphas themselves."
        )
    penalty: Callable[[float], Penalty] = partial(
        elastic_net_penalty, l1_ratio=l1_ratio, n_features=X.shape[1], positive=positive
    )
    if y.ndim != 1:
        penalty = partial(MultiTask, l1_ratio=float(l1_ratio))
        assert_all_finite(X, input_name="X")
    Y = y.astype(np.float64).reshape(len(y), -1)
    problem = Problem(as_design(X), Y, Squared(), penalty(1.0), False, weights)
    with said_of(X):
        top = 0.0
        if isinstance(alphas, Integral) and y.ndim == 1:
            top = largest_strength(problem, penalty) / problem.total_weight
        elif isinstance(alphas, Integral):
            top = largest_correlation(problem) / (problem.total_weight * l1_ratio)
        grid = strengths(alphas, top, eps)
        found = _follow(problem, penalty, grid, tol / 100, coef_init)
    warn_of_gaps("enet_path", "strengths", found.verdicts, stacklevel=5)
    gaps = np.array([verdict.gap for verdict in found.verdicts]) / problem.total_weight
    if verbose:
        print(f"Path of {len(gaps)} strengths, largest gap {gaps.max():.3g}")  # noqa: T201
    coefs = found.coefs[:, 0] if y.ndim == 1 else found.coefs.swapaxes(0, 1)
    answer = (grid, coefs.astype(X.dtype, copy=False), gaps)
    return (*answer, found.sweeps) if return_n_iter else answer
