"""Passive-aggressive classification."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from trueline.estimators.online import OnlineClassifier
from trueline.online import rules

__all__ = ["PassiveAggressiveClassifier"]

_FORMS = {"hinge": "PA-I", "squared_hinge": "PA-II", "hard": "PA"}


class PassiveAggressiveClassifier(OnlineClassifier):
    r"""Move as little as needed for the present row to be right by a margin of one.

    With z = y (x.w + b) and loss = max(0, 1 - z), a row adds ``y step x`` to w, ``y step`` to b::

        PA:     step = loss / ||x||^2
        PA-I:   step = min(C, loss / ||x||^2)
        PA-II:  step = loss / (||x||^2 + 1 / (2 C)).

    As in scikit-learn the squared norm is that of x without the intercept; with
    ``bias="constant_feature"`` it includes it, as in the paper.

    Parameters
    ----------
    C : float, default=1.0
        Aggressiveness: the smaller, the shorter the steps. PA does without.
    fit_intercept : bool, default=True
    max_iter : int, default=1000
        Passes over the rows, at most.
    tol : float or None, default=1e-3
        Passes stop once ``n_iter_no_change`` of them did not lower the mean loss by this.
    early_stopping : bool, default=False
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=5
    shuffle : bool, default=True
    verbose : int, default=0
        Accepted for compatibility.
    loss : {"hinge", "squared_hinge", "hard"}, default="hinge"
        "hinge" is PA-I, "squared_hinge" PA-II, "hard" plain PA, which always goes all the way.
    n_jobs : int or None, default=None
        Accepted for compatibility.
    random_state : int, RandomState or None, default=None
    warm_start : bool, default=False
    class_weight : dict, "balanced" or None, default=None
    average : bool or int, default=False
        Whether ``coef_`` is the mean of the weights over all visits (from this visit on).
    bias : {"separate", "constant_feature"}, default="separate"
    intercept_step : float, optional
        Step of the intercept, compared with that of the weights. None is 1, but 0.01 for sparse
        rows, as in scikit-learn.
    normalize_rows : bool, default=False
    record_updates : bool, default=False

    Attributes
    ----------
    coef_ : array of shape (1, d) or (classes, d)
    intercept_ : array of shape (1,) or (classes,)
    classes_ : array
    n_iter_ : int
    records_ : list of Record
    certificate_ : Certificate
        The training errors, counted.
    n_features_in_ : int
    feature_names_in_ : array of str

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz and Y. Singer, "Online passive-aggressive
    algorithms", Journal of Machine Learning Research 7, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import PassiveAggressiveClassifier
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1, 0])
    >>> model = PassiveAggressiveClassifier(loss="hard", fit_intercept=False).fit(X, y)
    >>> model.coef_.tolist()
    [[0.5, -1.0]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="right")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "verbose": ["verbose"],
        "loss": [StrOptions({"hinge", "squared_hinge", "hard"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "average": [Interval(Integral, 0, None, closed="neither"), "boolean"],
        "bias": [StrOptions({"separate", "constant_feature"})],
        "intercept_step": [Interval(Real, 0, None, closed="neither"), None],
        "normalize_rows": ["boolean"],
        "record_updates": ["boolean"],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        verbose: int = 0,
        loss: str = "hinge",
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        class_weight: Any = None,
        average: Any = False,
        bias: str = "separate",
        intercept_step: float | None = None,
        normalize_rows: bool = False,
        record_updates: bool = False,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.verbose = verbose
        self.loss = loss
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.average = average
        self.bias = bias
        self.intercept_step = intercept_step
        self.normalize_rows = normalize_rows
        self.record_updates = record_updates

    def _rule(self) -> rules.Rule:
        return rules.passive_aggressive(float(self.C), _FORMS[self.loss])
