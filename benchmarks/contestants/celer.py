"""celer: lasso by working sets and dual extrapolation.

Its own LassoCV does not construct under current versions of scikit-learn; folds are done as it
does them, by its path on each, in a pool of processes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.objective import Answer, Data

# Rounds of working sets, for all strengths: enough never to be what stops it.
_ROUNDS = 300


def path(data: Data, tol: float) -> Answer:
    """celer_path, with working sets that may shrink."""
    from celer import celer_path

    alphas = np.array(data.alphas)
    return Answer(
        celer_path(data.X, data.y, "lasso", alphas=alphas, tol=tol, prune=1, max_iter=_ROUNDS)[1]
    )


def _centred_path(X: Any, y: Any, alphas: Any, tol: float) -> tuple[Any, Any]:
    from celer import celer_path

    mean, level = X.mean(axis=0), y.mean()
    coef = celer_path(
        np.asfortranarray(X - mean),
        y - level,
        "lasso",
        alphas=alphas,
        tol=tol,
        prune=1,
        max_iter=_ROUNDS,
    )[1]
    return coef, level - mean @ coef


def _errors(data: Data, train: Any, test: Any, tol: float) -> Any:
    coef, intercepts = _centred_path(data.X[train], data.y[train], np.array(data.alphas), tol)
    return ((data.y[test][:, None] - data.X[test] @ coef - intercepts) ** 2).mean(axis=0)


def folds(data: Data, tol: float) -> Answer:
    """Paths on the training rows of each fold, then one on all rows down to the best strength."""
    from joblib import Parallel, delayed
    from sklearn.model_selection import KFold

    splits = KFold(data.folds).split(data.X)
    errors = Parallel(n_jobs=-1)(delayed(_errors)(data, train, test, tol) for train, test in splits)
    best = int(np.argmin(np.mean(errors, axis=0)))
    coef, intercepts = _centred_path(data.X, data.y, np.array(data.alphas[: best + 1]), tol)
    return Answer(coef[:, -1], float(intercepts[-1]), data.alphas[best])


_LADDER = half_decades(0, 11)
_STARTS = {"path_wide": 3e-6, "path_tall": 1e-4, "path_text": 1e-4}

CONTESTANTS = (
    Contestant(
        "celer",
        tuned={
            "lasso_path": Tuned(path, _LADDER, 1e-6, _STARTS),
            "lasso": Tuned(path, _LADDER, 1e-4),
            "lasso_cv": Tuned(folds, _LADDER, 1e-4, cases=("cv_wide", "cv_tall")),
        },
        package="celer",
        is_guest=True,
    ),
)
