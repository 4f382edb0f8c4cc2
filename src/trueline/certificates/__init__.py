"""Certificates: what is proven about a fit. :mod:`trueline.check` is the independent checker.

In: a problem and a point, often with a dual point. Out: a certificate, a record of numbers that
says how far the point is from the optimum. Nothing here is trusted by the checker.

``choose``      which proof fits a problem
``quadratic``   squared loss with a quadratic penalty or none: by its curvature
``fenchel``     squared loss with other penalties (the lasso): the residual as the dual point
``duality``     every loss and penalty with a conjugate: a dual point
``tangent``     losses of margins: their tangent at the scores
``curvature``   losses with curvature around the answer
``bounded``     the gradient alone, for coefficients within a stated radius
``kernel``      kernel machines
``special``     problems with a method of their own
``evaluation``  what all of them need: a problem at a point, with bounds on rounding
``base``        the certificate
"""

from trueline.certificates.base import KINDS, Certificate
from trueline.check import Check, Verification, verify

__all__ = ["KINDS", "Certificate", "Check", "Verification", "verify"]
