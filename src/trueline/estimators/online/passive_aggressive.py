"""Passive-aggressive classification."""

from __future__ import annotations

from typing import Any

from trueline.estimators.online.base import OnlineClassifier
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.online import rules

_FORMS = {"hinge": "PA-I", "squared_hinge": "PA-II", "hard": "PA"}


@parameters()
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

    _: KW_ONLY
    C: float = given(1.0, "(0, inf]")
    fit_intercept: bool = True
    max_iter: int = given(1000, "int [1, inf)")
    tol: float | None = given(1e-3, "[0, inf)", None)
    early_stopping: bool = False
    validation_fraction: float = given(0.1, "(0, 1)")
    n_iter_no_change: int = given(5, "int [1, inf)")
    shuffle: bool = True
    verbose: int = given(0, "verbose")
    loss: str = given("hinge", one_of("hinge", "squared_hinge", "hard"))
    n_jobs: int | None = given(None, "int", None)
    random_state: Any = given(None, "random_state")
    warm_start: bool = False
    class_weight: Any = given(None, "class_weight")
    average: Any = given(False, "int (0, inf)", "boolean")
    bias: str = given("separate", one_of("separate", "constant_feature"))
    intercept_step: float | None = given(None, "(0, inf)", None)
    normalize_rows: bool = False
    record_updates: bool = False

    def _rule(self) -> rules.Rule:
        return rules.passive_aggressive(float(self.C), _FORMS[self.loss])
