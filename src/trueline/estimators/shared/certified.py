"""Proofs and explanations of models that are no linear estimators, and of models in pipelines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from sklearn.utils.validation import check_is_fitted

from trueline.check import Verification
from trueline.estimators.shared.as_fitted import marked, tied
from trueline.wording import Text

__all__ = ["Certified", "Explained", "verify"]


class Explained:
    """Adds ``explain``, which asks for lines of text."""

    @abstractmethod
    def _lines_planned(self, X: Any, y: Any) -> Iterable[str]:
        """What a fit to these data would do."""

    @abstractmethod
    def _lines_done(self) -> Iterable[str]:
        """What was done in the last fit, and what is proven."""

    def explain(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, all: bool = False
    ) -> Text:
        """Say what will be done with (X, y), or what was done in the last fit and what is proven.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), optional
            With ``y``: say what would be done with these data, without doing it.
        y : array-like of shape (n,), optional
        sample_weight : array-like of shape (n,), optional
            Accepted; the plan does not depend on it.
        all : bool, default=False
            Accepted; there are no solvers of other problems to list.

        Returns
        -------
        explanation : str
            Shown line by line.
        """
        if X is not None:
            return Text("\n".join(self._lines_planned(X, y)))
        check_is_fitted(self)
        return Text("\n".join(self._lines_done()))


class Certified:
    """Adds ``verify`` to a model that has a ``certificate_``."""

    _as_fitted: dict[str, Any]

    @property
    @abstractmethod
    def certificate_(self) -> Any:
        """What is proven about the model as it is now."""

    @abstractmethod
    def _predicting(self) -> dict[str, Any]:
        """What predictions are made of, and what the statement is about."""

    def _rows_kept(self, X: Any) -> dict[str, bool]:
        """Whether the training rows that predictions need are still those of the data, by name."""
        return {}

    def _mark_fitted(self) -> None:
        """Remember what predictions are made of, so that later changes are noticed."""
        self._as_fitted = marked(self._predicting())

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
        """Check the certificate against the data that were fitted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        verification : Verification
            True in a boolean context if every claim holds.
        """
        verification = self.certificate_.verify(X, y, sample_weight)
        return tied(self._as_fitted, self._predicting(), verification, **self._rows_kept(X))


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
