"""The halfspace with the fewest training errors, proven."""

from __future__ import annotations

import time
import warnings
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from trueline.estimators.shared.base import Array, LinearEstimator, fit_with_callbacks, watch
from trueline.estimators.shared.classifier import (
    TieRule,
    chosen_by_scores,
    encode_declared,
    encode_labels,
    signs_of,
    weighted_classes,
)
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.report import Explanation
from trueline.estimators.shared.validation import (
    check_X_y,
    is_plain,
    keep_columns_of,
    validate_data,
    wrappers,
)
from trueline.numerics.blas import single_threaded_blas
from trueline.plan import Candidate, Plan
from trueline.separation.zero_one import Found, Task, local_search, state
from trueline.separation.zero_one.branch_and_bound import MARGIN, by_highs, search
from trueline.separation.zero_one.conflicts import evaluate
from trueline.separation.zero_one.margin import widest
from trueline.separation.zero_one.proof import certify, errors_of, pack_root, separating
from trueline.solvers.base import Cost, Facts, Monitor
from trueline.trace import Trace
from trueline.wording import counted

_TITLES = {
    "branch_and_bound": "circles, then branch and bound on conflicts between rows",
    "local_search": "circles through good hyperplanes, and the bound at the root",
    "highs": "mixed integer programming, by HiGHS; the bound at the root",
}
# Sparse rows are made dense up to this many numbers.
_MOST_NUMBERS = 50_000_000


@parameters()
class ZeroOneHalfspace(TieRule, ClassifierMixin, LinearEstimator):
    r"""The halfspace with the fewest training errors: the best of all, proven.

    Minimises over w and b::

        sum_i s_i [y_i (x_i.w + b) <= 0]            y_i in {-1, +1}

    with sample weights s_i (one by default): the 0-1 loss itself, not a surrogate. A row on the
    boundary is an error. Errors of a good hyperplane are matched with *conflicts*, sets of at most
    d + 2 rows that no hyperplane gets right together; branch and bound closes what disjoint
    conflicts leave open, or, with few columns, a look at all circles on which d - 1 rows are on
    the boundary. Every conflict is certain: where double precision is not, integers decide.

    Of all hyperplanes with the same errors, the one is returned whose right rows are farthest off
    (largest least score, relative to the weights, for coefficients up to one in columns of about
    unit size); a few others with as few errors are compared.

    Finding the minimum is NP-hard when the number of columns is part of the input. Proofs are fast
    where a few errors (say a tenth of the rows) are scattered among rows that could be separated,
    and take for ever where labels are mere noise; the certificate always says what is proven.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether to fit b; it is 0 otherwise.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn; they multiply the sample weights.
    solver : {"auto", "branch_and_bound", "local_search", "highs"}, default="auto"
        "auto" is "branch_and_bound"; "local_search" stops with the bound at its root; "highs" takes
        the hyperplane that HiGHS finds for the mixed integer program. Its bound is only reported.
    time_limit : float or None, default=10.0
        Seconds; the gap that is then left is in the certificate.
    verbose : bool or None, default=None
        Whether to show the progress of the search; None: on a terminal, after three seconds.

    Attributes
    ----------
    coef_ : array of shape (1, d)
        In double precision whatever X is in, so that the count of errors holds.
    intercept_ : array of shape (1,)
    classes_ : array of shape (2,)
    n_errors_ : int
        Number of rows (with positive weight) that are not right.
    errors_ : array of int
        Their indices.
    error_weight_ : float
        Their weight: what is minimised.
    lower_bound_ : float
        No hyperplane has errors of less weight.
    proven_ : bool
        Whether that is the weight reached.
    certificate_ : Certificate
        Its kind is "zero-one packing" if conflicts in its witness prove the bound, and
        "zero-one search" if that took branching, which ``verify`` does not repeat.
    trace_ : Trace
        Nodes, errors, gap and seconds as the search went on.
    n_iter_ : int
        Nodes of the branch and bound.
    solver_ : str
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import ZeroOneHalfspace
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = ZeroOneHalfspace().fit(X, [0, 1, 1, 0])  # exclusive or
    >>> model.n_errors_, model.proven_, bool(model.verify(X, [0, 1, 1, 0]))
    (1, True, True)
    """

    _: KW_ONLY
    fit_intercept: bool = True
    class_weight: Any = given(None, "class_weight")
    solver: str = given("auto", one_of("auto", *_TITLES))
    time_limit: float | None = given(10.0, "[0, inf)", None)
    verbose: bool | None = given(None, "boolean", None)

    @property
    def progress(self) -> bool | None:
        """Whether a progress bar is shown (see ``verbose``)."""
        return self.verbose

    # --- fitting --------------------------------------------------------------------------------

    @fit_with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Search for the hyperplane with the fewest errors.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Sparse rows are made dense.
        y : array-like of shape (n,)
            Labels of two classes.
        sample_weight : float or array-like of shape (n,), optional
            Weight 2 counts a row twice, weight 0 leaves it out.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        began = time.perf_counter()
        if is_plain(X, y) and y.ndim == 1 and type(X) is np.ndarray and np.isfinite(X).all():
            keep_columns_of(self, X)
        else:
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        classes, signs, weights = self._signs_and_weights(X, y, sample_weight)
        present = np.arange(len(signs)) if weights is None else np.flatnonzero(weights)
        rows, signs = _dense(X)[present], signs[present]
        s = np.ones(len(signs)) if weights is None else weights[present]
        self.trace_ = Trace(enabled=True)
        with watch(self, self.trace_) as monitor, single_threaded_blas():
            task = state(rows, signs, s, self.fit_intercept)
            found, notes = self._find(task, monitor, began)
            w, b = task.coefficients(found.v)
            wrong = errors_of(rows, signs, w, b)
            bound = found.lower_bound + task.constant
            certificate = certify(task, wrong, s, w, b, bound, found.packing)
        self.classes_ = classes
        self.coef_, self.intercept_ = w.reshape(1, -1), np.array([b])
        self.errors_, self.n_errors_ = present[wrong], int(wrong.sum())
        self.error_weight_ = certificate.objective
        self.lower_bound_ = certificate.lower_bound
        # Weights whose sums are rounded differ by more than their rounding, or count as equal.
        equal = 0.0 if task.is_exact else 4 * task.slack
        self.proven_ = bool(certificate.gap <= equal)
        self.n_iter_, self.solver_ = max(1, found.nodes), self._solver()
        self._certificate = certificate
        self._mark_fitted()
        self._plan = self._planned(rows.shape, weights is not None)
        self._solution_facts = {
            "solver": self.solver_,
            "n_iter": self.n_iter_,
            "seconds": time.perf_counter() - began,
            "status": "proven" if self.proven_ else f"stopped by: {found.reason}",
            "notes": notes,
        }
        if not self.proven_ and self.solver_ == "branch_and_bound":
            self._warn_of_gap(found)
        return self

    def _solver(self) -> str:
        return "branch_and_bound" if self.solver == "auto" else self.solver

    def _signs_and_weights(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[NDArray[Any], Array, Array | None]:
        name = type(self).__name__
        classes, codes = encode_labels(y, name)
        if len(classes) > 2:
            # The first words are those that scikit-learn's checks look for.
            raise ValueError(
                f"Only binary classification is supported. {name} takes two classes, but y has "
                f"{len(classes)}: {classes[:5].tolist()}. Wrap it in "
                "sklearn.multiclass.OneVsRestClassifier."
            )
        weights = self._weights(sample_weight, X)
        weights = weighted_classes(self.class_weight, classes, codes, weights)
        return classes, signs_of(codes), weights

    def _find(self, task: Task, monitor: Monitor, began: float) -> tuple[Found, list[str]]:
        """The hyperplane, and notes on how it was found."""
        deadline = began + monitor.time_limit
        if len(task.s) == 0:
            # All rows contradict each other, or are zero: any hyperplane does.
            v = np.zeros(len(task.columns))
            v[0] = 1.0
            return Found(v, 0.0, 0.0, True, 0), ["no row is left after contradictions"]
        notes = _notes(task)
        v = _start(task)
        hear = _listener(task, monitor, began)
        if self._solver() == "branch_and_bound":
            found = search(task, v, deadline, hear)
            if found.in_fractions:
                notes.append("conflicts were too close for doubles: the search ran in fractions")
        else:
            if self._solver() == "highs":
                v, said = _highs(task, v, deadline)
                notes.append(said)
            packing = pack_root(task, v)
            value = float(evaluate(task.A, v, task.s, np.empty(len(task.s))))
            hear(1, value, min(packing.bound, value), v)
            found = Found(v, value, min(packing.bound, value), False, 1, "method", packing=packing)
        found.v = widest(task, found.v)
        return found, notes

    def _warn_of_gap(self, found: Found) -> None:
        hints = {
            "precision": "Hyperplanes that may be better lie in cells too thin for doubles.",
            "time limit": f"time_limit={self.time_limit} seconds: raise it, or set None, to go on.",
        }
        warnings.warn(
            f"{type(self).__name__} was stopped ({found.reason}) before its hyperplane was proven "
            f"best: its errors weigh {self.error_weight_:.6g}, and none has less than "
            f"{self.lower_bound_:.6g}. {hints.get(found.reason, '')}".rstrip(),
            ConvergenceWarning,
            stacklevel=3 + wrappers(type(self).fit),
        )

    # --- what is known afterwards ---------------------------------------------------------------

    def _verified_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        encode_declared(y, self.classes_)  # labels of other names are told
        X, y = check_X_y(X, y, accept_sparse="csr", dtype=np.float64, estimator=self)
        _, signs, weights = self._signs_and_weights(X, y, sample_weight)
        return X, signs, weights

    def _explained_plan(self, X: Any, y: Any, sample_weight: Any) -> Explanation:
        X, y = check_X_y(X, y, accept_sparse="csr", dtype=np.float64, estimator=self)
        weights = self._signs_and_weights(X, y, sample_weight)[2]
        return Explanation(self._planned(X.shape, weights is not None))

    def _planned(self, shape: tuple[int, int], has_weights: bool) -> Plan:
        n, d = shape
        facts = Facts(n, d, 1, n * d, False, self.fit_intercept, has_weights, 1, True, 8)
        # What is certain: reading the rows about once for each of the errors at the root.
        flops = 2.0 * n * n * (d + 1)
        cost = Cost(flops, float(n), 16.0 * n * (d + 1), 1e-3 + 5e-10 * flops)
        chosen = self._solver()
        candidates = [
            Candidate(
                name,
                title,
                cost if name != "highs" else None,
                "chosen" if name == chosen else "by name only",
            )
            for name, title in _TITLES.items()
        ]
        weight = "s_i " if has_weights else ""
        return Plan(
            chosen=chosen,
            reason=f"{_TITLES[chosen]}; the estimate is for the root alone",
            objective=f"sum_i {weight}[y_i z_i <= 0],  z = X w{' + b' * self.fit_intercept}",
            facts=facts,
            candidates=tuple(candidates),
        )

    # --- prediction -----------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Scores x.w + b; positive for the second class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        scores : array of shape (n,)
        """
        return self._scores(X)[:, 0]

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        y : array of shape (n,)
        """
        scores = self.decision_function(X)
        return np.asarray(self.classes_[chosen_by_scores(scores, self.sign_of_zero)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # The fewest errors on the rows given promise nothing about others.
        tags.classifier_tags.poor_score = True
        return tags


def _dense(X: Any) -> Array:
    """Rows as a dense array; sparse ones only if that is not too large."""
    if not sp.issparse(X):
        return np.asarray(X, dtype=np.float64)
    n, d = X.shape
    if n * d > _MOST_NUMBERS:
        raise ValueError(
            f"X is sparse and has {n:,} x {d:,} entries: the search works on dense rows, up to "
            f"{_MOST_NUMBERS:,} numbers. Choose fewer columns or rows."
        )
    return np.asarray(X.toarray(), dtype=np.float64)


def _start(task: Task) -> Array:
    """A good hyperplane: more is done for it if a quick one is not proven best at once."""
    v = separating(task)
    if v is not None:
        return v
    value, v = local_search(task.A, task.s, is_quick=True)
    if pack_root(task, v).bound >= value - task.slack:
        return v
    better, other = local_search(task.A, task.s, seed=1)
    return other if better < value else v


def _notes(task: Task) -> list[str]:
    notes = []
    if task.constant:
        notes.append(f"contradictory rows cost {task.constant:.6g} whatever the hyperplane is")
    dependent = task.n_features + int(task.fit_intercept) - len(task.columns)
    if dependent:
        notes.append(f"{counted(dependent, 'column')} depend on others and got no coefficient")
    return notes


def _highs(task: Task, v: Array, deadline: float) -> tuple[Array, str]:
    """The hyperplane of HiGHS if it is better than v, and what HiGHS says of it."""
    other, bound, message = by_highs(task, deadline - time.perf_counter())
    z = np.empty(len(task.s))
    if other is not None and evaluate(task.A, other, task.s, z) <= evaluate(task.A, v, task.s, z):
        v = other
    return v, (
        f"HiGHS reports a bound of {bound + task.constant:.6g} for scores of at least {MARGIN:g} "
        f"(not proven here): {message}"
    )


def _listener(task: Task, monitor: Monitor, began: float) -> Any:
    """Records the bounds of the search, and passes them to the callbacks."""

    def hear(nodes: int, value: float, bound: float, v: Array) -> bool:
        def point() -> tuple[Array, Array]:
            w, b = task.coefficients(v)
            return w.reshape(-1, 1), np.array([b])

        return monitor.heard(began, point, nodes, value + task.constant, bound + task.constant)

    return hear
