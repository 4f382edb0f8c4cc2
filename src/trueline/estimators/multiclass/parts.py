"""The binary parts of a multiclass model: fitting them, and asking them for scores.

A prediction of one-vs-one for 26 classes asks 325 parts. If each is a plane, their scores are one
product X W + b, and X is checked once instead of 650 times.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_method_params,
    _check_n_features,
    _num_samples,
    check_is_fitted,
)

from trueline.estimators.classification.ridge_classifier import SignRegressionClassifier
from trueline.estimators.shared.classifier import LinearClassifierBase
from trueline.estimators.shared.regressor import LinearRegressorBase
from trueline.estimators.shared.validation import Array, validate_data
from trueline.numerics.blas import run_strands


class Binary(NamedTuple):
    """One binary problem: its rows (None: all of them), their labels, and what these mean.

    ``name`` says it to a person; ``sides`` names the classes that 0 (or -1) and 1 stand for.
    """

    name: str
    labels: NDArray[Any]
    rows: NDArray[np.intp] | None = None
    sides: tuple[str, str] | None = None


class ConstantPredictor(BaseEstimator):
    """Stands in for a binary problem in which all rows have the same label.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.estimators.multiclass.parts import ConstantPredictor
    >>> ConstantPredictor().fit(np.zeros((2, 1)), np.array([1])).predict(np.zeros((3, 1)))
    array([1, 1, 1])
    """

    y_: NDArray[Any]

    def fit(self, X: Any, y: NDArray[Any]) -> Self:
        """Remember the label; y has shape (1,)."""
        self._look_at(X, reset=True)
        self.y_ = y
        return self

    def _look_at(self, X: Any, reset: bool) -> None:
        validate_data(
            self,
            X,
            ensure_all_finite=False,
            dtype=None,
            accept_sparse=True,
            ensure_2d=False,
            reset=reset,
        )
        if getattr(X, "ndim", 0) == 2:  # what takes lists of texts has no columns to count
            _check_n_features(self, X, reset=reset)

    def predict(self, X: Any) -> NDArray[Any]:
        """The label, for every row."""
        check_is_fitted(self)
        self._look_at(X, reset=False)
        return np.repeat(self.y_, _num_samples(X))

    def decision_function(self, X: Any) -> NDArray[Any]:
        """The label as a score."""
        return self.predict(X)

    def predict_proba(self, X: Any) -> Array:
        """Certainty; the labels are 0 and 1, or -1 and 1."""
        likely = np.maximum(self.predict(X), 0).astype(np.float64)
        return np.column_stack([1 - likely, likely])


def is_ours(estimator: Any) -> bool:
    """Whether an estimator is of this package: safe in threads, and given X as it was validated."""
    return type(estimator).__module__.partition(".")[0] == "trueline"


def fit_part(estimator: Any, X: Any, binary: Binary, fit_params: Mapping[str, Any]) -> Any:
    """Fit one binary problem; X and the parameters are those of all rows."""
    first = binary.labels[:1]
    is_constant = bool((binary.labels == first).all())
    if binary.rows is not None:
        fit_params = _check_method_params(X, params=fit_params, indices=binary.rows)
        X = _safe_split(estimator, X, None, indices=binary.rows)[0]
    if is_constant:
        if binary.sides is not None:
            present = binary.sides[int(first[0] > 0)]
            warnings.warn(
                f"Label {present} is present in all training examples.", UserWarning, stacklevel=3
            )
        return ConstantPredictor().fit(X, first)
    return clone(estimator).fit(X, binary.labels, **fit_params)


def fit_parts(
    estimator: Any,
    X: Any,
    binaries: Sequence[Binary],
    fit_params: Mapping[str, Any],
    n_jobs: int | None,
    verbose: int = 0,
) -> list[Any]:
    """Fit all binary problems, in parallel where that is asked for.

    Estimators of this package run in threads: their kernels release the interpreter's lock, and X
    is not copied to other processes. With ``n_jobs=None`` or -1 they use the threads that BLAS may
    use, which then share the work inside of the parts too.
    Others run as joblib runs them: one after the other unless ``n_jobs`` says more.
    """
    ours = is_ours(estimator)
    if verbose == 0 and (len(binaries) == 1 or (ours and n_jobs in (None, -1))):
        settings = get_config()

        def run(binary: Binary) -> Any:
            with config_context(**settings):  # scikit-learn keeps its settings per thread
                return fit_part(estimator, X, binary, fit_params)

        # One alone has all threads to itself.
        return [run(binaries[0])] if len(binaries) == 1 else run_strands(run, binaries)
    jobs = (delayed(fit_part)(estimator, X, binary, fit_params) for binary in binaries)
    return list(Parallel(n_jobs=n_jobs, verbose=verbose, prefer="threads" if ours else None)(jobs))


def update_parts(
    parts: Sequence[Any],
    batches: Iterable[tuple[Any, NDArray[Any], Mapping[str, Any]]],
    classes: NDArray[Any],
    n_jobs: int | None,
) -> list[Any]:
    """Give each part its batch of rows, labels and parameters."""
    found = Parallel(n_jobs=n_jobs)(
        delayed(_update)(part, X, y, classes, params)
        for part, (X, y, params) in zip(parts, batches, strict=True)
    )
    return list(found)


def _update(
    part: Any, X: Any, y: NDArray[Any], classes: NDArray[Any], params: Mapping[str, Any]
) -> Any:
    if len(y) == 0:
        return part
    takes_classes = "classes" in inspect.signature(part.partial_fit).parameters
    return part.partial_fit(X, y, **({"classes": classes} if takes_classes else {}), **params)


def scores_of(part: Any, X: Any) -> NDArray[Any]:
    """One score per row: a regression's prediction, a classifier's score or else probability."""
    if is_regressor(part):
        return part.predict(X)
    try:
        return np.ravel(part.decision_function(X))
    except (AttributeError, NotImplementedError):
        return part.predict_proba(X)[:, 1]


def threshold_of(part: Any) -> float:
    """Above this score a part says yes."""
    return 0.0 if hasattr(part, "decision_function") and is_classifier(part) else 0.5


class Planes(NamedTuple):
    """Coefficients of shape (d, L) and intercepts of shape (L,) of linear parts."""

    coef: NDArray[Any]
    intercept: NDArray[Any]

    def scores(self, X: Any) -> NDArray[Any]:
        """X W + b, of shape (n, L)."""
        product = X @ self.coef
        return np.asarray(product.toarray() if sp.issparse(product) else product) + self.intercept


def planes_of(parts: Sequence[Any]) -> Planes | None:
    """The planes whose scores the parts' scores are; None if some part is something else."""
    linear = [part for part in parts if not isinstance(part, ConstantPredictor)]
    if not linear or not all(_is_plane(part) for part in linear):
        return None
    coef = [np.ravel(part.coef_) for part in linear]
    if len({len(w) for w in coef}) != 1:
        return None
    d, kind = len(coef[0]), np.result_type(*coef)
    W, b = np.zeros((d, len(parts)), kind), np.zeros(len(parts), kind)
    planes = iter(coef)
    for k, part in enumerate(parts):
        if isinstance(part, ConstantPredictor):
            b[k] = part.y_[0]
        else:
            W[:, k], b[k] = next(planes), np.ravel(part.intercept_)[0]
    return Planes(W, b)


def _is_plane(part: Any) -> bool:
    """Whether a part's scores are x.w + b, by the very method that computes them."""
    name = "predict" if is_regressor(part) else "decision_function"
    if getattr(type(part), name, None) not in _linear_methods():
        return False
    # Some can make their coefficients sparse.
    return isinstance(part.coef_, np.ndarray) and np.size(part.intercept_) == 1


def _linear_methods() -> list[Any]:
    """Methods that return X coef_ + intercept_ and nothing else."""
    found: list[Any] = [
        LinearRegressorBase.predict,
        LinearClassifierBase.decision_function,
        SignRegressionClassifier.decision_function,
    ]
    theirs = sys.modules.get("sklearn.linear_model._base")  # imported only by who uses it
    if theirs is not None:
        found += [theirs.LinearClassifierMixin.decision_function, theirs.LinearModel.predict]
    return found
