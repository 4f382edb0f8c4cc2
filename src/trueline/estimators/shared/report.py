"""What is said and proven of a fitted model: explanations, and the check of a proof.

An explanation is the plan before a fit; the plan, what happened and the proof after it.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from trueline.certificates.base import Certificate
from trueline.check import Verification
from trueline.estimators.shared.parameters import marked, named_by, tied
from trueline.estimators.shared.validation import unpacked
from trueline.penalties import Penalty
from trueline.plan import Plan, normal_equations_by_hand
from trueline.wording import Readable, Text, counted


@dataclass(frozen=True, repr=False)
class Explanation(Readable):
    """Prints as text; ``table()`` gives the solvers that were considered as rows."""

    plan: Plan
    facts: Mapping[str, Any] | None = None
    certificate: Certificate | None = None
    #: What is chosen before the fit that the plan is about, and how; one line each.
    search: Sequence[str] = ()
    #: The steps of the textbook's method with their costs; one line each.
    by_hand: Sequence[str] = ()
    #: Whether every solver is listed, those for other losses and penalties too.
    all: bool = False

    def table(self) -> list[dict[str, object]]:
        """One row per solver: estimates and verdict."""
        return self.plan.table()

    def __str__(self) -> str:
        lines = [self.plan.text(self.all)]
        lines += [f"{'' if i else 'search':<11}{line}" for i, line in enumerate(self.search)]
        lines += [f"{'' if i else 'by hand':<11}{line}" for i, line in enumerate(self.by_hand)]
        if self.facts is not None:
            facts = self.facts
            lines += [f"rows       {facts['rows']}"] if "rows" in facts else []
            lines.append(
                f"happened   {facts['solver']}, {counted(facts['n_iter'], 'iteration')}, "
                f"{facts['seconds']:.3g} s: {facts['status']}"
            )
            lines += [f"           {note}" for note in facts["notes"]]
            if "threads" in facts:
                lines.append(f"threads    {threads_text(*facts['threads'])}")
            stages = facts.get("stages", ())
            for i, stage in enumerate(stages if len(stages) > 1 else ()):
                lines.append(f"{'' if i else 'stages':<11}{i + 1}. {_stage_text(*stage)}")
        if self.certificate is not None:
            lines.append(f"proof      {self.certificate}")
            lines.append(f"           {self.certificate.statement}")
        return "\n".join(lines)


def threads_text(
    used: int, allowed: int, strands: int, share: float, *, rest: str = "ran on one thread"
) -> str:
    """How many threads were used, and what bounds them."""
    threads = f"{used} of {counted(allowed, 'thread')}"
    if strands == 1:
        return f"{threads}: no part of the work was worth sharing"
    work = f"{share:.0%} of the time went into work cut into up to {strands} parts"
    if allowed == 1:
        return f"{threads}: no more are allowed; {work}"
    return f"{threads}: {work}, the rest {rest}"


def in_given_terms(
    plan: Plan, symbol: str, penalty: Penalty | None, total: float | None, given: float | None
) -> Plan:
    """The same plan, its objective written with the strength that the user gave.

    The objective is a sum over rows. What multiplies the penalty there is ``alpha`` itself, or
    follows from what was given: ``n alpha`` for estimators whose alpha is that of a mean (as in
    scikit-learn), ``1/C`` for those that take C. Both are shown, the given one first.

    Parameters
    ----------
    plan : Plan
    symbol : {"alpha", "n alpha", "1/C"}
    penalty : Penalty, optional
        As it stands in the objective.
    total : float, optional
        The sum of the weights n, where it is known.
    given : float, optional
        The strength that was given, where the sum of the weights is not known.
    """
    part: Any = getattr(penalty, "base", penalty)
    inside = getattr(part, "alpha", None)
    if symbol == "alpha" or inside is None:
        return plan
    formula, *numbers = plan.objective.split(",  ")
    if symbol == "1/C":
        name, value = "C", _one_number(1.0 / np.asarray(inside, dtype=float))
        formula = formula.replace("alpha/2", "1/(2 C)")
    else:
        count = "sum(s)" if "sum_i s_i" in formula else "n"
        name, symbol = "alpha", f"{count} alpha"
        value = given if total is None else _one_number(np.asarray(inside, dtype=float) / total)
        formula = formula.replace("l2/2", f"{count} l2/2")
    formula = re.sub(r"\balpha\b", symbol, formula)
    shown = []
    for number in numbers:
        if number.startswith("alpha = ") and value is not None:
            shown += [f"{name} = {value:g}", f"{symbol} = {inside:g}"]
        elif number.startswith("l2 = ") and total is not None:
            shown.append(f"l2 = {part.l2 / total:g}")
        else:
            shown.append(number)
    if np.ndim(inside) and given is not None:  # every column has its own
        shown.append(f"{name} = {given:g}, times the weight of a column")
    return replace(plan, objective=",  ".join([formula, *shown]))


def _one_number(values: Any) -> float | None:
    """The only value there is; None if columns or targets have their own."""
    return float(values) if np.ndim(values) == 0 else None


def _stage_text(solver: str, n_iter: int, seconds: float, gap: float, status: str) -> str:
    """One of several solvers that ran, and what was proven of its answer."""
    iterations = counted(n_iter, "iteration")
    proven = f"proven within {gap:.3g} of the optimum" if gap < np.inf else "nothing proven"
    return f"{solver}, {iterations}, {seconds:.3g} s, {proven}: {status}"


class ExplainMixin:
    """Adds ``explain`` to estimators without a plan: they give its lines of text."""

    @abstractmethod
    def _lines_planned(self, X: Any, y: Any) -> Iterable[str]:
        """What a fit to these data would do."""

    @abstractmethod
    def _lines_done(self) -> Iterable[str]:
        """What was done in the last fit, and what is proven."""

    def explain(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, all: bool = False
    ) -> Text:
        """Say what will be done with (X, y), or what was done in the last fit and what is proven.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), optional
            With ``y``: say what would be done with these data, without doing it.
        y : array-like of shape (n,), optional
        sample_weight : array-like of shape (n,), optional
            Accepted; the plan does not depend on it.
        all : bool, default=False
            Accepted; there are no solvers of other problems to list.

        Returns
        -------
        explanation : str
            Shown line by line.
        """
        if X is not None:
            return Text("\n".join(self._lines_planned(X, y)))
        check_is_fitted(self)
        return Text("\n".join(self._lines_done()))


def steps_by_hand(plan: Plan, stated: Any) -> list[str]:
    """The steps of the normal equations, where these are what there is to solve."""
    loss, penalty = getattr(stated, "loss", None), getattr(stated, "penalty", None)
    if loss is None or penalty is None or plan.facts.is_sparse:
        return []
    is_square = "quadratic" in loss.capabilities
    is_square &= {"smooth", "quadratic"} <= penalty.capabilities
    return normal_equations_by_hand(plan.facts) if is_square else []


class Certified:
    """Adds ``verify`` to a model that has a ``certificate_``."""

    _as_fitted: dict[str, Any]

    @property
    @abstractmethod
    def certificate_(self) -> Any:
        """What is proven about the model as it is now."""

    @abstractmethod
    def _predicting(self) -> dict[str, Any]:
        """What predictions are made of, and what the statement is about."""

    def _rows_kept(self, X: Any) -> dict[str, bool]:
        """Whether the training rows that predictions need are still those of the data, by name."""
        return {}

    def _mark_fitted(self) -> None:
        """Remember what predictions are made of, so that later changes are noticed."""
        self._as_fitted = marked({**named_by(self), **self._predicting()})

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
        """Check the certificate against the data that were fitted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        verification : Verification
            True in a boolean context if every claim holds.
        """
        X, y, sample_weight = unpacked(X, y, sample_weight)

        def check() -> Verification:
            return self.certificate_.verify(X, y, sample_weight)

        before, now = self.__dict__.get("_as_fitted", {}), {**named_by(self), **self._predicting()}
        return tied(before, now, check, **self._rows_kept(X))


def verify(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
    """Check the proof of a fitted model against its data.

    Of a pipeline the last step is checked, on the rows as the steps before transform them: what is
    proven is that this model fits these transformed rows as well as it says. Of a search such as
    ``GridSearchCV`` it is the model that was fitted to all rows.

    Parameters
    ----------
    model : estimator
        An estimator of this package, or a scikit-learn ``Pipeline`` that ends in one.
    X : array-like, sparse matrix or DataFrame with n rows
        The rows that were fitted, as the pipeline takes them.
    y : array-like of shape (n,) or (n, k), optional
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    verification : Verification
        True in a boolean context if the claim is proven without any condition.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import trueline
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 4.0])
    >>> model = make_pipeline(StandardScaler(), trueline.Ridge()).fit(X, y)
    >>> bool(trueline.verify(model, X, y))
    True
    """
    if hasattr(model, "steps"):
        if len(model.steps) > 1:
            X = model[:-1].transform(X)
        return verify(model[-1], X, y, sample_weight)
    if hasattr(model, "best_estimator_"):
        return verify(model.best_estimator_, X, y, sample_weight)
    if not hasattr(model, "verify"):
        raise TypeError(
            f"{type(model).__name__} claims nothing that can be verified: give a fitted estimator "
            "of trueline, or a pipeline that ends in one."
        )
    given = {} if sample_weight is None else {"sample_weight": sample_weight}
    result: Verification = model.verify(X, **given) if y is None else model.verify(X, y, **given)
    return result
