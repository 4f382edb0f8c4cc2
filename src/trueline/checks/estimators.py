"""The laws of estimators: scikit-learn's contract, and ours on top of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.checks.book import LawBook, assert_at_most

Array = NDArray[np.float64]

ESTIMATOR_LAWS = LawBook("estimator")


@dataclass(frozen=True)
class EstimatorPoints:
    """A small regression problem: more rows than columns, half of the entries zero."""

    X: Array
    y: Array
    repeats: NDArray[np.intp]

    @classmethod
    def of(cls, estimator: Any) -> EstimatorPoints:
        """The same points for every estimator."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((60, 5)) * rng.integers(0, 2, (60, 5))
        y = X @ np.array([1.0, -2.0, 0.0, 0.5, 3.0]) + 0.3 * rng.standard_normal(60) + 2.0
        return cls(X, y, rng.integers(0, 4, 60))


def _fit(estimator: Any, X: Any, y: Array, sample_weight: Array | None = None) -> Any:
    from sklearn.base import clone

    model = clone(estimator)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return (
        model.fit(X, y) if sample_weight is None else model.fit(X, y, sample_weight=sample_weight)
    )


def _assert_same_answers(first: Any, second: Any, X: Array, what: str) -> None:
    """Predictions agree as far as both certificates prove it.

    Two answers within the gaps g1 and g2 of one optimum differ in the scores z of fitted rows by
    ||z1 - z2|| <= sqrt(2 g1 / mu) + sqrt(2 g2 / mu), mu being the least curvature of the loss; away
    from squared loss mu is not known, and one thousandth of its curvature bound stands for it.
    """
    gaps = [first.certificate_.gap, second.certificate_.gap]
    loss = first.certificate_.loss
    mu = 1.0 if "quadratic" in loss.capabilities else 1e-3 * loss.curvature_bound
    reach = sum(np.sqrt(2 * gap / mu) for gap in gaps)
    difference = np.linalg.norm(first.predict(X) - second.predict(X))
    size = np.linalg.norm(first.predict(X))
    assert_at_most(difference, reach, 1e-10 * size, law=what)


@ESTIMATOR_LAWS.law()
def every_fit_has_a_certificate_that_verifies(estimator: Any, points: EstimatorPoints) -> None:
    """certificate_.verify(X, y) holds, and the gap is finite."""
    model = _fit(estimator, points.X, points.y)
    verification = model.certificate_.verify(points.X, points.y)
    assert verification, str(verification)
    assert np.isfinite(model.certificate_.gap), f"gap {model.certificate_.gap!r}"


@ESTIMATOR_LAWS.law()
def certificates_refuse_other_data(estimator: Any, points: EstimatorPoints) -> None:
    """certificate_.verify does not hold for targets that were not fitted."""
    model = _fit(estimator, points.X, points.y)
    assert not model.certificate_.verify(points.X, points.y[::-1].copy())


@ESTIMATOR_LAWS.law()
def explain_returns_text(estimator: Any, points: EstimatorPoints) -> None:
    """explain() after a fit is a text that names the solver that ran."""
    text = str(_fit(estimator, points.X, points.y).explain())
    assert len(text.strip()) > 20, f"explain() said {text!r}"


@ESTIMATOR_LAWS.law()
def weights_mean_repetition(estimator: Any, points: EstimatorPoints) -> None:
    """Weight 2 is the row twice, weight 0 no row."""
    from sklearn.utils.validation import has_fit_parameter

    if not has_fit_parameter(estimator, "sample_weight"):
        return
    weighted = _fit(estimator, points.X, points.y, points.repeats.astype(float))
    rows = np.repeat(np.arange(len(points.y)), points.repeats)
    repeated = _fit(estimator, points.X[rows], points.y[rows])
    _assert_same_answers(weighted, repeated, points.X[points.repeats > 0], "weights, repetition")


@ESTIMATOR_LAWS.law()
def sparse_and_dense_agree(estimator: Any, points: EstimatorPoints) -> None:
    """The same numbers stored as a sparse matrix give the same answer."""
    if not estimator.__sklearn_tags__().input_tags.sparse:
        return
    dense = _fit(estimator, points.X, points.y)
    for kind in (sp.csr_array, sp.csc_array, sp.csr_matrix):
        _assert_same_answers(
            dense, _fit(estimator, kind(points.X), points.y), points.X, kind.__name__
        )


@ESTIMATOR_LAWS.law()
def same_data_give_the_same_bits(estimator: Any, points: EstimatorPoints) -> None:
    """Fitting again gives identical coefficients, with one thread and with two."""
    from threadpoolctl import threadpool_limits

    models = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            models.append(_fit(estimator, points.X, points.y))
    assert np.array_equal(models[0].coef_, models[1].coef_), "coefficients differ"


def check_estimator(
    estimator: Any, expected_failed_checks: dict[str, str] | None = None
) -> list[str]:
    """Check an estimator against scikit-learn's contract, then against ours.

    Parameters
    ----------
    estimator : estimator instance
    expected_failed_checks : dict, optional
        Names of scikit-learn's checks that do not apply, each with the reason in words.

    Returns
    -------
    names : list of str
        The laws of ours that were checked.

    Raises
    ------
    AssertionError
        The first law of ours that is broken. Checks of scikit-learn raise their own errors.

    Examples
    --------
    >>> from trueline import LinearRegression
    >>> from trueline.checks import check_estimator
    >>> "weights mean repetition" in check_estimator(LinearRegression())
    True
    """
    from sklearn.utils.estimator_checks import check_estimator as check_contract

    check_contract(estimator, expected_failed_checks=expected_failed_checks, on_skip=None)
    return ESTIMATOR_LAWS.check(estimator, EstimatorPoints.of(estimator))
