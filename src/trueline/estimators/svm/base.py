"""What all kernel support vector machines share: input, kernel, scores, proof."""

from __future__ import annotations

import math
import time
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.validation import _num_samples, check_is_fitted

from trueline.certificates.kernel import SupportVectorCertificate
from trueline.estimators.kernel.kernel_function import check_memory, data_text, matrix_text
from trueline.estimators.shared.parameters import (
    KW_ONLY,
    given,
    one_of,
    parameters,
    same_rows,
    settings_of,
    validate_changed,
)
from trueline.estimators.shared.report import Certified, ExplainMixin, threads_text
from trueline.estimators.shared.validation import (
    check_array,
    is_plain,
    keep_columns_of,
    numeric_target,
    signed_row_weights,
    validate_data,
    wrappers,
)
from trueline.estimators.svm.multipliers import (
    FoundMachine,
    PendingProof,
    gamma_of,
    judged,
    precision_of,
    require_range,
    short_indices,
)
from trueline.kernels import (
    KernelFunction,
    KernelSource,
    kernel_scores,
    make_source,
    require_symmetric,
)
from trueline.numerics.blas import Tally
from trueline.solvers import (
    WHOLE,
    DualProgram,
    DualSolution,
    largest_score,
    solve_dual,
    solve_textbook,
)

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@parameters()
class SupportVectorMachine(FoundMachine, Certified, ExplainMixin, BaseEstimator):
    """A kernel machine: a sum of kernels at some of the training rows, and an intercept.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        x.z, (gamma x.z + coef0)^degree, exp(-gamma ||x - z||^2), tanh(gamma x.z + coef0), the
        matrix itself, or a function that gives it.
    degree : int, default=3
    gamma : {"scale", "auto"} or float, default="scale"
        "scale" is 1 / (d var(X)), "auto" is 1 / d.
    coef0 : float, default=0.0
    shrinking : bool, default=True
        Accepted; working sets leave rows that rest at a bound alone anyway.
    tol : float, default=1e-3
        No two multipliers may be moved against each other with a gain above this.
    cache_size : float, default=200
        Megabytes for kernel values.
    verbose : bool, default=False
        Accepted; ``explain()`` tells what happened.
    max_iter : int, default=-1
        Limit on steps with two multipliers; -1 for ten million, or 1000 for each row if that is
        more ("textbook_smo": 100,000, or 100 for each row).

    Attributes
    ----------
    support_ : array of shape (m,)
        Rows of the training data; by class, if there are classes.
    support_vectors_ : array or sparse matrix of shape (m, d)
    fit_status_ : int
        0 if the tolerance was reached, 1 if not.
    shape_fit_ : tuple
    certificate_ : SupportVectorCertificate
        Primal objective, duality gap; worked out when it is looked at.
    solver_ : str
    trace_ : Trace
    n_features_in_ : int
    feature_names_in_ : array of str
    """

    _doc_link_module = "trueline"
    _: KW_ONLY
    kernel: Any = given("rbf", one_of("linear", "poly", "rbf", "sigmoid", "precomputed"), callable)
    degree: int = given(3, "int [0, inf)")
    gamma: Any = given("scale", one_of("scale", "auto"), "[0, inf)")
    coef0: float = given(0.0, "(-inf, inf)")
    tol: float = given(1e-3, "(0, inf)")
    shrinking: bool = True
    cache_size: float = given(200, "(0, inf)")
    verbose: Any = given(False, "verbose")
    max_iter: int = given(-1, "int [-1, inf)")
    solver: str = given("auto", one_of("auto", "working_set", "textbook_smo"))
    trace: bool = False

    # --- fitting --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows to learn from; the kernel matrix of shape (n, n), if it is precomputed.
        y : array-like of shape (n,)
            Labels, or targets.
        sample_weight : array-like of shape (n,), optional
            Multiplies C; rows of weight zero or less are left out.

        Returns
        -------
        self : object
        """
        validate_changed(self)
        check_random_state(self.__dict__.get("random_state"))
        X, y = self._checked_data(X, y)
        target = self._checked_target(y)
        n = _num_samples(X)
        if len(target) != n:
            raise ValueError(f"X has {n} rows, but y has {len(target)}.")
        weights = signed_row_weights(sample_weight, n, X)
        if self.kernel == "precomputed" and X.shape[1] != n:
            raise ValueError(
                "A precomputed kernel matrix must be square: one row and one column for each "
                f"sample. Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        self._gamma = gamma_of(self.kernel, self.gamma, X)
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (n,)
        began = time.perf_counter()
        with Tally() as tally:
            self._fit_checked(X, target, weights)
        self._seconds = time.perf_counter() - began
        self._threads: list[Any] = list(tally.facts())
        if not (np.isfinite(self.intercept_).all() and np.isfinite(self._dense_coef()).all()):
            raise ValueError(
                "The dual coefficients or intercepts are not finite: the input data may contain "
                "values that are too large. Scale the columns, or lower C."
            )
        self._mark_fitted()
        self._proof: Any = PendingProof(X, self._proof_target(y), weights, self._claim())
        self._warn_if_short()
        return self

    @abstractmethod
    def _fit_checked(self, X: Any, target: Array, weights: Array) -> None:
        """Fit to checked data, and set the fitted attributes."""

    def _checked_data(self, X: Any, y: Any) -> tuple[Any, Any]:
        is_sparse = sp.issparse(X)
        if is_sparse and self.kernel == "precomputed":
            raise TypeError(
                "Sparse precomputed kernels are not supported: give the matrix as an array."
            )
        self._sparse = is_sparse and not callable(self.kernel)
        if callable(self.kernel):
            check_consistent_length(X, y)
            return X, y
        if (
            type(X) is np.ndarray
            and X.flags.c_contiguous
            and np.ndim(y) == 1
            and is_plain(X, y, of_labels=isinstance(self, ClassifierMixin))
            and np.isfinite(X).all()
        ):
            keep_columns_of(self, X)
            return X, y
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", accept_sparse="csr")
        return short_indices(X), y

    def _checked_target(self, y: Any) -> NDArray[Any]:
        if type(y) is np.ndarray and y.ndim == 1 and y.dtype == np.float64:
            return y
        with numeric_target(self, y):
            return column_or_1d(y, warn=True).astype(np.float64, copy=False)

    def _proof_target(self, y: Any) -> Any:
        """The target that the certificate is about."""
        return y

    def _kernel_function(self) -> KernelFunction:
        if callable(self.kernel) or self.kernel == "precomputed":
            return KernelFunction("precomputed")
        return KernelFunction(self.kernel, self._gamma, int(self.degree), float(self.coef0))

    def _source(self, X: Any, rows: Index, box: float) -> KernelSource:
        """Kernel values of the rows that count; a callable kernel is asked once for all."""
        function = self._kernel_function()
        if callable(self.kernel) or self.solver == "textbook_smo":
            n = self.shape_fit_[0]
            check_memory(
                8.0 * n * n,
                f"The whole kernel matrix of {n:,} rows, for a kernel that is a function or for "
                "solver='textbook_smo',",
                "Name the kernel, and leave solver at 'auto': memory then stays below cache_size.",
            )
        if callable(self.kernel):
            self._X_fit = X
            X = self._called(X)
            n = self.shape_fit_[0]
            if X.shape != (n, n):
                raise ValueError(
                    f"The kernel function returned a matrix of shape {X.shape} for the {n} "
                    f"training rows with themselves; it must return one of shape ({n}, {n})."
                )
        if function.name == "precomputed":
            require_symmetric(X)
            return make_source(X, function, np.float64).subset(rows)
        X = X if np.array_equal(rows, np.arange(X.shape[0])) else X[rows]
        return make_source(X, function, precision_of(X, function, box, self.tol))

    def _solve(self, program: DualProgram, source: KernelSource) -> DualSolution:
        return self._solve_to(program, source, self.tol, self.max_iter)

    def _solve_to(
        self, program: DualProgram, source: KernelSource, tol: float, max_iter: int
    ) -> DualSolution:
        # Numbers too large for doubles are told afterwards, in a sentence.
        with np.errstate(over="ignore", invalid="ignore"):
            if self.solver == "textbook_smo":
                found = solve_textbook(program, source, tol, max_iter, self.trace)
            else:
                cache_bytes = self.cache_size * 1e6
                found = solve_dual(program, source, tol, max_iter, cache_bytes)
        require_range(found.beta, largest_score(source.diagonal()))
        return judged(program, source, found, tol)

    def _called(self, X: Any) -> Array:
        K = self.kernel(X, self._X_fit)
        return np.asarray(K.toarray() if sp.issparse(K) else K, dtype=np.float64, order="C")

    def _warn_if_short(self) -> None:
        if self.fit_status_ == 0:
            return
        steps = int(np.max(self.n_iter_))
        is_limited = 0 <= self.max_iter <= steps
        other = "lower C" if "C" in self.get_params(deep=False) else "raise nu"
        remedy = "Raise max_iter" if is_limited else f"Standardise the columns, or {other}"
        warnings.warn(
            f"Solver terminated early, after {steps:,} steps (max_iter={self.max_iter}): the "
            f"largest violation is {self._violation:.3g}, tol is {self.tol:.3g}; "
            f"{self.certificate_}. {remedy}.",
            ConvergenceWarning,
            stacklevel=3 + wrappers(type(self).fit),
        )

    def _keep_support(self, X: Any, support: Index) -> None:
        self.support_ = support.astype(np.int32)
        if callable(self.kernel) or self.kernel == "precomputed":
            self.support_vectors_ = np.empty((0, 0))
        else:
            self.support_vectors_ = X[support]

    # --- scores ---------------------------------------------------------------------------------

    def _checked_rows(self, X: Any) -> Any:
        """Rows to predict, as the kernel takes them."""
        check_is_fitted(self)
        if callable(self.kernel):
            K = self._called(X)
            if K.ndim == 1:
                K = check_array(K, order="C")
            return self._of_training_rows(K)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False)
        X = short_indices(X)
        name = type(self).__name__
        if self._sparse and not sp.issparse(X):
            X = sp.csr_array(X)
        if sp.issparse(X) and not self._sparse:
            raise ValueError(f"cannot use sparse input in {name!r} trained on dense data")
        if self.kernel == "precomputed":
            self._of_training_rows(X)
        vectors = self.support_vectors_
        if not self._sparse and vectors.size > 0 and int(self.n_support_.sum()) != vectors.shape[0]:
            raise ValueError(f"The internal representation of {name} was altered")
        return X

    def _of_training_rows(self, K: Any) -> Any:
        """Kernel values, which must be those with all training rows."""
        if K.shape[1] != self.shape_fit_[0]:
            raise ValueError(
                f"X.shape[1] = {K.shape[1]} should be equal to {self.shape_fit_[0]}, the number "
                "of samples at training time."
            )
        return K

    def _sums(self, X: Any, coef: Array) -> Array:
        """sum_j coef_j k(x_j, x) over the support vectors, for several columns of coef."""
        if callable(self.kernel) or self.kernel == "precomputed":
            return np.asarray(X[:, self.support_] @ coef)
        return kernel_scores(X, self.support_vectors_, coef, self._kernel_function())

    def _dense_coef(self) -> Array:
        coef = self.dual_coef_
        return coef.toarray() if sp.issparse(coef) else np.asarray(coef)

    def _stored_coef(self, coef: Array) -> Any:
        """Dual coefficients in the container that scikit-learn has them in."""
        return sp.csr_matrix(coef) if self._sparse else coef

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """The number of support vectors, of each class if there are classes."""
        if not hasattr(self, "_n_support"):
            raise AttributeError("n_support_ is known after fitting.")
        return self._n_support

    @property
    def coef_(self) -> Any:
        """Coefficients of the columns, for kernel="linear"."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        if not hasattr(self, "support_"):
            raise AttributeError("coef_ is known after fitting.")
        coef = self._linear_coef()
        (coef.data if sp.issparse(coef) else coef).flags.writeable = False
        return coef

    def _linear_coef(self) -> Any:
        coef = self.dual_coef_ @ self.support_vectors_
        return sp.csr_matrix(coef) if sp.issparse(coef) else coef

    # --- what is known afterwards ---------------------------------------------------------------

    @abstractmethod
    def _parameters(self) -> Mapping[str, float]:
        """The numbers that the objective depends on."""

    def _witness(self) -> dict[str, Any]:
        return {}

    @property
    def certificate_(self) -> SupportVectorCertificate:
        """What is proven about the dual coefficients as they are now.

        It is worked out when it is first looked at: that takes about as long as predicting the
        training rows.
        """
        check_is_fitted(self)
        claim = self._claim()
        if isinstance(self._proof, PendingProof):
            self._proof = self._proof.certificate()
        proven = self._proof
        return replace(
            claim,
            objective=proven.objective,
            objective_rounding=proven.objective_rounding,
            gap=proven.gap,
            violation=proven.violation,
        )

    def _claim(self) -> SupportVectorCertificate:
        """The statement without its numbers, about the model as it is."""
        function = self._kernel_function()
        known = function.is_semidefinite
        kernel = self.kernel if callable(self.kernel) else function
        return SupportVectorCertificate(
            kind="kernel duality" if known else "kernel stationarity",
            machine=self._machine,
            objective=math.nan,
            objective_rounding=math.nan,
            gap=math.inf,
            violation=math.inf,
            kernel=kernel,
            parameters=dict(self._parameters()),
            classes=getattr(self, "classes_", np.empty(0)),
            class_weight=np.asarray(getattr(self, "class_weight_", np.empty(0)), dtype=np.float64),
            support=self.support_.astype(np.intp),
            coef=np.atleast_2d(np.array(self._dense_coef(), dtype=np.float64)),
            intercept=np.array(self.intercept_, dtype=np.float64),
            witness=self._witness(),
        )

    def _predicting(self) -> dict[str, Any]:
        """What scores are made of, and what the statement is about."""
        names = ["intercept_", "support_", "classes_", "class_weight_", "_gamma", "_n_support"]
        names += ["_probA", "_probB", "epsilon_"]
        fitted = {name: self.__dict__[name] for name in names if name in self.__dict__}
        return {**fitted, "dual_coef_": self._dense_coef(), **settings_of(self)}

    def _rows_kept(self, X: Any) -> dict[str, bool]:
        if callable(self.kernel):
            return {"support_vectors_": same_rows(self._X_fit, X)}
        if self.kernel == "precomputed":
            return {}  # there are none
        return {"support_vectors_": same_rows(self.support_vectors_, X, self.support_)}

    def _lines_done(self) -> list[str]:
        certificate = self.certificate_
        steps = int(np.sum(self.n_iter_))
        return [
            f"minimise   {self._objective_text}{self._numbers_text()}",
            f"kernel     {self._kernel_text()}",
            f"happened   {self.solver_}: {steps:,} steps with two multipliers, "
            f"{self._seconds:.3g} s",
            *(f"           {note}" for note in self._notes),
            f"threads    {threads_text(*self._threads)}",
            f"found      {len(self.support_):,} support vectors of {self.shape_fit_[0]:,} rows",
            f"proof      {certificate}",
            f"           {certificate.statement}",
        ]

    def _kernel_text(self) -> str:
        uses_gamma = self.kernel in ("poly", "rbf", "sigmoid")
        return f"{self.kernel!r}" + (f", gamma {self._gamma:.6g}" if uses_gamma else "")

    def _lines_planned(self, X: Any, y: Any) -> list[str]:
        return clone(self)._planned(X, y)  # checks of data may change the copy

    def _planned(self, X: Any, y: Any) -> list[str]:
        data = data_text(X, y)
        self._validate_params()
        X, y = self._checked_data(X, y)
        self._gamma = gamma_of(self.kernel, self.gamma, X)
        n = _num_samples(X)
        if self.solver == "textbook_smo":
            how = f"textbook_smo: two multipliers at a time, kernel matrix of {matrix_text(n)}"
        elif n <= WHOLE and 8.0 * n * n <= self.cache_size * 1e6:
            how = f"working_set: all multipliers together, kernel matrix of {matrix_text(n)}"
        else:
            how = (
                "working_set: many multipliers together, kernel rows computed where they are "
                f"needed and kept within cache_size, {self.cache_size:g} MB"
            )
        return [
            f"minimise   {self._objective_text}{self._numbers_text()}",
            f"data       {data}",
            f"kernel     {self._kernel_text()}",
            f"solver     {how}",
        ]

    def _numbers_text(self) -> str:
        """The parameters that the objective names."""
        named = [name for name in ("C", "nu", "epsilon") if name in self.get_params(deep=False)]
        return "".join(f",  {name} = {float(getattr(self, name)):g}" for name in named)

    _objective_text = "1/2 ||f||^2 + sum_i C_i loss(y_i, f(x_i) + b)"

    def __getstate__(self) -> dict[str, Any]:
        if "_proof" in self.__dict__ and isinstance(self._proof, PendingProof):
            _ = self.certificate_  # a copy elsewhere would have to carry the training data
        return super().__getstate__()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags


if TYPE_CHECKING:
    #: What the mixins of these machines are written for.
    Host = SupportVectorMachine
else:
    Host = object
