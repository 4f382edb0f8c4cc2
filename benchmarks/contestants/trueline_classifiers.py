"""This library's classifiers, for the suites on classification and on kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.classification.objective import ClassData
from benchmarks.contestants.base import Tuned, half_decades
from benchmarks.contestants.formats import CACHE, labels, machine_of, schemes_coef
from benchmarks.kernels.objective import KernelData, Machine
from benchmarks.objective import Answer

__all__ = ["TUNED", "kernel_machine", "logistic", "machine", "scheme"]

# The tolerance alone ends a fit.
_ROUNDS = 100_000


def _logistic(data: ClassData, tol: float) -> Any:
    from trueline import LogisticRegression

    ratio = 1.0 if data.penalty == "l1" else 0.0
    return LogisticRegression(
        l1_ratio=ratio, fit_intercept=data.fit_intercept, tol=tol, max_iter=_ROUNDS
    )


def logistic(data: ClassData, tol: float) -> Answer:
    """LogisticRegression, of two classes or more."""
    model = _logistic(data, tol).fit(data.X, data.y)
    return Answer(model.coef_.T, model.intercept_)


def _machine(data: ClassData, tol: float) -> Any:
    from trueline import LinearSVC

    return LinearSVC(loss=data.loss, fit_intercept=data.fit_intercept, tol=tol, max_iter=_ROUNDS)


def machine(data: ClassData, tol: float) -> Any:
    """The fitted model of a linear support vector machine."""
    return _machine(data, tol).fit(data.X, data.y)


def linear(data: ClassData, tol: float) -> Answer:
    """LinearSVC."""
    model = machine(data, tol)
    return Answer(model.coef_.ravel(), model.intercept_)


def scheme(data: ClassData, tol: float) -> Answer:
    """One-vs-rest or one-vs-one around LogisticRegression, or around LinearSVC."""
    from trueline import OneVsOneClassifier, OneVsRestClassifier

    wrapper = OneVsRestClassifier if data.scheme == "rest" else OneVsOneClassifier
    part = _logistic(data, tol) if data.loss == "logistic" else _machine(data, tol)
    return schemes_coef(wrapper(part).fit(data.X, data.y))


def _svc(data: KernelData, tol: float) -> Any:
    from trueline import SVC

    return SVC(C=data.C, gamma=data.gamma, tol=tol, cache_size=CACHE).fit(data.X, data.y)


def kernel_machine(data: KernelData, tol: float) -> Machine:
    """SVC with a Gaussian kernel."""
    return machine_of(_svc(data, tol))


def _fitted(data: KernelData) -> tuple[Any, Any]:
    return _svc(data, 1e-3), np.ascontiguousarray(data.queries)


# The gap to prove is the square of the tolerance (logistic), or a hundredth of it (hinge losses).
_ROOTS, _SHARES = half_decades(0, 7), half_decades(0, 9)

TUNED = {
    "logistic": Tuned(logistic, _ROOTS, 1e-3),
    "logistic_intercept": Tuned(logistic, _ROOTS, 1e-3),
    "logistic_l1": Tuned(logistic, _ROOTS, 1e-3),
    "softmax": Tuned(logistic, _ROOTS, 1e-3),
    "hinge": Tuned(linear, _SHARES, 1e-4),
    "squared_hinge": Tuned(linear, _SHARES, 1e-4),
    "one_vs_rest": Tuned(scheme, _ROOTS, 1e-3),
    "one_vs_one": Tuned(scheme, _ROOTS, 1e-3),
    "squared_hinge_one_vs_rest": Tuned(scheme, _SHARES, 1e-4),
    "squared_hinge_one_vs_one": Tuned(scheme, _SHARES, 1e-4),
    "svc": Tuned(kernel_machine, half_decades(1, 6), 1e-3),
    "svc_predict": Tuned(labels, convert=_fitted),
}
