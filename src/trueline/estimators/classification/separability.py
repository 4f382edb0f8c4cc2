"""Separability of classes, and the hyperplane of largest margin as the answer of a machine."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _get_feature_names

from trueline.certificates.special.separation import certify_hard_margin
from trueline.design import SparseDesign
from trueline.estimators.shared.classifier import encode_labels
from trueline.estimators.shared.validation import check_array
from trueline.plan import Plan
from trueline.problem import Problem
from trueline.separation.margin import MaximumMargin, largest_margin
from trueline.separation.separate import Separability, separate
from trueline.solution import Solution, Status
from trueline.solvers.base import Cost, Facts

Codes = NDArray[np.intp]

# Bounds on a margin that are further apart, relative to it, do not tell it.
_CLOSE = 1e-6


def separability(X: Any, y: Any, *, fit_intercept: bool = True) -> Separability:
    r"""Decide whether hyperplanes can separate classes, with a proof in exact arithmetic.

    For two classes, y_i = -1 or 1:

    - *separable*: some w, b have ``y_i (x_i.w + b) > 0`` for all rows;
    - *quasi-separable*: not separable, but some w, b have ``y_i (x_i.w + b) >= 0`` for all rows
      and ``> 0`` for at least one;
    - *not separable*: neither; the classes overlap.

    These are complete separation, quasi-complete separation and overlap of Albert and Anderson
    [1]_ (for columns that depend on each other, of Konis [2]_): a logistic regression without
    penalty has finite coefficients exactly if the classes overlap. With more classes there is a
    score x.w_c + b_c for each, and the own one is to be the largest (Kesler's construction).

    Doubles are rational numbers, and every sign is decided for exactly those numbers. A verdict
    comes with its witnesses: hyperplanes, or the few rows whose convex hulls meet, with their
    weights. :meth:`Separability.verify` checks them independently.

    Parameters
    ----------
    X : array-like, DataFrame or sparse matrix of shape (n, d)
        Finite numbers.
    y : array-like of shape (n,)
        Labels of any type that can be sorted, of at least two classes.
    fit_intercept : bool, default=True
        False asks for hyperplanes through the origin.

    Returns
    -------
    answer : Separability
        With ``verdict``, ``coef``, ``intercept``, ``margin``, ``rows``, ``weights``, ``statement``.

    References
    ----------
    .. [1] A. Albert and J. A. Anderson, "On the existence of maximum likelihood estimates in
       logistic regression models", Biometrika 71 (1984) 1-10.
    .. [2] K. Konis, "Linear programming algorithms for detecting separated data in binary logistic
       regression models", DPhil thesis, University of Oxford, 2007.

    Examples
    --------
    >>> from trueline import separability
    >>> corners = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> print(separability(corners, [0, 0, 0, 1]))  # AND
    Separable: 2 x0 + 2 x1 - 3 is positive for every row of 1 and negative for every row of 0, ...
    >>> answer = separability(corners, [0, 1, 1, 0])  # exclusive or
    >>> print(answer)
    Not separable. No hyperplane separates them strictly: the convex hulls of rows 1 and 2 of 1
    and of rows 0 and 3 of 0 meet, at (0.5, 0.5). No direction separates them even weakly.
    >>> bool(answer.verify(corners, [0, 1, 1, 0]))
    True
    """
    A, codes, classes, names = _read(X, y, "separability")
    return separate(A, codes, classes, bool(fit_intercept), names)


def maximum_margin(X: Any, y: Any, *, fit_intercept: bool = True) -> MaximumMargin:
    r"""The hyperplane of largest margin between classes that are separable.

    With y_i = -1 or 1 the margin of a hyperplane is the distance of the nearest row,

        min_i  y_i (x_i.w + b) / ||w||,

    and the largest one is half the distance of the convex hulls of both classes: hyperplane and
    points of the hulls prove bounds from both sides, which agree to nearly all digits (to fewer if
    the rows are longer than the margin by more than six digits). It is the gamma of the
    perceptron's bound on mistakes, (radius / gamma)^2, there with ``fit_intercept=False`` on
    whatever features the perceptron sees.

    With more than two classes, ``fit_intercept=False``: the least difference of the own score to
    another one, for weights of norm one over all classes together.

    Parameters
    ----------
    X : array-like, DataFrame or sparse matrix of shape (n, d)
    y : array-like of shape (n,)
        Labels of at least two classes; of two, the second one in order is the positive side.
    fit_intercept : bool, default=True

    Returns
    -------
    best : MaximumMargin
        With ``coef``, ``intercept``, ``margin``, ``upper_bound``, ``support``, ``radius``.

    Raises
    ------
    ValueError
        If the classes are not separable (the message says which rows exclude it), or if the margin
        is too small beside the rows to be found in double precision.

    Examples
    --------
    >>> from trueline import maximum_margin
    >>> best = maximum_margin([[0.0], [1.0], [4.0]], ["no", "no", "yes"])
    >>> print(best)
    The largest margin is 1.5, proven to a relative ...; 2 rows of norm up to 4 attain it.
    >>> bool(best.verify([[0.0], [1.0], [4.0]], ["no", "no", "yes"]))
    True
    """
    A, codes, classes, names = _read(X, y, "maximum_margin")
    try:
        best = largest_margin(A, codes, classes, fit_intercept=bool(fit_intercept))
        if best.margin > 0 and best.relative_gap <= _CLOSE:
            return best
        trouble = (
            f"The largest margin is only known to lie between {best.margin:.3g} and "
            f"{best.upper_bound:.3g}: beside it the rows are too long for double precision. Bring "
            "the columns to comparable units."
        )
    except ArithmeticError as error:
        trouble = str(error)
    verdict = separate(A, codes, classes, bool(fit_intercept), names)
    raise ValueError(trouble if verdict.is_separable else f"There is no margin. {verdict}")


def _read(X: Any, y: Any, name: str) -> tuple[Any, Codes, Any, tuple[str, ...]]:
    """X in doubles, the codes of the labels, the labels, and the names of the columns."""
    names = _get_feature_names(X)
    A = _doubles(X)
    check_consistent_length(A, y)
    classes, codes = encode_labels(y, name)
    labels = [f"x{j}" for j in range(A.shape[1])] if names is None else [str(v) for v in names]
    return A, codes, classes, tuple(labels)


def _doubles(X: Any) -> Any:
    """X in float64, dense or CSR, the same numbers exactly."""
    A = check_array(X, accept_sparse="csr", dtype="numeric", ensure_all_finite=True, input_name="X")
    values = A.data if sp.issparse(A) else A
    if values.dtype.kind == "b" or values.dtype in (np.float64, np.float32, np.float16):
        exact = True
    else:
        # Integers, and floats longer than doubles.
        exact = bool((values.astype(np.float64).astype(object) == values.astype(object)).all())
    if not exact:
        raise ValueError(
            "X holds numbers that no double is equal to (integers beyond 2^53, or extended "
            "precision), and separability is decided for doubles exactly. Subtract an offset or "
            "round them yourself first."
        )
    A = A.astype(np.float64, copy=False)
    return sp.csr_array(A) if sp.issparse(A) else np.ascontiguousarray(A)


_NAME = "nearest_points"
_TITLE = "Wolfe's method for the nearest points of both hulls, on the rows near the margins"
# The gap, relative to the objective, up to which a margin counts as found.
_CLOSE = 1e-6
#: What to do where there is no hard margin.
REMEDY = "Give a finite C, which lets rows be inside the margin at a price."


def solve_hard_margin(
    problem: Problem, classes: NDArray[Any], n_given: int
) -> tuple[Plan, Solution]:
    """The hard margin of every target, with its proof.

    Parameters
    ----------
    problem : Problem
        Without the rows of weight zero.
    classes : array
        The names of the classes, for the message.
    n_given : int
        How many rows there were with those of weight zero, for the message.

    Raises
    ------
    ValueError
        If a target cannot be separated; the message says which rows exclude it.
    """
    start = time.perf_counter()
    n, k = problem.target.shape
    W, b, shares = np.zeros((problem.n_features, k)), np.zeros(k), np.zeros((n, k))
    design = problem.design
    X = design.X if isinstance(design, SparseDesign) else design.toarray()
    for t in range(k):
        own, rest = (classes[1], classes[0]) if len(classes) == 2 else (classes[t], "the rest")
        try:
            best = separated(X, problem.target[:, t] > 0, (rest, own), problem.fit_intercept)
        except ValueError as error:
            counted = " (Rows of weight zero are not counted.)" if n < n_given else ""
            raise ValueError(f"{error}{counted}") from None
        W[:, t], b[t] = best.coef, best.intercept
        shares[best.support, t] = best.weights
    certificate = certify_hard_margin(problem, W, b, shares)
    facts = Facts.of(problem)
    cost = Cost(20.0 * facts.nonzeros, 10.0, 8.0 * n * k, 1e-3 + 2e-8 * facts.nonzeros)
    plan = Plan.only(_NAME, _TITLE, cost, problem.formula, facts, "the only solver that fits")
    if not np.isfinite(certificate.coef).all():
        raise ValueError(
            "The hard margin is lost in the rounding of scores: beside it the rows are too long. "
            "Centre the columns and bring them to comparable units."
        )
    is_close = certificate.gap <= _CLOSE * certificate.objective
    solution = Solution(
        certificate.coef,
        certificate.intercept,
        Status.SOLVED if is_close else Status.STALLED,
        _NAME,
        n_iter=1,
        proof=certificate,
        tolerance=_CLOSE * certificate.objective,
    )
    solution.seconds = time.perf_counter() - start
    return plan, solution


def separated(
    X: Any,
    is_above: NDArray[np.bool_],
    names: Any,
    fit_intercept: bool,
    numbers: NDArray[np.intp] | None = None,
) -> MaximumMargin:
    """The largest margin of two classes, the second name being that of the rows above.

    Raises
    ------
    ValueError
        If there is none; the message says which rows exclude it, by the ``numbers`` that the caller
        knows them by.
    """
    X = X.astype(np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    try:
        return maximum_margin(X, is_above, fit_intercept=fit_intercept)
    except ValueError as error:
        said = str(error)
    named = np.where(is_above, str(names[1]), str(names[0]))
    verdict = separability(X, named, fit_intercept=fit_intercept)
    if verdict.is_separable:
        raise ValueError(f"{said} {REMEDY}")
    if numbers is not None:
        rows, boundary = numbers[verdict.rows], numbers[verdict.boundary]
        verdict = replace(verdict, rows=rows, boundary=boundary)
    raise ValueError(f"There is no hard margin. {verdict} {REMEDY}")
