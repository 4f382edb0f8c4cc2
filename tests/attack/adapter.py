"""The one place that calls the checker under attack."""

from __future__ import annotations

import warnings

__all__ = ["Answer", "ask", "proof_kinds"]

try:
    from trueline.check import THEOREMS, verify
except ImportError:  # before there was a checker that stands alone
    THEOREMS, verify = {}, None


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
            verification = _verify(certificate, X, y, weight)
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


def _verify(certificate, X, y, weight):
    import os

    if os.environ.get("TRUELINE_ATTACK_OLD"):
        return _old(certificate, X, y, weight)
    return verify(certificate, X, y, weight)


def _old(certificate, X, y, weight):
    """The checkers that the provers share code with."""
    from trueline.certificates.base import Certificate
    from trueline.certificates.verify import verify as old

    if isinstance(certificate, dict):
        raise NotImplementedError
    if isinstance(certificate, Certificate):
        return old(certificate, X, y, weight)
    if hasattr(certificate, "machine") or hasattr(certificate, "slope"):
        return certificate.verify(X, y, weight)
    return certificate.verify(X, y)
