"""The classifiers of this room keep scikit-learn's contract, without exception."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from trueline import LeastSquaresClassifier, ZeroOneHalfspace


@parametrize_with_checks([ZeroOneHalfspace()])
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        ZeroOneHalfspace(fit_intercept=False, class_weight="balanced"),
        LeastSquaresClassifier(),
        LeastSquaresClassifier(alpha=1.0),
    ]
)
def test_contract_with_more_settings(estimator, check):
    check(estimator)
