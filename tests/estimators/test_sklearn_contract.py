"""Every estimator keeps scikit-learn's contract, with all kinds of parameters, no exception."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from trueline import (
    SVC,
    SVR,
    AdaptiveLasso,
    ARDRegression,
    BayesianLinearRegression,
    BayesianRidge,
    CalibratedClassifier,
    ChebyshevRegressor,
    ElasticNet,
    ElasticNetCV,
    GammaRegressor,
    GaussianProcessRegressor,
    HuberRegressor,
    KernelRidge,
    Lasso,
    LassoCV,
    LeastAbsoluteDeviations,
    LinearRegression,
    LinearRegressor,
    NuSVR,
    OneClassSVM,
    OneVsOneClassifier,
    OneVsRestClassifier,
    OutputCodeClassifier,
    PoissonRegressor,
    PolynomialRegression,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    SparseGaussianProcessRegressor,
    TweedieRegressor,
)

# One class for each base; those that share it are in the slow run.
ESTIMATORS = [
    LinearRegression(),
    RidgeCV(),
    Lasso(),
    LassoCV(cv=3),
    LinearRegressor(),
    QuantileRegressor(),
    HuberRegressor(),
    PoissonRegressor(),
    RidgeClassifier(),
    OneVsRestClassifier(RidgeClassifier()),
    CalibratedClassifier(),
    BayesianRidge(),
    KernelRidge(),
    SVC(gamma="auto"),
    SVR(gamma="auto"),
]

OTHER_ESTIMATORS = [
    Ridge(),
    PolynomialRegression(),
    ChebyshevRegressor(),
    OneClassSVM(gamma="auto"),
    LinearRegression(positive=True),
    Ridge(positive=True),
    RidgeCV(cv=KFold(3, shuffle=True, random_state=0), scoring="neg_mean_absolute_error"),
    ElasticNet(),
    ElasticNetCV(alphas=10, cv=3),
    AdaptiveLasso(),
    LinearRegressor(loss="huber", alpha=1.0),
    LeastAbsoluteDeviations(),
    GammaRegressor(),
    TweedieRegressor(),
    TweedieRegressor(power=1.5),
    RidgeClassifierCV(),
    OneVsOneClassifier(RidgeClassifier()),
    OutputCodeClassifier(RidgeClassifier(), code="hadamard"),
    BayesianLinearRegression(),
    ARDRegression(),
    NuSVR(gamma="auto"),
]

MORE_SETTINGS = [
    LinearRegression(fit_intercept=False),
    LinearRegression(solver="qr"),
    LinearRegression(solver="svd"),
    LinearRegression(solver="conjugate_gradient"),
    Ridge(alpha=0.0),
    Ridge(alpha=1e3, fit_intercept=False),
    Ridge(solver="kernel"),
    Ridge(solver="svd"),
    Ridge(solver="sparse_cg"),
    Ridge(solver="lsqr"),
    RidgeCV(cv=2),
    RidgeCV(alphas=[1e-3, 1.0], fit_intercept=False),
    Lasso(alpha=0.01, positive=True),
    Lasso(alpha=0.1, bounds=(-0.5, 2.0), fit_intercept=False),
    ElasticNet(alpha=0.1, l1_ratio=0.0),
    ElasticNet(alpha=0.1, warm_start=True),
    LassoCV(alphas=[1e-3, 0.1, 1.0], rule="1se"),
    ElasticNetCV(l1_ratio=[0.2, 1.0], alphas=10, positive=True),
    LinearRegressor(penalty="l1", alpha=0.01),
    LinearRegressor(penalty="elastic_net", alpha=0.1, positive=True),
    PolynomialRegression(degree=1, fit_intercept=False),
    QuantileRegressor(alpha=0.0, solver="highs"),
    LeastAbsoluteDeviations(l1_ratio=0.0, solver="smoothed"),
    ChebyshevRegressor(fit_intercept=False),
    ChebyshevRegressor(solver="highs"),
    RidgeClassifier(alpha=0.1, solver="svd"),
    OneVsRestClassifier(LogisticRegression()),
    OneVsOneClassifier(LogisticRegression(), coupling="likelihood"),
    OutputCodeClassifier(LogisticRegression(), random_state=0),
    OutputCodeClassifier(GaussianNB(), code="exhaustive", decoding="hamming"),
    OutputCodeClassifier(RidgeClassifier(), code="sparse", random_state=0),
]


@parametrize_with_checks(ESTIMATORS)
def test_contract(estimator, check):
    check(estimator)


# That a length scale ran into its bound is said by scikit-learn's kernel, and is true; so is that
# nothing can be learned of targets that are noise.
@pytest.mark.filterwarnings("ignore:GaussianProcessRegressor learned nothing")
@pytest.mark.filterwarnings("ignore:The optimal value found for dimension")
@parametrize_with_checks([GaussianProcessRegressor()])
def test_contract_of_processes(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:GaussianProcessRegressor learned nothing")
@pytest.mark.filterwarnings("ignore:The optimal value found for dimension")
@parametrize_with_checks(
    [SparseGaussianProcessRegressor(), SparseGaussianProcessRegressor(n_inducing=20)]
)
def test_contract_of_processes_with_more_settings(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([*OTHER_ESTIMATORS, *MORE_SETTINGS])
def test_contract_with_more_settings(estimator, check):
    check(estimator)
