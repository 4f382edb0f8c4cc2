"""skglm: lasso, Huber and classifiers, mostly by working sets and Anderson acceleration."""

from __future__ import annotations

import numpy as np

from benchmarks.classification.objective import ClassData
from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.contestants.formats import by_columns
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


def logistic(data: ClassData, tol: float) -> Answer:
    """L-BFGS with the l2 penalty; means over the rows."""
    from skglm.datafits import Logistic
    from skglm.penalties import L2
    from skglm.solvers import LBFGS
    from skglm.utils.jit_compilation import compiled_clone

    datafit, penalty = compiled_clone(Logistic()), compiled_clone(L2(1 / len(data.y)))
    return Answer(LBFGS(tol=tol, max_iter=10_000).solve(data.X, data.y, datafit, penalty)[0])


def logistic_l1(data: ClassData, tol: float) -> Answer:
    """SparseLogisticRegression: proximal Newton on working sets."""
    from skglm import SparseLogisticRegression

    model = SparseLogisticRegression(
        alpha=1 / len(data.y), tol=tol, fit_intercept=False, max_iter=_ROUNDS
    )
    return Answer(model.fit(data.X, data.y).coef_.ravel())


def hinge(data: ClassData, tol: float) -> Answer:
    """LinearSVC: coordinate descent on the dual."""
    from skglm import LinearSVC

    model = LinearSVC(C=1.0, tol=tol, fit_intercept=False, max_iter=10_000)
    return Answer(model.fit(data.X, data.y).coef_.ravel())


_LADDER = half_decades(0, 11)

CONTESTANTS = (
    Contestant(
        "skglm",
        tuned={
            "lasso_path": Tuned(path, _LADDER, 1e-5),
            "lasso": Tuned(path, _LADDER, 1e-4),
            "huber": Tuned(huber, half_decades(1, 9), 1e-2),
            "logistic": Tuned(logistic, _LADDER, 1e-5, convert=by_columns),
            "logistic_l1": Tuned(logistic_l1, _LADDER, 1e-5, convert=by_columns),
            "hinge": Tuned(hinge, half_decades(0, 8), 1e-3, convert=by_columns),
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
