"""The feature that is always one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from trueline.estimators.parameters import given, one_of, parameters
from trueline.features.base import FeatureMap

__all__ = ["ConstantFeature"]


@parameters()
class ConstantFeature(FeatureMap):
    """Put a column of ones beside the features: phi(x) = (1, x).

    The coefficient of the constant is an intercept that is penalised like any other coefficient,
    and that methods without an intercept of their own (a kernel, a perceptron of the textbook)
    can learn. Estimators with ``fit_intercept=True`` do not need it.

    Parameters
    ----------
    position : {"first", "last"}, default="first"
        On which side of the features the constant stands.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from trueline import ConstantFeature
    >>> constant = ConstantFeature()
    >>> constant.fit_transform([[2.0], [3.0]])
    array([[1., 2.],
           [1., 3.]])
    >>> list(constant.get_feature_names_out(["size"]))
    ['constant', 'size']
    """

    _takes_sparse = True
    position: str = given("first", one_of("first", "last"))

    def _learn(self, X: Any, y: Any) -> None:
        pass  # there is nothing to learn of a constant

    def _map(self, X: Any) -> Any:
        ones = np.ones((X.shape[0], 1), dtype=X.dtype)
        parts = [ones, X] if self.position == "first" else [X, ones]
        return sparse.hstack(parts, format="csr") if sparse.issparse(X) else np.hstack(parts)

    def _names(self, inputs: Sequence[str]) -> list[str]:
        return ["constant", *inputs] if self.position == "first" else [*inputs, "constant"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
