"""What a check ends with: proven, proven under a stated condition, or not proven."""

from __future__ import annotations

import html
from dataclasses import dataclass
from enum import Enum


class Refused(Exception):
    """The certificate or the data do not have the form that the claim needs."""


def told(error: Exception) -> str:
    """An exception in words, also one that has none."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


class TruelineError(Exception):
    """Base class of all errors that are trueline's own; here, where nothing else is imported."""


class VerificationError(TruelineError, ValueError):
    """A certificate was checked against the data and does not hold."""


class ProofFileError(TruelineError, ValueError):
    """A claim cannot be written to a proof file, or a file is none."""


class Verdict(Enum):
    """The three answers of the checker."""

    PROVEN = "proven"
    CONDITIONAL = "proven under a condition"
    NOT_PROVEN = "not proven"


@dataclass(frozen=True)
class Check:
    """One claim: its name, what was claimed, what was found, and whether it holds."""

    name: str
    claimed: str
    found: str
    holds: bool

    @classmethod
    def at_most(cls, name: str, claimed: float, found: float) -> Check:
        """That a number is no larger than claimed."""
        return cls(name, f"<= {claimed:.4g}", f"{found:.4g}", bool(found <= claimed))

    @classmethod
    def within(cls, name: str, claimed: float, allowed: float, found: float, error: float) -> Check:
        """That a number is the one claimed, up to the rounding that is allowed."""
        holds = bool(abs(found - claimed) + error <= allowed)
        claim = f"{claimed:.12g} within {allowed:.2g}"
        return cls(name, claim, f"{found:.12g} within {error:.2g}", holds)

    @classmethod
    def that(cls, name: str, claimed: str, holds: object) -> Check:
        """That something is so."""
        return cls(name, claimed, "yes" if holds else "no", bool(holds))


@dataclass(frozen=True, repr=False)
class Verification:
    """The outcome of all checks.

    Attributes
    ----------
    checks : tuple of Check
        One for each claim.
    statement : str
        What is proven, in a sentence.
    conditions : tuple of str
        What the statement presupposes beyond the data. If there are any, the statement is proven
        under these conditions only, and the verification is false in a boolean context.
    """

    checks: tuple[Check, ...]
    statement: str = ""
    conditions: tuple[str, ...] = ()

    @classmethod
    def refused(cls, reason: object) -> Verification:
        """The one check that fails where nothing could be computed."""
        return cls((Check("certificate and data fit each other", "yes", str(reason), False),))

    @property
    def holds(self) -> bool:
        """Whether every claim holds, given the conditions."""
        return bool(self.checks) and all(check.holds for check in self.checks)

    @property
    def verdict(self) -> Verdict:
        """Proven, proven under a condition, or not proven."""
        if not self.holds:
            return Verdict.NOT_PROVEN
        return Verdict.CONDITIONAL if self.conditions else Verdict.PROVEN

    def __bool__(self) -> bool:
        return self.verdict is Verdict.PROVEN

    def raise_if_false(self) -> None:
        """Raise :class:`VerificationError` that names what fails or what is presupposed."""
        failed = [check for check in self.checks if not check.holds]
        if failed or not self.checks:
            lines = [f"{c.name}: claimed {c.claimed}, found {c.found}" for c in failed]
            raise VerificationError("The certificate does not hold: " + "; ".join(lines) + ".")
        if self.conditions:
            raise VerificationError("Proven only if " + "; and if ".join(self.conditions) + ".")

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "<tr><th>check<th>claimed<th>found<th>"
        cells = [(c.name, c.claimed, c.found, "holds" if c.holds else "FAILS") for c in self.checks]
        body = "".join("<tr>" + "".join(f"<td>{html.escape(t)}" for t in row) for row in cells)
        ending = "<br>".join(html.escape(line) for line in self._ending())
        return f"<table>{head}{body}</table><p>{ending}</p>"

    def __str__(self) -> str:
        rows = [("check", "claimed", "found", "")]
        rows += [(c.name, c.claimed, c.found, "holds" if c.holds else "FAILS") for c in self.checks]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [
            "  ".join([*(row[i].ljust(widths[i]) for i in range(3)), row[3]]).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, *self._ending()])

    def _ending(self) -> list[str]:
        """What is proven, and whether everything holds."""
        endings = {
            Verdict.PROVEN: "The certificate holds.",
            Verdict.CONDITIONAL: "The certificate holds if "
            + "; and if ".join(self.conditions)
            + ".",
            Verdict.NOT_PROVEN: "The certificate does NOT hold.",
        }
        proven = [f"Proven: {self.statement}."] if self.statement and self.holds else []
        return [*proven, endings[self.verdict]]
