"""The certificates of the parts, as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from trueline.certificates.base import Certificate
from trueline.check import Check, Verification
from trueline.wording import Readable, counted, relative

__all__ = ["CombinedCertificate", "certified_parts", "verified_parts"]


def certified_parts(whole: Any, parts: Iterable[Any]) -> tuple[Any, ...]:
    """The certificates of fitted parts; raises if one brings none.

    Parameters
    ----------
    whole : estimator
        What is made of the parts, for messages.
    parts : iterable of estimators
    """
    parts = tuple(parts)
    for part in parts:
        if not hasattr(part, "certificate_"):
            kind = type(part)
            raise AttributeError(
                f"This {type(whole).__name__} has no certificate_: it would be made of those of "
                f"its parts, and {kind.__module__.partition('.')[0]}'s {kind.__name__} brings "
                "none. Wrap an estimator of trueline to have one."
            )
    return tuple(part.certificate_ for part in parts)


def verified_parts(outcomes: Iterable[tuple[str, Verification]]) -> Verification:
    """What was checked and is proven of all parts; the conditions of each are those of the whole.

    Examples
    --------
    >>> from trueline.check import Check, Verification
    >>> parts = [Verification((Check("gap", "0", "0", True),), "it is best", ("it is near",))]
    >>> print(verified_parts(zip("a", parts)))
    check   claimed  found
    a: gap  0        0      holds
    Proven: a: it is best.
    The certificate holds if a: it is near.
    """
    checks: list[Check] = []
    statements, conditions = [], []
    for name, part in outcomes:
        checks += (replace(check, name=f"{name}: {check.name}") for check in part.checks)
        statements += [f"{name}: {part.statement}"] if part.statement else []
        conditions += [f"{name}: {condition}" for condition in part.conditions]
    return Verification(tuple(checks), "; ".join(statements), tuple(conditions))


@dataclass(frozen=True, repr=False)
class CombinedCertificate(Readable):
    """What is proven about the fits that a model is made of, one by one and in sum.

    The problems do not interact, so that the sum of their objectives is proven within the sum of
    their gaps of its optimum.

    Attributes
    ----------
    names : tuple of str
        The problems.
    parts : tuple of Certificate
        One certificate for each; of a scheme within a scheme, one that is combined itself.
    fit : str
        What a part is called.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from trueline import OneVsRestClassifier, RidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> certificate = OneVsRestClassifier(RidgeClassifier()).fit(X, y).certificate_
    >>> certificate.names
    ('0 against the rest', '1 against the rest', '2 against the rest')
    >>> bool(certificate.relative_gap < 1e-12), bool(certificate.verify(X, y))
    (True, True)
    """

    names: tuple[str, ...]
    parts: tuple[Certificate | CombinedCertificate, ...]
    _verify: Callable[[Any, Any, Any], Verification] = field(repr=False, compare=False)
    fit: str = "binary fit"

    @property
    def objective(self) -> float:
        """The sum of the objectives."""
        return sum(part.objective for part in self.parts)

    @property
    def objective_rounding(self) -> float:
        """The sum of the bounds on their rounding, and that of the sum itself."""
        own = 2.3e-16 * len(self.parts) * sum(abs(part.objective) for part in self.parts)
        return sum(part.objective_rounding for part in self.parts) + own

    @property
    def gap(self) -> float:
        """The sum of the gaps."""
        return sum(part.gap for part in self.parts) * (1 + 2.3e-16 * len(self.parts))

    @property
    def lower_bound(self) -> float:
        """A number that the optimum of the sum is proven not to lie below."""
        return self.objective - self.objective_rounding - self.gap

    @property
    def relative_gap(self) -> float:
        """The gap divided by the objective."""
        if self.gap <= 1e-280:
            return 0.0
        return self.gap / abs(self.objective) if self.objective else float("inf")

    @property
    def kind(self) -> str:
        """The kinds of proof of the parts."""
        return ", ".join(sorted({part.kind for part in self.parts}))

    @property
    def statement(self) -> str:
        """What is proven, in a sentence."""
        return f"each of {counted(len(self.parts), self.fit)} by itself ({self.kind})"

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Verification:
        """Check every part's claims against its own rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows that were fitted.
        y : array-like of shape (n,) or (n, k)
            Their labels.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        verification : Verification
            True in a boolean context if everything holds for every part.
        """
        try:
            return self._verify(X, y, sample_weight)
        except ValueError as error:
            return Verification.refused(error)

    def __str__(self) -> str:
        return (
            f"objective {self.objective:.10g}, proven within {self.gap:.3g} of the optimum "
            f"({relative(self.relative_gap)}); {self.statement}"
        )
