"""scikit-learn's classifiers, for the suites on classification and on kernels."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.classification.objective import ClassData
from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.contestants.formats import CACHE, labels, machine_of, schemes_coef
from benchmarks.kernels.objective import KernelData, Machine
from benchmarks.objective import Answer

__all__ = ["CONTESTANTS", "DUAL", "KERNEL", "PRIMAL", "kernel_tasks", "logistic"]

# The tolerance alone ends a fit.
_ROUNDS = 100_000


def _logistic(data: ClassData, tol: float, solver: str, dual: bool = False) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(
        l1_ratio=1.0 if data.penalty == "l1" else 0.0,
        fit_intercept=data.fit_intercept,
        solver=solver,
        dual=dual,
        tol=tol,
        max_iter=_ROUNDS,
        random_state=0,
    )


def logistic(data: ClassData, tol: float, solver: str, dual: bool = False) -> Answer:
    """LogisticRegression, of two classes or more."""
    model = _logistic(data, tol, solver, dual).fit(data.X, data.y)
    return Answer(model.coef_.T, model.intercept_)


def _linear(data: ClassData, tol: float, dual: bool) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(
        loss=data.loss,
        dual=dual,
        fit_intercept=data.fit_intercept,
        tol=tol,
        max_iter=_ROUNDS,
        random_state=0,
    )


def linear(data: ClassData, tol: float, dual: bool) -> Answer:
    """LinearSVC: LIBLINEAR on the dual, or on the primal (the squared loss alone)."""
    model = _linear(data, tol, dual).fit(data.X, data.y)
    return Answer(model.coef_.ravel(), model.intercept_)


def scheme(data: ClassData, tol: float, solver: str, n_jobs: int | None = None) -> Answer:
    """One-vs-rest or one-vs-one around LogisticRegression, in one process or in several."""
    return _wrapped(data, _logistic(data, tol, solver), n_jobs)


def scheme_of_machines(data: ClassData, tol: float, n_jobs: int | None = None) -> Answer:
    """One-vs-rest or one-vs-one around LinearSVC, LIBLINEAR on the primal."""
    return _wrapped(data, _linear(data, tol, dual=False), n_jobs)


def _wrapped(data: ClassData, part: Any, n_jobs: int | None) -> Answer:
    from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier

    wrapper = OneVsRestClassifier if data.scheme == "rest" else OneVsOneClassifier
    return schemes_coef(wrapper(part, n_jobs=n_jobs).fit(data.X, data.y))


def _svc(data: KernelData, tol: float, module: str) -> Any:
    from importlib import import_module

    SVC = import_module(f"{module}.svm").SVC
    return SVC(C=data.C, gamma=data.gamma, tol=tol, cache_size=CACHE).fit(data.X, data.y)


def _machine(data: KernelData, tol: float, module: str) -> Machine:
    return machine_of(_svc(data, tol, module))


def _fitted(data: KernelData, module: str) -> tuple[Any, Any]:
    return _svc(data, 1e-3, module), data.queries


def kernel_tasks(module: str) -> dict[str, Tuned]:
    """SVC of scikit-learn, or of a library with the same classes: fit, and predictions."""
    return {
        "svc": Tuned(partial(_machine, module=module), half_decades(1, 6), 1e-3),
        "svc_predict": Tuned(labels, convert=partial(_fitted, module=module)),
    }


_LADDER = half_decades(0, 9)
KERNEL = kernel_tasks("sklearn")
#: LIBLINEAR on the dual, and on the primal.
DUAL = {
    "logistic": Tuned(partial(logistic, solver="liblinear", dual=True), _LADDER, 1e-2),
    "hinge": Tuned(partial(linear, dual=True), _LADDER, 1e-2),
    "squared_hinge": Tuned(partial(linear, dual=True), _LADDER, 1e-2),
}
PRIMAL = {
    "logistic": Tuned(partial(logistic, solver="liblinear"), _LADDER, 1e-3),
    "logistic_l1": Tuned(partial(logistic, solver="liblinear"), _LADDER, 1e-3),
    "squared_hinge": Tuned(partial(linear, dual=False), _LADDER, 1e-4),
    "one_vs_rest": Tuned(partial(scheme, solver="liblinear"), _LADDER, 1e-3),
    "one_vs_one": Tuned(partial(scheme, solver="liblinear"), _LADDER, 1e-3),
    "squared_hinge_one_vs_rest": Tuned(scheme_of_machines, _LADDER, 1e-4),
    "squared_hinge_one_vs_one": Tuned(scheme_of_machines, _LADDER, 1e-4),
}


def _solver(name: str, start: float, *tasks: str, cases: tuple[str, ...] = ()) -> Contestant:
    fit, parts = partial(logistic, solver=name), partial(scheme, solver=name)
    tuned = {
        task: Tuned(parts if task.startswith("one") else fit, _LADDER, start, cases=cases)
        for task in tasks
    }
    return Contestant(f"scikit-learn {name}", tuned=tuned, package="scikit-learn")


def _in_processes(name: str, start: float) -> Contestant:
    """The schemes with a process for each core."""
    fit = partial(scheme, solver=name, n_jobs=-1)
    tuned = {task: Tuned(fit, _LADDER, start) for task in ("one_vs_rest", "one_vs_one")}
    return Contestant(f"scikit-learn {name}, all cores", tuned=tuned, package="scikit-learn")


_SMOOTH = ("logistic", "logistic_intercept", "softmax")
_SCHEMES = ("one_vs_rest", "one_vs_one")
# Matrices of columns by columns, which 200,000 columns do not allow.
_FEW_COLUMNS = ("logistic_dense", "rest", "one", "softmax")

CONTESTANTS = (
    _solver("lbfgs", 1e-4, *_SMOOTH, *_SCHEMES),
    _solver("newton-cg", 1e-4, *_SMOOTH, *_SCHEMES),
    _solver("newton-cholesky", 1e-4, "logistic", "softmax", *_SCHEMES, cases=_FEW_COLUMNS),
    _solver("sag", 1e-3, "logistic", "softmax"),
    _solver("saga", 1e-3, "logistic", "logistic_l1", "softmax"),
    _in_processes("lbfgs", 1e-4),
    _in_processes("newton-cholesky", 1e-4),
)
