"""Regression by the smallest largest error: Chebyshev's criterion."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.estimators.shared.base import LinearEstimator, build_problem
from trueline.estimators.shared.likelihood import Likelihood
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.regressor import LinearRegressorBase, SingleTarget
from trueline.losses import MaximumError
from trueline.penalties import NoPenalty
from trueline.problem import Array, Problem
from trueline.solution import Solution
from trueline.solvers.base import Options

#: Names of solvers here, and in the registry.
_SOLVERS = {
    "auto": "auto",
    "exchange": "exchange",
    "highs": "highs_maximum",
    "smoothed": "smoothed_maximum",
}


@parameters()
class ChebyshevRegressor(Likelihood, SingleTarget, LinearRegressorBase, LinearEstimator):
    r"""Linear regression with the smallest possible largest error, exactly.

    Minimises over w and b::

        max_i |y_i - x_i.w - b|

    The band of that half width around the fit is the narrowest that holds every row: the model to
    take where a bound on the error must hold for each row, as in tables, calibration curves and
    approximation of functions. A single outlier moves it without limit; see
    :class:`~trueline.LeastAbsoluteDeviations` for the opposite.

    At most d + 2 rows carry the solution, those on the edges of the band. They are found by
    exchanging one row for another until no row errs by more than the reference.

    Parameters
    ----------
    fit_intercept : bool, default=True
    solver : {"auto", "exchange", "highs", "smoothed"}, default="auto"
        "auto" plans, and takes "exchange". "highs" gives the linear program to HiGHS instead, as an
        independent check. "smoothed" minimises the textbook's smooth approximation
        mu log(sum_i 2 cosh(r_i / mu)) instead, r_i = y_i - x_i.w - b, with shrinking mu.
    smoothing : float, optional
        For "smoothed": mu at the end, in units of y, for which the smooth function is minimised to
        rounding. The largest error is then at most mu log(2n) from the smallest possible one; the
        certificate states the gap. By default mu shrinks until the gap is a millionth of the
        largest error of the best constant.
    max_iter : int, optional
        For "smoothed": limit of its iterations.
    trace : bool, default=False
        For "smoothed": keep objective and gap of every iteration in ``trace_``.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    max_error_ : float
        The largest error of a fitted row.
    alternation_ : array of int
        The rows that carry the solution, in ascending order. Where rows are many and in general
        position they are one more than there are coefficients, intercept included; where the data
        can be fitted without error there are none. After "smoothed", every row has a multiplier.
    dual_ : array of float
        Their multipliers u, which prove that no largest error is smaller: ``sum |u| = 1``,
        ``sum u = 0`` and ``sum u_i x_i = 0``. The sign of each is the side of the fit on which its
        row lies.
    certificate_ : Certificate
    solver_ : str
    n_iter_ : int
        Exchanges of rows; iterations of other solvers.
    trace_ : Trace
    n_features_in_ : int
    feature_names_in_ : array of str

    Notes
    -----
    Sample weights say which rows count: weight 0 leaves a row out, and all positive weights mean
    the same, for a maximum does not change when a row is repeated.

    Where several coefficients share the smallest largest error, "exchange" takes the strict
    solution: of the errors that are still free, the largest is the smallest possible, and so on;
    where columns depend on each other, the coefficients of least norm. So the answer is unique, and
    neither the order of the rows nor their repetition changes it.

    References
    ----------
    E. Stiefel, "Ueber diskrete und lineare Tschebyscheff-Approximationen", Numer. Math. 1 (1959)
    1-28.

    I. Barrodale and C. Phillips, "Algorithm 495: Solution of an overdetermined system of linear
    equations in the Chebyshev norm", ACM Trans. Math. Softw. 1 (1975) 264-270.

    Examples
    --------
    The best straight line for x^2 on [0, 1] is x - 1/8; the errors at its ends and in the middle
    are equal, with alternating signs:

    >>> import numpy as np
    >>> from trueline import ChebyshevRegressor
    >>> X = np.linspace(0, 1, 101).reshape(-1, 1)
    >>> y = X.ravel() ** 2
    >>> model = ChebyshevRegressor().fit(X, y)
    >>> model.coef_.round(9), float(round(model.intercept_, 9)), round(model.max_error_, 9)
    (array([1.]), -0.125, 0.125)
    >>> model.alternation_, model.dual_.round(9)
    (array([  0,  50, 100]), array([ 0.25, -0.5 ,  0.25]))
    >>> bool(model.verify(X, y))
    True
    """

    _: KW_ONLY
    fit_intercept: bool = True
    solver: str = given("auto", one_of(*_SOLVERS))
    smoothing: float | None = given(None, "(0, inf)", None)
    max_iter: int | None = given(None, "int [1, inf)", None)
    trace: bool = False

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        # All rows that are left count alike.
        return build_problem(X, Y, None, MaximumError(), NoPenalty(), self.fit_intercept)

    def _solver_name(self) -> str:
        return _SOLVERS[self.solver]

    def _options(self) -> Options:
        return Options(max_iter=self.max_iter, smoothing=self.smoothing)

    def _keep_of_rows(self, X: Any, y: NDArray[Any], sample_weight: Any) -> None:
        super()._keep_of_rows(X, y, sample_weight)
        weights = self._weights(sample_weight, X)
        if weights is not None:  # rows without weight were left out of the problem
            self.alternation_: NDArray[np.intp] = np.flatnonzero(weights)[self.alternation_]

    def _keep_of(self, problem: Any, solution: Solution) -> None:
        super()._keep_of(problem, solution)
        rows, dual = solution.extra["rows"], solution.extra["dual"][:, 0]
        order = np.argsort(rows)
        self.alternation_, self.dual_ = rows[order], dual[order]
        certificate = self._resolved_certificate()
        # In other units than those of the data, if these were extreme.
        power = certificate.witness.get("target_exponent", np.zeros(1))
        self.max_error_ = float(np.ldexp(certificate.objective, -int(power[0])))
