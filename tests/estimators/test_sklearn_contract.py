"""Every estimator keeps scikit-learn's contract, with every kind of parameters, without exception."""

from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from trueline import LinearRegression, LinearRegressor, PolynomialRegression, Ridge, RidgeCV

ESTIMATORS = [
    LinearRegression(),
    LinearRegression(fit_intercept=False),
    LinearRegression(positive=True),
    LinearRegression(solver="qr"),
    LinearRegression(solver="svd"),
    LinearRegression(solver="lsmr"),
    Ridge(),
    Ridge(alpha=0.0),
    Ridge(alpha=1e3, fit_intercept=False),
    Ridge(positive=True),
    Ridge(solver="kernel"),
    Ridge(solver="svd"),
    Ridge(solver="sparse_cg"),
    Ridge(solver="lsqr"),
    RidgeCV(),
    RidgeCV(cv=2),
    RidgeCV(cv=KFold(3, shuffle=True, random_state=0), scoring="neg_mean_absolute_error"),
    RidgeCV(alphas=[1e-3, 1.0], fit_intercept=False),
    LinearRegressor(),
    LinearRegressor(loss="huber", alpha=1.0),
    LinearRegressor(penalty="l1", alpha=0.01),
    LinearRegressor(penalty="elastic_net", alpha=0.1, positive=True),
    PolynomialRegression(),
    PolynomialRegression(degree=1, fit_intercept=False),
]


@parametrize_with_checks(ESTIMATORS)
def test_contract(estimator, check):
    check(estimator)
