"""Certificates: what is proven about a fit. :mod:`trueline.check` is the independent checker."""

from trueline.certificates.base import KINDS, Certificate
from trueline.check import Check, Verification, verify

__all__ = ["KINDS", "Certificate", "Check", "Verification", "verify"]
