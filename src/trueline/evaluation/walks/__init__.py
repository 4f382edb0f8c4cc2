"""All fits of a grid in one walk over the data of a fold.

A walk fits one model for many settings of its parameters to the training rows of a fold, and shares
between the settings what they have in common: moments, an eigendecomposition, or the solution of
the setting before. What has no walk is fitted setting by setting.

===========  ===================================================================================
module       fits
===========  ===================================================================================
``sets``     models that state their problem: one set of problems on the same rows
``shifted``  ridge regression on signs with sparse rows, as such a set
``squared``  least squares and ridge regression, also on signs: one eigendecomposition
``elastic``  lasso and elastic net: a path of solutions, from moments where rows are many
``refit``    (every model, one fit at a time)
===========  ===================================================================================
"""

from trueline.evaluation.walks.base import Fits, Walk
from trueline.evaluation.walks.choose import choose_walk

__all__ = ["Fits", "Walk", "choose_walk"]
