"""himalaya: ridge over many targets and strengths, folds only."""

from __future__ import annotations

import numpy as np

from benchmarks.contestants.base import Contestant
from benchmarks.objective import Answer, Data

# All strengths at once would hold 100 matrices of n x d: more memory than most machines have.
_STRENGTHS_AT_ONCE = 5


def ridge_folds(data: Data) -> Answer:
    """RidgeCV by singular values of each fold."""
    from himalaya.ridge import RidgeCV

    model = RidgeCV(
        alphas=np.array(data.alphas),
        cv=data.folds,
        fit_intercept=True,
        solver_params={"n_alphas_batch": _STRENGTHS_AT_ONCE},
    ).fit(data.X, data.y)
    alpha = float(np.ravel(model.best_alphas_)[0])
    return Answer(model.coef_, float(np.ravel(model.intercept_)[0]), alpha)


CONTESTANTS = (Contestant("himalaya", {"ridge_folds": ridge_folds}),)
