"""Linear support vector regression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.design import as_design
from trueline.estimators.shared.base import LinearEstimator
from trueline.estimators.shared.columns import ConstantColumn, require_price
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.regressor import LinearRegressorBase, SingleTarget
from trueline.losses import EpsilonInsensitive, Loss, SquaredEpsilonInsensitive
from trueline.penalties import L2, Penalty
from trueline.plan import Plan
from trueline.problem import Problem
from trueline.solvers.base import Options

__all__ = ["LinearSVR"]

Array = NDArray[np.float64]


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
        design = self._with_constant(X) if self.fit_intercept else as_design(X)
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

    def _fitted_attributes(
        self, W: NDArray[Any], b: NDArray[Any], y_ndim: int, fit_intercept: bool
    ) -> dict[str, Any]:
        if not self.fit_intercept:
            return {"coef_": W[:, 0].copy(), "intercept_": 0.0}
        return {"coef_": W[:-1, 0].copy(), "intercept_": W[-1] * self.intercept_scaling}

    def _verified_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """With weights C per row, as the certificate is about it."""
        weights = np.ones(len(np.asarray(y))) if sample_weight is None else sample_weight
        weighted = self.C * np.asarray(weights, dtype=np.float64)
        return super()._verified_data(X, y, weighted)
