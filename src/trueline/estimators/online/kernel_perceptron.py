"""The perceptron in the feature space of a kernel."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from trueline.certificates.base import Certificate
from trueline.certificates.special.mistakes import bound_kernel_mistakes, certify_mistakes
from trueline.estimators.kernel.kernel_function import (
    data_text,
    kernel_matrix,
    matrix_text,
    recipe_of,
)
from trueline.estimators.online.proof import lines_of_errors
from trueline.estimators.shared.classifier import (
    chosen_by_scores,
    encode_declared,
    encode_labels,
    signs_of,
)
from trueline.estimators.shared.parameters import (
    KW_ONLY,
    given,
    one_of,
    parameters,
    same_rows,
    settings_of,
)
from trueline.estimators.shared.report import Certified, ExplainMixin
from trueline.estimators.shared.validation import new_rows, row_weights, validate_data, wrappers
from trueline.online.passes import Order, Record, seed_of
from trueline.online.perceptron_forms import dual_pass
from trueline.online.rules import perceptron
from trueline.separation.decide import decide
from trueline.separation.inequalities import SignedRows
from trueline.wording import counted

# Up to how many numbers of X it is decided whether rows are separable, after all those passes.
_AT_THE_END = 1_000_000

Array = NDArray[np.float64]


def _widest(K: Array, y: Array, fit_intercept: bool) -> tuple[Array, float] | None:
    """beta and intercept of the separator of largest margin.

    With K = V diag(l) V', the rows of V diag(l)^1/2 have the products K; a weight vector w of
    theirs is that of beta = V diag(l)^-1/2 w. The intercept is the weight of a column of ones.
    """
    from trueline.separation.margin import largest_margin

    values, vectors = np.linalg.eigh((K + K.T) / 2)
    kept = values > 1e-10 * max(values[-1], 0.0)
    root = np.sqrt(values[kept])
    rows = vectors[:, kept] * root
    rows = np.hstack([rows, np.ones((len(y), 1))]) if fit_intercept else rows
    classes, codes = np.unique(y, return_inverse=True)
    if not kept.any():
        return None
    try:
        w = np.ravel(largest_margin(rows, codes, classes, fit_intercept=False).coef)
    except (ArithmeticError, ValueError):  # not separable without the small eigenvalues
        return None
    level = float(w[-1]) if fit_intercept else 0.0
    return vectors[:, kept] @ (w[: len(root)] / root), level


@parameters()
class KernelPerceptron(ClassifierMixin, Certified, ExplainMixin, BaseEstimator):
    r"""The perceptron with a kernel: curved boundaries, by the same rule.

    Weights are never formed. A mistake on row i adds eta0 y_i to its coefficient alpha_i, and the
    score of a row is sum_i alpha_i k(x_i, x) + b: with the linear kernel exactly the perceptron.
    The mistake bound (R / gamma)^2 holds in the feature space, with R^2 the largest k(x_i, x_i).

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "cosine", "chi2", ..., "precomputed", or a
        function of two rows.
    gamma : float, optional
        Of the kernels that have one; None is 1 / d.
    degree : float, default=3
    coef0 : float, default=1
    fit_intercept : bool, default=True
    eta0 : float, default=1.0
        Learning rate.
    margin : float, default=0.0
        Rows that are right by no more than this are learned too.
    sign_of_zero : {-1, 0, 1}, default=0
        As in :class:`Perceptron`: which side a score of zero is on.
    max_iter : int, default=1000
        Passes over the rows, at most; a pass without a mistake is the last.
    shuffle : bool, default=False
    random_state : int, RandomState or None, default=0

    Attributes
    ----------
    dual_coef_ : array of shape (classes or 1, support vectors)
        alpha of the rows that were ever mistaken.
    support_ : array of int
        These rows.
    support_vectors_ : array or CSR matrix
    intercept_ : array
    classes_ : array
    n_iter_ : int
    records_ : list of Record
    certificate_ : Certificate
        The training errors and, if the rows were separated, the mistake bound in the space of the
        kernel, with R, the margin and the updates made; its statement is about K and y.
    n_features_in_ : int

    Examples
    --------
    Exclusive or, which no line separates:

    >>> import numpy as np
    >>> from trueline import KernelPerceptron
    >>> X, y = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1, 0])
    >>> KernelPerceptron(kernel="poly", degree=2).fit(X, y).predict(X).tolist()
    [0, 1, 1, 0]
    """

    _: KW_ONLY
    kernel: Any = given("rbf", one_of(*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"), callable)
    gamma: float | None = given(None, "[0, inf)", None)
    degree: float = given(3, "[0, inf)")
    coef0: float = given(1, "(-inf, inf)")
    fit_intercept: bool = True
    eta0: float = given(1.0, "(0, inf)")
    margin: float = given(0.0, "[0, inf)")
    sign_of_zero: int = given(0, "int [-1, 1]")
    max_iter: int = given(1000, "int [1, inf)")
    shuffle: bool = False
    random_state: Any = given(0, "random_state")

    def _products(self, X: Any, Y: Any = None) -> Array:
        recipe = recipe_of(self)
        K = kernel_matrix(type(self).__name__, recipe.pop("metric"), X, Y, **recipe)
        return np.ascontiguousarray(K, dtype=np.float64)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from the rows, pass after pass.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or kernel matrix of shape (n, n)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            Multiplies the steps.

        Returns
        -------
        self : object
        """
        self._validate_params()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        classes, codes = encode_labels(y, type(self).__name__)
        steps = np.full(X.shape[0], float(self.eta0))
        weights = None
        if sample_weight is not None:
            weights = row_weights(sample_weight, X)
            steps *= weights
        with np.errstate(over="ignore", invalid="ignore"):
            K = self._products(X)
        problems = range(1, 2) if len(classes) == 2 else range(len(classes))
        alpha = np.zeros((len(problems), X.shape[0] + 1))
        counts = np.zeros((len(problems), X.shape[0]), dtype=np.int32)
        records, iterations = [], []
        for row, positive in enumerate(problems):
            target = np.where(codes == positive, 1.0, -1.0)
            n_iter, record = self._run(X, K, target, steps, alpha[row], counts[row])
            records.append(record)
            iterations.append(n_iter)
        self.classes_, self.records_, self.n_iter_ = classes, records, max(iterations)
        self.support_ = np.flatnonzero(alpha[:, :-1].any(axis=0))
        self.support_vectors_ = X[self.support_]
        self.dual_coef_ = alpha[:, self.support_]
        self.intercept_ = alpha[:, -1].copy()
        self._keep_proof(X, K, codes, weights, alpha, counts)
        return self

    def _run(
        self, X: Any, K: Array, y: Array, steps: Array, alpha: Array, counts: NDArray[np.int32]
    ) -> tuple[int, Record]:
        seed = seed_of(check_random_state(self.random_state)) if self.shuffle else None
        zero = perceptron(sign_of_zero=int(self.sign_of_zero)).zero
        order, record, tally = Order(len(y), seed), Record(), np.zeros(4)
        scores, passes = np.zeros(len(y)), 0
        for passes in range(1, self.max_iter + 1):  # noqa: B007
            before = tally.copy()
            bad = dual_pass(
                *(K, y, steps, order.next_pass(), float(self.margin), zero),
                *(float(self.fit_intercept), alpha, scores, counts, tally),
            )
            if bad >= 0:
                raise ValueError(
                    f"{type(self).__name__}: the kernel values of row {bad} leave the range of "
                    "double precision. Scale the columns (StandardScaler), or normalise the rows "
                    "(sklearn.preprocessing.Normalizer)."
                )
            record.add_pass(before, tally)
            if record.updates_per_pass[-1] == 0:
                break
        else:
            warnings.warn(
                f"{type(self).__name__} was stopped by max_iter={self.max_iter}; the last pass "
                f"still made {record.updates_per_pass[-1]} updates. {self._advice(X, y)}",
                ConvergenceWarning,
                stacklevel=3 + wrappers(type(self).fit),
            )
        return passes, record

    def _advice(self, X: Any, y: Array) -> str:
        """What to do where a mistake is left: with the linear kernel it is known."""
        if self.kernel == "linear" and np.prod(X.shape) <= _AT_THE_END:
            split = decide(SignedRows(X, y, bool(self.fit_intercept)))
            if split.direction is None or split.boundary.any():
                return (
                    "The rows are not linearly separable: proven, separability(X, y).certificate "
                    "is the proof. No number of passes ends without a mistake: take another kernel."
                )
            return "The rows are linearly separable (proven): raise max_iter."
        return (
            "If the kernel separates the rows, a larger max_iter ends without a mistake; if not, "
            "another kernel may."
        )

    def _keep_proof(
        self, X: Any, K: Array, codes: Any, weights: Any, alpha: Array, counts: NDArray[np.int32]
    ) -> None:
        """Errors are counted at once: the kernel matrix is not kept."""
        target = signs_of(codes) if len(alpha) == 1 else codes.astype(np.float64)
        errors = certify_mistakes(
            K,
            target,
            weights,
            np.ones(len(self.classes_)),
            np.ascontiguousarray(alpha[:, :-1].T),
            alpha[:, -1].copy(),
            bool(self.fit_intercept),
            None,
        )
        recipe = recipe_of(self)
        errors = replace(errors, witness={**errors.witness, "kernel": recipe})
        run = (np.ascontiguousarray(counts.T), float(self.eta0), float(self.margin))
        self._certificate = bound_kernel_mistakes(errors, K, target, weights, *run, recipe, X)
        self._mark_fitted()

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
            find the one of largest margin can take far longer than learning. Where the run has no
            bound (no separator was found), :attr:`certificate_` itself.
        """
        certificate = self.certificate_
        if certificate.kind != "kernel mistake bound":
            return certificate
        X, target, weights = certificate.read(X, y, sample_weight)
        weights = None if weights is None else np.asarray(weights, dtype=np.float64)
        w = certificate.witness
        signs, K = np.asarray(target, dtype=np.float64), self._products(X)
        run = (w["counts"], float(w["rate"]), float(w["threshold"]))
        return bound_kernel_mistakes(certificate, K, signs, weights, *run, w["kernel"], X, _widest)

    def _predicting(self) -> dict[str, Any]:
        names = ("dual_coef_", "intercept_", "support_", "classes_")
        return {**{name: getattr(self, name) for name in names}, **settings_of(self)}

    @property
    def certificate_(self) -> Certificate:
        """The training errors, counted; and the mistake bound in the space of the kernel."""
        check_is_fitted(self)
        coef = np.zeros(self._certificate.coef.shape)
        coef[self.support_] = np.asarray(self.dual_coef_).T
        level = np.array(self.intercept_, dtype=np.float64)
        return replace(self._certificate, coef=coef, intercept=level, reading=self._verified_data)

    def _verified_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        codes = encode_declared(y, self.classes_)
        target = signs_of(codes) if len(self.intercept_) == 1 else codes
        return X, target, sample_weight

    def _rows_kept(self, X: Any) -> dict[str, bool]:
        if self.kernel == "precomputed":
            return {}
        return {"support_vectors_": same_rows(self.support_vectors_, X, self.support_)}

    def _lines_planned(self, X: Any, y: Any) -> list[str]:
        return [
            f"rule       perceptron in the space of the kernel {self.kernel!r}",
            f"data       {data_text(X, y)}",
            f"visits     at most {self.max_iter:,} passes over the rows, "
            f"kernel matrix of {matrix_text(_num_samples(X))}",
        ]

    def _lines_done(self) -> list[str]:
        updates = sum(record.updates for record in self.records_)
        certificate = self.certificate_
        return [
            f"rule       perceptron in the space of the kernel {self.kernel!r}",
            f"learned    {counted(updates, 'update')}, {counted(len(self.support_), 'row')} with "
            f"weight, passes: {self.n_iter_}",
            *lines_of_errors(certificate),
        ]

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Signed scores: sum_i alpha_i k(x_i, x) + b."""
        X = new_rows(self, X, accept_sparse="csr", dtype=np.float64)
        if self.kernel == "precomputed":
            K = X[:, self.support_]
        else:
            K = self._products(X, self.support_vectors_)
        scores = np.asarray(K @ self.dual_coef_.T) + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        chosen = chosen_by_scores(self.decision_function(X), self.sign_of_zero)
        return np.take(self.classes_, chosen)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
