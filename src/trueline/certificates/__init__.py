"""Certificates: what is proven about a fit, and the independent checker."""

from trueline.certificates.base import KINDS, Certificate
from trueline.certificates.verify import Check, Verification, verify

__all__ = ["KINDS", "Certificate", "Check", "Verification", "verify"]
