"""Logistic and softmax regression, with Firth's correction and a warning of separated classes.

Without a penalty there is no best fit if a hyperplane separates the classes; Firth's correction
makes the answer finite then too.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite

from trueline.certificates.base import Certificate
from trueline.certificates.curvature import certify_firth
from trueline.cluster import blockwise
from trueline.estimators.regression.standard_errors import LabelInference
from trueline.estimators.shared.base import LinearEstimator, Task
from trueline.estimators.shared.classifier import (
    LinearClassifierBase,
    SparseCoefficients,
    TieRule,
)
from trueline.estimators.shared.columns import ColumnRank, ConstantColumn, StartsAnywhere
from trueline.estimators.shared.likelihood import Likelihood
from trueline.estimators.shared.parameters import KW_ONLY, given, hidden, one_of, parameters
from trueline.estimators.shared.validation import wrappers
from trueline.losses import Logistic, Loss, Softmax
from trueline.numerics.blas import single_threaded_blas
from trueline.penalties import L1, L2, ElasticNet, NoPenalty, Penalty
from trueline.plan import Plan
from trueline.problem import Problem
from trueline.separation.separate import Separability, separate
from trueline.solution import Proof, Solution, Status
from trueline.solvers import solve_firth
from trueline.solvers.base import Facts, Monitor, Options
from trueline.solvers.registry import SOLVERS

# Probabilities this close to 0 or 1 do not come from data that overlap.
_EXTREME = 25.0
# The verdict on data of more numbers than this is left to whoever asks for it.
_MOST_NUMBERS = 20_000_000
# Names of columns that are listed.
_MOST_NAMES = 8


def warn_if_separated(
    problem: Problem,
    solution: Solution,
    name: str,
    classes: NDArray[Any],
    feature_names: NDArray[Any] | None,
) -> Separability | None:
    """Warn where the coefficients of an unpenalised fit are on their way to infinity, and prove it.

    If the classes can be separated, even if only as far as some rows lie on the boundary, the
    objective falls for ever along some direction and coefficients say where the solver stopped (A.
    Albert, J. A. Anderson, "On the existence of maximum likelihood estimates in logistic regression
    models", Biometrika 71 (1984) 1-10). A proof by curvature excludes that: where the objective is
    higher all around a point, it rises without end in every direction.

    Returns
    -------
    verdict : Separability or None
        None where the fit ended with moderate scores, where it proves that there is a minimum, or
        for data too large to be looked at unasked.
    """
    if "none" not in problem.penalty.capabilities or _has_minimum(solution):
        return None
    scores = problem.scores(solution.coef, solution.intercept)
    spread = np.abs(scores) if scores.shape[1] == 1 else np.ptp(scores, axis=1)
    if spread.max(initial=0.0) <= _EXTREME and solution.status is not Status.UNBOUNDED:
        return None
    n, d = problem.design.shape
    if n * d * (len(classes) - 1) > _MOST_NUMBERS:
        said = (
            f"Scores grew beyond {_EXTREME:g}: the classes may be separated in some direction, "
            "which trueline.separability(X, y) decides"
        )
        _warn(name, said, len(classes))
        return None
    verdict = _verdict(problem, solution, classes, feature_names)
    if verdict.verdict != "not separable":
        moving = verdict.diverging
        listed = ", ".join(moving[:_MOST_NAMES])
        listed += f" and {len(moving) - _MOST_NAMES:,} more" * (len(moving) > _MOST_NAMES)
        but = "" if verdict.is_separable else ", but for rows on it"
        said = f"A hyperplane separates the classes{but}. {verdict} On the move: {listed}"
        _warn(name, said, len(classes))
    return verdict


def _has_minimum(solution: Solution) -> bool:
    """Whether curvature proves that there is one, of columns that do not depend on others."""
    proofs = (solution.proof, solution.extra.get("part"))
    return any(isinstance(p, Certificate) and p.kind == "curvature" for p in proofs)


def _verdict(
    problem: Problem,
    solution: Solution,
    classes: NDArray[Any],
    feature_names: NDArray[Any] | None,
) -> Separability:
    """The proof; of two classes, the coefficients that were found are tried first."""
    design, target = problem.design, problem.target
    X: Any = design.by_rows if hasattr(design, "by_rows") else design.toarray()
    codes = (target[:, 0] > 0).astype(np.intp) if target.shape[1] == 1 else target.argmax(axis=1)
    names = [f"x{j}" for j in range(design.shape[1])] if feature_names is None else feature_names
    start = solution.coef[:, 0]
    if problem.fit_intercept:
        start = np.append(start, solution.intercept[0])
    shown = tuple(str(name) for name in names)
    return separate(X, codes, classes, problem.fit_intercept, shown, start)


def _warn(name: str, said: str, n_classes: int) -> None:
    other = ", or take Firth's correction, penalty='firth'" if n_classes == 2 else ""
    warnings.warn(
        f"{name} without a penalty has no finite answer: the likelihood has no maximum, and the "
        f"coefficients only say where the fit stopped. {said}. Give C a finite value{other}.",
        ConvergenceWarning,
        stacklevel=7,
    )


def require_binary(solver: str, n_scores: int) -> None:
    """Raise ``ValueError`` where the correction is not offered."""
    if n_scores > 1:
        raise ValueError(
            f"penalty='firth' is for two classes, but y has {n_scores}. Wrap the model in "
            "OneVsRestClassifier."
        )
    if solver == "liblinear":
        raise ValueError(
            "penalty='firth' has no penalised intercept, which solver='liblinear' stands for. "
            "Leave solver at 'auto'."
        )


def firth_plan(problem: Problem) -> Plan:
    """The plan: there is one method."""
    facts, title = Facts.of(problem), "scoring on the likelihood with Jeffreys' prior"
    formula = problem.formula.replace(
        ",  z_i", " - 1/2 log det(sum_i s_i p_i (1 - p_i) a_i a_i^T),  z_i", 1
    )
    return Plan.only("firth", title, SOLVERS["newton"].cost(facts), formula, facts)


def run_firth(problem: Problem, X: Any, options: Options, monitor: Monitor, name: str) -> Solution:
    """Solve and time it."""
    begin = time.perf_counter()
    assert_all_finite(X, input_name="X", estimator_name=name)
    try:
        with np.errstate(over="ignore", invalid="ignore"), single_threaded_blas():
            solution = solve_firth(problem, options, monitor)
    except FloatingPointError:
        raise ValueError(
            "Squares of X leave the range of double precision. Divide the columns by a power of "
            "ten first."
        ) from None
    solution.seconds = time.perf_counter() - begin
    return solution


Array = NDArray[np.float64]

#: scikit-learn's names of solvers, and ours: they all minimise the same function.
_THEIRS = ("auto", "lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga")
_OURS = ("newton", "newton_cg", "entropy_dual_descent", "proximal_newton", "working_set_newton")
# Textbook methods take steps by the thousand.
_TEXTBOOK = ("gradient_descent", "proximal_gradient", "stochastic_gradient", "mini_batch")
SOLVER_NAMES = dict.fromkeys(_THEIRS, "auto") | {name: name for name in (*_OURS, *_TEXTBOOK)}
# A gap is quadratic in the gradient that scikit-learn's tolerances are about; the finest that
# double precision lets anybody prove, of squares and of absolute values.
_FINEST, _FINEST_LINEAR = 1e-13, 1e-9


@parameters()
class LogisticRegression(
    StartsAnywhere,
    LabelInference,
    Likelihood,
    ColumnRank,
    ConstantColumn,
    SparseCoefficients,
    LinearClassifierBase,
    TieRule,
    LinearEstimator,
):
    """Logistic regression, of two classes or more (softmax), proven optimal.

    Minimises over w and b, for two classes with y_i = -1 or +1::

        sum_i s_i log(1 + exp(-y_i (x_i.w + b)))
            + 1/C (l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2)

    and for more classes, with one w_k and b_k for each and z_ik = x_i.w_k + b_k::

        sum_i s_i (log(sum_k exp(z_ik)) - z_i,y_i)
            + 1/C sum_k (l1_ratio ||w_k||_1 + (1 - l1_ratio)/2 ||w_k||^2)

    The weights s_i are sample weights times class weights. The intercept is not penalised. Without
    a penalty, where the columns do not determine w, the answer is the one of least norm, as for
    least squares; ``rank_`` and ``null_space_`` tell.

    Parameters
    ----------
    penalty : {"firth", "l1", "l2", "elasticnet", None}
        "firth" is Firth's correction, for two classes: half the log-determinant of the Fisher
        information is added to the likelihood, in place of any other penalty. Estimates are then
        almost unbiased, and finite for separated classes. The others are deprecated, as in
        scikit-learn: say ``l1_ratio`` (0 is "l2", 1 is "l1"), and ``C=np.inf`` for no penalty.
    C : float, default=1.0
        Inverse strength of the penalty; ``np.inf`` is none.
    l1_ratio : float, default=0.0
        0 is the squared penalty, 1 that of absolute values, between them the elastic net.
    dual : bool, default=False
        Accepted as in scikit-learn; the answer is the same.
    tol : float, default=1e-4
        Tolerance of the gradient: the gap to prove is ``tol ** 2``, relative to the objective of
        the best constant.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=1
        For ``solver="liblinear"`` only, which penalises the intercept: it is that many times the
        coefficient of a constant column of that size.
    class_weight : dict or "balanced", optional
        Weights of the classes; "balanced" gives them all the same total weight.
    random_state : int, RandomState or None
        For stochastic solvers.
    solver : str, default="auto"
        "auto" plans. scikit-learn's names ("lbfgs", "liblinear", "newton-cg", "newton-cholesky",
        "sag", "saga") are accepted and plan too: the function that is minimised decides the answer.
        Only "liblinear" means another function, with a penalised intercept, and two classes. By
        name: "newton", "newton_cg", "proximal_newton", "working_set_newton", and as textbooks write
        them "gradient_descent", "proximal_gradient", "stochastic_gradient", "mini_batch".
    max_iter : int, default=100
        Iteration limit; of the textbook solvers a hundred times as many.
    verbose : int, default=0
        Accepted; ``explain()`` tells what happened.
    warm_start : bool, default=False
        Start from the coefficients of the last fit.
    n_jobs : int, optional
        Deprecated, without effect, as in scikit-learn.
    trace : bool, default=False
        Keep objective, gap and coefficients of every iteration in ``trace_``.
    eta0 : float, optional
        First step of the gradient methods; None computes it from the data.
    schedule : {"constant", "inverse", "sqrt"}, default="inverse"
        How the steps of the stochastic ones shrink.
    batch_size : int, default=32
        Rows per step of "mini_batch".

    Attributes
    ----------
    classes_ : array of shape (k,)
    coef_ : array of shape (1, d) or (k, d)
    intercept_ : array of shape (1,) or (k,)
    certificate_ : Certificate
    solver_ : str
    n_iter_ : array of shape (1,)
    trace_ : Trace
    separability_ : Separability
        Without a penalty, where scores are extreme and curvature does not prove that the likelihood
        has a maximum: whether hyperplanes separate the classes, with the proof. If they do, it has
        none.
    rank_ : int
        Rank of the (centred) design, without a penalty and on up to 2,000 rows or columns.
    null_space_ : array of shape (d, d - rank)
        Directions of the coefficients that the data do not determine; as ``rank_``.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import LogisticRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> y = np.array(["no", "no", "yes", "yes"])
    >>> model = LogisticRegression().fit(X, y)
    >>> model.predict([[0.4], [2.6]]), model.predict_proba([[1.5]]).round(3)
    (array(['no', 'yes'], dtype='<U3'), array([[0.5, 0.5]]))
    >>> bool(model.verify(X, y))
    True
    """

    _leave_one_out = "one Newton step"

    penalty: Any = given(
        "deprecated", one_of("firth", "l1", "l2", "elasticnet"), None, hidden("deprecated")
    )
    _: KW_ONLY
    C: float = given(1.0, "(0, inf]")
    l1_ratio: float | None = given(0.0, "[0, 1]", None)
    dual: bool = False
    tol: float = given(1e-4, "[0, inf)")
    fit_intercept: bool = True
    intercept_scaling: float = given(1, "(0, inf)")
    class_weight: Any = given(None, "class_weight")
    random_state: Any = given(None, "random_state")
    solver: str = given("auto", one_of(*SOLVER_NAMES))
    max_iter: int = given(100, "int [0, inf)")
    verbose: int = given(0, "verbose")
    warm_start: bool = False
    n_jobs: int | None = given(None, None, "int")
    trace: bool = False
    eta0: float | None = given(None, "(0, inf)", None)
    schedule: str = given("inverse", one_of("constant", "inverse", "sqrt"))
    batch_size: int = given(32, "int [1, inf)")

    # --- the problem ----------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for message, category in deprecations(self):
            warnings.warn(message, category, stacklevel=3 + wrappers(type(self).fit))
        if self.penalty == "elasticnet" and self.l1_ratio is None:
            raise ValueError("penalty='elasticnet' needs l1_ratio, a number between 0 and 1.")

    def _loss(self, n_scores: int) -> Loss:
        return Logistic() if n_scores == 1 else Softmax()

    def _penalty(self) -> Penalty:
        return penalty_of(self.penalty, self.C, self.l1_ratio)

    @property
    def _penalises_intercept(self) -> bool:
        """Whether the intercept is the coefficient of a constant column, as LIBLINEAR has it."""
        return self.solver == "liblinear" and self.fit_intercept

    def _stated(self, X: Any, target: Array, weights: Array | None) -> Problem:
        if self._is_firth:
            require_binary(self.solver, target.shape[1])
        if self.solver == "liblinear" and target.shape[1] > 1:
            raise ValueError(
                "Only binary classification is supported. solver='liblinear' is for two classes, "
                f"as in scikit-learn, but y has {target.shape[1]}. Leave solver at 'auto', or wrap "
                "the model in OneVsRestClassifier."
            )
        if not self._penalises_intercept:
            return super()._stated(X, target, weights)
        design = self._with_constant(X)
        return Problem(design, target, Logistic(), self._penalty(), False, weights)

    @property
    def _is_firth(self) -> bool:
        return isinstance(self.penalty, str) and self.penalty == "firth"

    def _solver_name(self) -> str:
        return SOLVER_NAMES[self.solver]

    def _can_be_in_a_set(self) -> bool:
        # Without a penalty, whether classes are separated is looked at after the fit.
        if self._is_firth or not super()._can_be_in_a_set():
            return False
        return "none" not in self._penalty().capabilities

    def _plan_for(self, problem: Problem) -> Plan:
        return firth_plan(problem) if self._is_firth else super()._plan_for(problem)

    def _run(self, task: Task) -> Solution:
        if not self._is_firth:
            return super()._run(task)
        name = type(self).__name__
        return run_firth(task.problem, task.X, task.options, task.monitor, name)

    def _certify_rounded(self, problem: Any, solution: Solution, W: Any, b: Any) -> Proof:
        if not self._is_firth:
            return super()._certify_rounded(problem, solution, W, b)
        assert solution.certificate is not None
        columns = solution.certificate.witness["columns"]
        return certify_firth(problem, W.astype(np.float64), b.astype(np.float64), columns)

    def _options(self) -> Options:
        limit = max(1, self.max_iter)
        return Options(
            tol=max(self.tol**2, _FINEST if self._is_quadratic else _FINEST_LINEAR),
            max_iter=100 * limit if self.solver in _TEXTBOOK else limit,
            random_state=self.random_state,
            eta0=getattr(self, "eta0", None),  # a search over C has no descents
            schedule=getattr(self, "schedule", "inverse"),
            batch_size=getattr(self, "batch_size", 32),
            **self._warm(),
        )

    @property
    def _is_quadratic(self) -> bool:
        return "quadratic" in self._penalty().capabilities

    def _warm(self) -> dict[str, Any]:
        start = super()._warm()
        if not start:
            return {}
        W = start["start"]
        expected = (self.n_features_in_, len(self._present) if len(self.classes_) > 2 else 1)
        if W.shape != (expected[0] + self._penalises_intercept, expected[1]):
            raise ValueError(
                f"warm_start=True would start from coefficients of shape {W.T.shape}, but these "
                f"data need {expected[::-1]}. Fit once with warm_start=False."
            )
        return start

    # --- what was found -------------------------------------------------------------------------

    def _store(
        self, problem: Any, plan: Plan, solution: Solution, dtype: np.dtype, y_ndim: int
    ) -> None:
        names = getattr(self, "feature_names_in_", None)
        verdict = None
        if not self._is_firth:  # whose answers are finite
            own = type(self).__name__
            verdict = warn_if_separated(problem, solution, own, self.classes_, names)
        self.__dict__.pop("separability_", None)
        if verdict is not None:
            self.separability_ = verdict
            if verdict.verdict != "not separable" and solution.certificate is not None:
                # Coefficients on their way to infinity: any radius would be too small.
                solution = replace(solution, proof=solution.certificate.above_zero())
        # LIBLINEAR answers in double precision, whatever it is given.
        dtype = np.dtype(np.float64) if self.solver == "liblinear" else dtype
        super()._store(problem, plan, solution, dtype, y_ndim)
        self.n_iter_: Any = np.array([solution.n_iter], dtype=np.int32)

    @blockwise
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of each class for new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        probabilities : array of shape (n, k)
            In the order of ``classes_``; every row adds up to one.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.stack([expit(-scores), expit(scores)], axis=1)
        return softmax(scores, axis=1)

    @blockwise
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """The logarithms of the probabilities, finite where these underflow.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        logarithms : array of shape (n, k)
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.stack([log_expit(-scores), log_expit(scores)], axis=1)
        return log_softmax(scores, axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.solver != "liblinear"
        return tags


def penalty_of(penalty: str | None, C: float, l1_ratio: float | None) -> Penalty:
    """The penalty that ``penalty``, ``C`` and ``l1_ratio`` stand for, as in scikit-learn."""
    ratio = 0.0 if l1_ratio is None else float(l1_ratio)
    ratio = {"l1": 1.0, "l2": 0.0}.get(penalty or "", ratio)
    if penalty in (None, "firth") or np.isinf(C):
        return NoPenalty()
    if ratio in (0.0, 1.0):
        return (L2 if ratio == 0 else L1)(1.0 / float(C))
    return ElasticNet(1.0 / float(C), ratio)


def deprecations(model: Any) -> list[tuple[str, type[Warning]]]:
    """What scikit-learn deprecated or warns about, of these parameters."""
    found: list[tuple[str, type[Warning]]] = []
    if model.penalty == "deprecated":
        if model.l1_ratio is None:
            found.append(("l1_ratio=None is deprecated; use 0 for 'l2'.", FutureWarning))
    elif model.penalty == "firth":
        if model.C not in (1.0, np.inf) or model.l1_ratio not in (None, 0.0):
            found.append(("penalty='firth' ignores C and l1_ratio.", UserWarning))
    else:
        found.append(
            (
                "penalty is deprecated: leave it out and use l1_ratio=0 for 'l2', l1_ratio=1 for "
                "'l1', a number in between for 'elasticnet', and C=np.inf for None.",
                FutureWarning,
            )
        )
        ratio = model.l1_ratio
        if model.penalty != "elasticnet" and ratio is not None and 0 < ratio < 1:
            found.append((f"l1_ratio is not used with penalty={model.penalty!r}.", UserWarning))
        if (model.penalty == "l2" and ratio != 0) or (model.penalty == "l1" and ratio != 1):
            found.append(
                (
                    f"Inconsistent values: penalty={model.penalty} with l1_ratio={ratio}.",
                    UserWarning,
                )
            )
        if model.penalty is None and getattr(model, "C", 1.0) != 1.0:
            found.append(("penalty=None ignores C and l1_ratio.", UserWarning))
    if getattr(model, "n_jobs", None) is not None and hasattr(model, "C"):
        found.append(("n_jobs is deprecated and has no effect.", FutureWarning))
    return found
