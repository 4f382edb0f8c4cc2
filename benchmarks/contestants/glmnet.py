"""glmnet: the Fortran code, through python-glmnet."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.objective import Answer, Data

_SWEEPS = 100_000_000


def _model(data: Data, tol: float, **options: Any) -> Any:
    from glmnet import ElasticNet

    return ElasticNet(
        alpha=1,
        lambda_path=np.array(data.alphas),
        standardize=False,
        fit_intercept=data.fit_intercept,
        tol=tol,
        max_iter=_SWEEPS,
        **options,
    )


def path(data: Data, tol: float) -> Answer:
    """Its path without cross-validation."""
    return Answer(_model(data, tol, n_splits=0).fit(data.X, data.y).coef_path_)


def folds(data: Data, tol: float) -> Answer:
    """Its own cross-validation (folds of its own), the best strength taken."""
    model = _model(data, tol, n_splits=data.folds, n_jobs=-1, cut_point=0)
    model.fit(data.X, data.y)
    best = model.lambda_max_inx_
    return Answer(
        model.coef_path_[:, best], float(model.intercept_path_[best]), float(data.alphas[best])
    )


_LADDER = half_decades(2, 15)
_STARTS = {"path_wide_1e-2": 1e-11, "path_wide_1e-3": 1e-12, "path_text": 1e-8, "path_tall": 1e-8}

CONTESTANTS = (
    Contestant(
        "glmnet",
        tuned={
            "lasso_path": Tuned(path, _LADDER, 1e-9, _STARTS),
            "lasso": Tuned(path, _LADDER, 1e-9),
            "lasso_cv": Tuned(folds, _LADDER, 1e-7, has_own_folds=True),
        },
        package="python-glmnet",
        is_guest=True,
    ),
)
