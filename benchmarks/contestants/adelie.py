"""adelie: paths in C++, on the rows or on the covariance."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.classification.objective import ClassData
from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.contestants.formats import by_columns, cores
from benchmarks.objective import Answer, Data

# Go down to the last strength whatever has been explained, and stop at the tolerance alone.
_TO_THE_END: dict[str, Any] = {
    "progress_bar": False,
    "early_exit": False,
    "max_iters": 100_000_000,
}


def _matrix(X: Any) -> Any:
    import adelie as ad

    kind = ad.matrix.sparse if sp.issparse(X) else ad.matrix.dense
    return kind(X, n_threads=cores())


# With so many rows per column the products of the columns are worth their making.
_TALL = 5


def path(data: Data, tol: float) -> Answer:
    """The covariance where rows are many, else the rows."""
    n, d = data.X.shape
    is_tall = n >= _TALL * d and not sp.issparse(data.X)
    return covariance(data, tol) if is_tall else rows(data, tol)


def rows(data: Data, tol: float) -> Answer:
    """grpnet on the rows."""
    import adelie as ad

    state = ad.grpnet(
        _matrix(data.X),
        ad.glm.gaussian(data.y),
        lmda_path=np.array(data.alphas),
        intercept=False,
        tol=tol,
        adev_tol=1.0,
        ddev_tol=0.0,
        n_threads=cores(),
        **_TO_THE_END,
    )
    return Answer(sp.csc_matrix(state.betas.T))


def covariance(data: Data, tol: float) -> Answer:
    """gaussian_cov, with the products computed here."""
    import adelie as ad

    n = len(data.y)
    state = ad.gaussian_cov(
        data.X.T @ data.X / n,
        data.X.T @ data.y / n,
        lmda_path=np.array(data.alphas),
        tol=tol,
        rdev_tol=0.0,
        n_threads=cores(),
        **_TO_THE_END,
    )
    return Answer(sp.csc_matrix(state.betas.T))


def folds(data: Data, tol: float) -> Answer:
    """cv_grpnet (folds of its own, the same strengths), then a path to the best one."""
    import adelie as ad

    X, family = _matrix(data.X), ad.glm.gaussian(data.y)
    options = {**_TO_THE_END, "tol": tol, "adev_tol": 1.0, "n_threads": cores()}
    search = ad.cv_grpnet(
        X,
        family,
        n_folds=data.folds,
        min_ratio=data.alphas[-1] / data.alphas[0],
        lmda_path_size=len(data.alphas),
        seed=0,
        **options,
    )
    down = np.asarray(search.lmdas)[: search.best_idx + 1]
    state = ad.grpnet(X, family, lmda_path=down, ddev_tol=0.0, **options)
    coef = state.betas[-1].toarray().ravel()
    return Answer(coef, float(state.intercepts[-1]), float(state.lmdas[-1]))


def _columns(data: ClassData) -> tuple[Any, ClassData]:
    data = by_columns(data)
    return _matrix(data.X), data


def logistic(own: tuple[Any, ClassData], tol: float) -> Answer:
    """grpnet with the binomial family; means over the rows. The l1 penalty is reached in steps."""
    import adelie as ad

    matrix, data = own
    n, is_lasso = len(data.y), data.penalty == "l1"
    top = float(np.abs(data.X.T @ data.y).max()) / (2 * n)
    steps = np.geomspace(max(top, 2 / n), 1 / n, 10) if is_lasso else np.array([1 / n])
    state = ad.grpnet(
        matrix,
        ad.glm.binomial((data.y > 0).astype(float)),
        alpha=1.0 if is_lasso else 0.0,
        lmda_path=steps,
        intercept=False,
        tol=tol,
        irls_tol=tol,
        n_threads=cores(),
        **_TO_THE_END,
    )
    return Answer(state.betas[-1].toarray().ravel())


_LADDER = half_decades(2, 15)
_STARTS = {"path_wide_1e-2": 3e-12, "path_wide_1e-3": 1e-12, "path_text": 1e-9, "path_tall": 3e-7}

CONTESTANTS = (
    Contestant(
        "adelie",
        tuned={
            "lasso_path": Tuned(path, _LADDER, 1e-9, _STARTS),
            "lasso": Tuned(rows, _LADDER, 1e-8),
            "lasso_cv": Tuned(folds, _LADDER, 1e-7, has_own_folds=True),
            "logistic": Tuned(logistic, _LADDER, 1e-8, convert=_columns),
            "logistic_l1": Tuned(logistic, _LADDER, 1e-8, convert=_columns),
        },
        package="adelie",
        is_guest=True,
    ),
    Contestant(
        "adelie covariance",
        tuned={"lasso": Tuned(covariance, _LADDER, 1e-8, cases=("single_tall",))},
        package="adelie",
        is_guest=True,
    ),
)
