"""The classifiers of this room keep scikit-learn's contract, without exception."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from trueline import LeastSquaresClassifier, ZeroOneHalfspace

ESTIMATORS = [
    ZeroOneHalfspace(),
    ZeroOneHalfspace(fit_intercept=False, class_weight="balanced"),
    LeastSquaresClassifier(),
    LeastSquaresClassifier(alpha=1.0),
]


@parametrize_with_checks(ESTIMATORS)
def test_contract(estimator, check):
    check(estimator)
