"""What the classifiers among the support vector machines share."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.shared.classifier import check_labels
from trueline.estimators.shared.parameters import KW_ONLY, given, hidden, one_of, parameters
from trueline.estimators.svm.base import Host
from trueline.estimators.svm.pairs import Pair, layout, pairs_of, solve_pairwise, votes
from trueline.estimators.svm.probability import calibrate, probabilities
from trueline.kernels import KernelSource, kernel_scores
from trueline.solvers.smo.program import DualProgram, DualSolution

__all__ = ["PairwiseClassifier"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def _offers_probabilities(machine: Any) -> bool:
    if machine.probability == "deprecated" or not machine.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


@parameters()
class PairwiseClassifier(ClassifierMixin, Host):
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
        labels = column_or_1d(y, warn=True)
        check_labels(labels, type(self).__name__)
        classes, codes = np.unique(labels, return_inverse=True)
        self.class_weight_ = compute_class_weight(self.class_weight, classes=classes, y=labels)
        if len(classes) < 2:
            raise ValueError(
                "The number of classes has to be greater than one; got "
                f"{len(classes)} class: {classes.tolist()}."
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
            stacklevel=4,
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
            return (scores[:, 0] > 0).astype(np.intp)
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
