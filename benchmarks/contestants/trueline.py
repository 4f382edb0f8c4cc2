"""This library."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks.bayes.objective import BayesData, Theta
from benchmarks.contestants import trueline_classifiers as classifiers
from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.objective import Answer, Data
from benchmarks.robust.objective import RobustData
from benchmarks.sparse.cases import PROOF_SECONDS, SEARCH_SECONDS
from benchmarks.sparse.objective import Chosen


def least_squares(data: Data) -> Answer:
    """LinearRegression with default parameters."""
    from trueline import LinearRegression

    model = LinearRegression(fit_intercept=data.fit_intercept).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_)


def ridge(data: Data) -> Answer:
    """Ridge at one strength."""
    from trueline import Ridge

    model = Ridge(alpha=data.alphas[0]).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_, data.alphas[0])


def ridge_cv(data: Data) -> Answer:
    """RidgeCV, leave-one-out or folds."""
    from trueline import RidgeCV

    model = RidgeCV(alphas=data.alphas, cv=data.folds or None).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_, model.alpha_)


def lasso_path(data: Data, tol: float) -> Answer:
    """scikit-learn's function."""
    from trueline import lasso_path

    return Answer(lasso_path(data.X, data.y, alphas=np.array(data.alphas), tol=tol)[1])


def regularization_path(data: Data, tol: float) -> Answer:
    """The path as an object, with gaps."""
    from trueline import regularization_path

    path = regularization_path(
        data.X, data.y, alphas=np.array(data.alphas), fit_intercept=False, tol=tol
    )
    return Answer(path.coefs)


def _lasso(data: Data, tol: float) -> Any:
    from trueline import Lasso

    return Lasso(alpha=data.alphas[0], fit_intercept=False, tol=tol).fit(data.X, data.y)


def lasso(data: Data, tol: float) -> Answer:
    """One strength."""
    return Answer(_lasso(data, tol).coef_)


def lasso_with_certificate(data: Data, tol: float) -> Any:
    """The fitted model: what its certificate costs is measured apart."""
    return _lasso(data, tol)


def lasso_cv(data: Data, tol: float) -> Answer:
    """LassoCV on given strengths."""
    from trueline import LassoCV

    model = LassoCV(alphas=np.array(data.alphas), cv=data.folds, tol=tol).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_, model.alpha_)


def forward(data: Data, _: None) -> Chosen:
    """The columns in the order of their entry."""
    from trueline.design import as_design
    from trueline.losses import Squared
    from trueline.penalties import NoPenalty
    from trueline.problem import Problem
    from trueline.selection.stepwise.pricing import Pricing
    from trueline.selection.stepwise.search import Search, make_terms

    problem = Problem(as_design(data.X), data.y[:, None], Squared(), NoPenalty())
    scorer = Pricing("bic", "forward", steps=data.choose).scorer(problem)
    terms = make_terms(None, problem.n_features)
    history = Search(scorer, terms, "forward", data.choose).run().history
    return Chosen(np.array([step["entered"][0] for step in history[1:]]))


def stepwise(data: Data, _: None) -> Chosen:
    """The same with books, a model and its certificate."""
    from trueline import StepwiseRegression

    model = StepwiseRegression(direction="forward", n_features_to_select=data.choose)
    return Chosen(np.flatnonzero(model.fit(data.X, data.y).support_))


def forward_folds(data: Data, _: None) -> Chosen:
    """Scored by folds."""
    from trueline import LinearRegression, SequentialFeatureSelector

    selector = SequentialFeatureSelector(
        LinearRegression(), n_features_to_select=data.choose, cv=data.folds
    )
    return Chosen(selector.fit(data.X, data.y).get_support(indices=True))


def best_subset(data: Data, seconds: float) -> Chosen:
    """BestSubset with a limit on its time; it looks for its own start."""
    from trueline import BestSubset

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BestSubset(data.choose, fit_intercept=False, time_limit=seconds)
        model.fit(data.X, data.y)
    gap = float(model.certificate_.relative_gap)
    return Chosen(model.support_, gap, gap, bool(model.proven_))


def quantiles(data: RobustData, _: Any) -> Answer:
    """One quantile, or several together; the middle one as least absolute deviations."""
    from trueline import LeastAbsoluteDeviations, QuantileRegressor

    if data.quantiles == (0.5,):
        model = LeastAbsoluteDeviations().fit(data.X, data.y)
        return Answer(model.coef_, model.intercept_)
    levels = list(data.quantiles) if len(data.quantiles) > 1 else data.quantiles[0]
    model = QuantileRegressor(quantile=levels, alpha=0.0).fit(data.X, data.y)
    return Answer(model.coef_.T, model.intercept_)


def maximum(data: RobustData, _: Any) -> Answer:
    """The smallest largest error."""
    from trueline import ChebyshevRegressor

    model = ChebyshevRegressor().fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_)


def huber(data: RobustData, tol: float) -> Answer:
    """At a fixed threshold, without any penalty."""
    from trueline import LinearRegressor
    from trueline.losses import Huber

    model = LinearRegressor(loss=Huber(data.threshold), penalty=None, tol=tol)
    model.fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_)


def huber_scale(data: RobustData, tol: float) -> Answer:
    """With a scale that is fitted too."""
    from trueline import HuberRegressor

    model = HuberRegressor(epsilon=data.threshold, alpha=data.strength, tol=tol)
    model.fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_, scale=model.scale_)


def support_vectors(data: RobustData, tol: float) -> Any:
    """The fitted model of support vector regression."""
    from trueline import LinearSVR

    loss = "squared_" * (data.kind == "svr_squared") + "epsilon_insensitive"
    model = LinearSVR(epsilon=data.threshold, C=data.strength, loss=loss, tol=tol, max_iter=100_000)
    return model.fit(data.X, data.y)


def svr(data: RobustData, tol: float) -> Answer:
    """Support vector regression."""
    model = support_vectors(data, tol)
    return Answer(model.coef_, model.intercept_)


def separable(data: Data, _: None) -> bool:
    """Whether two classes are separable, with its proof."""
    from trueline import separability

    return separability(data.X, data.y).is_separable


def process(data: BayesData, rung: None) -> Theta:
    """GaussianProcessRegressor with default parameters, from ones."""
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    from trueline import GaussianProcessRegressor

    lengths = np.ones(data.X.shape[1]) if data.by_column else 1.0
    kernel = ConstantKernel() * RBF(lengths) + WhiteKernel()
    return Theta(GaussianProcessRegressor(kernel).fit(data.X, data.y).kernel_.theta)


def bayesian_ridge(data: BayesData, tol: float) -> Theta:
    """BayesianRidge."""
    from trueline import BayesianRidge

    model = BayesianRidge(tol=tol).fit(data.X, data.y)
    return Theta(np.log([model.alpha_, model.lambda_]))


_LADDER = half_decades(2, 12)
# Paths are held to a hundredth of the gap that tol stands for: looser values make sense too.
_PATH_LADDER = half_decades(0, 12)
# The object that knows more is timed once on each kind of data.
_EVERY_KIND = ("path_wide_1e-2", "path_tall_1e-2", "path_text_1e-2")

CONTESTANTS = (
    Contestant(
        "trueline",
        {
            "least_squares": least_squares,
            "ridge": ridge,
            "ridge_cv": ridge_cv,
            "ridge_folds": ridge_cv,
        },
        {
            "lasso_path": Tuned(lasso_path, _PATH_LADDER, 1e-1),
            "lasso": Tuned(lasso, _PATH_LADDER, 1e-1),
            "lasso_cv": Tuned(lasso_cv, _PATH_LADDER, 1e-1),
            "forward": Tuned(forward),
            "forward_folds": Tuned(forward_folds),
            "best_subset": Tuned(best_subset, (SEARCH_SECONDS, PROOF_SECONDS)),
            "certificate": Tuned(lasso_with_certificate, (1e-4,)),
            "quantile": Tuned(quantiles),
            "quantiles": Tuned(quantiles),
            "maximum": Tuned(maximum),
            "process": Tuned(process),
            "bayesian_ridge": Tuned(bayesian_ridge, _LADDER, 1e-3),
            "huber": Tuned(huber, _LADDER, 1e-2),
            # Its default: the gap is squared in it, and 1e-9 at most.
            "huber_scale": Tuned(huber_scale, (1e-5,)),
            "svr": Tuned(svr, _LADDER, 1e-2, {"svr_text": 3e-5}),
            "svr_squared": Tuned(svr, _LADDER, 1e-2, {"svr_squared_text": 1e-3}),
            "separability": Tuned(separable),
            **classifiers.TUNED,
        },
        package="trueline",
    ),
    Contestant(
        "trueline regularization_path",
        tuned={"lasso_path": Tuned(regularization_path, _LADDER, 1e-3, cases=_EVERY_KIND)},
        package="trueline",
    ),
    Contestant(
        "trueline StepwiseRegression", tuned={"forward": Tuned(stepwise)}, package="trueline"
    ),
)
