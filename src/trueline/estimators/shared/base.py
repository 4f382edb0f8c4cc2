"""What all linear estimators share: input, plan, fit, proof, prediction.

A fit may be watched: by scikit-learn's callbacks where it has them (1.9 introduced
``sklearn.callback`` as experimental, so the import is guarded), by a progress bar everywhere.
"""

from __future__ import annotations

import math
import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from trueline.certificates.base import Certificate, Reading
from trueline.check import Verification, verify
from trueline.design import as_design, as_suitable_design
from trueline.estimators.shared.objective import Objective, objective_of
from trueline.estimators.shared.parameters import chosen_by, marked, tied, validate_changed
from trueline.estimators.shared.precision import (
    certify_rounded,
    exponents_of,
    in_original_units,
    in_single_precision,
    least_norm,
    rescaled,
    unscaled,
)
from trueline.estimators.shared.report import Explanation, in_given_terms, steps_by_hand
from trueline.estimators.shared.validation import (
    new_rows,
    refuse_nonfinite,
    row_weights,
    takes_batches,
    unpacked,
    weights_of,
    wrappers,
)
from trueline.guard import confirm, is_about, judge
from trueline.moments import Moments
from trueline.numerics.blas import Tally
from trueline.penalties import Penalty
from trueline.plan import Plan
from trueline.planner import execute, make_plan
from trueline.problem import Problem
from trueline.solution import Proof, Solution, Status, resolved
from trueline.solvers.base import Event, Monitor, Options
from trueline.solvers.registry import SOLVERS
from trueline.trace import Trace
from trueline.wording import counted, is_watched

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupport:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Leave the method as it is."""
        return method


#: Around every ``fit`` that scikit-learn's callbacks may watch.
fit_with_callbacks = with_callbacks


class Seen(NamedTuple):
    """What callbacks are shown of a fit beside its iterations.

    ``X`` and ``y`` are as validated, ``sample_weight`` as given; ``attributes`` makes fitted
    attributes of coefficients of shape (d, k) and intercepts of shape (k,).
    """

    X: Any
    y: Any
    sample_weight: Any
    attributes: Callable[[Any, Any], dict[str, Any]] = lambda W, b: {}

    def arguments(self) -> dict[str, Any]:
        """The data, as scikit-learn's hooks take them."""
        metadata = None
        if self.sample_weight is not None:
            weights = np.broadcast_to(np.asarray(self.sample_weight, float), len(self.y))
            metadata = {"sample_weight": weights}
        return {"X": self.X, "y": self.y, "metadata": metadata}


@contextmanager
def watch(estimator: Any, trace: Trace, seen: Seen | None = None) -> Iterator[Monitor]:
    """Collect everybody who watches this fit.

    Those are scikit-learn's callbacks (``set_callbacks``), and a progress bar if the estimator
    has ``progress=True``; with ``progress=None`` on a terminal after a few seconds. With ``seen``
    the callbacks also get the data and, at the end, an estimator to evaluate: its fitted attributes
    must be set before the context is left.
    """
    callbacks: list[Callable[[Event], object]] = []
    limit = getattr(estimator, "time_limit", None)
    context = None
    data: dict[str, Any] = {}
    if getattr(estimator, "_skl_callbacks", None):
        data = {} if seen is None else seen.arguments()
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator, **data)
        callbacks.append(_Bridge(estimator, context, seen))
    shown = getattr(estimator, "progress", False)
    bar = None
    if shown or (shown is None and sys.stderr is not None and is_watched(sys.stderr)):
        bar = _Bar(0.0 if shown else _PATIENCE)
    if bar is not None:
        callbacks.append(bar)
    fitted: dict[str, Any] = {}
    try:
        keep = trace.keep if trace.enabled else None
        yield Monitor(trace, callbacks, math.inf if limit is None else float(limit), keep)
        if seen is not None:  # only a fit that came to its end can be evaluated
            fitted = {**data, "reconstruction_attributes": {}}
    finally:
        if bar is not None:
            bar.close()
        if context is not None:
            context.call_on_fit_task_end(estimator=estimator, **fitted)


class _Bridge:
    """Hands every iteration to scikit-learn's callbacks, with the model as it is then."""

    def __init__(self, estimator: Any, context: Any, seen: Seen | None) -> None:
        self.estimator, self.context, self.seen = estimator, context, seen
        self.before: dict[str, Any] = {} if seen is None else seen.arguments()

    def __call__(self, event: Event) -> bool:
        task = self.context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self.estimator, **self.before)
        if self.seen is not None:
            # Worked out only for callbacks that ask for it.
            model = partial(self.seen.attributes, event.coef, event.intercept)
            self.before = {**self.before, "reconstruction_attributes": model}
        return bool(task.call_on_fit_task_end(estimator=self.estimator, **self.before))


# Seconds that a search may take before it shows how far it is.
_PATIENCE = 3.0


if TYPE_CHECKING:
    from rich.progress import Progress


class _Bar:
    """A progress bar in the terminal, with the objective and the proven gap.

    On standard error, if it was not asked for, after a few seconds.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.progress = None if patience else self._shown()

    def _shown(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
        progress = Progress(*columns, console=Console(stderr=True) if self.patience else None)
        progress.add_task("fitting", total=None)
        progress.start()
        return progress

    def __call__(self, event: Event) -> bool:
        if event.seconds >= self.patience:
            self.progress = self.progress or self._shown()
            text = f"iteration {event.iteration}  objective {event.objective:.6g}"
            self.progress.update(
                self.progress.task_ids[0],
                description=f"{text}  gap {event.gap:.2g}",
                completed=event.iteration,
                total=event.max_iter,
            )
        return False

    def close(self) -> None:
        """Leave the last state on the screen."""
        if self.progress is not None:
            self.progress.stop()


Array = NDArray[np.float64]
#: A problem, and the rows and the target as they were checked.
Stated = tuple[Problem, Any, NDArray[Any]]
Attributes = dict[str, Any]


class Task(NamedTuple):
    """A problem, the plan for it, the rows as validated, and what a solver is given beside them."""

    problem: Problem
    plan: Plan
    X: Any
    monitor: Monitor
    options: Options
    moments: Moments | None = None

    def run_scaled(self) -> Solution:
        """Run, in units of powers of two if squares would overflow or vanish."""
        exponents = exponents_of(self.problem)
        # What overflows all the same (a scaled strength, a step too long) is not finite at the end.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if exponents is None:
                return execute(self.problem, self.plan, self.options, self.monitor)
            scaled = rescaled(self.problem, *exponents)
            monitor = in_original_units(self.monitor, *exponents)
            solution = execute(scaled, self.plan, self.options, monitor)
            return unscaled(least_norm(scaled, solution, exponents[0]), *exponents)


class LinearEstimator(CallbackSupport, BaseEstimator):
    """The thin common part of estimators that minimise one :class:`~trueline.problem.Problem`."""

    _doc_link_module = "trueline"

    coef_: NDArray[Any]
    intercept_: Any
    _certificate: Proof | None
    _plan: Plan
    _solution_facts: dict[str, Any]

    @abstractmethod
    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        """The problem that this estimator minimises."""

    def _solver_name(self) -> str:
        """The solver asked for, in the registry's terms."""
        return getattr(self, "solver", "auto")

    def _options(self) -> Options:
        """What the parameters ask of a solver."""
        return Options()

    def _warm(self) -> dict[str, Any]:
        """Where a warm start begins: at the coefficients of the last fit."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "coef_"):
            return {}
        W, b = self._coefficients()
        return {"start": np.ascontiguousarray(W), "start_intercept": np.array(b)}

    def _plan_for(self, problem: Problem) -> Plan:
        """Who solves the problem, and why."""
        return make_plan(problem, self._solver_name())

    #: Whether a fit is the solution of the stated problem, and nothing else.
    _is_its_problem: ClassVar[bool] = False

    def _can_be_in_a_set(self) -> bool:
        """Whether the problem can be solved with others: not if the fit has a trace or callbacks.

        A class derived from ours may do something else.
        """
        is_watched = getattr(self, "trace", False) or getattr(self, "_skl_callbacks", None)
        is_ours = self._is_its_problem and type(self).__module__.startswith("trueline.")
        return is_ours and not (is_watched or getattr(self, "warm_start", False))

    # --- fitting --------------------------------------------------------------------------------

    @fit_with_callbacks
    @takes_batches
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or batches of :func:`trueline.open`
            Rows to learn from. Batches bring their target and weights along.
        y : array-like of shape (n,) or (n, k)
            One target, or several; or class labels of any type, of shape (n,).
        sample_weight : float or array-like of shape (n,), optional
            Weight 2 counts a row twice, weight 0 leaves it out.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        problem, X, y = self._validated_problem(X, y, sample_weight, reset=True)
        self._solve_and_store(problem, X, y, sample_weight)
        return self

    def _weights(self, sample_weight: Any, X: Any) -> Array | None:
        """Sample weights as float64, or None; zero everywhere is an error."""
        if sample_weight is None:
            return None
        weights: Array = row_weights(sample_weight, X)
        largest = weights.max()
        if not 1e-100 <= largest <= 1e100:
            raise ValueError(
                f"The largest sample weight is {largest:.3g}: sums of weighted squares would leave "
                "the range of double precision. Multiply all weights (and alpha) by a power of ten."
            )
        return weights

    def _solve(
        self,
        problem: Problem,
        X: Any,
        monitor: Monitor,
        moments: Moments | None = None,
        options: Options | None = None,
    ) -> tuple[Plan, Solution]:
        """Plan and run; warn of an answer that is short of the optimum."""
        plan = self._plan_for(problem)
        solution = self._run(Task(problem, plan, X, monitor, options or self._options(), moments))
        if solution.status is Status.DIVERGED or not np.isfinite(solution.coef).all():
            raise ValueError(f"{type(self).__name__} did not converge: {solution.status.value}.")
        if not solution.status.is_final:
            self._warn(solution)
        return plan, solution

    def _run(self, task: Task) -> Solution:
        """Carry out the plan, and deal with numbers too large or too small to be squared."""
        problem, X = task.problem, task.X
        solver = SOLVERS[task.plan.chosen]
        shows_all = solver.shows_nonfinite or solver.reads_once(task.plan.facts)
        if not shows_all or problem.design.is_sparse:
            refuse_nonfinite(X, self)
            return task.run_scaled()
        # Reading the data once more only to look for NaN costs a third of a large fit: sums of
        # squares out of range show NaN, infinity or extreme scales.
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                solution = execute(problem, task.plan, task.options, task.monitor, task.moments)
        except (ArithmeticError, np.linalg.LinAlgError, ValueError) as error:
            with np.errstate(invalid="ignore"):  # infinities of both signs
                refuse_nonfinite(X, self)
            if not isinstance(error, FloatingPointError) and exponents_of(problem) is None:
                raise
            return task.run_scaled()
        found = solution.moments
        # Who took over from the chosen solver was told nothing of its sums of squares.
        tells = found is None and solver.shows_nonfinite and solution.solver == task.plan.chosen
        if tells or (found and found.is_ordinary()) or exponents_of(problem) is None:
            return solution
        return task.run_scaled()

    def _warn(self, solution: Solution) -> None:
        gap = solution.stages[-1].gap if solution.stages else np.inf
        certificate = solution.certificate
        if certificate is not None and is_about(certificate, solution.coef, solution.intercept):
            gap = certificate.gap
        proven = f"proven within {gap:.3g} of it" if np.isfinite(gap) else "nothing proven"
        iterations = counted(solution.n_iter, "iteration")
        warnings.warn(
            f"{type(self).__name__} stopped short of the optimum ({proven}) after {iterations} of "
            f"{solution.solver}: {solution.status.value}.",
            ConvergenceWarning,
            # From the line that called fit: past _solve, _solve_and_store, fit and its wrapper.
            stacklevel=5 + wrappers(type(self).fit),
        )

    def _solve_and_store(
        self,
        problem: Problem,
        X: Any,
        y: NDArray[Any],
        sample_weight: Any,
        moments: Moments | None = None,
        options: Options | None = None,
    ) -> None:
        """Solve under the eyes of those who watch; ``X`` and ``y`` are as validated.

        ``options`` are those of the parameters unless they are given.
        """

        def attributes(W: Array, b: Array) -> dict[str, Any]:
            W, b = W.astype(X.dtype), b.astype(X.dtype)
            return self._fitted_attributes(W, b, y.ndim, problem.fit_intercept)

        trace = Trace(enabled=bool(getattr(self, "trace", False)))
        seen = Seen(X, y, sample_weight, attributes)
        with watch(self, trace, seen) as monitor, Tally() as tally:
            plan, solution = self._solve(problem, X, monitor, moments, options)
            self._store(problem, plan, solution, X.dtype, y.ndim)
        self._solution_facts["threads"] = list(tally.facts())
        self._keep_of_rows(X, y, sample_weight)

    def _check_parameters(self) -> None:
        """Raise for parameters that are out of range."""
        validate_changed(self)

    def _store(
        self, problem: Any, plan: Plan, solution: Solution, dtype: np.dtype, y_ndim: int
    ) -> None:
        """Copy the solution into fitted attributes, in scikit-learn's shapes and dtypes."""
        self._guard(problem, solution)
        W, b = solution.coef, solution.intercept
        proof = solution.proof
        if dtype == np.float32:
            W, b = in_single_precision(problem, W, b)
            if W.dtype == np.float32:
                proof = self._certify_rounded(problem, solution, W, b)
        self.__dict__.update(self._fitted_attributes(W, b, y_ndim, problem.fit_intercept))
        self.solver_ = solution.solver
        self.n_iter_ = solution.n_iter
        self.trace_ = solution.trace
        if solution.moments is not None:
            self.moments_ = solution.moments
        else:  # of an earlier fit
            self.__dict__.pop("moments_", None)
        self._plan = plan
        self._certificate = proof
        self._solution_facts = solution.facts()
        if isinstance(problem, Problem) and problem.design.whereabouts:
            self._solution_facts["rows"] = problem.design.whereabouts
        self._mark_fitted()
        self._keep_of(problem, solution)

    def _keep_of(self, problem: Any, solution: Solution) -> None:
        """Keep what else an estimator reports of its solution."""

    def _keep_of_rows(self, X: Any, y: NDArray[Any], sample_weight: Any) -> None:
        """Keep what an estimator reports of the training rows."""
        n = len(y)
        self._total_weight = float(
            n if sample_weight is None else weights_of(sample_weight, n).sum()
        )

    def _mark_fitted(self) -> None:
        """Remember coefficients and hyperparameters, so that later changes of them are noticed."""
        self._as_fitted = marked(chosen_by(self))

    def _guard(self, problem: Any, solution: Solution) -> None:
        """Judge an answer that did not come by the planner, which judges its own, and warn."""
        if not np.isnan(solution.allowed):
            return
        claimed = solution.status.is_final
        confirm(solution, judge(problem, solution, self._options().tol))
        if claimed and not solution.status.is_final:
            self._warn(solution)

    def _fitted_attributes(self, W: Any, b: Any, y_ndim: int, fit_intercept: bool) -> Attributes:
        """Coefficients and intercepts in scikit-learn's shapes."""
        return {"coef_": np.ascontiguousarray(W.T), "intercept_": b if fit_intercept else 0 * b}

    def _certify_rounded(self, problem: Any, solution: Solution, W: Any, b: Any) -> Proof:
        """The certificate of coefficients rounded to single precision."""
        return certify_rounded(problem, solution, W.astype(np.float64), b.astype(np.float64))

    # --- what is known afterwards ---------------------------------------------------------------

    def _scores(self, X: Any) -> NDArray[Any]:
        """X W + b for new rows."""
        scores = new_rows(self, X) @ self.coef_.T
        return np.asarray(scores.toarray() if sp.issparse(scores) else scores) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def certificate_(self) -> Certificate:
        """What is proven about the coefficients as they are now.

        The certificate is tied to ``coef_`` and ``intercept_``: if they are changed after the fit,
        it is about the changed ones, and :meth:`Certificate.verify` will reject it.
        """
        check_is_fitted(self)
        W, b = self._coefficients()
        certificate = self._resolved_certificate()
        x_power = certificate.witness.get("column_exponent")
        y_power = certificate.witness.get("target_exponent")
        if x_power is not None and y_power is not None:
            W = np.ldexp(W, (y_power - x_power[:, None]).astype(int))
            b = np.ldexp(b, y_power.astype(int))
        return replace(certificate, coef=W, intercept=b, reading=self._reading())

    def _reading(self) -> Reading | None:
        """What the certificate does with data before it looks at them; None if nothing."""
        own = {"_verified_data", "_verified_design", "_verified_target"}
        classes = type(self).__mro__[: type(self).__mro__.index(LinearEstimator)]
        return self._verified_data if any(own & set(vars(c)) for c in classes) else None

    def _resolved_certificate(self) -> Certificate:
        """The certificate of the fit; a pending proof is worked out once."""
        certificate = resolved(self._certificate)
        assert certificate is not None
        self._certificate = certificate
        return certificate

    def _coefficients(self) -> tuple[Array, Array]:
        """``coef_`` and ``intercept_`` as float64 arrays of shape (d, k) and (k,)."""
        W = np.atleast_2d(np.asarray(self.coef_, dtype=np.float64)).T
        b = np.broadcast_to(np.asarray(self.intercept_, dtype=np.float64), W.shape[1])
        return W, b

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None, **data: Any) -> Objective:
        """The function that the fit has minimised, to be called at any coefficients.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,) or (n, k)
        sample_weight : array-like of shape (n,), optional
        **data
            What else ``fit`` takes of the rows: ``offset`` and ``exposure`` of some models.

        Returns
        -------
        objective : Objective
            ``objective(coef, intercept)`` is its value, in the units of
            ``certificate_.objective``; it has ``gradient``, ``loss`` and ``penalty`` of the same
            arguments, and prints as its formula.
        """
        check_is_fitted(self)
        X, y, sample_weight = unpacked(X, y, sample_weight)
        return objective_of(self, X, y, sample_weight, **data)

    def _gradient_of_given(self, G: Array, g: Array) -> tuple[Array, Array]:
        """Derivatives by ``coef_`` and ``intercept_``, from those by the problem's variables."""
        return G, g

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
        """Check the certificate against the data that were fitted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or batches of :func:`trueline.open`
        y : array-like of shape (n,) or (n, k)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        verification : Verification
            True in a boolean context if every claim holds.
        """
        X, y, sample_weight = unpacked(X, y, sample_weight)

        def check() -> Verification:
            certificate = self.certificate_
            return verify(certificate, *certificate.read(X, y, sample_weight))

        return self._tied(check)

    def _tied(self, check: Callable[[], Verification]) -> Verification:
        """The outcome, which fails as well if hyperparameters were changed after the fit."""
        check_is_fitted(self)
        return tied(getattr(self, "_as_fitted", {}), chosen_by(self), check)

    def _verified_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Design, target and weights that the certificate is about."""
        return self._verified_design(X), self._verified_target(y), sample_weight

    def _verified_design(self, X: Any) -> Any:
        """The design that the certificate is about."""
        return X

    def _verified_target(self, y: Any) -> Any:
        """The target that the certificate is about."""
        return y

    def explain(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, all: bool = False
    ) -> Explanation:
        """Say what will be done with (X, y), or what was done in the last fit.

        Parameters
        ----------
        X : array-like or sparse matrix, optional
            With ``y``: plan a fit on these data without running it.
        y : array-like, optional
        sample_weight : array-like, optional
        all : bool, default=False
            List every solver with its reason, those for other losses and penalties too.

        Returns
        -------
        explanation : Explanation
            Prints as text; ``table()`` gives rows.
        """
        if X is None:
            check_is_fitted(self)
            return replace(self._explained_fit(), all=all)
        X, y, sample_weight = unpacked(X, y, sample_weight)
        if y is None:
            raise ValueError("explain(X, y) needs the target y beside X.")
        self._check_parameters()
        return replace(self._explained_plan(X, y, sample_weight), all=all)

    def _explained_fit(self) -> Any:
        """What was done in the last fit."""
        certificate = self._resolved_certificate()
        penalty = getattr(certificate, "penalty", None)
        total = None if "sum_i s_i" in self._plan.objective else float(self._plan.facts.n)
        plan = self._in_given_terms(self._plan, penalty, total)
        steps = steps_by_hand(plan, certificate)
        return Explanation(plan, self._solution_facts, certificate, by_hand=steps)

    def _explained_plan(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """What will be done with (X, y)."""
        problem = self._validated_problem(X, y, sample_weight, reset=False)[0]
        return self._planned_explanation(problem, self._plan_for(problem))

    #: What the strength that is given becomes in the objective, a sum over rows: "alpha" itself,
    #: "n alpha" (alpha is that of a mean), or "1/C".
    _strength_in_sum = "alpha"

    def _planned_explanation(self, problem: Problem, plan: Plan) -> Explanation:
        told = self._in_given_terms(plan, problem.penalty, problem.total_weight)
        return Explanation(told, by_hand=steps_by_hand(plan, problem))

    def _in_given_terms(self, plan: Plan, penalty: Penalty | None, total: float | None) -> Plan:
        """The plan, its objective in terms of the parameters as they were given."""
        given = getattr(self, "alpha_", getattr(self, "alpha", None))
        given = None if given is None or np.ndim(given) else float(given)
        return in_given_terms(plan, self._strength_in_sum, penalty, total, given)

    @abstractmethod
    def _validated_problem(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Stated:
        """Check the input and state the problem."""


if TYPE_CHECKING:
    #: What mixins are written for. They stand side by side in front of :class:`LinearEstimator`,
    #: and none is derived from another: a class shows all that it is made of.
    Host = LinearEstimator
else:
    Host = object


def build_problem(
    X: Any, Y: Array, weights: Array | None, loss: Any, penalty: Penalty, fit_intercept: bool
) -> Problem:
    """A problem from validated arrays."""
    loss.check_target(Y)
    design = as_design(X) if "quadratic" in loss.capabilities else as_suitable_design(X)
    return Problem(design, Y, loss, penalty, fit_intercept, weights)
