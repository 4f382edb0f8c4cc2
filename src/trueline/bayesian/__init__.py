"""Bayesian linear regression: conjugate posteriors, evidence, relevance.

=====================  ===========================================================================
module                 holds
=====================  ===========================================================================
``conjugate``          the normal-inverse-gamma family: priors, posteriors, predictions, evidence
``spectrum``           a design rotated so that every strength of ridge regression is a division
``evidence``           the two precisions of ridge regression that make the targets most probable
``relevance``          one precision per coefficient, and the coefficients that this removes
=====================  ===========================================================================
"""

from trueline.bayesian.conjugate import NormalInverseGamma

__all__ = ["NormalInverseGamma"]
