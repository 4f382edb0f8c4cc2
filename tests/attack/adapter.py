"""The one place that calls the checker under attack."""

from __future__ import annotations

import warnings

from trueline.check import THEOREMS, verify

__all__ = ["Answer", "ask", "proof_kinds"]


def proof_kinds():
    """All kinds of proof there are."""
    return list(THEOREMS)


class Answer:
    """What the checker said: "proven", "conditional", "refused", "not computable" or "raised"."""

    def __init__(self, word, text=""):
        self.word, self.text = word, text

    def __repr__(self):
        return f"{self.word}: {self.text}" if self.text else self.word


def ask(certificate, X, y, weight):
    """Let the checker judge; whatever it raises is part of the answer."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a warning out of the checker is a fault too
            verification = verify(certificate, X, y, weight)
            holds = bool(verification)
    except Exception as error:
        return Answer("raised", f"{type(error).__name__}: {error}")
    if holds:
        return Answer("proven", getattr(verification, "statement", ""))
    if getattr(verification, "holds", False):
        return Answer("conditional", "; ".join(verification.conditions))
    failed = "; ".join(f"{c.name}: {c.found}" for c in verification.checks if not c.holds)
    word = "not computable" if "not computable" in failed else "refused"
    return Answer(word, failed)
