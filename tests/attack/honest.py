"""Honest fits of every kind of certificate, tiny, on data of every make.

A fit is reproduced by its name, ``maker:seed``: the seed decides rows, weights and parameters.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.gaussian_process import kernels as gp

import trueline as tl
from trueline.losses import Huber, Quantile, SquaredEpsilonInsensitive
from trueline.penalties import L1, L2, Bounded, ElasticNet, NonNegative, NoPenalty

__all__ = ["MAKERS", "Case", "NoFit", "make"]


class NoFit(Exception):
    """The estimator refuses these data, or what comes out has no certificate."""


@dataclass(frozen=True)
class Case:
    """An honest certificate with the data it is about, as the checker reads them."""

    name: str
    certificate: Any
    X: Any
    y: Any
    weight: Any
    traits: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    #: Other points that are worth a look when the optimum is asked for.
    hints: list[Any] = field(default_factory=list)

    @property
    def kind(self):
        return kind_of(self.certificate)


def kind_of(certificate):
    """The kind of proof; bounds on margins have none of their own in older versions."""
    return getattr(certificate, "kind", "margin")


# --- data -----------------------------------------------------------------------------------------

TRAITS = (
    "plain", "plain", "sparse", "offset", "scaled", "scaled columns", "copies", "near copies",
    "constant", "float32", "integers", "wide", "zeros",
)  # fmt: skip


def draw_rows(rng, traits=TRAITS, most=10):
    """Rows and what is special about them."""
    n, d = int(rng.integers(4, most + 1)), int(rng.integers(1, 5))
    own = tuple(sorted(set(rng.choice(traits, size=rng.integers(1, 4)).tolist())))
    if "wide" in own:
        n, d = int(rng.integers(2, 5)), int(rng.integers(3, 7))
    X = rng.normal(size=(n, d))
    if "integers" in own:
        X = rng.integers(-3, 4, size=(n, d)).astype(float)
    if "zeros" in own:
        X[rng.random((n, d)) < 0.3] = 0.0
    if "copies" in own and d > 1:
        X[:, -1] = X[:, 0]
    if "near copies" in own and d > 1:
        X[:, -1] = X[:, 0] * (1 + 10.0 ** rng.uniform(-9, -3) * rng.normal(size=n))
    if "constant" in own:
        X[:, int(rng.integers(d))] = rng.normal()
    if "scaled" in own:
        X = X * 10.0 ** rng.uniform(-8, 8)
    if "scaled columns" in own:
        X = X * 10.0 ** rng.uniform(-8, 8, size=d)
    if "offset" in own:
        X = X + 10.0 ** rng.uniform(-1, 6) * rng.normal(size=d)
    if "float32" in own:
        X = X.astype(np.float32)
    if "sparse" in own:
        X = sp.csr_array(np.where(rng.random(X.shape) < 0.4, 0.0, X))
    return X, own


def dense(X):
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def draw_weight(rng, n, with_zeros=True):
    """Weights of rows, or None."""
    how = rng.integers(6)
    if how <= 2:
        return None
    if how == 3:
        return rng.uniform(0.3, 3.0, size=n)
    if how == 4 and with_zeros:
        weight = rng.integers(0, 3, size=n).astype(float)
        weight[rng.permutation(n)[: max(2, n // 2)]] = 1.0
        return weight
    return rng.uniform(0.3, 3.0, size=n) * 10.0 ** rng.uniform(-4, 4)


def draw_scores(rng, X, targets=1):
    """A linear function of the rows with noise, of the order of one."""
    Z = dense(X)
    size = np.abs(Z - Z.mean(axis=0)).max(axis=0)
    Z = (Z - Z.mean(axis=0)) / np.where(size > 0, size, 1.0)
    noise = 10.0 ** rng.uniform(-3, 0.3)
    return Z @ rng.normal(size=(Z.shape[1], targets)) + noise * rng.normal(size=(len(Z), targets))


def draw_target(rng, X, own, targets=None):
    """Targets of a regression of any scale; one column of them as a vector."""
    k = targets or (1 if rng.random() < 0.75 else int(rng.integers(2, 4)))
    Y = draw_scores(rng, X, k) + rng.normal()
    if rng.random() < 0.3:
        Y = Y * 10.0 ** rng.uniform(-6, 6)
    if rng.random() < 0.15:
        Y = Y + 10.0 ** rng.uniform(0, 5)
    if rng.random() < 0.1:
        Y = np.round(Y)
    Y = Y.astype(np.float32) if "float32" in own else Y
    return Y[:, 0] if k == 1 else Y


def draw_labels(rng, X, classes=2):
    """Labels of which every one occurs; separable or not."""
    score = draw_scores(rng, X)[:, 0]
    if rng.random() < 0.35:
        score = rng.normal(size=len(score))
    ranks = np.argsort(np.argsort(score))
    return (ranks * classes // len(ranks)).astype(int)


def strength(rng, low=-3.0, high=1.5):
    return float(10.0 ** rng.uniform(low, high))


def level(rng):
    """Whether there is an intercept."""
    return bool(rng.random() < 0.7)


# --- estimators -----------------------------------------------------------------------------------


def _linear_regression(rng):
    return tl.LinearRegression(fit_intercept=level(rng), positive=bool(rng.random() < 0.25))


def _ridge(rng):
    return tl.Ridge(alpha=strength(rng, -8, 4), fit_intercept=level(rng))


def _lasso(rng):
    return tl.Lasso(
        alpha=strength(rng), fit_intercept=level(rng), positive=bool(rng.random() < 0.3)
    )


def _elastic_net(rng):
    return tl.ElasticNet(alpha=strength(rng), l1_ratio=rng.uniform(), fit_intercept=level(rng))


def _group_lasso(rng):
    return tl.GroupLasso(
        alpha=strength(rng), l2=float(rng.choice([0, 0.3])), fit_intercept=level(rng)
    )


def _any_regressor(rng):
    loss = rng.choice(
        ["squared", "absolute", "quantile", "huber", "epsilon_insensitive",
         "squared_epsilon_insensitive"]
    )  # fmt: skip
    penalty = rng.choice(["none", "l1", "l2", "elastic_net", "bounded", "nonnegative"])
    alpha = strength(rng)
    penalty = {
        "none": NoPenalty(),
        "l1": L1(alpha),
        "l2": L2(alpha),
        "elastic_net": ElasticNet(alpha, float(rng.uniform(0.1, 0.9))),
        "bounded": Bounded(L1(alpha) if rng.random() < 0.5 else NoPenalty(), -0.4, 0.7),
        "nonnegative": NonNegative(L2(alpha) if rng.random() < 0.5 else NoPenalty()),
    }[penalty]
    if loss == "huber":
        loss = Huber(strength(rng, -2, 1))
    elif loss == "quantile":
        loss = Quantile(float(rng.uniform(0.05, 0.95)))
    elif loss == "squared_epsilon_insensitive":
        loss = SquaredEpsilonInsensitive(float(rng.uniform(0, 0.5)))
    return tl.LinearRegressor(loss=loss, penalty=penalty, fit_intercept=level(rng))


def _held_huber(rng):
    alpha = strength(rng)
    base = L2(alpha) if rng.random() < 0.5 else L1(alpha)
    loss = Huber(strength(rng, -2, 1)) if rng.random() < 0.5 else SquaredEpsilonInsensitive(0.1)
    return tl.LinearRegressor(loss=loss, penalty=NonNegative(base), fit_intercept=level(rng))


def _quantiles(rng):
    q = tuple(sorted(rng.uniform(0.05, 0.95, size=int(rng.integers(2, 4))).tolist()))
    return tl.QuantileRegressor(quantile=q, alpha=strength(rng, -3, 0), fit_intercept=level(rng))


def _ordered_quantiles(rng):
    q = tuple(rng.uniform(0.05, 0.95, size=int(rng.integers(2, 4))).tolist())
    return tl.QuantileRegressor(
        quantile=q, alpha=float(rng.choice([0.0, 0.01, 0.1])), non_crossing=True,
        fit_intercept=level(rng),
    )  # fmt: skip


def _huber(rng):
    return tl.HuberRegressor(
        epsilon=float(rng.uniform(1.05, 3)), alpha=strength(rng, -6, 1), fit_intercept=level(rng)
    )


def _chebyshev(rng):
    return tl.ChebyshevRegressor(fit_intercept=level(rng))


def _best_subset(rng):
    return tl.BestSubset(
        k=int(rng.integers(1, 4)), l2=float(rng.choice([0.0, 0.0, 0.1])), fit_intercept=level(rng),
        min_eigenvalue=None if rng.random() < 0.7 else float(rng.choice([1e-3, 0.1])),
    )  # fmt: skip


def _l0(rng):
    return tl.L0Regression(
        alpha=strength(rng, -3, 1), l2=float(rng.choice([0.0, 0.0, 0.1])), fit_intercept=level(rng)
    )


def _linear_svr(rng):
    loss = "epsilon_insensitive" if rng.random() < 0.6 else "squared_epsilon_insensitive"
    return tl.LinearSVR(
        C=strength(rng, -2, 3), epsilon=float(rng.choice([0, 0.1])), loss=loss,
        fit_intercept=level(rng),
    )  # fmt: skip


def _kernel_ridge(rng):
    return tl.KernelRidge(
        alpha=strength(rng, -4, 2), kernel=str(rng.choice(["linear", "rbf", "poly", "laplacian"])),
        gamma=float(rng.uniform(0.1, 1.5)),
    )  # fmt: skip


def _process_kernel(rng):
    k = rng.integers(4)
    if k == 0:
        return gp.ConstantKernel(rng.uniform(0.5, 2)) * gp.RBF(rng.uniform(0.5, 2)) + (
            gp.WhiteKernel(rng.uniform(0.05, 0.5))
        )
    if k == 1:
        return gp.RBF(rng.uniform(0.5, 2)) + gp.WhiteKernel(0.3)
    if k == 2:
        return gp.DotProduct(rng.uniform(0.5, 2)) + gp.WhiteKernel(0.3)
    return gp.ConstantKernel(1.0) * gp.RationalQuadratic(1.0, 1.0) + gp.WhiteKernel(0.2)


def _process(rng):
    return tl.GaussianProcessRegressor(
        kernel=_process_kernel(rng), normalize_y=bool(rng.random() < 0.3),
        alpha=float(rng.choice([1e-10, 1e-3])),
    )  # fmt: skip


def _fixed_process(rng):
    return tl.GaussianProcessRegressor(
        kernel=_process_kernel(rng), optimizer=None, normalize_y=bool(rng.random() < 0.3),
        alpha=float(rng.choice([1e-10, 1e-3])),
    )  # fmt: skip


def _sparse_process(rng):
    kernel = gp.ConstantKernel(1.0) * gp.RBF(rng.uniform(0.5, 2)) + gp.WhiteKernel(0.2)
    return tl.SparseGaussianProcessRegressor(
        kernel=kernel, n_inducing=int(rng.integers(2, 5)), optimizer=None,
        normalize_y=bool(rng.random() < 0.3),
    )  # fmt: skip


def _kernel(rng, local=False):
    if local:
        return {"kernel": "sigmoid", "gamma": float(rng.uniform(0.1, 1)), "coef0": -0.3}
    return [
        {"kernel": "linear"},
        {"kernel": "rbf", "gamma": float(rng.uniform(0.1, 2))},
        {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0},
    ][rng.integers(3)]


def _svr(rng):
    if rng.random() < 0.5:
        return tl.NuSVR(
            nu=float(rng.uniform(0.2, 0.8)), C=strength(rng, -1, 1), max_iter=20000, **_kernel(rng)
        )
    return tl.SVR(
        C=strength(rng, -1, 1), epsilon=float(rng.choice([0, 0.1])), max_iter=20000, **_kernel(rng)
    )


def _svc(rng):
    return tl.SVC(C=strength(rng, -1, 2), max_iter=20000, **_kernel(rng))


def _nu_svc(rng):
    return tl.NuSVC(nu=float(rng.uniform(0.1, 0.6)), max_iter=20000, **_kernel(rng))


def _local_svc(rng):
    return tl.SVC(C=strength(rng, -1, 1), max_iter=20000, **_kernel(rng, local=True))


def _one_class(rng):
    return tl.OneClassSVM(nu=float(rng.uniform(0.2, 0.8)), max_iter=20000, **_kernel(rng))


def _logistic(rng):
    if rng.random() < 0.3:
        return tl.LogisticRegression(
            C=strength(rng, -2, 2), l1_ratio=float(rng.choice([1.0, 0.5])), solver="saga",
            max_iter=10000, fit_intercept=level(rng),
        )  # fmt: skip
    return tl.LogisticRegression(C=strength(rng, -2, 3), fit_intercept=level(rng))


def _plain_logistic(rng):
    return tl.LogisticRegression(C=np.inf, fit_intercept=level(rng))


def _firth(rng):
    return tl.LogisticRegression(penalty="firth", fit_intercept=level(rng))


def _linear_svc(rng):
    kind = rng.integers(3)
    own = {"C": strength(rng, -2, 2), "fit_intercept": level(rng)}
    if kind == 0:
        return tl.LinearSVC(loss="hinge", **own)
    return tl.LinearSVC(**own) if kind == 1 else tl.LinearSVC(penalty="l1", dual=False, **own)


def _crammer_singer(rng):
    return tl.LinearSVC(multi_class="crammer_singer", C=strength(rng, -2, 2))


def _hard_margin(rng):
    return tl.LinearSVC(loss="hinge", C=np.inf, fit_intercept=level(rng))


def _perceptron(rng):
    return tl.Perceptron(
        fit_intercept=level(rng), eta0=float(rng.choice([1.0, 0.5])), max_iter=200,
        variant=str(rng.choice(["standard", "averaged"])),
        multiclass=str(rng.choice(["ovr", "direct"])),
    )  # fmt: skip


def _kernel_perceptron(rng):
    return tl.KernelPerceptron(
        kernel=str(rng.choice(["rbf", "linear", "poly"])), fit_intercept=level(rng), max_iter=200
    )


def _zero_one(rng):
    return tl.ZeroOneHalfspace(fit_intercept=level(rng))


def _glm(rng):
    return [
        tl.PoissonRegressor(alpha=strength(rng, -3, 1), fit_intercept=level(rng)),
        tl.GammaRegressor(alpha=strength(rng, -3, 1), fit_intercept=level(rng)),
        tl.TweedieRegressor(power=1.5, alpha=strength(rng, -3, 1), fit_intercept=level(rng)),
        tl.PoissonRegressor(alpha=0.0, fit_intercept=level(rng)),
    ][rng.integers(4)]


def _local_glm(rng):
    return [
        tl.TweedieRegressor(power=3, alpha=strength(rng, -2, 1), fit_intercept=level(rng)),
        tl.TweedieRegressor(power=1.5, link="identity", alpha=strength(rng, -2, 0)),
        tl.TweedieRegressor(power=0, link="log", alpha=strength(rng, -2, 0)),
    ][rng.integers(3)]


# --- makers ---------------------------------------------------------------------------------------

_TAME = ("plain", "plain", "offset", "scaled columns", "float32", "integers", "copies")


def _regression(estimator, targets=None, traits=TRAITS, weighted=True):
    def draw(rng):
        X, own = draw_rows(rng, traits)
        y = draw_target(rng, X, own, targets)
        weight = draw_weight(rng, X.shape[0]) if weighted else None
        return estimator(rng), X, y, weight, own

    return draw


def _positive(estimator, traits):
    def draw(rng):
        X, own = draw_rows(rng, traits)
        y = np.exp(np.clip(draw_scores(rng, X)[:, 0], -3, 3))
        if rng.random() < 0.3:
            y = y * 10.0 ** rng.uniform(-6, 6)
        return estimator(rng), X, y, draw_weight(rng, X.shape[0]), own

    return draw


def _classes(estimator, classes=(2, 2, 3), traits=TRAITS, weighted=True):
    def draw(rng):
        X, own = draw_rows(rng, traits)
        y = draw_labels(rng, X, int(rng.choice(classes)))
        weight = draw_weight(rng, X.shape[0], with_zeros=False) if weighted else None
        return estimator(rng), X, y, weight, own

    return draw


def _separable(estimator, traits=_TAME, classes=(2,)):
    def draw(rng):
        X, own = draw_rows(rng, traits)
        w = draw_scores(rng, X)[:, 0]
        k = int(rng.choice(classes))
        ranks = np.argsort(np.argsort(w))
        y = (ranks * k // len(ranks)).astype(int)
        shift = 3.0 * np.abs(dense(X)).max() * (y - y.mean())
        X = np.column_stack([dense(X)[:, :3], shift])
        return estimator(rng), X, y, None, own

    return draw


def _rows_alone(estimator):
    def draw(rng):
        X, own = draw_rows(rng, _TAME)
        return estimator(rng), X, None, draw_weight(rng, X.shape[0]), own

    return draw


#: How an estimator and its data are drawn, by name.
MAKERS = {
    "linear_regression": _regression(_linear_regression),
    "ridge": _regression(_ridge),
    "lasso": _regression(_lasso),
    "elastic_net": _regression(_elastic_net),
    "group_lasso": _regression(_group_lasso, 1),
    "multi_task": _regression(lambda rng: tl.MultiTaskLasso(alpha=strength(rng)), 2),
    "any_regressor": _regression(_any_regressor),
    "held_huber": _regression(_held_huber, 1),
    "quantiles": _regression(_quantiles, 1),
    "ordered_quantiles": _regression(_ordered_quantiles, 1),
    "huber": _regression(_huber, 1),
    "chebyshev": _regression(_chebyshev),
    "best_subset": _regression(_best_subset, 1),
    "l0": _regression(_l0, 1),
    "linear_svr": _regression(_linear_svr, 1),
    "kernel_ridge": _regression(_kernel_ridge, traits=_TAME),
    "process": _regression(_process, traits=("plain",), weighted=False),
    "fixed_process": _regression(_fixed_process, traits=("plain", "offset"), weighted=False),
    "sparse_process": _regression(_sparse_process, 1, traits=("plain",), weighted=False),
    "svr": _regression(_svr, 1, traits=_TAME),
    "svc": _classes(_svc, traits=_TAME),
    "nu_svc": _classes(_nu_svc, traits=_TAME),
    "local_svc": _classes(_local_svc, traits=("plain", "float32")),
    "one_class": _rows_alone(_one_class),
    "logistic": _classes(_logistic),
    "plain_logistic": _classes(_plain_logistic),
    "firth": _classes(_firth, (2,), traits=_TAME),
    "linear_svc": _classes(_linear_svc),
    "crammer_singer": _classes(_crammer_singer, (3,)),
    "ridge_classifier": _classes(lambda rng: tl.RidgeClassifier(alpha=strength(rng))),
    "one_vs_rest": _classes(
        lambda rng: tl.OneVsRestClassifier(_logistic(rng)), (3,), traits=_TAME, weighted=False
    ),
    "hard_margin": _separable(_hard_margin),
    "perceptron": _classes(_perceptron, traits=_TAME, weighted=False),
    "separable_perceptron": _separable(_perceptron, classes=(2, 3)),
    "kernel_perceptron": _classes(_kernel_perceptron, traits=_TAME, weighted=False),
    "passive_aggressive": _classes(lambda rng: tl.PassiveAggressiveClassifier(), traits=_TAME),
    "zero_one": _classes(_zero_one, (2,), traits=("plain", "integers", "offset", "copies")),
    "separation": _classes(lambda rng: "separability"),
    "integer_separation": _classes(lambda rng: "separability", traits=("integers", "zeros")),
    "margin": _separable(lambda rng: "margin", classes=(2, 2, 3)),
    "glm": _positive(_glm, TRAITS),
    "local_glm": _positive(_local_glm, ("plain", "float32", "offset")),
}  # fmt: skip


def make(name):
    """The honest case of that name; of several certificates in one, the first.

    Raises
    ------
    NoFit
        If nothing comes out of these data.
    """
    maker, _, seed = name.partition(":")
    rng = np.random.default_rng([int(seed), *maker.encode()])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        estimator, X, y, weight, own = MAKERS[maker](rng)
        try:
            certificate, X, y, weight = _fit(estimator, X, y, weight)
        except (ValueError, TypeError, AttributeError) as error:
            raise NoFit(f"{type(error).__name__}: {error}") from error
    said = tuple(f"{w.category.__name__}: {w.message}"[:200] for w in said)
    return Case(name, certificate, X, y, weight, own, said)


def _fit(estimator, X, y, weight):
    """A certificate, and the data as it reads them."""
    if isinstance(estimator, str):
        level = bool(len(y) % 2)
        if estimator == "margin":
            if len(np.unique(y)) > 2:
                level = False
            return tl.maximum_margin(X, y, fit_intercept=level).certificate, X, y, None
        return tl.separability(X, y, fit_intercept=level).certificate, X, y, None
    try:
        model = estimator.fit(X, y) if weight is None else estimator.fit(X, y, sample_weight=weight)
    except TypeError as error:
        if "sample_weight" not in str(error):
            raise
        weight = None
        model = estimator.fit(X, y)
    certificate = model.certificate_
    if hasattr(certificate, "parts"):  # of one against the rest
        certificate = certificate.parts[0]
        y = np.where(y == np.unique(y)[0], 1, 0)
        certificate = model.estimators_[0].certificate_
    if hasattr(certificate, "read"):
        X, y, weight = certificate.read(X, y, weight)
    return certificate, X, y, weight
