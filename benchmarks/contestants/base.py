"""What a contestant is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.objective import Answer, Data

__all__ = ["Contestant", "Fit", "Tuned", "half_decades"]

Fit = Callable[[Data], Answer]


def half_decades(loosest: int, tightest: int) -> tuple[float, ...]:
    """Tolerances 10^-loosest, 3 10^-(loosest + 1), ..., 10^-tightest: a fine ladder."""
    rungs = [f"1e-{loosest}"]
    for power in range(loosest + 1, tightest + 1):
        rungs += [f"3e-{power}", f"1e-{power}"]
    return tuple(float(rung) for rung in rungs)


@dataclass(frozen=True)
class Tuned:
    """A fit with a knob that decides how exact it is.

    Attributes
    ----------
    fit : function
        From Data and a rung of the ladder to an answer.
    ladder : tuple
        From loose to tight; the loosest rung that reaches the criterion is the one timed.
    start : float, optional
        The rung tried first: it saves calls, the answer does not depend on it.
    starts : mapping
        Other first rungs, for cases whose names begin so.
    cases : tuple of str
        Beginnings of the names of the cases it is for; all if empty.
    convert : function, optional
        From the data to what ``fit`` is given instead: the library's own format, or a fitted model
        where prediction is timed. Made once, and reported apart.
    has_own_folds : bool
        It draws folds of its own, and may choose another strength for that.
    """

    fit: Callable[[Any, Any], Any]
    ladder: tuple[Any, ...] = (None,)
    start: Any = None
    starts: Mapping[str, Any] = field(default_factory=dict)
    cases: tuple[str, ...] = ()
    convert: Callable[[Any], Any] | None = None
    has_own_folds: bool = False

    def first_rung(self, case: str) -> Any:
        """The rung tried first in a case."""
        return next((r for begin, r in self.starts.items() if case.startswith(begin)), self.start)

    def takes(self, case: str) -> bool:
        """Whether it takes part in a case."""
        return not self.cases or case.startswith(self.cases)


@dataclass(frozen=True)
class Contestant:
    """A library, or a way to use it.

    Attributes
    ----------
    name : str
        As the tables print it.
    fits : mapping from task to function
        Tasks: "least_squares", "ridge", "ridge_cv" (leave-one-out), "ridge_folds".
    tuned : mapping from task to Tuned
        Tasks of the sparse suite: "lasso_path", "lasso", "lasso_cv", "forward", "forward_folds",
        "best_subset", "certificate"; of the robust suite: "quantile", "quantiles", "maximum",
        "huber", "huber_scale", "svr", "svr_squared"; of the suite on separability: "separability",
        whose answers are true or false; of the Bayesian suite: "process", "bayesian_ridge";
        of the suite on classification: "logistic", "logistic_intercept", "logistic_l1", "hinge",
        "squared_hinge", "softmax", "one_vs_rest", "one_vs_one", "squared_hinge_one_vs_rest",
        "squared_hinge_one_vs_one"; of the suite on kernels: "svc", "svc_predict".
    package : str
        Its distribution, whose version is reported.
    is_guest : bool
        It may need an interpreter of its own (``--peer-python``).
    """

    name: str
    fits: Mapping[str, Fit] = field(default_factory=dict)
    tuned: Mapping[str, Tuned] = field(default_factory=dict)
    package: str = ""
    is_guest: bool = False
