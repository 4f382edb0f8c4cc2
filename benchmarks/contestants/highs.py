r"""HiGHS, as SciPy ships it: linear programs of quantiles, the maximum error and separability.

Of the quantile q, with X' the columns and a column of ones::

    primal    min q sum r + (1 - q) sum v     X' w + r - v = y,  r, v >= 0
    dual      max y.u                         X'^T u = 0,  q - 1 <= u <= q

and of the maximum error::

    primal    min t                           -t <= y - X' w <= t
    dual      max y.(u - v)                   X'^T (u - v) = 0,  sum (u + v) = 1,  u, v >= 0

and of separability, with z = y (x, 1)::

    primal    find b                          Z b >= 1
    dual      max sum t                       Z^T t = 0,  0 <= t <= 1

which are separable if the primal has a solution, and if the maximum of the dual is 0.

The coefficients are the multipliers of the equations of the dual. Presolve finds nothing in dense
rows and costs up to a third of the time: it is off.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.contestants.base import Contestant, Tuned
from benchmarks.objective import Answer, Data
from benchmarks.robust.cases import COMPARED
from benchmarks.robust.objective import RobustData

Array = NDArray[np.float64]

_OPTIONS = {"presolve": False}


def _with_ones(data: RobustData) -> Array:
    return np.column_stack([data.X, np.ones(len(data.y))])


def _answer(w: Array) -> Answer:
    return Answer(w[:-1], float(w[-1]))


def quantile_primal(data: RobustData, _: None, method: str) -> Answer:
    """With a pair of slacks per row."""
    from scipy.optimize import linprog

    X, q = sp.csc_array(_with_ones(data)), data.quantiles[0]
    n, d = X.shape
    found = linprog(
        np.concatenate([np.zeros(d), np.full(n, q), np.full(n, 1 - q)]),
        A_eq=sp.hstack([X, sp.eye_array(n), -sp.eye_array(n)], format="csc"),
        b_eq=data.y,
        bounds=[(None, None)] * d + [(0, None)] * (2 * n),
        method=method,
        options=_OPTIONS,
    )
    return _answer(found.x[:d])


def quantile_dual(data: RobustData, _: None, method: str) -> Answer:
    """As many equations as columns."""
    from scipy.optimize import linprog

    X, q = _with_ones(data), data.quantiles[0]
    found = linprog(-data.y, A_eq=X.T, b_eq=np.zeros(X.shape[1]), bounds=(q - 1, q), method=method)
    return _answer(-found.eqlin.marginals)


def maximum_primal(data: RobustData, _: None, method: str) -> Answer:
    """Two inequalities per row."""
    from scipy.optimize import linprog

    X = _with_ones(data)
    n, d = X.shape
    found = linprog(
        np.append(np.zeros(d), 1.0),
        A_ub=np.hstack([np.vstack([X, -X]), np.full((2 * n, 1), -1.0)]),
        b_ub=np.concatenate([data.y, -data.y]),
        bounds=[(None, None)] * d + [(0, None)],
        method=method,
        options=_OPTIONS,
    )
    return _answer(found.x[:d])


def maximum_dual(data: RobustData, _: None, method: str) -> Answer:
    """A pair of unknowns per row."""
    from scipy.optimize import linprog

    X = _with_ones(data)
    n, d = X.shape
    found = linprog(
        np.concatenate([-data.y, data.y]),
        A_eq=np.vstack([np.hstack([X.T, -X.T]), np.ones((1, 2 * n))]),
        b_eq=np.append(np.zeros(d), 1.0),
        bounds=(0, None),
        method=method,
        options=_OPTIONS,
    )
    return _answer(-found.eqlin.marginals[:d])


def _signed(data: Data) -> Array:
    return np.asarray(data.y)[:, None] * np.column_stack([data.X, np.ones(len(data.y))])


def separable_primal(data: Data, _: None, method: str) -> bool:
    """One inequality per row."""
    from scipy.optimize import linprog

    Z = _signed(data)
    n, d = Z.shape
    found = linprog(
        np.zeros(d),
        A_ub=-Z,
        b_ub=-np.ones(n),
        bounds=(None, None),
        method=method,
        options=_OPTIONS,
    )
    if found.status not in (0, 2):
        raise RuntimeError(found.message)
    return bool(found.status == 0)


def separable_dual(data: Data, _: None, method: str) -> bool:
    """As many equations as unknowns of the hyperplane."""
    from scipy.optimize import linprog

    Z = _signed(data)
    n, d = Z.shape
    found = linprog(
        -np.ones(n), A_eq=Z.T, b_eq=np.zeros(d), bounds=(0, 1), method=method, options=_OPTIONS
    )
    if found.status != 0:
        raise RuntimeError(found.message)
    return bool(-found.fun < 1e-6)


# Where it was hopeless once (minutes on 100,000 rows), once is enough.
_FEW = tuple(name for name in COMPARED if name != "quantile90_1e5x50")
_PRIMAL = (("simplex", "highs-ds", ("absolute_1e4",)), ("interior point", "highs-ipm", _FEW))

CONTESTANTS = (
    *(
        Contestant(
            f"SciPy HiGHS (primal, {words})",
            tuned={
                "quantile": Tuned(partial(quantile_primal, method=method), cases=cases),
                "maximum": Tuned(partial(maximum_primal, method=method)),
                "separability": Tuned(partial(separable_primal, method=method)),
            },
            package="scipy",
        )
        for words, method, cases in _PRIMAL
    ),
    *(
        Contestant(
            f"SciPy HiGHS (dual, {words})",
            tuned={
                "quantile": Tuned(partial(quantile_dual, method=method), cases=COMPARED),
                "maximum": Tuned(partial(maximum_dual, method=method)),
                "separability": Tuned(partial(separable_dual, method=method)),
            },
            package="scipy",
        )
        for words, method in (("simplex", "highs-ds"), ("interior point", "highs-ipm"))
    ),
)
