"""LIBSVM, as its authors distribute it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.contestants.formats import CACHE
from benchmarks.kernels.objective import KernelData, Machine


@dataclass(frozen=True)
class _Own:
    problem: Any
    gamma: float
    C: float


def _problem(data: KernelData) -> _Own:
    from libsvm.svmutil import svm_problem

    return _Own(svm_problem(data.y, data.X), data.gamma, data.C)


def svc(own: _Own, tol: float) -> Machine:
    """C-SVC with a Gaussian kernel."""
    from libsvm.svmutil import svm_train

    options = f"-s 0 -t 2 -g {own.gamma!r} -c {own.C!r} -e {tol} -m {CACHE} -q"
    model = svm_train(own.problem, options)
    coef = np.array(model.get_sv_coef(), dtype=np.float64).ravel()
    # Coefficients speak for the class that occurs first.
    sign = 1.0 if model.get_labels()[0] == 1 else -1.0
    rows = np.array(model.get_sv_indices()) - 1
    return Machine(rows, sign * coef, -sign * float(model.rho[0]))


CONTESTANTS = (
    Contestant(
        "LIBSVM",
        tuned={"svc": Tuned(svc, half_decades(1, 6), 1e-3, convert=_problem)},
        package="libsvm-official",
    ),
)
