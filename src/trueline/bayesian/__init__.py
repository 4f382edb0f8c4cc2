"""Bayesian linear regression: conjugate posteriors, evidence, relevance.

=====================  ===========================================================================
module                 holds
=====================  ===========================================================================
``conjugate``          the normal-inverse-gamma family: priors, posteriors, predictions, evidence
``evidence``           the two precisions of ridge regression that make the targets most probable
``relevance``          one precision per coefficient, and the coefficients that this removes
=====================  ===========================================================================

In: rows or their moments, and a prior. Out: posteriors, and precisions of maximum evidence.
"""

from trueline.bayesian.conjugate import NormalInverseGamma

__all__ = ["NormalInverseGamma"]
