"""skglm: lasso and Huber by working sets and Anderson acceleration, or on the Gram matrix."""

from __future__ import annotations

import numpy as np

from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.objective import Answer, Data
from benchmarks.robust.objective import RobustData

_ROUNDS = 300


def path(data: Data, tol: float) -> Answer:
    """The path method of its Lasso: AndersonCD, each strength from the solution before."""
    from skglm import Lasso

    model = Lasso(tol=tol, fit_intercept=False, max_iter=_ROUNDS, warm_start=True)
    return Answer(model.path(data.X, data.y, alphas=np.array(data.alphas))[1])


def gram(data: Data, tol: float) -> Answer:
    """GramCD at one strength (it would make the matrix again for each further one)."""
    from skglm.penalties import L1
    from skglm.solvers import GramCD
    from skglm.utils.jit_compilation import compiled_clone

    solver = GramCD(tol=tol, fit_intercept=False, max_iter=100_000)
    penalty = compiled_clone(L1(data.alphas[0]))
    return Answer(solver.solve(data.X, data.y, None, penalty)[0])


def huber(data: RobustData, tol: float) -> Answer:
    """AndersonCD on all columns at once, by columns, with an l1 penalty of strength zero."""
    from skglm.datafits import Huber
    from skglm.penalties import L1
    from skglm.solvers import AndersonCD
    from skglm.utils.jit_compilation import compiled_clone

    X = np.asfortranarray(data.X)
    solver = AndersonCD(tol=tol, fit_intercept=True, max_iter=1000, p0=X.shape[1])
    datafit, penalty = compiled_clone(Huber(data.threshold)), compiled_clone(L1(0.0))
    found = solver.solve(X, data.y, datafit, penalty)[0]
    return Answer(found[:-1], found[-1])


_LADDER = half_decades(2, 11)

CONTESTANTS = (
    Contestant(
        "skglm",
        tuned={
            "lasso_path": Tuned(path, _LADDER, 1e-5),
            "lasso": Tuned(path, _LADDER, 1e-4),
            "huber": Tuned(huber, half_decades(1, 9), 1e-2),
        },
        package="skglm",
        is_guest=True,
    ),
    Contestant(
        "skglm GramCD",
        tuned={"lasso": Tuned(gram, _LADDER, 1e-4, cases=("single_tall",))},
        package="skglm",
        is_guest=True,
    ),
)
