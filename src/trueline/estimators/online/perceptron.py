"""The perceptron, in every form the textbooks have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from trueline.certificates.base import Certificate
from trueline.certificates.special.mistakes import Run, certify_mistakes
from trueline.design.stacked import StackedDesign
from trueline.estimators.online.advice import is_separable, warn_of_rows, wrong_rows
from trueline.estimators.online.base import OnlineClassifier, Outcome
from trueline.estimators.online.proof import widest_plane
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.online import rules
from trueline.online.direct_forms import run_direct_pocket, run_direct_textbook
from trueline.online.history import trace_of_run
from trueline.online.pass_kernels import Penalty
from trueline.online.passes import DirectTask, Order, Stopping, Task, averaged, run_passes
from trueline.online.perceptron_forms import run_batch, run_pocket, run_textbook, survivors
from trueline.online.rows import Rows

Array = NDArray[np.float64]

_PASSES = ("standard", "cyclic", "shuffled", "averaged", "voted")
# Up to how many numbers of X it is decided whether the rows are separable, for a warning: where
# passes stop on ``tol``, that must not take longer than they did; not so where all were made.
_AT_ONCE, _AT_THE_END = 500, 1_000_000


def _learns_as_rows_come(model: Any) -> bool:
    """Whether the variant has a ``partial_fit``: others need all rows at once."""
    if model.variant in ("standard", "cyclic", "shuffled", "averaged"):
        return True
    raise AttributeError(
        f"variant={model.variant!r} needs all rows at once: variants that learn as rows come are "
        "'standard', 'cyclic', 'shuffled' and 'averaged'."
    )


@parameters()
class Perceptron(OnlineClassifier):
    r"""The perceptron: add every row that is on the wrong side.

    Weights start at zero. A row with y (x.w + b) <= margin, y in {-1, +1}, changes them::

        w <- w + eta0 s y x,        b <- b + eta0 s y,

    with s the weight of the row. If some unit vector separates the rows with margin gamma, and no
    row is longer than R, there are at most (R / gamma)^2 changes, in whatever order rows come
    (Novikoff 1962). :attr:`certificate_` states R, gamma, the bound and the changes made, and
    counts the training errors. Its gamma is that of the weights that were learned;
    :meth:`bound_mistakes` looks for the largest one there is.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet"} or None, default=None
        Shrinks the weights at every visit, for ``variant="standard"``.
    alpha : float, default=0.0001
        Strength of the penalty.
    l1_ratio : float, default=0.15
        For the elastic net: 0 is l2, 1 is l1.
    fit_intercept : bool, default=True
    max_iter : int, default=1000
        Passes over the rows, at most.
    tol : float or None, default=1e-3
        Passes stop once ``n_iter_no_change`` of them did not lower the mean loss by this: with
        "standard", "averaged" and "voted". If rows are then on the wrong side, "standard" warns.
        With None, only a pass without an update is the last before ``max_iter``.
    shuffle : bool, default=True
        Whether rows are shuffled before every pass.
    verbose : int, default=0
        Accepted for compatibility; :attr:`records_` tells what happened.
    eta0 : float, default=1.0
        Learning rate.
    n_jobs : int or None, default=None
        Accepted for compatibility.
    random_state : int, RandomState or None, default=0
        Order of the rows: the same as in scikit-learn.
    early_stopping : bool, default=False
        Whether ``tol`` is about the accuracy on rows kept apart.
    validation_fraction : float, default=0.1
        Share of these rows.
    n_iter_no_change : int, default=5
    class_weight : dict, "balanced" or None, default=None
    warm_start : bool, default=False
        Whether ``fit`` starts from the weights of the last fit.
    variant : str, default="standard"
        - "standard": passes over all rows (in the order of ``shuffle``) until ``tol`` says stop, as
          in scikit-learn;
        - "textbook": look for a mistake from the first row on, correct it, start again;
        - "cyclic": round and round in the given order, until a pass makes no mistake;
        - "shuffled": the same in random order, drawn anew before every pass;
        - "batch": find all mistakes, add them all at once, repeat;
        - "pocket": keep the weights with the fewest training errors so far (Gallant 1990, with
          ratchet), for rows that no line separates; with ``shuffle``, rows are drawn at random;
        - "averaged": the mean of the weights over all visits;
        - "voted": all weights of the run vote, each as often as it was right (Freund and Schapire
          1999); ``coef_`` then is their mean, whose predictions are nearly the same.
    margin : float, default=0.0
        Rows that are right by no more than this are added too (the margin perceptron).
    multiclass : {"ovr", "direct"}, default="ovr"
        One problem for each class against the rest, or one weight vector for each class learned
        together: a mistake adds the row to the right class and subtracts it from the best other.
    bias : {"separate", "constant_feature"}, default="separate"
        The intercept as a number of its own, or as the weight of a column of ones; the same answer.
    intercept_step : float, optional
        Step of the intercept, compared with that of the weights. None is 1, but for sparse rows and
        ``variant="standard"`` 0.01, as in scikit-learn.
    normalize_rows : bool, default=False
        Whether rows are divided by their Euclidean norms, also in predictions.
    record_updates : bool, default=False
        Whether :attr:`records_` keeps the row and step of every update; "textbook" always does.
    sign_of_zero : {-1, 0, 1}, default=0
        Which side a score of zero is on, in learning and in ``predict``: with 1 the positive one,
        so that such a row of ``classes_[1]`` is right. With 0 it is on none: a mistake whatever its
        class, as it is in the training errors of the certificate; ``predict`` says ``classes_[0]``.
        For two classes, or one against the rest.
    trace : bool, default=False
        Keep weights and training errors after each update in ``trace_`` (of many, some hundred):
        for two classes, or ``multiclass="direct"``.

    Attributes
    ----------
    coef_ : array of shape (1, d) or (classes, d)
    intercept_ : array of shape (1,) or (classes,)
    classes_ : array
    n_iter_ : int
        Passes; for several problems, the most.
    records_ : list of Record
        Visits, mistakes and updates of each problem, per pass.
    certificate_ : Certificate
    trace_ : Trace
        With ``trace=True``: the training ``errors`` after each iteration, which is an update (of
        "batch" all of a pass), the errors in the ``pocket``, and the weights.
    progress_ : Progress
        After ``fit_stream``.
    n_features_in_ : int
    feature_names_in_ : array of str
    survivors_, votes_ : lists of arrays
        With ``variant="voted"``: for each problem all weights (intercept last), and their votes.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import Perceptron
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> y = np.array(["no", "no", "no", "yes"])
    >>> model = Perceptron(variant="textbook").fit(X, y)
    >>> model.predict(X).tolist(), model.coef_.tolist(), model.intercept_.tolist()
    (['no', 'no', 'no', 'yes'], [[3.0, 2.0]], [-4.0])
    >>> bool(model.verify(X, y))
    True
    """

    _: KW_ONLY
    penalty: str | None = given(None, one_of("l2", "l1", "elasticnet"), None)
    alpha: float = given(0.0001, "[0, inf)")
    l1_ratio: float = given(0.15, "[0, 1]")
    fit_intercept: bool = True
    max_iter: int = given(1000, "int [1, inf)")
    tol: float | None = given(1e-3, "[0, inf)", None)
    shuffle: bool = True
    verbose: int = given(0, "verbose")
    eta0: float = given(1.0, "(0, inf)")
    n_jobs: int | None = given(None, "int", None)
    random_state: Any = given(0, "random_state")
    early_stopping: bool = False
    validation_fraction: float = given(0.1, "(0, 1)")
    n_iter_no_change: int = given(5, "int [1, inf)")
    class_weight: Any = given(None, "class_weight")
    warm_start: bool = False
    variant: str = given(
        "standard",
        one_of(*_PASSES, "textbook", "batch", "pocket"),
    )
    margin: float = given(0.0, "[0, inf)")
    multiclass: str = given("ovr", one_of("ovr", "direct"))
    bias: str = given("separate", one_of("separate", "constant_feature"))
    intercept_step: float | None = given(None, "(0, inf)", None)
    normalize_rows: bool = False
    record_updates: bool = False
    sign_of_zero: int = given(0, "int [-1, 1]")
    trace: bool = False

    # --- what the parameters mean ---------------------------------------------------------------

    @property
    def average(self) -> bool:
        """Whether the mean of the weights is kept beside them."""
        return self.variant in ("averaged", "voted")

    @property
    def _is_shuffled(self) -> bool:
        return {"cyclic": False, "shuffled": True}.get(self.variant, bool(self.shuffle))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.sign_of_zero and self.multiclass == "direct":
            raise ValueError(
                f"sign_of_zero={self.sign_of_zero} is about the one score of two classes; with "
                "multiclass='direct' each class has a score. Set multiclass='ovr'."
            )
        if self.variant == "standard" and self.multiclass == "ovr":
            return
        for name, plain in (("penalty", None), ("early_stopping", False)):
            if getattr(self, name) != plain:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is for variant='standard' with "
                    f"multiclass='ovr', not for variant={self.variant!r} with "
                    f"multiclass={self.multiclass!r}."
                )
        if self.multiclass == "direct" and self.variant in ("batch", "voted"):
            raise ValueError(
                f"variant={self.variant!r} is for two classes, or one against the rest: set "
                "multiclass='ovr', or another variant."
            )

    def _refuse_batches(self) -> None:
        super()._refuse_batches()
        if self.variant not in _PASSES or self.variant == "voted":
            raise ValueError(
                f"variant={self.variant!r} needs its rows in memory; batches are learned by "
                "'standard', 'cyclic', 'shuffled' and 'averaged'."
            )

    def _rule(self) -> rules.Rule:
        return rules.perceptron(float(self.eta0), float(self.margin), int(self.sign_of_zero))

    def _penalty(self) -> Penalty | None:
        if self.penalty is None:
            return None
        ratio = {"l2": 0.0, "l1": 1.0, "elasticnet": float(self.l1_ratio)}[self.penalty]
        return Penalty(float(self.alpha), ratio)

    def _like_scikit_learn(self) -> bool:
        return self.variant == "standard" and self.multiclass == "ovr"

    def _stopping(self) -> Stopping:
        # Without updates and without a penalty, no further pass would differ.
        separated = self.variant != "standard" or (self.tol is None and self.penalty is None)
        tol = None if self.variant in ("cyclic", "shuffled") else self.tol
        return Stopping(int(self.max_iter), tol, int(self.n_iter_no_change), separated)

    partial_fit = available_if(_learns_as_rows_come)(OnlineClassifier.partial_fit)
    fit_stream = available_if(_learns_as_rows_come)(OnlineClassifier.fit_stream)
    learn_one = available_if(_learns_as_rows_come)(OnlineClassifier.learn_one)

    # --- learning -------------------------------------------------------------------------------

    def _learn_problem(
        self, task: Task, seed: int | None, keep: NDArray[np.bool_] | None
    ) -> Outcome:
        from_zero = self.penalty is None and not (task.w.any() or task.b.any())
        task.counts = np.zeros(task.rows.n, dtype=np.int32)
        task.start = task.w.copy(), task.b.copy()
        outcome = self._learn_variant(task, seed, keep)
        if not from_zero:
            return outcome._replace(last=None)
        last = np.append(task.w, task.b) if outcome.last is None else outcome.last
        return outcome._replace(last=last.astype(np.float64))

    def _learn_variant(
        self, task: Task, seed: int | None, keep: NDArray[np.bool_] | None
    ) -> Outcome:
        """One binary problem, by the variant asked for."""
        passes, log = int(self.max_iter), self._keeps_log()
        if self.variant in _PASSES:
            outcome = super()._learn_problem(task, seed, keep)
            if self.variant != "standard" and outcome.record.updates_per_pass[-1] == 0:
                outcome = outcome._replace(finished=True)
            return outcome
        if self.variant == "textbook":
            return Outcome(*run_textbook(task, passes, log))
        if self.variant == "batch":
            n_iter, record, largest = run_batch(task, passes, log)
            return Outcome(n_iter, record, record.updates_per_pass[-1] == 0, largest)
        # Gallant draws rows at random: shuffled ones can run in circles.
        order = Order(task.rows.n, seed, keep, drawn=True)
        n_iter, record, _, w, b = run_pocket(task, order, passes, log)
        return Outcome(n_iter, record, True, last=np.append(w, b))

    def _keeps_log(self) -> bool:
        return bool(self.record_updates or self.trace) or self.variant in ("voted", "textbook")

    def _tell(self, tasks: list[Any], outcomes: list[Outcome], classes: NDArray[Any]) -> None:
        """Warn of rows that are left on the wrong side, with what is known of separability."""
        is_own = self.tol is not None and self.penalty is None and not self.early_stopping
        by_tol = self.variant == "standard" and all(outcome.finished for outcome in outcomes)
        left: list[Any] = []
        wrong: list[int] = []
        if is_own and self.variant not in ("averaged", "voted", "pocket"):
            # Of a pass without a mistake nothing is left.
            ended = [by_tol and one.record.mistakes_per_pass[-1] == 0 for one in outcomes]
            wrong = [0 if end else wrong_rows(task) for task, end in zip(tasks, ended)]
            left = [task for task, count in zip(tasks, wrong) if count]
        if not left:
            return super()._tell(tasks, outcomes, classes)
        size = int(np.prod(left[0].rows.X.shape))
        is_small = size <= (_AT_ONCE if by_tol else _AT_THE_END) and not self.normalize_rows
        is_small = is_small and not isinstance(left[0].rows.X, StackedDesign)
        warn_of_rows(
            type(self).__name__,
            f"on tol={self.tol:g}" if by_tol else f"at max_iter={self.max_iter}",
            left,
            next(filter(None, wrong)),
            [is_separable(task, self._is_affine) if is_small else None for task in left],
            classes[[task.positive for task in left]] if len(tasks) > 1 else (),
            "variant='shuffled'" if by_tol else "a larger max_iter",
        )
        return None

    @property
    def _is_affine(self) -> bool:
        """Whether there is an intercept beside the columns."""
        return bool(self.fit_intercept) and not self._constant_column()

    def _kept_of_run(self, tasks: list[Task], outcomes: list[Outcome]) -> dict[str, Any]:
        rows, kept = tasks[0].rows, dict[str, Any]()
        last = [outcome.last for outcome in outcomes if outcome.last is not None]
        if len(last) == len(outcomes) and not isinstance(rows.X, StackedDesign):
            counts = np.stack([task.counts for task in tasks]).T
            largest = np.array([outcome.largest for outcome in outcomes])
            kept["run"] = self._run_of(rows, counts, np.array(last), largest, False)
        if self.trace:
            task, record = tasks[0], outcomes[0].record
            assert task.start is not None
            kept["trace_"] = trace_of_run(task, record, task.start, self._constant_column())
        if self.variant != "voted":
            return kept
        step = self._step_of_intercept(rows.is_sparse)
        pairs = [survivors(outcome.record, rows.X, step) for outcome in outcomes]
        kept["survivors_"], kept["votes_"] = map(list, zip(*pairs))
        return kept

    def _learn_together(
        self, rows: Rows, classes: NDArray[Any], class_weights: Array, W: Any, b: Array
    ) -> dict[str, Any]:
        """One weight vector for each class, all changed by the same mistakes."""
        k, is_started = len(b), bool(W.any() or b.any())
        V = np.ascontiguousarray(W.T, dtype=np.float64)
        later = np.zeros((V.shape[0] + 1 if self.average else 0, k))
        if self.average:
            later[:-1], later[-1] = V, b
        counts = np.zeros((rows.n, k), dtype=np.int32)
        task = self._direct_task(rows, class_weights, V, b, later, counts)
        task.start = V.copy(), b.copy()
        outcome = self._run_together(task, self._seeds_and_rows(rows, k)[0][0])
        record, last = outcome.record, outcome.last
        self._tell([task], [outcome], classes)
        tally = np.tile([record.visits, task.tally[1], record.updates, record.mistakes], (k, 1))
        fitted = {"n_iter_": outcome.n_iter, "records_": [record]}
        fitted["_tally"] = tally.astype(np.float64)
        if not is_started and not isinstance(rows.X, StackedDesign):
            last = np.vstack([V, b]).T if last is None else last
            fitted["run"] = self._run_of(rows, counts, last, np.zeros(1), True)
        if self.trace:
            fitted["trace_"] = trace_of_run(task, record, task.start, self._constant_column())
        return {**fitted, **self._direct_averages(V, b, later, record.visits, rows.X.dtype)}

    def _run_together(self, task: DirectTask, seed: int | None) -> Outcome:
        """All classes at once, by the variant asked for."""
        log, passes = self._keeps_log(), int(self.max_iter)
        if self.variant == "textbook":
            return Outcome(*run_direct_textbook(task, passes, log))
        if self.variant == "pocket":
            order = Order(task.rows.n, seed, drawn=True)
            n_iter, record, V, b = run_direct_pocket(task, order, passes, log)
            return Outcome(n_iter, record, True, last=np.vstack([V, b]).T)
        stopping = self._stopping()
        order = Order(task.rows.n, seed, starts=getattr(task.rows.X, "starts", ()))
        n_iter, record = run_passes(task, order, stopping, log)
        is_done = n_iter < passes or self.tol is None or not record.updates_per_pass[-1]
        return Outcome(n_iter, record, is_done)

    def _direct_task(
        self, rows: Rows, class_weights: Array, V: Array, b: Array, later: Array, counts: Any
    ) -> DirectTask:
        rule, name = self._rule(), type(self).__name__
        setting = rule.setting(intercept_step=self._step_of_intercept(rows.is_sparse))
        return DirectTask(
            *(rows, -1, rule, setting, V, b, name, later, counts), class_weights=class_weights
        )

    def _direct_averages(
        self, V: Array, b: Array, later: Array, visits: float, dtype: Any
    ) -> dict[str, Any]:
        W = np.ascontiguousarray(V.T)
        if not self.average:
            return {"coef_": W.astype(dtype), "intercept_": b}
        mean, level = averaged(V, later[:-1], visits), averaged(b, later[-1], visits)
        coef = np.ascontiguousarray(mean.T).astype(dtype)
        across = np.ascontiguousarray(later.T)
        return {"coef_": coef, "intercept_": level, "_last": (W, b, across)}

    def _direct_batch(
        self,
        rows: Rows,
        class_weights: Array,
        order: NDArray[Any],
        W: Any,
        b: Array,
        later: Array,
        tally: Array,
    ) -> None:
        """One pass of ``partial_fit``; everything changes in place."""
        V = np.ascontiguousarray(W.T, dtype=np.float64)
        across = np.ascontiguousarray(later.T) if later.shape[1] else np.zeros((0, len(b)))
        counts = np.zeros((0, len(b)), dtype=np.int32)
        task = self._direct_task(rows, class_weights, V, b, across, counts)
        task.tally = tally
        task.learn(order, np.zeros((0, task.log_width)))
        W[:] = V.T
        later[:] = across.T if later.shape[1] else later

    def _run_of(
        self, rows: Rows, counts: NDArray[np.int32], last: Array, largest: Array, direct: bool
    ) -> Run:
        return Run(
            counts=counts,
            last=np.ascontiguousarray(last[:, :-1].T),
            last_intercept=last[:, -1].copy(),
            rate=float(self.eta0),
            threshold=float(self.margin),
            intercept_step=self._step_of_intercept(rows.is_sparse),
            largest=largest,
            direct=direct,
            precision=float(np.finfo(rows.X.dtype).eps),
        )

    def bound_mistakes(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        """The certificate with the best mistake bound there is: that of the largest margin.

        Parameters
        ----------
        X, y, sample_weight
            The data that were fitted.

        Returns
        -------
        certificate : Certificate
            As :attr:`certificate_`, whose bound is that of the separator which learning found. To
            find the one of largest margin can take far longer than learning. A run that did not
            find a separator has this bound too, on what it did so far and would still do; where the
            rows are not separable, or learning did not start at zero, :attr:`certificate_` itself.

        Examples
        --------
        >>> import numpy as np
        >>> from trueline import Perceptron
        >>> X, y = np.array([[1.0, 2.0], [2.0, 0.5], [-1.0, -1.0]]), np.array([1, 1, 0])
        >>> model = Perceptron(fit_intercept=False).fit(X, y)
        >>> best = model.bound_mistakes(X, y)
        >>> round(float(best.witness["gamma"][0]), 6), bool(best.verify(X, y))
        (1.414214, True)
        """
        certificate = self.certificate_
        is_bounded = certificate.kind == "mistake bound"
        run = Run.of(certificate.witness) if is_bounded else vars(self).get("_open_run")
        if run is None:
            return certificate
        rows, target, weights = certificate.read(X, y, sample_weight)
        best = certify_mistakes(
            *(rows, np.asarray(target, dtype=np.float64), weights, self._class_weights),
            *(certificate.coef, certificate.intercept, certificate.fit_intercept),
            *(run, widest_plane),
        )
        return replace(best, reading=certificate.reading)

    def _scores(self, X: Any) -> NDArray[Any]:
        if self.variant != "voted" or not hasattr(self, "votes_"):
            return super()._scores(X)
        sides = []
        for weights, votes in zip(self.survivors_, self.votes_):
            w, b = weights[:, :-1], weights[:, -1]
            if self._constant_column():
                w, b = weights[:, :-2], weights[:, -2]
            side = np.sign(np.asarray(X @ w.T) + b)
            sides.append(side @ votes / max(1.0, votes.sum()))
        return sides[0] if len(sides) == 1 else np.column_stack(sides)
