"""What all online classifiers share: input, passes, single rows, prediction."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import assert_all_finite, check_random_state, compute_class_weight
from sklearn.utils.validation import check_consistent_length

from trueline.design.stacked import StackedDesign
from trueline.estimators.online.partial_fit import SingleRows
from trueline.estimators.online.proof import OnlineProof
from trueline.estimators.shared.classifier import (
    SparseCoefficients,
    TieRule,
    chosen_by_scores,
    encode_declared,
    encode_labels,
)
from trueline.estimators.shared.parameters import validate_changed
from trueline.estimators.shared.report import Certified, ExplainMixin
from trueline.estimators.shared.validation import (
    is_plain,
    keep_columns_of,
    new_rows,
    refuse_nonfinite,
    row_weights,
    takes_batches,
    validate_data,
    wrappers,
)
from trueline.numerics.blas import run_strands
from trueline.online.pass_kernels import Penalty
from trueline.online.passes import (
    Order,
    Record,
    Stopping,
    Task,
    averaged,
    run_passes,
    seed_of,
)
from trueline.online.rows import Rows, normalised, with_constant
from trueline.online.rules import Rule

Array = NDArray[np.float64]

# By how much scikit-learn lets the intercept of sparse rows move, compared with the weights.
_SPARSE_INTERCEPT = 0.01
_ONE = np.ones(1)
# Classes learn side by side from so many numbers on.
_LEAST_SHARED = 200_000


class Outcome(NamedTuple):
    """How the learning of one binary problem ended."""

    n_iter: int
    record: Record
    finished: bool
    #: Largest sum of steps added at once, if several were.
    largest: float = 0.0
    #: Weights and intercept at the end of passes from zero, where these can be proven about.
    last: Array | None = None


class OnlineClassifier(
    TieRule,
    SingleRows,
    OnlineProof,
    Certified,
    ExplainMixin,
    SparseCoefficients,
    ClassifierMixin,
    BaseEstimator,
):
    """A linear classifier that learns from one row after the other.

    Two classes have one weight vector, more have one each: learned against the rest (one problem
    for each class, with shuffles of its own, as in scikit-learn), or all together.
    """

    _doc_link_module = "trueline"

    coef_: Any
    intercept_: NDArray[Any]
    classes_: NDArray[Any]

    # Parameters that some of the classifiers lack, and what they then are.
    average: Any = False
    multiclass: str = "ovr"
    normalize_rows: bool = False
    bias: str = "separate"
    intercept_step: float | None = None
    record_updates: bool = False
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    trace: bool = False

    @property
    def _is_shuffled(self) -> bool:
        """Whether rows are shuffled before every pass."""
        return bool(self.shuffle)

    def _rule(self) -> Rule:
        """How a row changes the weights."""
        raise NotImplementedError

    def _penalty(self) -> Penalty | None:
        """What shrinks them."""
        return None

    # --- input ----------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Raise for parameters that are out of range, or that do not go together."""
        validate_changed(self)

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        """Rows in C order or CSR, float64 or float32; numbers are looked at by the passes."""
        is_usual = is_plain(X, y, of_labels=True)
        is_usual = is_usual and (X.format == "csr" if sp.issparse(X) else X.flags.carray)
        if not is_usual or (not reset and X.shape[1] != self.n_features_in_):
            X, y = validate_data(
                self,
                X,
                y,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                order="C",
                ensure_all_finite=False,
                reset=reset,
            )
            check_consistent_length(X, y)
        elif reset:
            keep_columns_of(self, X)
        return self._prepared(X), y

    def _prepared(self, X: Any) -> Any:
        """The columns that weights are learned for."""
        if isinstance(X, StackedDesign):
            self._refuse_batches()
            return X
        if sp.issparse(X) and X.indices.dtype != np.int32 and X.nnz < 2**31 > X.shape[1]:
            indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
            X = sp.csr_array((X.data, indices, indptr), shape=X.shape)
        elif sp.issparse(X) and X.indices.dtype != X.indptr.dtype:
            X = sp.csr_array((X.data, X.indices, X.indptr.astype(X.indices.dtype)), shape=X.shape)
        elif not sp.issparse(X):
            X = np.asarray(X)
        if self.normalize_rows:
            # Dividing by an infinite norm would hide it.
            assert_all_finite(X, input_name="X", estimator_name=type(self).__name__)
            X = normalised(X)
        return with_constant(X) if self._constant_column() else X

    def _refuse_batches(self) -> None:
        """An error for what needs its rows in memory."""
        for name in ("normalize_rows", "record_updates", "trace"):
            if getattr(self, name, False):
                raise ValueError(f"{name}=True needs its rows in memory: set it to False.")
        if self._constant_column():
            raise ValueError("bias='constant_feature' needs its rows in memory: set 'separate'.")

    def _constant_column(self) -> bool:
        return bool(self.fit_intercept) and self.bias == "constant_feature"

    def _step_of_intercept(self, sparse: bool) -> float:
        if not self.fit_intercept or self._constant_column():
            return 0.0
        if self.intercept_step is not None:
            return float(self.intercept_step)
        return _SPARSE_INTERCEPT if sparse and self._like_scikit_learn() else 1.0

    def _like_scikit_learn(self) -> bool:
        return True

    def _row_weights(self, sample_weight: Any, X: Any) -> NDArray[Any]:
        if sample_weight is None:
            return _ONE if X.dtype == np.float64 else _ONE.astype(X.dtype)
        return np.ascontiguousarray(row_weights(sample_weight, X, X.dtype))

    def _weights_of_classes(self, classes: NDArray[Any], y: Any) -> Array:
        if self.class_weight is None:
            return np.ones(len(classes))
        weights = compute_class_weight(self.class_weight, classes=classes, y=y)
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError(f"class_weight must hold numbers >= 0, got {self.class_weight}.")
        return np.asarray(weights, dtype=np.float64)

    # --- fitting --------------------------------------------------------------------------------

    @takes_batches
    def fit(
        self,
        X: Any,
        y: Any,
        coef_init: Any = None,
        intercept_init: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from the rows, pass after pass.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or batches of :func:`trueline.open`
            Batches are read once in every pass; rows are shuffled within their batch.
        y : array-like of shape (n,)
            Labels of any type.
        coef_init : array-like of shape (1, d) or (classes, d), optional
            Weights to start from, instead of zeros.
        intercept_init : array-like of shape (1,) or (classes,), optional
        sample_weight : array-like of shape (n,), optional
            Multiplies the steps.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        X, y = self._validated(X, y, reset=True)
        classes, codes = encode_labels(y, type(self).__name__)
        rows = Rows(X, _small(codes, len(classes)), self._row_weights(sample_weight, X))
        class_weights = self._weights_of_classes(classes, y)
        if self.warm_start and hasattr(self, "coef_"):
            coef_init = self.coef_ if coef_init is None else coef_init
            intercept_init = self.intercept_ if intercept_init is None else intercept_init
        W, b = self._start(X, len(classes), coef_init, intercept_init)
        fitted = self._learn(rows, classes, class_weights, W, b)
        self._store(fitted, classes, class_weights, rows)
        return self

    def _start(self, X: Any, k: int, coef_init: Any, intercept_init: Any) -> tuple[Any, Array]:
        """Weights and intercepts to start from."""
        k = 1 if k == 2 and not self._is_direct(k) else k
        d = X.shape[1]
        W, b = np.zeros((k, d), dtype=X.dtype), np.zeros(k)
        free = d - 1 if self._constant_column() else d
        if coef_init is not None:
            given = np.asarray(coef_init, dtype=X.dtype)
            if given.size != k * free or given.shape[-1] != free:
                raise ValueError(
                    f"coef_init has shape {given.shape}, expected ({k}, {free}): it does not match "
                    "the data."
                )
            W[:, :free] = given.reshape(k, free)
        if intercept_init is not None:
            given = np.asarray(intercept_init, dtype=X.dtype)
            if given.size != k:
                raise ValueError(f"intercept_init has shape {given.shape}, expected ({k},).")
            if self._constant_column():
                W[:, -1] = given.ravel()
            else:
                b[:] = given.ravel()
        return W, b

    def _is_direct(self, k: int) -> bool:
        return self.multiclass == "direct" and k > 1

    def _stopping(self) -> Stopping:
        return Stopping(int(self.max_iter), self.tol, int(self.n_iter_no_change))

    def _learn(
        self, rows: Rows, classes: NDArray[Any], class_weights: Array, W: Any, b: Array
    ) -> dict[str, Any]:
        """All problems; returns fitted attributes."""
        k = len(classes)
        if self._is_direct(k):
            return self._learn_together(rows, classes, class_weights, W, b)
        if self.trace and k > 2:
            raise ValueError(
                "trace=True follows one problem; each class against the rest is one. Set "
                "multiclass='direct', or fit the classes one by one."
            )
        seeds, keep = self._seeds_and_rows(rows, k)
        later = np.zeros((len(W), W.shape[1] + 1 if self.average else 0))
        if self.average:
            later[:, :-1], later[:, -1] = W, b  # the start counts from the first visit on
        tasks = [
            self._task(rows, r, k, class_weights, W[r], b[r : r + 1], later[r])
            for r in range(len(W))
        ]

        def learn(r: int) -> Outcome:
            return self._learn_problem(tasks[r], seeds[r], keep)

        # Batches are read for one class after the other; few numbers are not worth a thread.
        is_shared = not isinstance(rows.X, StackedDesign) and rows.X.size >= _LEAST_SHARED
        outcomes = list((run_strands if is_shared else map)(learn, range(len(W))))
        records = [outcome.record for outcome in outcomes]
        tally = np.array([task.tally for task in tasks])
        n_iter = max(outcome.n_iter for outcome in outcomes)
        self._tell(tasks, outcomes, classes)
        fitted = {"n_iter_": n_iter, "records_": records, "_tally": tally}
        fitted |= self._kept_of_run(tasks, outcomes)
        return {**fitted, **self._averages(W, b, later, tally)}

    def _learn_together(
        self, rows: Rows, classes: NDArray[Any], class_weights: Array, W: Any, b: Array
    ) -> dict[str, Any]:
        """One weight vector for each class, all changed by the same mistakes."""
        raise NotImplementedError

    def _learn_problem(
        self, task: Task, seed: int | None, keep: NDArray[np.bool_] | None
    ) -> Outcome:
        """One binary problem, by passes over the rows to keep."""
        score = None if keep is None else _validation(task.rows.take(~keep), task.positive)
        starts = getattr(task.rows.X, "starts", ())
        order, stopping = Order(task.rows.n, seed, keep, starts=starts), self._stopping()
        n_iter, record = run_passes(task, order, stopping, self._keeps_log(), score)
        return Outcome(n_iter, record, n_iter < self.max_iter or self.tol is None)

    def _keeps_log(self) -> bool:
        return bool(self.record_updates)

    def _kept_of_run(self, tasks: list[Task], outcomes: list[Outcome]) -> dict[str, Any]:
        """Fitted attributes that only some classifiers have."""
        return {}

    def _task(
        self, rows: Rows, r: int, k: int, class_weights: Array, w: Any, b: Array, later: Array
    ) -> Task:
        """The problem of class r against the rest, or of the second class against the first."""
        rule, positive = self._rule(), 1 if k == 2 else r
        rest = class_weights[0] if k == 2 else 1.0
        setting = rule.setting(
            positive_weight=float(class_weights[positive]),
            negative_weight=float(rest),
            intercept_step=self._step_of_intercept(rows.is_sparse),
            average_from=float(self.average) if self.average else 1.0,
        )
        name, penalty = type(self).__name__, self._penalty()
        return Task(rows, positive, rule, setting, w, b, name, later, penalty=penalty)

    def _averages(self, W: Any, b: Array, later: Array, tally: Array) -> dict[str, Any]:
        """``coef_`` and ``intercept_``, and the weights of the passes where these are averages."""
        if not self.average:
            return {"coef_": W, "intercept_": b}
        visits, start = tally[:, 0], max(1.0, float(self.average))
        if visits.max() < start:
            return {"coef_": W, "intercept_": b, "_last": (W, b, later)}
        mean = averaged(W.astype(np.float64), later[:, :-1], visits[:, None], start)
        level = averaged(b, later[:, -1], visits, start)
        coef, intercept = mean.astype(W.dtype), level.astype(W.dtype)
        return {"coef_": coef, "intercept_": intercept, "_last": (W, b, later)}

    def _seeds_and_rows(
        self, rows: Rows, k: int
    ) -> tuple[list[int | None], NDArray[np.bool_] | None]:
        """Seeds of the shuffles of each problem, and which rows are learned from.

        Drawn as scikit-learn draws them, so that the same seed visits rows in the same order.
        """
        keep = None
        if k > 2:
            if self.early_stopping:
                keep = self._kept_rows(rows)
            random = check_random_state(self.random_state)
            drawn = random.randint(np.iinfo(np.int32).max, size=k)
            seeds = [seed_of(check_random_state(seed)) for seed in drawn]
        else:
            random = check_random_state(self.random_state)
            random.randint(1, np.iinfo(np.int32).max)
            if self.early_stopping:
                keep = self._kept_rows(rows)
            seeds = [int(random.randint(np.iinfo(np.int32).max))]
        return list(seeds) if self._is_shuffled else [None] * len(seeds), keep

    def _kept_rows(self, rows: Rows) -> NDArray[np.bool_]:
        """True for rows to learn from, False for those that early stopping scores."""
        split = StratifiedShuffleSplit(
            test_size=self.validation_fraction, random_state=self.random_state
        )
        learned, scored = next(split.split(np.zeros((rows.n, 1)), rows.codes))
        if len(rows.weights) > 1 and not rows.weights[scored].any():
            raise ValueError(
                "The sample weights of the validation rows are all zero; use another random_state."
            )
        if not len(learned) or not len(scored):
            raise ValueError(
                f"validation_fraction={self.validation_fraction} of {rows.n} rows leaves "
                f"{len(learned)} to learn from and {len(scored)} to score. Change it, or set "
                "early_stopping=False."
            )
        keep = np.ones(rows.n, dtype=bool)
        keep[scored] = False
        return keep

    def _tell(self, tasks: list[Any], outcomes: list[Outcome], classes: NDArray[Any]) -> None:
        """Warn of passes that ended too early."""
        if all(outcome.finished for outcome in outcomes):
            return
        records = [outcome.record for outcome in outcomes]
        updates = [record.updates_per_pass[-1] for record in records if record.updates_per_pass]
        warnings.warn(
            f"{type(self).__name__} was stopped by max_iter={self.max_iter} while the loss was "
            f"still falling; the last pass made {sum(updates)} updates. Raise max_iter, or tol.",
            ConvergenceWarning,
            stacklevel=4 + wrappers(type(self).fit),
        )

    def _store(
        self, fitted: dict[str, Any], classes: NDArray[Any], class_weights: Array, rows: Rows
    ) -> None:
        """Keep what was learned."""
        W, b, run = fitted.pop("coef_"), fitted.pop("intercept_"), fitted.pop("run", None)
        self._forget_last()
        self.classes_ = classes
        if self._constant_column():
            self.coef_, self.intercept_ = np.ascontiguousarray(W[:, :-1]), W[:, -1].copy()
        else:
            self.coef_ = W
            self.intercept_ = b.astype(W.dtype) if len(b) > 1 else b
        self.__dict__.update(fitted)
        self._class_weights = np.asarray(class_weights, dtype=np.float64)
        self._remember(rows, run)

    def _forget_last(self) -> None:
        for name in ("_last", "_row_state", "_backup"):
            self.__dict__.pop(name, None)

    # --- prediction -----------------------------------------------------------------------------

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Signed scores: x.w + b.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        scores : array of shape (n,) for two classes, where above zero means ``classes_[1]``, or
            (n, classes)
        """
        X = new_rows(self, X, accept_sparse="csr", dtype="numeric")
        if self.normalize_rows:
            X = normalised(X if X.dtype == np.float32 else X.astype(np.float64, copy=False))
        return self._scores(X)

    def _scores(self, X: Any) -> NDArray[Any]:
        scores = X @ self.coef_.T
        scores = scores.toarray() if sp.issparse(scores) else np.asarray(scores)
        scores = scores + self.intercept_
        if len(self.classes_) == 2:
            return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores[:, 0]
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        labels : array of shape (n,)
        """
        chosen = chosen_by_scores(self.decision_function(X), self.sign_of_zero)
        return np.take(self.classes_, chosen)

    @property
    def t_(self) -> float:
        """One more than the number of visits of the (first) problem."""
        if "_tally" not in self.__dict__:
            raise AttributeError(f"This {type(self).__name__} is not fitted yet: it has no t_.")
        return 1.0 + float(self._tally[:, 0].max())

    def _declared(self, y: Any) -> NDArray[Any]:
        return _small(encode_declared(y, self.classes_), len(self.classes_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _small(codes: NDArray[Any], k: int) -> NDArray[Any]:
    """Classes in one byte each, if they are few: shuffled passes then find them in the cache."""
    return codes.astype(np.int8) if k <= 127 else codes


def _validation(rows: Rows, positive: int) -> Any:
    """The weighted accuracy of weights on rows kept apart."""
    refuse_nonfinite(rows.X)  # no pass looks at these rows
    right = rows.codes == positive
    weights = rows.weights if len(rows.weights) > 1 else None

    def score(w: NDArray[Any], b: float) -> float:
        said = np.asarray(rows.X @ w) + b > 0
        return float(np.average(said == right, weights=weights))

    return score
