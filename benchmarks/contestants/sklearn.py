"""scikit-learn."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.bayes.objective import BayesData, Theta
from benchmarks.contestants import sklearn_classifiers as classifiers
from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.objective import Answer, Data
from benchmarks.robust.objective import RobustData
from benchmarks.sparse.objective import Chosen


def least_squares(data: Data) -> Answer:
    """LinearRegression with default parameters."""
    from sklearn.linear_model import LinearRegression

    model = LinearRegression(fit_intercept=data.fit_intercept).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_)


def ridge(data: Data) -> Answer:
    """Ridge at one strength."""
    from sklearn.linear_model import Ridge

    model = Ridge(alpha=data.alphas[0]).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_, data.alphas[0])


def ridge_cv(data: Data) -> Answer:
    """RidgeCV, leave-one-out or folds."""
    from sklearn.linear_model import RidgeCV

    model = RidgeCV(alphas=data.alphas, cv=data.folds or None).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_, model.alpha_)


def grid_search(data: Data) -> Answer:
    """GridSearchCV over Ridge, on all cores."""
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(Ridge(), {"alpha": data.alphas}, cv=data.folds, n_jobs=-1)
    model = search.fit(data.X, data.y).best_estimator_
    return Answer(model.coef_, model.intercept_, model.alpha)


# Sweeps: enough never to be what stops it.
_SWEEPS = 1_000_000


def _uses_products(data: Data) -> bool:
    """Its own rule for paths: the Gram matrix where rows are more than columns."""
    return data.X.shape[0] > data.X.shape[1]


def lasso_path(data: Data, tol: float) -> Answer:
    """The path, on the Gram matrix where that is quicker."""
    from sklearn.linear_model import lasso_path

    path = lasso_path(
        data.X,
        data.y,
        alphas=np.array(data.alphas),
        tol=tol,
        max_iter=_SWEEPS,
        precompute=_uses_products(data),
    )
    return Answer(path[1])


def lasso(data: Data, tol: float) -> Answer:
    """Lasso on the rows."""
    from sklearn.linear_model import Lasso

    model = Lasso(alpha=data.alphas[0], fit_intercept=False, tol=tol, max_iter=_SWEEPS)
    return Answer(model.fit(data.X, data.y).coef_)


def lasso_gram(data: Data, tol: float) -> Answer:
    """Lasso on the Gram matrix."""
    from sklearn.linear_model import Lasso

    model = Lasso(
        alpha=data.alphas[0], fit_intercept=False, tol=tol, max_iter=_SWEEPS, precompute=True
    )
    return Answer(model.fit(data.X, data.y).coef_)


def lasso_cv(data: Data, tol: float) -> Answer:
    """LassoCV on all cores."""
    from sklearn.linear_model import LassoCV

    model = LassoCV(
        alphas=np.array(data.alphas), cv=data.folds, tol=tol, max_iter=_SWEEPS, n_jobs=-1
    ).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_, model.alpha_)


def forward_folds(data: Data, _: None) -> Chosen:
    """SequentialFeatureSelector on all cores."""
    from sklearn.feature_selection import SequentialFeatureSelector
    from sklearn.linear_model import LinearRegression

    selector = SequentialFeatureSelector(
        LinearRegression(), n_features_to_select=data.choose, cv=data.folds, n_jobs=-1
    )
    return Chosen(selector.fit(data.X, data.y).get_support(indices=True))


def pursuit(data: Data, _: None) -> Chosen:
    """OrthogonalMatchingPursuit: a greedy start without proof."""
    from sklearn.linear_model import OrthogonalMatchingPursuit

    model = OrthogonalMatchingPursuit(n_nonzero_coefs=data.choose, fit_intercept=data.fit_intercept)
    return Chosen(np.flatnonzero(model.fit(data.X, data.y).coef_))


def quantile(data: RobustData, _: None) -> Answer:
    """QuantileRegressor with its default solver."""
    from sklearn.linear_model import QuantileRegressor

    model = QuantileRegressor(quantile=data.quantiles[0], alpha=0.0, solver="highs")
    model.fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_)


def huber_scale(data: RobustData, tol: float) -> Answer:
    """HuberRegressor; its tolerance is the size of a gradient that grows with the rows."""
    from sklearn.linear_model import HuberRegressor

    model = HuberRegressor(
        epsilon=data.threshold, alpha=data.strength, tol=tol, max_iter=_SWEEPS
    ).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_, scale=model.scale_)


def svr(data: RobustData, tol: float, dual: bool) -> Answer:
    """LinearSVR: LIBLINEAR on the dual, or on the primal (the squared loss alone)."""
    from sklearn.svm import LinearSVR

    loss = "squared_" * (data.kind == "svr_squared") + "epsilon_insensitive"
    model = LinearSVR(
        epsilon=data.threshold,
        C=data.strength,
        loss=loss,
        dual=dual,
        tol=tol,
        max_iter=_SWEEPS,
        random_state=0,
    ).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_)


def process(data: BayesData, rung: None) -> Theta:
    """GaussianProcessRegressor with default parameters, from ones."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    lengths = np.ones(data.X.shape[1]) if data.by_column else 1.0
    kernel = ConstantKernel() * RBF(lengths) + WhiteKernel()
    return Theta(GaussianProcessRegressor(kernel).fit(data.X, data.y).kernel_.theta)


def bayesian_ridge(data: BayesData, tol: float) -> Theta:
    """BayesianRidge."""
    from sklearn.linear_model import BayesianRidge

    model = BayesianRidge(tol=tol).fit(data.X, data.y)
    return Theta(np.log([model.alpha_, model.lambda_]))


_LADDER = half_decades(0, 10)
_GRADIENTS = (1e3, 3e2, 1e2, 30.0, 10.0, 3.0, 1.0, 0.3, *half_decades(1, 6))
_PASSES = half_decades(0, 9)

CONTESTANTS = (
    Contestant(
        "scikit-learn",
        {
            "least_squares": least_squares,
            "ridge": ridge,
            "ridge_cv": ridge_cv,
            "ridge_folds": ridge_cv,
        },
        {
            "lasso_path": Tuned(lasso_path, _LADDER, 1e-4),
            "lasso": Tuned(lasso, _LADDER, 1e-4),
            "lasso_cv": Tuned(lasso_cv, _LADDER, 1e-4),
            "forward_folds": Tuned(forward_folds, cases=("forward_folds_02",)),
            # On 100,000 rows it takes minutes, whatever the quantile.
            "quantile": Tuned(quantile, cases=("absolute_1e4", "absolute_1e5", "quantile90_1e4")),
            "huber_scale": Tuned(huber_scale, _GRADIENTS, 1e2),
            "process": Tuned(process),
            "bayesian_ridge": Tuned(bayesian_ridge, _LADDER, 1e-3),
            **classifiers.KERNEL,
        },
        package="scikit-learn",
    ),
    Contestant(
        "scikit-learn Gram",
        tuned={"lasso": Tuned(lasso_gram, _LADDER, 1e-4, cases=("single_tall",))},
        package="scikit-learn",
    ),
    Contestant(
        "scikit-learn OMP",
        tuned={"forward": Tuned(pursuit), "best_subset": Tuned(pursuit)},
        package="scikit-learn",
    ),
    Contestant(
        "scikit-learn LIBLINEAR (dual)",
        tuned={
            "svr": Tuned(partial(svr, dual=True), _PASSES, 1e-2, {"svr_text": 3e-7}),
            "svr_squared": Tuned(partial(svr, dual=True), _PASSES, 1e-3),
            **classifiers.DUAL,
        },
        package="scikit-learn",
    ),
    Contestant(
        "scikit-learn LIBLINEAR (primal)",
        tuned={
            "svr_squared": Tuned(partial(svr, dual=False), _PASSES, 3e-4),
            **classifiers.PRIMAL,
        },
        package="scikit-learn",
    ),
    Contestant("scikit-learn GridSearchCV(Ridge)", {"ridge_folds": grid_search}),
    *classifiers.CONTESTANTS,
)
