"""Linear support vector machines: classification and regression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from trueline.design import as_suitable_design
from trueline.estimators.classification.separability import solve_hard_margin
from trueline.estimators.shared.base import Attributes, LinearEstimator, build_problem
from trueline.estimators.shared.classifier import (
    LinearClassifierBase,
    SparseCoefficients,
    TieRule,
    encode_declared,
)
from trueline.estimators.shared.columns import ConstantColumn, require_price
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.regressor import LinearRegressorBase, SingleTarget
from trueline.losses import (
    CrammerSinger,
    EpsilonInsensitive,
    HardMargin,
    Hinge,
    Loss,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from trueline.penalties import L1, L2, Penalty
from trueline.plan import Plan
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Monitor, Options

Array = NDArray[np.float64]
Codes = NDArray[np.intp]


@parameters()
class LinearSVC(ConstantColumn, SparseCoefficients, LinearClassifierBase, TieRule, LinearEstimator):
    r"""Linear support vector classification: errors and narrow margins cost.

    Minimises over w and b, for two classes with y_i = -1 or +1::

        1/2 ||w||^2 + 1/2 (b / intercept_scaling)^2 + C sum_i s_i max(0, 1 - y_i (x_i.w + b))^2

    or without the square of the loss for ``loss="hinge"``, and with ``||w||_1 + abs(b) /
    intercept_scaling`` in place of the halved squares for ``penalty="l1"``. With more classes there
    is one such problem for each, its rows against all others ("one versus rest"). The weights s_i
    are sample weights times class weights.

    The intercept is penalised, as in scikit-learn; ``intercept_scaling=None`` leaves it free.

    Parameters
    ----------
    penalty : {"l1", "l2"}, default="l2"
    loss : {"hinge", "squared_hinge"}, default="squared_hinge"
    dual : bool or "auto", default="auto"
        Accepted as in scikit-learn; the planner decides how to get to the same answer.
    tol : float, default=1e-4
        For iterative solvers: the gap to prove is ``1e-5 tol`` of the objective of w = 0,
        ``tol / 100`` of it with ``loss="hinge"`` and ``tol ** 2`` with ``penalty="l1"``. Descent
        along the dual stops at that share of its own objective, where that is smaller.
    C : float, default=1.0
        Strength of the loss: the smaller, the stronger the penalty. ``np.inf`` is the hard margin:
        every row on its margin or beyond, with the largest margin possible; an error proves it
        where there is none. Its intercept is always free: ``intercept_scaling`` takes no part.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        With "crammer_singer" all classes are fitted in one problem, with the loss
        max_k (z_ik + [k is not y_i]) - z_i,y_i; ``loss``, ``penalty`` and ``dual`` are then
        ignored. Two classes have one row of coefficients, the difference of both.
    fit_intercept : bool, default=True
    intercept_scaling : float or None, default=1
        The intercept is the coefficient of a constant column of this size and penalised like the
        others, as LIBLINEAR does it; the larger, the weaker its penalty. None does not penalise it.
    class_weight : dict or "balanced", optional
        Weights of the classes; "balanced" gives them all the same total weight.
    verbose : int, default=0
        Accepted; ``explain()`` tells what happened.
    random_state : int, RandomState or None
        Order in which coordinate descent on the dual visits the rows.
    max_iter : int, default=1000
        For iterative solvers.
    solver : str, default="auto"
        "auto" plans; or "interior_point", "newton", "balanced_dual_descent", ...

    Attributes
    ----------
    classes_ : array of shape (k,)
    coef_ : array of shape (1, d) or (k, d)
    intercept_ : array of shape (1,) or (k,)
    support_ : array of int
        Rows on or inside a margin: only these matter for the answer.
    support_vectors_ : array or sparse matrix of shape (m, d)
        These rows; for the hard margin, ``C=np.inf``.
    dual_coef_ : array of shape (1, m) or (k, m)
        For the hard margin: their multipliers a_i >= 0 times y_i, so that ``coef_`` is
        ``dual_coef_ @ support_vectors_`` and sum_i a_i = ||w||^2.
    margin_ : array of shape (1,) or (k,)
        The distance 1 / ||w|| of the margins from the boundary.
    certificate_ : Certificate
        Objective divided by C. Where the intercept is penalised, it is about coefficients with
        that of the constant column as the last one.
    solver_ : str
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import LinearSVC
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0], [3.0, 1.0]])
    >>> y = ["left", "left", "right", "right"]
    >>> model = LinearSVC(loss="hinge", C=100.0, intercept_scaling=None).fit(X, y)
    >>> model.coef_.round(3), model.margin_.round(3), model.support_
    (array([[1., 1.]]), array([0.707]), array([1, 2]))
    >>> bool(model.verify(X, y))
    True
    """

    penalty: str = given("l2", one_of("l1", "l2"))
    loss: str = given("squared_hinge", one_of("hinge", "squared_hinge"))
    _: KW_ONLY
    dual: Any = given("auto", "boolean", one_of("auto"))
    tol: float = given(1e-4, "(0, inf)")
    C: float = given(1.0, "(0, inf]")
    multi_class: str = given("ovr", one_of("ovr", "crammer_singer"))
    fit_intercept: bool = True
    intercept_scaling: float | None = given(1, "(0, inf)", None)
    class_weight: Any = given(None, "class_weight")
    verbose: int = given(0, "verbose")
    random_state: Any = given(None, "random_state")
    max_iter: int = given(1000, "int [0, inf)")
    solver: str = given("auto", str)

    # --- the problem ----------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.multi_class == "crammer_singer":
            return
        unheard = {
            ("l1", "hinge", True): "penalty='l1' with loss='hinge'",
            ("l1", "hinge", False): "penalty='l1' with loss='hinge'",
            ("l1", "hinge", "auto"): "penalty='l1' with loss='hinge'",
            ("l1", "squared_hinge", True): "penalty='l1' with dual=True",
            ("l2", "hinge", False): "loss='hinge' with dual=False",
        }
        said = unheard.get((self.penalty, self.loss, self.dual))
        if said is not None:
            raise ValueError(
                f"{said} is not supported, as in scikit-learn. Leave dual at 'auto', and use "
                "loss='squared_hinge' with penalty='l1'."
            )

    def _check_hard(self) -> None:
        if self.penalty == "l1" or self.multi_class != "ovr":
            raise ValueError(
                "C=np.inf, the hard margin, goes with penalty='l2', multi_class='ovr'."
            )

    @property
    def _penalises_intercept(self) -> bool:
        # The largest margin is that of the hyperplane, wherever it lies.
        is_soft = not np.isinf(self.C)
        return self.fit_intercept and self.intercept_scaling is not None and is_soft

    def _loss(self, n_classes: int) -> Loss:
        if self.multi_class == "crammer_singer":
            return CrammerSinger()
        return (Hinge if self.loss == "hinge" else SquaredHinge)(self._positive)

    def _penalty(self) -> Penalty:
        is_l1 = self.penalty == "l1" and self.multi_class == "ovr"
        return (L1 if is_l1 else L2)(1.0 / float(self.C))

    def _with_class_weights(
        self, classes: NDArray[Any], codes: Codes, weights: Array | None
    ) -> Array | None:
        """With more than two classes only the own rows of a class weigh more, as in LIBLINEAR."""
        self._positive: float | tuple[float, ...] = 1.0
        is_one = len(classes) == 2 or self.multi_class == "crammer_singer"
        if self.class_weight is None or is_one:
            return super()._with_class_weights(classes, codes, weights)
        of_class = compute_class_weight(self.class_weight, classes=classes, y=classes[codes])
        if not (np.isfinite(of_class).all() and (of_class > 0).all()):
            raise ValueError(
                f"class_weight={self.class_weight!r} gives weights that are not positive and "
                "finite. Give every class a positive weight."
            )
        self._positive = tuple(float(weight) for weight in of_class)
        return weights

    def _target(self, codes: Codes, count: int) -> Array:
        """One column of signs for two classes, one for each class of more; or one-hot."""
        if self.multi_class == "crammer_singer":
            return np.eye(count)[codes]
        if count == 2:
            return super()._target(codes, count)
        return np.where(codes[:, None] == np.arange(count), 1.0, -1.0)

    def _stated(self, X: Any, target: Array, weights: Array | None) -> Problem:
        if np.isinf(self.C):
            self._check_hard()
            return build_problem(X, target, None, HardMargin(), L2(1.0), self.fit_intercept)
        if self.multi_class == "crammer_singer":
            require_price(self.C, self.C * (1.0 if weights is None else float(weights.max())))
        if not self._penalises_intercept:
            return super()._stated(X, target, weights)
        design = self._with_constant(X)
        return Problem(design, target, self._loss(2), self._penalty(), False, weights)

    def _solve(
        self,
        problem: Problem,
        X: Any,
        monitor: Monitor,
        moments: Any = None,
        options: Options | None = None,
    ) -> tuple[Plan, Solution]:
        if not np.isinf(self.C):
            return super()._solve(problem, X, monitor, moments, options)
        plan, solution = solve_hard_margin(problem, self.classes_, X.shape[0])
        if not solution.status.is_final:
            self._warn(solution)
        return plan, solution

    def _can_be_in_a_set(self) -> bool:
        return not np.isinf(self.C) and super()._can_be_in_a_set()

    def _options(self) -> Options:
        tol = self.tol / 100
        if self.penalty == "l1":
            # Which columns are left out shows late: coefficients at zero are asked for more digits.
            tol = self.tol**2
        elif self.loss == "squared_hinge" and self.multi_class == "ovr":
            # What LIBLINEAR reaches on text; the last digits come fast where the loss is smooth.
            tol = max(1e-5 * self.tol, min(tol, 1e-12))
        return Options(tol=tol, max_iter=max(1, self.max_iter), random_state=self.random_state)

    # --- what was found -------------------------------------------------------------------------

    def _store(
        self, problem: Any, plan: Plan, solution: Solution, dtype: np.dtype, y_ndim: int
    ) -> None:
        # Rounded coefficients would have rows inside a hard margin.
        dtype = np.dtype(np.float64) if np.isinf(self.C) else dtype
        super()._store(problem, plan, solution, dtype, y_ndim)
        scores = solution.extra.get("scores")
        if scores is None:
            scores = problem.scores(solution.coef, solution.intercept)
        if self.multi_class == "crammer_singer":
            # By how much the own score leads.
            own = problem.target != 0
            others = np.where(own, -np.inf, scores).max(axis=1)
            margins = (np.where(own, scores, 0.0).sum(axis=1) - others)[:, None]
        else:
            margins = problem.target * scores
        # On the margin itself up to what rounding does to a score.
        reach = 1 + 1e-9 * (1 + np.abs(margins).max(initial=0.0))
        self.support_ = np.flatnonzero((margins <= reach).any(axis=1))
        with np.errstate(divide="ignore"):
            self.margin_ = 1.0 / np.linalg.norm(self.coef_, axis=1)
        for name in ("dual_coef_", "support_vectors_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if np.isinf(self.C):
            # The nearest points of both hulls are mixtures with these shares; sum a = ||w||^2.
            shares = self._resolved_certificate().witness["shares"]
            a = shares * (self.coef_**2).sum(axis=1) / shares.sum(axis=0)
            self.dual_coef_ = (problem.target * a)[self.support_].T

    def _keep_of_rows(self, X: Any, y: NDArray[Any], sample_weight: Any) -> None:
        weights = self._weights(sample_weight, X)
        if weights is not None or self.class_weight is not None:
            codes = encode_declared(y, self.classes_)
            weights = self._with_class_weights(self.classes_, codes, weights)
            if weights is not None:  # rows without weight were left out of the problem
                self.support_ = np.flatnonzero(weights)[self.support_]
        if hasattr(self, "dual_coef_"):
            rows = X.tocsr() if sp.issparse(X) else X
            self.support_vectors_ = rows[self.support_]

    def _fitted_attributes(self, W: Any, b: Any, y_ndim: int, fit_intercept: bool) -> Attributes:
        if self._is_pair:  # one score is enough for two classes
            W, b = W[:, 1:] - W[:, :1], b[1:] - b[:1]
        return super()._fitted_attributes(W, b, y_ndim, fit_intercept)

    @property
    def _is_pair(self) -> bool:
        """Whether two classes were fitted with a score for each."""
        return self.multi_class == "crammer_singer" and len(self.classes_) == 2

    def _coefficients(self) -> tuple[Array, Array]:
        W, b = super()._coefficients()
        if self._is_pair:  # the scores of all classes add up to zero
            return np.hstack([-W, W]) / 2, np.concatenate([-b, b]) / 2
        return W, b

    def _gradient_of_given(self, G: Array, g: Array) -> tuple[Array, Array]:
        if self._is_pair:
            G, g = (G[:, 1:] - G[:, :1]) / 2, (g[1:] - g[:1]) / 2
        return super()._gradient_of_given(G, g)


@parameters()
class LinearSVR(ConstantColumn, SingleTarget, LinearRegressorBase, LinearEstimator):
    r"""Linear support vector regression: errors up to epsilon cost nothing.

    Minimises over w and b, with s the sample weights::

        1/2 ||w||^2 + 1/2 (b / intercept_scaling)^2 + C sum_i s_i e_i,
        e_i = max(0, |y_i - x_i.w - b| - epsilon),

    with e_i^2 in place of e_i for the squared loss.

    As in LIBLINEAR the intercept is the coefficient of a constant column, and penalised like the
    others; a large ``intercept_scaling`` makes that penalty small.

    Parameters
    ----------
    epsilon : float, default=0.0
    tol : float, default=1e-4
        For iterative solvers: the gap to prove is ``tol / 100`` of the objective of w = 0.
    C : float, default=1.0
        Strength of the loss: the smaller, the stronger the penalty.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
    fit_intercept : bool, default=True
    intercept_scaling : float, default=1.0
    dual : bool or "auto", default="auto"
        Accepted for compatibility; the planner decides.
    verbose : int, default=0
        Accepted for compatibility.
    random_state : int, RandomState or None
        Order in which coordinate descent on the dual visits the rows.
    max_iter : int, default=1000
        For iterative solvers.
    solver : str, default="auto"
        "auto" plans; or "interior_point", "dual_coordinate_descent", "newton", ...

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : array of shape (1,), or 0.0 without an intercept
    certificate_ : Certificate
        About the coefficients with that of the constant column as the last one.
    solver_ : str
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import LinearSVR
    >>> X = np.arange(-5.0, 6.0).reshape(-1, 1)
    >>> y = 3 * X.ravel() + np.tile([0.1, -0.1], 6)[:11]
    >>> model = LinearSVR(epsilon=0.1, C=10.0).fit(X, y)
    >>> model.coef_.round(2), bool(model.verify(X, y))
    (array([3.]), True)
    """

    _: KW_ONLY
    epsilon: float = given(0.0, "[0, inf)")
    tol: float = given(1e-4, "(0, inf)")
    C: float = given(1.0, "(0, inf)")
    loss: str = given(
        "epsilon_insensitive", one_of("epsilon_insensitive", "squared_epsilon_insensitive")
    )
    fit_intercept: bool = True
    intercept_scaling: float = given(1.0, "(0, inf)")
    dual: Any = given("auto", "boolean", one_of("auto"))
    verbose: int = given(0, "verbose")
    random_state: Any = given(None, "random_state")
    max_iter: int = given(1000, "int [0, inf)")
    solver: str = given("auto", str)

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        design = self._with_constant(X) if self.fit_intercept else as_suitable_design(X)
        loss: Loss = SquaredEpsilonInsensitive(float(self.epsilon))
        if self.loss == "epsilon_insensitive":
            loss = EpsilonInsensitive(float(self.epsilon))
        with np.errstate(over="ignore", under="ignore"):
            strength = np.full(len(Y), float(self.C)) if weights is None else self.C * weights
        require_price(self.C, float(strength.max()))
        return Problem(design, Y, loss, L2(1.0), False, strength)

    def _in_given_terms(self, plan: Plan, penalty: Penalty | None, total: float | None) -> Plan:
        terms, *numbers = plan.objective.replace("alpha/2", "1/2").split(",  ")
        shown = [part for part in numbers if not part.startswith("alpha = ")]
        price = f"s_i = C times the weight of row i,  C = {float(self.C):g}"
        return replace(plan, objective=",  ".join([terms, *shown, price]))

    def _options(self) -> Options:
        return Options(
            tol=self.tol / 100, max_iter=max(1, self.max_iter), random_state=self.random_state
        )

    def _fitted_attributes(self, W: Any, b: Any, y_ndim: int, fit_intercept: bool) -> Attributes:
        if not self.fit_intercept:
            return {"coef_": W[:, 0].copy(), "intercept_": 0.0}
        return {"coef_": W[:-1, 0].copy(), "intercept_": W[-1] * self.intercept_scaling}

    def _verified_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """With weights C per row, as the certificate is about it."""
        weights = np.ones(len(np.asarray(y))) if sample_weight is None else sample_weight
        weighted = self.C * np.asarray(weights, dtype=np.float64)
        return super()._verified_data(X, y, weighted)
