r"""Leave-one-out without refitting.

Exact, from one fit to all rows:

    ridge regression, least squares     y_i - f_-i(x_i) = r_i / (1 - h_i)
    kernel ridge, Gaussian process      y_i - f_-i(x_i) = c_i / (K + alpha I)^-1_ii

(:mod:`trueline.selection.leave_one_out`; C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes
for Machine Learning" (2006), eq. 5.12). Classifiers by least squares are regressions of signs.

Approximate, for logistic regression with two classes: one Newton step from the fit to all rows
towards the fit without row i changes its score to

    z_-i = z_i + s_i l'(z_i) h_i / (1 - s_i l''(z_i) h_i),    h_i = a_i^T H^-1 a_i,

with a_i the row with a one for the intercept, and H the Hessian of the objective, of the columns
with a coefficient where the penalty has absolute values (K. Rahnama Rad and A. Maleki, "A scalable
estimate of the out-of-sample prediction error via approximate leave-one-out cross-validation",
J. R. Stat. Soc. B 82 (2020) 965-996, eqs. 6 and 9). Some folds are refitted to measure how far off
that is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit
from sklearn.base import clone

from trueline.estimators.classification.ridge_classifier import AsLabels
from trueline.estimators.regression.ridge_cv import AsNumbers
from trueline.estimators.shared.classifier import SignedTargets
from trueline.evaluation.task import Scorers, Task
from trueline.moments import Array, Moments
from trueline.selection.cross_validation import fast_metric
from trueline.selection.leave_one_out import leave_one_out_errors
from trueline.solvers import Spectrum

_CLOSED = "leave-one-out in closed form, from one fit to all rows"
# A row that nearly determines its own fit leaves too few digits: 1 - h is known to about 1e-15.
_LEAST_FREEDOM = 1e-7
# Least squares from the Gram matrix keeps ten digits up to this condition.
_LEAST_EIGENVALUE = 1e-6
_MEASURED = 12
# A Hessian of more columns would cost more than the folds are worth.
_MOST_COLUMNS = 4000


@dataclass
class LeaveOneOut:
    """Results by scikit-learn's keys, and how they were found."""

    results: dict[str, Any]
    route: str
    is_exact: bool = True
    measured_error: dict[str, float] = field(default_factory=dict)


def leave_one_out_route(
    model: Any, task: Task, scorers: Scorers, allow_approximate: bool
) -> LeaveOneOut | None:
    """The scores of every left-out row, or None if this model must be refitted."""
    if task.y.ndim != 1 or task.matrix is None:
        return None
    if task.weights is not None and not task.weights.all():
        return None
    if task.is_classifier and not task.all_classes_everywhere:
        return None  # a class would be missing without its only row
    start = time.perf_counter()
    # What a class declares of itself; a class derived from it may do something else.
    way = vars(type(model)).get("_leave_one_out")
    if way == "one Newton step" and allow_approximate:
        return _logistic(model, task, scorers, start)
    scores = _CLOSED_FORMS[way](model, task) if way in _CLOSED_FORMS else None
    if scores is None:
        return None
    return LeaveOneOut(_results(scores, task, scorers, start), _CLOSED)


# --- least squares, kernels, processes ------------------------------------------------------------


def _least_squares(model: Any, task: Task) -> Array | None:
    alpha = getattr(model, "alpha", 0.0)
    if np.ndim(alpha) or getattr(model, "positive", False):
        return None
    if getattr(model, "class_weight", None) is not None:
        return None
    problem = task.least_squares(bool(model.fit_intercept))
    n, d = problem.design.shape
    moments = None
    if n > d:
        moments = Moments.from_rows(problem.design, problem.target, problem.weights)
    elif not alpha > 0:
        return None
    spectrum = Spectrum.of(problem, moments, float(alpha))
    share = spectrum.values / max(float(spectrum.values.max(initial=0.0)), 1e-300)
    if not alpha > 0 and (share < _LEAST_EIGENVALUE).any():
        return None
    alphas = np.array([float(alpha)])
    if spectrum.rows is None and _leverages(problem, spectrum, alphas).max() > 1 - _LEAST_FREEDOM:
        return None
    errors = leave_one_out_errors(problem, spectrum, alphas)[:, :, 0]
    if problem.weights is not None:
        errors = errors / np.sqrt(problem.weights)[:, None]
    return problem.target - errors


def _leverages(problem: Any, spectrum: Spectrum, alphas: Array) -> Array:
    inverse = spectrum.inverse(alphas)[:, 0]
    s = np.ones(problem.n_samples) if problem.weights is None else problem.weights
    own = np.concatenate([np.square(Z) @ inverse for _, Z in spectrum.blocks(problem)])
    return own + (s / s.sum() if problem.fit_intercept else 0.0)


def _kernel_ridge(model: Any, task: Task) -> Array | None:
    if model.kernel == "precomputed" or not np.all(np.asarray(model.alpha) > 0):
        return None
    own = clone(model).fit(task.X, task.y, task.weights)
    return own.leave_one_out()[:, None]


def _process(model: Any, task: Task) -> Array | None:
    if model.optimizer is not None or model.normalize_y or task.weights is not None:
        return None
    return clone(model).fit(task.X, task.y).leave_one_out()[0][:, None]


#: By what an estimator declares as ``_leave_one_out``.
_CLOSED_FORMS = {"least squares": _least_squares, "kernel": _kernel_ridge, "process": _process}


# --- logistic regression --------------------------------------------------------------------------


def approximate_scores(model: Any, X: Any, y: Array, weights: Array | None) -> Array | None:
    """The scores of every row without itself, from a logistic regression fitted to all rows.

    Parameters
    ----------
    model : fitted LogisticRegression of two classes
    X : array or sparse matrix of shape (n, d)
    y : array of shape (n,)
        -1 and +1.
    weights : array of shape (n,), optional
    """
    used = np.arange(X.shape[1])
    penalty = model._penalty()
    if np.any(np.asarray(penalty.linear) > 0):
        used = np.flatnonzero(model.coef_[0])
    if len(used) > _MOST_COLUMNS:
        return None
    A = X[:, used]
    A = A.toarray() if sp.issparse(A) else np.asarray(A)
    if model.fit_intercept:
        A = np.column_stack([A, np.ones(len(A))])
    s = np.ones(len(A)) if weights is None else weights
    z = np.asarray(model.decision_function(X))
    p = expit(z)
    slope, curvature = -y * expit(-y * z), p * (1 - p)
    H = (A * (s * curvature)[:, None]).T @ A
    rows = np.arange(len(used))
    H[rows, rows] += float(np.max(np.asarray(penalty.curvature)))
    if not len(H):
        return z
    try:
        factor = cho_factor(H)
    except np.linalg.LinAlgError:
        return None
    h = np.einsum("ij,ji->i", A, cho_solve(factor, A.T))
    return z + s * slope * h / np.maximum(1 - s * curvature * h, 1e-12)


def _logistic(model: Any, task: Task, scorers: Scorers, start: float) -> LeaveOneOut | None:
    is_plain = model.solver != "liblinear" and model.class_weight is None
    if len(task.labels[0]) != 2 or not is_plain or not np.isfinite(model.C):
        return None
    own = clone(model).fit(task.X, task.y, task.weights)
    signs = np.where(task.labels[1] == 1, 1.0, -1.0)
    scores = approximate_scores(own, task.matrix, signs, task.weights)
    if scores is None:
        return None
    results = _results(scores[:, None], task, scorers, start, own)
    # The rows that were moved most, and some of the others: where errors show, and what is usual.
    moved = np.argsort(-np.abs(scores - own.decision_function(task.X)), kind="stable")
    rest = moved[_MEASURED // 2 :]
    spread = rest[np.linspace(0, len(rest) - 1, _MEASURED - _MEASURED // 2).astype(int)]
    tried = np.unique(np.concatenate([moved[: _MEASURED // 2], spread]))
    exact = np.array([_refitted(model, task, int(i)) for i in tried])
    off = np.abs(exact - scores[tried])
    measured = {"largest error of a score": float(off.max()), "mean": float(off.mean())}
    position = {int(split.test[0]): number for number, split in enumerate(task.splits)}
    single = _results(exact[:, None], task, scorers, start, own, tried)
    for key in [key for key in results if key.startswith("test_")]:
        for place, row in enumerate(tried):  # what is known exactly need not be approximated
            results[key][position[int(row)]] = single[key][place]
    route = (
        "APPROXIMATE leave-one-out: one Newton step from the fit to all rows; "
        f"error measured by refitting {len(tried)} of {task.n_samples} folds"
    )
    return LeaveOneOut(results, route, False, measured)


def _refitted(model: Any, task: Task, row: int) -> float:
    """The score of a row by a fit without it."""
    others = np.delete(np.arange(task.n_samples), row)
    weights = None if task.weights is None else task.weights[others]
    own = clone(model).fit(task.matrix[others], task.y[others], weights)
    return float(own.decision_function(task.matrix[[row]])[0])


# --- scores of single rows ------------------------------------------------------------------------


def _results(
    scores: Array,
    task: Task,
    scorers: Scorers,
    start: float,
    fitted: Any = None,
    rows: NDArray[np.intp] | None = None,
) -> dict[str, Any]:
    """Scikit-learn's keys; each row is a fold, in the order of the folds (or of ``rows``)."""
    order = np.array([split.test[0] for split in task.splits])
    if rows is None:
        scores, rows = scores[order], order
    now = time.perf_counter()
    standin: Any
    if task.is_classifier:
        codes = (
            (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
        )
        truth: Any = task.labels[1][rows]
        targets = SignedTargets(task.labels[0], scores, truth, False)
        standin = (_LogisticRows if fitted is not None else AsLabels)(targets)
    else:
        codes, truth = scores[:, 0], task.y[rows].astype(float)
        standin = AsNumbers(truth)
    results: dict[str, Any] = {}
    for name, scorer in scorers.items():
        metric = fast_metric(scorer, task.is_classifier)
        if metric is not None:
            # A row is a column of predictions with one row of its own.
            values = [metric(truth[[i]], codes[[i]][:, None], None)[0] for i in range(len(rows))]
        else:
            values = [scorer(standin, scores[[i]], task.y[[row]]) for i, row in enumerate(rows)]
        results[f"test_{name}"] = np.array(values, dtype=float)
    count = len(rows)
    times = {"fit_time": np.full(count, (now - start) / count)}
    times["score_time"] = np.full(count, (time.perf_counter() - now) / count)
    return times | results


class _LogisticRows(AsLabels):
    """The same with the probabilities of two classes."""

    def predict_proba(self, X: Any) -> Array:
        z = self.decision_function(X)
        return np.stack([expit(-z), expit(z)], axis=1)
