"""Checking what is proven about a fitted model, also at the end of a pipeline."""

from __future__ import annotations

from typing import Any

from trueline.check import Verification

__all__ = ["verify"]


def verify(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
    """Check the proof of a fitted model against its data.

    Of a pipeline the last step is checked, on the rows as the steps before transform them: what is
    proven is that this model fits these transformed rows as well as it says. Of a search such as
    ``GridSearchCV`` it is the model that was fitted to all rows.

    Parameters
    ----------
    model : estimator
        An estimator of this package, or a scikit-learn ``Pipeline`` that ends in one.
    X : array-like, sparse matrix or DataFrame with n rows
        The rows that were fitted, as the pipeline takes them.
    y : array-like of shape (n,) or (n, k), optional
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    verification : Verification
        True in a boolean context if the claim is proven without any condition.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import trueline
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 4.0])
    >>> model = make_pipeline(StandardScaler(), trueline.Ridge()).fit(X, y)
    >>> bool(trueline.verify(model, X, y))
    True
    """
    if hasattr(model, "steps"):
        if len(model.steps) > 1:
            X = model[:-1].transform(X)
        return verify(model[-1], X, y, sample_weight)
    if hasattr(model, "best_estimator_"):
        return verify(model.best_estimator_, X, y, sample_weight)
    if not hasattr(model, "verify"):
        raise TypeError(
            f"{type(model).__name__} claims nothing that can be verified: give a fitted estimator "
            "of trueline, or a pipeline that ends in one."
        )
    given = {} if sample_weight is None else {"sample_weight": sample_weight}
    result: Verification = model.verify(X, **given) if y is None else model.verify(X, y, **given)
    return result
