"""What a walk is, and what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from trueline.evaluation.task import FoldRows
from trueline.guard import Verdict

__all__ = ["EstimatorFits", "Fits", "LinearFits", "Setting", "Walk", "linear_clone"]

Array = NDArray[np.float64]
Setting = dict[str, Any]


class Fits(ABC):
    """The fits of all settings to the training rows of one fold.

    Attributes
    ----------
    verdicts : sequence of Verdict
        Whether each fit got as near to its minimum as was asked for, as far as that is known.
    """

    verdicts: Sequence[Verdict] = ()

    @abstractmethod
    def estimator(self, number: int) -> Any:
        """The fitted estimator of one setting."""

    def predictions(self, fold: FoldRows, part: str) -> NDArray[Any] | None:
        """Predictions of all settings, of shape (n, settings), if they are cheaper together.

        Positions of classes for classifiers.
        """
        return None


@dataclass
class EstimatorFits(Fits):
    """Fitted estimators."""

    estimators: list[Any]

    def __post_init__(self) -> None:
        self.verdicts = [verdict for one in self.estimators for verdict in _verdicts_of(one)]

    def estimator(self, number: int) -> Any:
        return self.estimators[number]


def _verdicts_of(model: Any) -> list[Verdict]:
    """What a fitted estimator of this package says of its fit; nothing of others."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    facts = getattr(last, "_solution_facts", None)
    if facts is None or "allowed" not in facts:
        return []
    if facts["is_final"]:
        return [Verdict(True, 0.0, facts["allowed"])]
    return [Verdict(False, float(last.certificate_.gap), facts["allowed"])]


@dataclass
class LinearFits(Fits):
    """Coefficients of all settings.

    Attributes
    ----------
    W : array of shape (d, settings, k)
    b : array of shape (settings, k)
    make : callable
        The estimator with given coefficients, of setting number i.
    is_classifier : bool
    """

    W: Array
    b: Array
    make: Callable[[int, Array, Array], Any]
    is_classifier: bool
    verdicts: Sequence[Verdict] = ()

    def estimator(self, number: int) -> Any:
        return self.make(number, self.W[:, number], self.b[number])

    def predictions(self, fold: FoldRows, part: str) -> NDArray[Any] | None:
        X = fold.matrix(part)
        m, k = self.b.shape
        scores = np.asarray(X @ self.W.reshape(len(self.W), m * k)).reshape(-1, m, k) + self.b
        if not self.is_classifier:
            return scores[:, :, 0] if k == 1 else None
        return (scores[:, :, 0] > 0).astype(np.intp) if k == 1 else scores.argmax(axis=2)


class Walk(ABC):
    """One model, many settings.

    Attributes
    ----------
    route : str
        How the fits are found, for people.
    """

    route: str

    def __init__(self, model: Any, settings: Sequence[Setting]) -> None:
        self.model, self.settings = model, list(settings)

    @abstractmethod
    def fit(self, fold: FoldRows) -> Fits:
        """All settings, fitted to the training rows."""

    def values(self, name: str) -> list[Any]:
        """One parameter in all settings."""
        default = getattr(self.model, name)
        return [setting.get(name, default) for setting in self.settings]

    def as_linear(
        self, fold: FoldRows, W: Array, b: Array, verdicts: Sequence[Verdict] = ()
    ) -> LinearFits:
        """Coefficients (d, settings, k) and intercepts (settings, k) as fits."""
        task = fold.task

        def make(number: int, coef: Array, level: Array) -> Any:
            return linear_clone(self.model, self.settings[number], task, coef, level)

        return LinearFits(W, b, make, task.is_classifier, verdicts)


def linear_clone(model: Any, setting: Setting, task: Any, W: Array, b: Array) -> Any:
    """The model with coefficients W of shape (d, k) and intercepts b, without a proof."""
    own = clone(model).set_params(**setting)
    own.n_features_in_ = len(W)
    if task.names is not None:
        own.feature_names_in_ = task.names
    if not task.is_classifier:
        own.coef_, own.intercept_ = W[:, 0].copy(), float(b[0])
        return own
    classes = task.labels[0]
    own.classes_, own._present, own._is_multilabel = classes, np.arange(len(classes)), False
    own.coef_, own.intercept_ = np.ascontiguousarray(W.T), np.array(b)
    if type(own).__name__ == "RidgeClassifier" and len(classes) == 2:
        own.coef_, own.intercept_ = own.coef_[0], own.intercept_[0]
    return own
