"""Logistic regression, one row at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from trueline.estimators.online.base import OnlineClassifier
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.online import rules
from trueline.online.adaptive import adaptive_row
from trueline.online.passes import AdaptiveTask, Stopping, Task, fresh_memory
from trueline.online.rows import NO_INDICES, NO_POINTERS, Rows

Array = NDArray[np.float64]


@parameters()
class OnlineLogisticRegression(OnlineClassifier):
    r"""Logistic regression learned row by row, in one pass or a few.

    Every row moves the weights down the slope of log(1 + exp(-y (x.w + b))). With
    ``update="plain"`` by ``learning_rate * t**-decay`` at visit t; with ``update="adaptive"`` each
    weight has a rate of its own, which falls with the slopes it has seen, so that rare columns
    learn as fast as frequent ones and the units of columns do not matter.

    The weights are not those of the minimum of a cost: for these, proven, use a batch estimator.

    Parameters
    ----------
    update : {"adaptive", "plain"}, default="adaptive"
    learning_rate : float, default=1.0
    decay : float, default=0.5
        For the plain update; 0 keeps the rate constant.
    fit_intercept : bool, default=True
    max_iter : int, default=5
        Passes over the rows, at most.
    tol : float or None, default=1e-3
        Passes stop once ``n_iter_no_change`` of them did not lower the mean loss by this.
    n_iter_no_change : int, default=2
    shuffle : bool, default=True
    random_state : int, RandomState or None, default=None
    class_weight : dict, "balanced" or None, default=None
        Weights of rows; "balanced" for ``fit`` only.
    warm_start : bool, default=False
        Whether ``fit`` starts from the weights of the last fit.
    normalize_rows : bool, default=False
    hash_width : int, default=2**18
        Number of columns for rows given as mappings of names to numbers.

    Attributes
    ----------
    coef_ : array of shape (1, d) or (classes, d)
        Of each class against the rest if there are more than two.
    intercept_ : array of shape (1,) or (classes,)
    classes_ : array
    n_iter_ : int
    records_ : list of Record
    certificate_ : Certificate
        The training errors, counted.
    progress_ : Progress
        After ``fit_stream``.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from trueline import OnlineLogisticRegression
    >>> model = OnlineLogisticRegression(hash_width=2**10)
    >>> stream = [({"word": "good"}, "yes"), ({"word": "bad"}, "no")] * 20
    >>> model = model.fit_stream(stream, classes=["no", "yes"])
    >>> model.predict_one({"word": "good"}), model.progress_.mistakes
    ('yes', 2)
    """

    _: KW_ONLY
    update: str = given("adaptive", one_of("adaptive", "plain"))
    learning_rate: float = given(1.0, "(0, inf)")
    decay: float = given(0.5, "[0, inf)")
    fit_intercept: bool = True
    max_iter: int = given(5, "int [1, inf)")
    tol: float | None = given(1e-3, "[0, inf)", None)
    n_iter_no_change: int = given(2, "int [1, inf)")
    shuffle: bool = True
    random_state: Any = given(None, "random_state")
    class_weight: Any = given(None, "class_weight")
    warm_start: bool = False
    normalize_rows: bool = False
    hash_width: int = given(2**18, "int [1, inf)")

    def _rule(self) -> rules.Rule:
        decay = float(self.decay) if self.update == "plain" else 0.0
        return rules.logistic(float(self.learning_rate), decay)

    def _like_scikit_learn(self) -> bool:
        return False

    def _stopping(self) -> Stopping:
        return Stopping(int(self.max_iter), self.tol, int(self.n_iter_no_change))

    def _tell(self, tasks: Any, outcomes: Any, classes: Any) -> None:
        """A few passes are what was asked for."""

    def _learn(
        self, rows: Rows, classes: NDArray[Any], class_weights: Array, W: Any, b: Array
    ) -> dict[str, Any]:
        started = self.warm_start and hasattr(self, "_memory")
        self._fitting = fresh_memory(len(W), W.shape[1])
        if started and self._memory.shape == self._fitting.shape:
            self._fitting = self._memory.copy()
        fitted = super()._learn(rows, classes, class_weights, W, b)
        fitted["_memory"] = self.__dict__.pop("_fitting")
        return fitted

    def _task(
        self,
        rows: Rows,
        r: int,
        k: int,
        class_weights: Array,
        w: Any,
        b: Array,
        later: Array,
        memory: Array | None = None,
    ) -> Task:
        plain = super()._task(rows, r, k, class_weights, w, b, later)
        if self.update == "plain":
            return plain
        if memory is None:
            memory = self._fitting[r]
        return AdaptiveTask(
            *(rows, plain.positive, plain.rule, plain.setting, w, b, plain.name), memory=memory
        )

    def _extra(self, W: Any, first: bool) -> dict[str, Array]:
        if self.update == "plain":
            return {}
        if first or "_memory" not in self.__dict__:
            self.__dict__["_memory"] = fresh_memory(len(W), W.shape[1])
        return {"memory": self._memory}

    def _row_learners(self) -> tuple[Any, Any]:
        if self.update == "plain":
            return super()._row_learners()
        w, b, tally, memory = self.coef_[0], self.intercept_, self._tally[0], self._memory[0]
        empty = Rows(np.zeros((1, 1)), np.zeros(1, dtype=np.int8), np.ones(1))
        setting = self._task(empty, 0, 2, self._class_weights, w, b, np.empty(0), memory).setting
        learn = getattr(adaptive_row, "dispatcher", adaptive_row)
        one, first = np.ones(1), np.zeros(1, dtype=np.int32)
        code = {-1.0: np.zeros(1, dtype=np.int8), 1.0: np.ones(1, dtype=np.int8)}
        state = (one, first, setting, memory, w, b, tally)

        def dense(X: Any, sign: float) -> bool:
            return learn(X, NO_INDICES, NO_POINTERS, code[sign], *state)

        def sparse(data: Any, indices: Any, sign: float) -> bool:
            pointer = np.array([0, len(data)], dtype=np.int32)
            return learn(data, indices, pointer, code[sign], *state)

        return dense, sparse

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Probabilities of the classes; of several classes, those against the rest, normalised.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        probabilities : array of shape (n, classes)
        """
        p = expit(self.decision_function(X))
        if p.ndim == 1:
            return np.column_stack([1 - p, p])
        total = p.sum(axis=1, keepdims=True)
        even = np.full_like(p, 1 / p.shape[1])
        return np.divide(p, total, out=even, where=total > 0)

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))
