"""One random problem: what is fitted, what it should reach, and the verdict on what it reached.

A family is a function ``generate(rng) -> Case``. The reference of a case is the objective at some
point, in double precision, that was found without trueline, hence never below the optimum: a fit
that is called wrong is wrong, however inaccurate the reference.
"""

from __future__ import annotations

import math
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

__all__ = ["Case", "Generate", "Report", "Verdict", "judge", "run"]

#: A fit is wrong if it is further than this from the reference, relative to the case's scale.
TOLERANCE = 1e-6
# Of the scale: what the value and the reference may err by rounding.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Case:
    """A problem to fit.

    Attributes
    ----------
    estimator : estimator
        Not fitted yet.
    X, y, sample_weight : arrays
    value : callable
        From the fitted estimator to its objective, by formulas of the family's own.
    reference : callable
        From the fitted estimator (which may have chosen a strength) to the objective that others
        reach.
    scale : float
        What the distance of the two is compared with: the objective of the best constant, usually.
    note : str
        The problem in a line, for whoever replays it.
    """

    estimator: Any
    X: Any
    y: Any
    sample_weight: Any
    value: Callable[[Any], float]
    reference: Callable[[Any], float]
    scale: float
    note: str


Generate = Callable[[np.random.Generator], Case]


@dataclass(frozen=True)
class Verdict:
    """What came out of one fit; ``faults`` is empty if all is as it should be."""

    faults: tuple[str, ...] = ()
    is_warned: bool = False
    is_conditional: bool = False
    text: str = ""


class _TooLongError(Exception):
    pass


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise after so many seconds of computing, where the system can; waiting does not count."""

    def stop(*_: Any) -> None:
        raise _TooLongError

    if not hasattr(signal, "SIGPROF"):
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def judge(case: Case, seconds: float = 60.0, verified: bool = False) -> Verdict:
    """Fit a case and compare.

    The faults: "exception", "hung", "wrong" (too far from the reference without a word),
    "unproven" (a gap above the tolerance without a word), "false gap" (the distance exceeds the
    gap that is claimed), "not verified" (the checker does not accept the certificate). A proof
    that holds under a stated condition is counted, and is no fault.
    """
    model = case.estimator
    try:
        with _limited(seconds), warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            model.fit(case.X, case.y, **_weights(case))
            certificate = getattr(model, "certificate_", None)
    except _TooLongError:
        return Verdict(("hung",), text=f"longer than {seconds:g} s")
    except Exception as error:
        return Verdict(("exception",), text=f"{type(error).__name__}: {error}")
    said = [str(w.message) for w in heard if issubclass(w.category, ConvergenceWarning)]
    others = [str(w.message) for w in heard if not issubclass(w.category, ConvergenceWarning)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a reference has to say of itself
        distance = case.value(model) - case.reference(model)
    relative = distance / case.scale if case.scale > 0 else math.copysign(math.inf, distance)
    faults = []
    gap, is_conditional = math.nan, False
    # Where the best constant fits exactly, nothing is left to compare with but rounding.
    rounding = 0.0 if certificate is None else certificate.objective_rounding
    if not relative <= TOLERANCE and distance > rounding and not said:
        faults.append("wrong")
    if certificate is not None:
        gap = certificate.gap
        if not gap <= TOLERANCE * case.scale + 4 * rounding and not said:
            faults.append("unproven")
        unseen = certificate.objective_rounding + _ROUNDING * case.scale
        if (
            certificate.kind == "row space"
        ):  # it says nothing of what rounding cannot tell from zero
            unseen += TOLERANCE * case.scale
        if distance > gap * (1 + 1e-9) + unseen:
            faults.append("false gap")
        if verified and not said:
            verification = model.verify(case.X, case.y, case.sample_weight)
            is_conditional = verification.holds and not verification
            if not verification.holds:
                faults.append("not verified")
    if others:
        faults.append("other warning")
    proof = "" if certificate is None else f", gap {gap / max(case.scale, 1e-300):.2g}"
    proof += "" if certificate is None else f" ({certificate.kind})"
    text = f"distance {relative:.2g}{proof}; {'; '.join([*said, *others])[:200]}"
    return Verdict(tuple(faults), bool(said), is_conditional, text)


def _weights(case: Case) -> dict[str, Any]:
    return {} if case.sample_weight is None else {"sample_weight": case.sample_weight}


@dataclass
class Report:
    """Counts over many fits, and where to find those that are at fault."""

    fits: int = 0
    warned: int = 0
    conditional: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)

    def add(self, verdict: Verdict, line: str) -> None:
        self.fits += 1
        self.warned += verdict.is_warned
        self.conditional += verdict.is_conditional
        self.faults.update(verdict.faults)
        if verdict.faults:
            self.lines.append(line)

    def __str__(self) -> str:
        names = ("wrong", "exception", "hung", "unproven", "false gap", "not verified")
        counts = [f"{name} {self.faults[name]}" for name in names]
        told = [f"warned {self.warned}", f"proven under a condition {self.conditional}"]
        return ", ".join([f"fits {self.fits}", *told, *counts])


def run(
    generate: Generate,
    seed: int,
    numbers: range,
    tell: Callable[[str], None],
    seconds: float = 60.0,
    verified: bool = False,
) -> Report:
    """Fit the problems of these numbers; each has a generator of its own, to be replayed alone."""
    report = Report()
    for number in numbers:
        case = generate(np.random.default_rng([seed, number]))
        verdict = judge(case, seconds, verified)
        line = f"{number}: {', '.join(verdict.faults)}: {case.note}: {verdict.text}"
        report.add(verdict, line)
        if verdict.faults:
            tell(line)
    return report
