r"""The same by mixed integer programming, by HiGHS: an independent answer to compare with.

    minimise sum_i s_i z_i    subject to    a_i.v >= eps - M_i z_i,   abs(v_j) <= 1,   z_i in {0, 1}

with M_i = sum_j abs(a_ij) + eps, which no v in the box can need more of. Only hyperplanes whose
right rows have scores of at least eps in that box are compared, and HiGHS decides with tolerances:
its bound is reported, not proven.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.separation.zero_one.problem import Task

__all__ = ["MARGIN", "by_highs"]

Array = NDArray[np.float64]

#: The least score of a row that is right.
MARGIN = 1e-3


def by_highs(task: Task, seconds: float = math.inf) -> tuple[Array | None, float, str]:
    """The hyperplane (None if there is none in time), the bound and the message of HiGHS."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    k, m = task.A.shape
    M = np.abs(task.A).sum(axis=1) + MARGIN
    options: dict[str, float] = {"mip_rel_gap": 0.0}
    if math.isfinite(seconds):
        options["time_limit"] = max(seconds, 0.0)
    found = milp(
        np.append(np.zeros(m), task.s),
        integrality=np.append(np.zeros(m), np.ones(k)),
        bounds=Bounds(np.append(-np.ones(m), np.zeros(k)), np.ones(m + k)),
        constraints=LinearConstraint(np.hstack([task.A, np.diag(M)]), lb=MARGIN),
        options=options,
    )
    bound = found.mip_dual_bound
    v = None if found.x is None else np.ascontiguousarray(found.x[:m])
    return v, 0.0 if bound is None else float(bound), str(found.message)
