"""The function that a fit minimises, to be called at any coefficients."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from trueline.design import Design, as_design
from trueline.losses import smoothed
from trueline.problem import Array, Problem
from trueline.wording import Readable


@dataclass(frozen=True, repr=False)
class Objective(Readable):
    """What a fitted model has minimised, as a function of coefficients and intercept.

    Both have the shapes of ``coef_`` and ``intercept_``; where they are left out, those of the fit
    are taken. Printing it shows the formula.

    Attributes
    ----------
    problem : Problem
        Data, loss and penalty.
    model : estimator
    price, constant : float
        What is added for each coefficient that is not zero, and whatever the coefficients are.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import Ridge
    >>> X, y = np.array([[1.0], [2.0]]), np.array([1.0, 3.0])
    >>> objective = Ridge(alpha=1.0, fit_intercept=False).fit(X, y).objective(X, y)
    >>> objective([1.0]), objective.gradient([1.0])[0]
    (1.0, array([-1.]))
    >>> print(objective)
    sum_i [1/2 (z - y)^2] + alpha/2 ||w||^2,  z_i = x_i.w,  alpha = 1
    """

    problem: Problem
    model: Any
    price: float = 0.0
    constant: float = 0.0

    def __call__(self, coef: ArrayLike | None = None, intercept: ArrayLike | None = None) -> float:
        """The objective, in the units of ``certificate_.objective``."""
        W, b = self._placed(coef, intercept)
        return self.problem.objective(W, b) + self._of_count(W) + self.constant

    def loss(self, coef: ArrayLike | None = None, intercept: ArrayLike | None = None) -> float:
        """The part of the losses."""
        return self(coef, intercept) - self.penalty(coef, intercept)

    def penalty(self, coef: ArrayLike | None = None, intercept: ArrayLike | None = None) -> float:
        """The part of the penalty."""
        W = self._placed(coef, intercept)[0]
        return self.problem.penalty.value(W) + self._of_count(W)

    def _of_count(self, W: Array) -> float:
        return self.price * float(np.count_nonzero(W))

    def gradient(
        self, coef: ArrayLike | None = None, intercept: ArrayLike | None = None
    ) -> tuple[Array, Any]:
        """The derivatives by the coefficients and by the intercept; at a kink, a subgradient."""
        G, g = self.model._gradient_of_given(*self.problem.gradient(*self._placed(coef, intercept)))
        own = g.reshape(np.shape(self.model.intercept_)) if g.size else g
        return G.T.reshape(self.model.coef_.shape), float(own) if own.ndim == 0 else own

    def _placed(self, coef: ArrayLike | None, intercept: ArrayLike | None) -> tuple[Array, Array]:
        """As the problem takes them, of shape (d, k) and (k,)."""
        model = copy(self.model)
        for name, given in (("coef_", coef), ("intercept_", intercept)):
            if given is None:
                continue
            array, shape = np.asarray(given, dtype=np.float64), np.shape(getattr(model, name))
            if array.size != np.prod(shape, dtype=int):
                raise ValueError(
                    f"{name} has the shape {shape}, but one of {array.shape} is given."
                )
            setattr(model, name, array.reshape(shape))
        W, b = model._coefficients()
        return W, np.asarray(b, dtype=np.float64)

    def __str__(self) -> str:
        terms, comma, rest = self.problem.formula.partition(",  ")
        terms += f" + {self.price:g} ||w||_0" if self.price else ""
        terms += f" + {self.constant:.6g}" if self.constant else ""
        if getattr(self.model, "_penalises_intercept", False):
            rest += f",  the last entry of w is b / {self.model.intercept_scaling:g}"
        return terms + comma + rest


def objective_of(model: Any, X: Any, y: Any, sample_weight: Any, **data: Any) -> Objective:
    """What a fitted model has minimised, on given rows."""
    certificate = model.certificate_
    if "column_exponent" in certificate.witness:
        raise ValueError(
            "These numbers are so large or so small that they were multiplied by powers of two: "
            "the objective of the data as they are leaves the range of double precision."
        )
    if certificate.kind == "stationary":
        raise ValueError("Firth's term is no sum over rows and no penalty on coefficients.")
    if data and certificate.reading is not None:
        X, y, weights = certificate.reading(X, y, sample_weight, **data)
    else:
        X, y, weights = certificate.read(X, y, sample_weight)
    whole = sp.issparse(X) or isinstance(X, Design)
    design = as_design(X if whole else np.asarray(X, dtype=np.float64))
    target = np.asarray(y, dtype=np.float64).reshape(design.shape[0], -1)
    if weights is not None:
        weights = np.array(np.broadcast_to(weights, len(target)), dtype=np.float64)
    loss, penalty = certificate.loss, certificate.penalty
    problem = Problem(design, target, loss, penalty, certificate.fit_intercept, weights)
    smoothing = getattr(model, "smoothing", None)
    if smoothing is not None and model.solver_.startswith("smoothed"):
        problem = replace(problem, loss=smoothed(loss, smoothing))
    price = float(np.ravel(certificate.witness.get("alpha", 0.0))[0])
    return Objective(problem, model, price)
