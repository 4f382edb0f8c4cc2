"""Certificates: what is proven about a fit. :mod:`trueline.check` is the independent checker.

In: a problem and a point, often with a dual point. Out: a certificate, a record of numbers that
says how far the point is from the optimum. Nothing here is trusted by the checker.
"""

from trueline.certificates.base import KINDS, Certificate
from trueline.check import Check, Verification, verify

__all__ = ["KINDS", "Certificate", "Check", "Verification", "verify"]
