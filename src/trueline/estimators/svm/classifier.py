"""What the classifiers among the kernel machines share: pairs of classes, scores, probabilities.

Pairs are (0, 1), (0, 2), ..., (1, 2), ...; the first class of a pair is the positive one. A support
vector of class a has its coefficient against class b in row b - 1 if a < b, and in row b otherwise.

Probabilities from scores, calibrated on rows that were left out, in agreement with predict.

For a pair of classes the log-odds of the first one are a function of its score that is zero where
the score is: slope A above zero and slope B below,

    P(first) = 1 / (1 + exp(-A s))  for s > 0,   1 / (1 + exp(-B s))  for s < 0,   A, B >= 0,

fitted by maximum likelihood to scores out of fold, with the targets of Platt ("Probabilistic
outputs for support vector machines", 1999), which keep the slopes finite. A sigmoid with a free
intercept would call rows likely that predict rejects. More than two classes are coupled by the
second method of Wu, Lin and Weng ("Probability estimates for multi-class classification by pairwise
coupling", JMLR 5, 2004); where the largest result is not the class that most pairs vote for, both
exchange places.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.shared.classifier import TieRule, chosen_by_scores, encode_labels
from trueline.estimators.shared.coupling import couple_least_squares, with_highest
from trueline.estimators.shared.parameters import KW_ONLY, given, hidden, one_of, parameters
from trueline.estimators.shared.validation import wrappers
from trueline.estimators.svm.base import Host
from trueline.kernels import Array, KernelSource, MatrixSource, kernel_scores
from trueline.numerics.blas import run_strands
from trueline.solvers import DualProgram, DualSolution, is_whole, whole_matrix

Index = NDArray[np.intp]


def pairs_of(k: int) -> Iterator[tuple[int, int]]:
    """(0, 1), (0, 2), ..., (1, 2), ..."""
    for a in range(k):
        for b in range(a + 1, k):
            yield a, b


class Pair(NamedTuple):
    """Two classes: rows of the first one before those of the second, and what a machine needs."""

    X: Any
    rows: Index
    signs: Index
    box: Array
    source: KernelSource
    #: Of the second class and of the first.
    names: NDArray[Any]


def solve_pairwise(
    source: KernelSource,
    codes: Index,
    k: int,
    solve: Callable[[Index, Index, KernelSource], DualSolution],
    cache_bytes: float,
) -> list[tuple[Index, DualSolution]]:
    """Rows and solution of each pair; rows are in the order of their classes.

    ``solve`` takes the rows of a pair, those of the first class before those of the second, their
    signs, and their kernel values.
    """
    ends = np.searchsorted(codes, np.arange(k + 1))
    largest = int(np.sort(np.diff(ends))[-2:].sum())
    is_shared = k > 2 and is_whole(source, largest, cache_bytes)
    K = whole_matrix(source) if is_shared else None

    def one(pair: tuple[int, int]) -> tuple[Index, DualSolution]:
        first, second = (slice(ends[code], ends[code + 1]) for code in pair)
        sizes = first.stop - first.start, second.stop - second.start
        rows = np.concatenate([np.arange(part.start, part.stop) for part in (first, second)])
        if K is not None:
            part: KernelSource = _joined(K, first, second)
        else:
            # Rows are in the order of their classes: two classes are the whole source.
            part = source if k == 2 else source.subset(rows)
        return rows, solve(rows, np.repeat([1, -1], sizes), part)

    return run_strands(one, list(pairs_of(k)))


def _joined(K: NDArray[Any], first: slice, second: slice) -> MatrixSource:
    """The kernel matrix of two classes, from that of all rows."""
    m, n = first.stop - first.start, second.stop - second.start
    both = np.empty((m + n, m + n), dtype=K.dtype)
    both[:m, :m], both[:m, m:] = K[first, first], K[first, second]
    both[m:, :m], both[m:, m:] = K[second, first], K[second, second]
    return MatrixSource(both)


def layout(
    betas: list[tuple[Index, Array]], codes: Index, k: int
) -> tuple[Index, Array, NDArray[np.int32]]:
    """Support vectors by class, their coefficients of shape (k - 1, m), and how many each has."""
    n = len(codes)
    table = np.zeros((k - 1, n))
    for (a, b), (rows, beta) in zip(pairs_of(k), betas):
        first = codes[rows] == a
        table[b - 1, rows[first]] = beta[first]
        table[a, rows[~first]] = beta[~first]
    used = (table != 0).any(axis=0)
    support = np.concatenate([np.flatnonzero(used & (codes == code)) for code in range(k)])
    counts = np.array([int((used & (codes == code)).sum()) for code in range(k)], dtype=np.int32)
    return support, table[:, support], counts


def votes(scores: Array, k: int) -> Index:
    """How many pairs each class wins; a score above zero is a vote for the first of a pair."""
    won = np.zeros((len(scores), k), dtype=np.intp)
    for number, (a, b) in enumerate(pairs_of(k)):
        positive = scores[:, number] > 0
        won[:, a] += positive
        won[:, b] += ~positive
    return won


def _offers_probabilities(machine: Any) -> bool:
    if machine.probability == "deprecated" or not machine.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


@parameters()
class PairwiseClassifier(TieRule, ClassifierMixin, Host):
    """One machine per pair of classes.

    Parameters
    ----------
    probability : bool, default=False
        Whether to calibrate probabilities, on scores of rows that were left out of the fit (five
        folds). Deprecated in scikit-learn 1.9, and here too.
    decision_function_shape : {"ovo", "ovr"}, default="ovr"
        One score per pair, or one per class (votes, refined by the sums of scores).
    break_ties : bool, default=False
        Whether equal votes are decided by the scores; else the first class wins.
    random_state : int, RandomState or None
        The folds of ``probability=True``.

    Attributes
    ----------
    classes_ : array of shape (k,)
    n_support_ : array of shape (k,)
    dual_coef_ : array of shape (k - 1, m)
        Multipliers with signs.
    intercept_ : array of shape (k (k - 1) / 2,)
    coef_ : array of shape (k (k - 1) / 2, d)
        For the linear kernel.
    class_weight_ : array of shape (k,)
    n_iter_ : array of shape (k (k - 1) / 2,)
        Steps with two multipliers, for each pair.
    """

    _: KW_ONLY
    probability: Any = given("deprecated", "boolean", hidden("deprecated"))
    class_weight: Any = given(None, "class_weight")
    decision_function_shape: str = given("ovr", one_of("ovr", "ovo"))
    break_ties: bool = False
    random_state: Any = given(None, "random_state")

    @abstractmethod
    def _boxes(self, codes: Index, weights: Array) -> Array:
        """The largest multiplier of each row."""

    @abstractmethod
    def _program(self, signs: Index, box: Array) -> DualProgram:
        """The program of one pair, for rows of the first class before those of the second."""

    def _unscaled(self, solution: DualSolution) -> tuple[Array, float, float]:
        """Dual coefficients, intercept, and what the multipliers were divided by."""
        return solution.beta, float(solution.level[0]), 1.0

    # --- fitting --------------------------------------------------------------------------------

    def _checked_target(self, y: Any) -> NDArray[Any]:
        classes, codes = encode_labels(y, type(self).__name__)
        if self.class_weight is None:
            self.class_weight_ = np.ones(len(classes))
        else:
            self.class_weight_ = compute_class_weight(
                self.class_weight, classes=classes, y=column_or_1d(y)
            )
        self.classes_ = classes
        return codes

    def _fit_checked(self, X: Any, target: Array, weights: Array) -> None:
        codes: Index = np.asarray(target, dtype=np.intp)
        self._warn_of_probability()
        used = np.flatnonzero(weights > 0)
        self._check_classes_left(codes[used])
        order = used[np.argsort(codes[used], kind="stable")]
        pairs = self._fit_pairs(X, order, codes[order], weights[order])
        k = len(self.classes_)
        unscaled = [self._unscaled(solution) for _, solution in pairs]
        betas = [(rows, beta) for (rows, _), (beta, _, _) in zip(pairs, unscaled)]
        support, coef, self._n_support = layout(betas, codes[order], k)
        intercept = np.array([level for _, level, _ in unscaled])
        if k == 2:  # the second class is the positive one
            coef, intercept = -coef, -intercept
        self._keep_support(X, order[support])
        self.dual_coef_ = self._stored_coef(coef)
        self.intercept_ = intercept + 0.0
        solutions = [solution for _, solution in pairs]
        self.n_iter_ = np.array([solution.n_iter for solution in solutions], dtype=np.int32)
        self.fit_status_ = int(not all(solution.is_solved for solution in solutions))
        self._violation = max(solution.violation for solution in solutions)
        self._notes = solutions[0].notes if k == 2 else [f"{len(pairs)} pairs of classes"]
        self._keep_scales(order, support, pairs, unscaled)
        self.trace_ = solutions[0].trace
        self.solver_ = "textbook_smo" if self.solver == "textbook_smo" else "working_set"
        self._probA, self._probB = np.empty(0), np.empty(0)
        if self.probability is True:
            self._probA, self._probB = calibrate(self, X, codes, weights)

    def _fit_pairs(
        self, X: Any, order: Index, codes: Index, weights: Array
    ) -> list[tuple[Index, DualSolution]]:
        box = self._boxes(codes, weights)
        source = self._source(X, order, float(box.max()))
        k = len(self.classes_)

        def solve(rows: Index, signs: Index, part: KernelSource) -> DualSolution:
            names = self.classes_[codes[rows[[-1, 0]]]]
            return self._solve_pair(Pair(X, order[rows], signs, box[rows], part, names))

        return solve_pairwise(source, codes, k, solve, self.cache_size * 1e6)

    def _solve_pair(self, pair: Pair) -> DualSolution:
        """The machine of two classes, for rows of the first one before those of the second.

        ``names`` are the negative class and the positive one, for messages.
        """
        return self._solve(self._program(pair.signs, pair.box), pair.source)

    def _scores_of_pair(
        self,
        X: Any,
        rows: Index,
        codes: Index,
        weights: Array,
        learned: Index,
        left_out: Index,
    ) -> Array:
        """Scores of the first of two classes at some rows, learned from others."""
        order = learned[np.argsort(codes[learned], kind="stable")]
        signs = np.where(codes[order] == codes.min(), 1, -1)
        codes = codes[order]
        box = self._boxes(codes, weights[order])
        source = self._source(X, rows[order], float(box.max()))
        names = self.classes_[codes[[-1, 0]]]
        solution = self._solve_pair(Pair(X, rows[order], signs, box, source, names))
        beta, level, _ = self._unscaled(solution)
        used = beta != 0
        support = rows[order[used]]
        some = rows[left_out]
        if callable(self.kernel) or self.kernel == "precomputed":
            K = self._called(X) if callable(self.kernel) else X
            return np.asarray(K[np.ix_(some, support)] @ beta[used] + level)
        function = self._kernel_function()
        return kernel_scores(X[some], X[support], beta[used][:, None], function)[:, 0] + level

    def _keep_scales(
        self, order: Index, support: Index, pairs: list[Any], unscaled: list[Any]
    ) -> None:
        """For machines whose coefficients are multipliers divided by something."""

    def _check_classes_left(self, codes: Index) -> None:
        left = np.unique(codes)
        if len(left) < 2:
            raise ValueError(
                "Invalid input - all samples with positive weights belong to the same class: "
                f"{self.classes_.tolist()[left[0]]!r}."
            )
        if len(left) < len(self.classes_):
            lost = [name for c, name in enumerate(self.classes_.tolist()) if c not in left]
            raise ValueError(
                f"All samples of the classes {lost} have zero or negative weight. Leave these "
                "rows out, or give them weight."
            )

    def _warn_of_probability(self) -> None:
        if self.probability == "deprecated":
            return
        name = type(self).__name__
        warnings.warn(
            "The `probability` parameter was deprecated in scikit-learn 1.9 and will be removed "
            f"in version 1.11. Use `CalibratedClassifierCV({name}(), ensemble=False)` instead of "
            f"`{name}(probability=True)`",
            FutureWarning,
            stacklevel=4 + wrappers(type(self).fit),
        )

    # --- prediction -----------------------------------------------------------------------------

    def _pair_coef(self) -> Array:
        """Coefficients of the support vectors in each pair, of shape (m, pairs)."""
        coef = self._dense_coef()
        k = len(self.classes_)
        if k == 2:
            return coef.T
        owner = np.repeat(np.arange(k), self._n_support)
        table = np.zeros((len(owner), k * (k - 1) // 2))
        for number, (a, b) in enumerate(pairs_of(k)):
            table[owner == a, number] = coef[b - 1, owner == a]
            table[owner == b, number] = coef[a, owner == b]
        return table

    def _pair_scores(self, X: Any) -> Array:
        return self._sums(self._checked_rows(X), self._pair_coef()) + self.intercept_

    def decision_function(self, X: Any) -> Array:
        """The scores of new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        scores : array of shape (n,), (n, k) or (n, k (k - 1) / 2)
            For two classes the score of the second one. Else, for ``"ovr"``, votes of each class
            refined by the sums of its scores, and for ``"ovo"`` the scores of the pairs, positive
            for the first class of a pair.
        """
        scores = self._pair_scores(X)
        if len(self.classes_) == 2:
            return scores.ravel()
        if self.decision_function_shape == "ovr":
            return _ovr_decision_function(scores < 0, -scores, len(self.classes_))
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each new row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        y : array of shape (n,)
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        return self.classes_.take(self._codes(self._pair_scores(X)))

    def _codes(self, scores: Array) -> Index:
        """The class that the scores of the pairs decide for."""
        k = len(self.classes_)
        if k == 2:
            return chosen_by_scores(scores[:, 0], self.sign_of_zero)
        if self.break_ties and self.decision_function_shape == "ovr":
            return _ovr_decision_function(scores < 0, -scores, k).argmax(axis=1)
        return votes(scores, k).argmax(axis=1)

    @available_if(_offers_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes; the largest one is that of the predicted class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        p : array of shape (n, k)
        """
        scores = self._pair_scores(X)
        if self._probA.size == 0:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False"
            )
        if len(self.classes_) == 2:
            scores = -scores  # of the first class, as in pairs of more
        return probabilities(scores, self._probA, self._probB, self._codes_of_first(scores))

    def _codes_of_first(self, scores: Array) -> Index:
        return self._codes(-scores if len(self.classes_) == 2 else scores)

    @available_if(_offers_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        log_p : array of shape (n, k)
        """
        return np.log(self.predict_proba(X))

    @property
    def probA_(self) -> Array:
        """Slopes of the log-odds for scores above zero, for each pair, with a minus sign."""
        return self._probA

    @property
    def probB_(self) -> Array:
        """Slopes of the log-odds for scores below zero, for each pair, with a minus sign."""
        return self._probB

    def _linear_coef(self) -> Any:
        coef = self._pair_coef().T
        if sp.issparse(self.support_vectors_):
            return sp.csr_matrix(sp.csr_array(coef) @ sp.csr_array(self.support_vectors_))
        return coef @ self.support_vectors_


_FOLDS = 5
_SURE = 1e-7


def calibrate(machine: Any, X: Any, codes: Index, weights: Array) -> tuple[Array, Array]:
    """Slopes of each pair, with a minus sign as Platt writes them."""
    k = len(machine.classes_)
    slopes = np.empty((2, k * (k - 1) // 2))
    for number, (a, b) in enumerate(pairs_of(k)):
        rows = np.flatnonzero(((codes == a) | (codes == b)) & (weights > 0))
        is_first = codes[rows] == a
        scores = _scores_out_of_fold(machine, X, rows, codes[rows], weights[rows])
        slopes[:, number] = best_slopes(scores, is_first, weights[rows])
    return -slopes[0], -slopes[1]


def _scores_out_of_fold(machine: Any, X: Any, rows: Index, codes: Index, weights: Array) -> Array:
    """Scores of the first class from machines that have not seen the row."""
    scores = np.zeros(len(rows))
    smallest = int(np.unique(codes, return_counts=True)[1].min())
    if smallest < 2:
        # Nothing can be left out of a class of one row: its own scores must do.
        everything = np.arange(len(rows))
        return machine._scores_of_pair(X, rows, codes, weights, everything, everything)
    folds = StratifiedKFold(min(_FOLDS, smallest), shuffle=True, random_state=machine.random_state)
    for learned, left_out in folds.split(rows, codes):
        scores[left_out] = machine._scores_of_pair(X, rows, codes, weights, learned, left_out)
    return scores


def best_slopes(scores: Array, is_first: NDArray[np.bool_], weights: Array) -> tuple[float, float]:
    """Both slopes by maximum likelihood; each side has one, so both are problems of one number."""
    positive, negative = float(weights[is_first].sum()), float(weights[~is_first].sum())
    target = np.where(is_first, (positive + 1) / (positive + 2), 1 / (negative + 2))
    usual = _slope(scores, target, weights, 1.0)
    above, below = scores > 0, scores < 0
    return (
        _slope(scores[above], target[above], weights[above], usual),
        _slope(scores[below], target[below], weights[below], usual),
    )


def _slope(scores: Array, target: Array, weights: Array, otherwise: float) -> float:
    """The slope A >= 0 of log-odds A s that makes the targets most likely, by Newton's method.

    The derivative of the likelihood is monotone in A: bisection guards the steps.
    """
    size = float(np.abs(scores).max(initial=0.0))
    if size == 0.0 or not weights.any():
        return otherwise

    def derivative(A: float) -> float:
        return float(weights @ (scores * (target - expit(A * scores))))

    low, high = 0.0, 1.0 / size
    if derivative(0.0) <= 0.0:
        return 1e-6 / size  # no evidence at all: barely more likely than not
    while derivative(high) > 0.0 and high < 1e6 / size:
        low, high = high, 2 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if derivative(middle) > 0 else (low, middle)
    return 0.5 * (low + high)


def probabilities(scores: Array, A: Array, B: Array, predicted: Index) -> Array:
    """Probabilities of the classes from the scores of the first class of each pair."""
    first = expit(-np.where(scores > 0, A, B) * scores)
    first = np.clip(first, _SURE, 1 - _SURE)
    if scores.shape[1] == 1:
        return np.column_stack([first, 1 - first])
    k = int((1 + math.isqrt(1 + 8 * scores.shape[1])) // 2)
    return with_highest(couple_least_squares(1 - first, k), predicted)
