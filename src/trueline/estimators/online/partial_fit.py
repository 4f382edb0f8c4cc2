"""Learning as rows come: batches, single rows, streams, and the state before a bad batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import _check_partial_fit_first_call
from sklearn.utils.validation import check_is_fitted

from trueline.online.pass_kernels import one_row
from trueline.online.passes import NO_LOG, Order, raise_for_row, seed_of
from trueline.online.rows import NO_INDICES, NO_POINTERS, Rows
from trueline.online.rules import INTERCEPT_STEP
from trueline.online.stream import DriftAlarm, Progress, batches_of, hashed_row, hashed_rows

Array = NDArray[np.float64]
_FLOAT = np.dtype(np.float64)


class _RowState(NamedTuple):
    """All that learning one row of a binary problem needs, found once."""

    shape: tuple[int, int]
    signs: dict[Any, float]
    #: Learns an array of shape (1, d) with its sign; False if that gives no number.
    dense: Callable[[Any, float], bool]
    #: The same for the numbers and columns of a sparse row.
    sparse: Callable[[Any, Any, float], bool]


class SingleRows:
    """``partial_fit`` and its relatives."""

    average: Any
    classes_: NDArray[Any]
    coef_: Any
    _tally: Array
    _class_weights: Array
    intercept_: NDArray[Any]
    n_features_in_: int

    def __setattr__(self, name: str, value: Any) -> None:
        # What single rows need was found for the parameters and weights as they were.
        self.__dict__.pop("_row_state", None)
        object.__setattr__(self, name, value)

    def __getstate__(self) -> Any:
        self.__dict__.pop("_row_state", None)
        return super().__getstate__()

    # --- batches --------------------------------------------------------------------------------

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a batch of rows, or from one, in a single pass.

        A batch that cannot be learned from (a wrong number of columns, NaN, unknown labels) raises
        an error and leaves the model as it was before.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like, optional
            All labels that will ever come; needed in the first call.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self : object
        """
        state = self.__dict__.get("_row_state")
        if (
            state is not None
            and classes is None
            and sample_weight is None
            and type(X) is np.ndarray
            and X.shape == state.shape
            and X.dtype == _FLOAT
            and X.flags.c_contiguous
            and len(y) == 1
        ):
            try:
                sign = state.signs.get(y[0])
            except (TypeError, KeyError):  # a label that cannot be looked up; a Series
                sign = None
            if sign is not None:
                if not state.dense(X, sign):
                    raise_for_row(X, 0, type(self).__name__)
                return self
        return self._partial_fit(X, y, classes, sample_weight, self._is_shuffled)  # type: ignore[attr-defined]

    def _partial_fit(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, shuffled: bool
    ) -> Self:
        model: Any = self
        first = not hasattr(self, "classes_") or not hasattr(self, "coef_")
        model._check_parameters()
        if first:
            self._check_online()
        X, y = model._validated(X, y, reset=first)
        if classes is None and first:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if first:
            self.__dict__.pop("classes_", None)
        _check_partial_fit_first_call(self, classes)
        try:
            rows = Rows(X, model._declared(y), model._row_weights(sample_weight, X))
            self._learn_batch(rows, first, shuffled)
        except Exception:
            if first:
                self.__dict__.pop("classes_", None)
            raise
        return self

    def _check_online(self) -> None:
        model: Any = self
        if getattr(self, "early_stopping", False):
            raise ValueError("early_stopping should be False with partial_fit")
        if isinstance(model.class_weight, str):
            raise ValueError(
                "class_weight='balanced' is not supported by partial_fit, which has not seen all "
                "rows. Give the weights as a dictionary, from "
                "sklearn.utils.class_weight.compute_class_weight on a sample."
            )

    def _learn_batch(self, rows: Rows, first: bool, shuffled: bool) -> None:
        """One pass over a batch, or an error and the state from before."""
        model: Any = self
        k = len(self.classes_)
        class_weights = model._weights_of_classes(self.classes_, self.classes_)
        W, b, later, tally, extra = self._live(rows, k, first)
        seeds: list[int | None] = [None] * len(W)
        if shuffled and rows.n > 1:
            seeds = self._seeds(k)
        direct = model._is_direct(k)
        backup = _Backup(rows, W, b, later, tally, extra)
        try:
            if direct:
                order = Order(rows.n, seeds[0]).next_pass()
                model._direct_batch(rows, class_weights, order, W, b, later, tally[0])
                tally[1:] = tally[0]  # the classes learn together
            else:
                for r in range(len(W)):
                    parts = {name: array[r] for name, array in extra.items()}
                    task = model._task(
                        rows, r, k, class_weights, W[r], b[r : r + 1], later[r], **parts
                    )
                    task.tally = tally[r]
                    task.learn(Order(rows.n, seeds[r]).next_pass(), NO_LOG)
                    task.finish()
        except Exception:
            backup.restore()
            raise
        fitted = model._averages(W, b, later, tally)
        fitted["_tally"] = tally
        fitted["_class_weights"] = class_weights
        self._store_batch(fitted, extra)

    def _live(self, rows: Rows, k: int, first: bool) -> tuple[Any, Array, Array, Array, dict]:
        """The weights that learning changes, in place."""
        model: Any = self
        if first:
            W, b = model._start(rows.X, k, None, None)
        elif "_last" in self.__dict__ and self.average:
            W, b = model._last[0], model._last[1]
        else:
            W, b = self.coef_, np.asarray(self.intercept_, dtype=np.float64)
            W = W.toarray() if sp.issparse(W) else W
            if model._constant_column():
                W, b = np.hstack([W, b[:, None].astype(W.dtype)]), np.zeros(len(W))
        if self.average and not first and "_last" in self.__dict__:
            later = model._last[2]
        else:
            later = np.zeros((len(W), W.shape[1] + 1 if self.average else 0))
            if self.average:
                later[:, :-1], later[:, -1] = W, b
        tally = self.__dict__.get("_tally")
        if first or tally is None or len(tally) != len(W):
            tally = np.zeros((len(W), 4))
        return W, b, later, tally, model._extra(W, first)

    def _extra(self, W: Any, first: bool) -> dict[str, Array]:
        """What else a rule remembers for each weight."""
        return {}

    def _store_batch(self, fitted: dict[str, Any], extra: dict[str, Array]) -> None:
        model: Any = self
        W, b = fitted.pop("coef_"), fitted.pop("intercept_")
        if model._constant_column():
            W, b = np.ascontiguousarray(W[:, :-1]), W[:, -1].astype(np.float64)
        self.coef_ = W
        self.intercept_ = b.astype(W.dtype) if len(b) > 1 else b
        self.n_iter_ = 1
        self.__dict__.update(fitted)
        model._forget_proof()
        self._prepare_rows()

    def _seeds(self, k: int) -> list[int | None]:
        model: Any = self
        state = model.random_state
        if isinstance(state, int | np.integer):  # the same every time: draw once
            known = self.__dict__.get("_seeds_of")
            if known is not None and known[0] == (int(state), k):
                return known[1]
        random = check_random_state(state)
        if k > 2:
            drawn = random.randint(np.iinfo(np.int32).max, size=k)
            seeds: list[int | None] = [seed_of(check_random_state(seed)) for seed in drawn]
        else:
            seeds = [seed_of(random)]
        if isinstance(state, int | np.integer):
            self.__dict__["_seeds_of"] = ((int(state), k), seeds)
        return seeds

    # --- single rows ----------------------------------------------------------------------------

    def _prepare_rows(self) -> None:
        """Find once what single rows of a binary problem need."""
        model: Any = self
        plain = (
            len(self.classes_) == 2
            and len(self.coef_) == 1
            and self.coef_.dtype == np.float64
            and not self.average
            and not model.normalize_rows
            and not model._constant_column()
            and model._penalty() is None
            and not isinstance(model.random_state, np.random.RandomState)
            and "feature_names_in_" not in self.__dict__
        )
        if not plain:
            return
        low, high = self.classes_.tolist()
        dense, sparse = self._row_learners()
        self.__dict__["_row_state"] = _RowState(
            (1, self.n_features_in_), {low: -1.0, high: 1.0}, dense, sparse
        )

    def _row_learners(self) -> tuple[Any, Any]:
        """Functions that learn one dense, and one sparse row."""
        model: Any = self
        w, b, tally = self.coef_[0], self.intercept_, self._tally[0]
        empty = Rows(np.zeros((1, 1)), np.zeros(1, dtype=np.int8), np.ones(1))
        task = model._task(empty, 0, 2, self._class_weights, w, b, np.empty(0))
        learn = getattr(one_row, "dispatcher", one_row)
        state = (task.rule.code, task.setting, w, b, tally)
        sparse_setting = task.setting.copy()
        sparse_setting[INTERCEPT_STEP] = model._step_of_intercept(True)
        sparse_state = (task.rule.code, sparse_setting, w, b, tally)

        def dense(X: Any, sign: float) -> bool:
            return learn(X, NO_INDICES, NO_POINTERS, sign, *state)

        def sparse(data: Any, indices: Any, sign: float) -> bool:
            pointer = np.array([0, len(data)], dtype=np.int32)
            return learn(data, indices, pointer, sign, *sparse_state)

        return dense, sparse

    def learn_one(self, x: Any, y: Any, classes: Any = None) -> Self:
        """Learn from one row.

        Parameters
        ----------
        x : array of shape (d,), or mapping of names to numbers
            Mappings are hashed: see :mod:`trueline.online.stream`.
        y : label
        classes : array-like, optional
            All labels that will ever come; needed in the first call.

        Returns
        -------
        self : object
        """
        if type(x) is not dict and not isinstance(x, Mapping):
            return self.partial_fit(np.asarray(x, dtype=np.float64).reshape(1, -1), [y], classes)
        state = self.__dict__.get("_row_state")
        if state is not None and (sign := state.signs.get(y)) is not None:
            indices, data = hashed_row(x, state.shape[1])
            if not state.sparse(data, indices, sign):
                raise_for_row(data.reshape(1, -1), 0, type(self).__name__)
            return self
        return self._partial_fit(hashed_rows([x], self._width()), [y], classes, None, False)

    def predict_one(self, x: Any) -> Any:
        """The label of one row, given as to :meth:`learn_one`."""
        check_is_fitted(self)
        model: Any = self
        is_hashed = isinstance(x, Mapping)
        row = hashed_rows([x], self._width()) if is_hashed else np.asarray(x, float).reshape(1, -1)
        label = model.predict(row)[0]
        return label.item() if isinstance(label, np.generic) else label

    def _width(self) -> int:
        """Number of columns of hashed rows."""
        return int(getattr(self, "n_features_in_", 0) or getattr(self, "hash_width", 2**18))

    # --- streams --------------------------------------------------------------------------------

    def fit_stream(
        self,
        stream: Iterable[Any],
        classes: Any = None,
        limit: int | None = None,
        alarm: DriftAlarm | None = None,
    ) -> Self:
        """Predict each row of a stream, then learn from it (progressive validation).

        Rows are learned in the order they come; nothing is assumed about how they were drawn. If
        the stream is interrupted, or a row is bad, the model and ``progress_`` are as after the row
        before, and a further call goes on from there.

        Parameters
        ----------
        stream : iterable of (x, y)
            x is a row (array of shape (d,)), a mapping of names to numbers (hashed), or a batch
            (array-like or sparse of shape (n, d), with as many labels); also an iterable of
            (x, y, sample_weight).
        classes : array-like, optional
            All labels that will ever come; needed unless the model has seen rows before.
        limit : int, optional
            Stop after so many rows: streams may be infinite.
        alarm : trueline.online.stream.DriftAlarm, optional
            Receives the mistakes of every batch; learning stops after the batch at which it rings.

        Returns
        -------
        self : object
            ``progress_`` tells how often the prediction was right before learning.
        """
        if not hasattr(self, "progress_"):
            self.progress_ = Progress()
        progress = self.progress_
        end = None if limit is None else progress.rows + limit
        for X, y, weight in batches_of(stream, self._width):
            room = None if end is None else end - progress.rows
            if room is not None and room < len(y):
                X, y = X[:room], y[:room]
                weight = None if weight is None else weight[:room]
            wrong = self._predict_then_learn(X, y, classes, weight)
            progress.add(len(y), wrong)
            classes = None
            is_ringing = alarm is not None and alarm.add(len(y), wrong)
            if is_ringing or (end is not None and progress.rows >= end):
                break
        return self

    def _predict_then_learn(self, X: Any, y: Any, classes: Any, weight: Any) -> int:
        """Learn row by row; how many predictions were wrong."""
        model: Any = self
        k = len(self.classes_) if hasattr(self, "classes_") else len(np.unique(classes))
        if k == 2 or model._is_direct(k):  # the passes themselves count
            before = self._tally[0, 3] if hasattr(self, "_tally") else 0.0
            is_single = weight is None and len(y) == 1 and not sp.issparse(X)
            if is_single and "_row_state" in self.__dict__:
                self.partial_fit(X, y, classes)
            else:
                self._partial_fit(X, y, classes, weight, False)
            return int(self._tally[0, 3] - before)
        wrong = 0
        X = sp.csr_array(X) if sp.issparse(X) else X
        for i in range(len(y)):
            row, label = X[[i]] if sp.issparse(X) else X[i : i + 1], y[i : i + 1]
            if hasattr(self, "coef_"):
                wrong += int(model.predict(row)[0] != label[0])
            else:
                wrong += 1
            part = None if weight is None else weight[i : i + 1]
            self._partial_fit(row, label, classes, part, False)
            classes = None
        return wrong


class _Backup:
    """The numbers a batch may change, to be put back if it fails."""

    def __init__(
        self, rows: Rows, W: Any, b: Array, later: Array, tally: Array, extra: dict[str, Array]
    ) -> None:
        # Of sparse rows only the touched columns, and those at the end, which are not columns of X.
        if rows.is_sparse and rows.X.nnz < rows.d:
            at: Any = np.append(rows.X.indices, [-2, -1]) if rows.d > 1 else slice(None)
        else:
            at = slice(None)
        wide = [array for array in (W, later, *extra.values()) if array.shape[1]]
        self.kept = [(array, at, array[:, at].copy()) for array in wide]
        self.kept += [(array, slice(None), array.copy()) for array in (b, tally)]

    def restore(self) -> None:
        """Put everything back."""
        for array, at, values in self.kept:
            if array.ndim == 1:
                array[at] = values
            else:
                array[:, at] = values
