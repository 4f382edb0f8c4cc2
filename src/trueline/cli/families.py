"""The models that the command line offers. A new family is one line in :data:`FAMILIES`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trueline.errors import TableError

# With this many rows per column, least squares needs no help from a penalty.
_PLENTY = 20


@dataclass(frozen=True)
class Family:
    """A model by the name it has on the command line.

    Attributes
    ----------
    name : str
        For ``--model``.
    estimator : str
        Name of the class in :mod:`trueline`; imported only when it is used.
    title : str
        One line for the help.
    task : {"regression", "classification"}, default="regression"
    options : tuple of str
        Parameters of the estimator that the command line may set, such as ``alpha``.
    defaults : mapping
        Parameters that differ from the estimator's own defaults.
    takes_factors : bool
        Whether the columns of a category enter and leave together, as the estimator's ``groups``.
    is_kernel : bool
        Whether rows are compared by a kernel: columns are standardised then, and have no
        coefficients.
    suits : callable
        ``suits(rows, columns)`` is the reason why ``--model auto`` takes this family for data of
        such a size, or None. The first family of the task with a reason is taken.
    """

    name: str
    estimator: str
    title: str
    task: str = "regression"
    options: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    takes_factors: bool = False
    is_kernel: bool = False
    suits: Callable[[int, int], str | None] = lambda rows, columns: None

    def make(self, sources: Sequence[str] = (), **given: Any) -> Any:
        """The estimator; options that are None keep their defaults.

        ``sources`` names, for each column of the design, the column of the table it comes from.
        """
        import trueline

        given = {name: value for name, value in given.items() if value is not None}
        for name in given:
            if name not in self.options:
                raise TableError(
                    f"{flag(name)} has no meaning for --model {self.name}; it belongs to "
                    f"--model {' or '.join(_with_option(name))}."
                )
        factors = {}
        if self.takes_factors and len(set(sources)) < len(sources):
            factors = {"groups": list(sources)}
        defaults = dict(self.defaults)
        if self.estimator == "GaussianProcessRegressor":
            defaults["kernel"] = _smooth_with_noise()
        return getattr(trueline, self.estimator)(**{**defaults, **factors, **given})


def _smooth_with_noise() -> Any:
    """A kernel for columns and a target of standard deviation one; imported when it is used."""
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    return ConstantKernel(1.0, (1e-3, 1e4)) * RBF(2.0, (1e-2, 1e3)) + WhiteKernel(0.1, (1e-8, 10))


def flag(option: str) -> str:
    """How an option is written on the command line.

    Examples
    --------
    >>> from trueline.cli.families import flag
    >>> flag("l1_ratio")
    '--l1-ratio'
    """
    return f"--{option.replace('_', '-')}"


def _with_option(name: str) -> list[str]:
    return [family.name for family in FAMILIES.values() if name in family.options]


def _plenty_of_rows(rows: int, columns: int) -> str | None:
    if rows < _PLENTY * columns:
        return None
    return f"{rows / columns:,.0f} rows per column are plenty, no penalty is needed"


def _few_rows(rows: int, columns: int) -> str | None:
    return (
        f"{rows / columns:.3g} rows per column are few, a penalty steadies the coefficients; "
        "cross-validation chooses its strength"
    )


def _classes(rows: int, columns: int) -> str | None:
    return "classes and their probabilities are asked for, and a penalty keeps these from 0 and 1"


# From hardly any penalty to hardly any coefficient, four strengths per factor of ten.
_STRENGTHS = tuple(10.0 ** (quarter / 4) for quarter in range(-16, 25))
# Columns of a table have all kinds of units, so that some need a strength that is far below the
# one at which the first column enters.
_GRID = {"alphas": 120, "eps": 1e-6}

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("linear", "LinearRegression", "least squares, no penalty", suits=_plenty_of_rows),
        Family(
            "ridge",
            "Ridge",
            "least squares with a squared penalty of strength --alpha",
            options=("alpha",),
        ),
        Family(
            "ridge-cv",
            "RidgeCV",
            "ridge whose strength is chosen by leave-one-out",
            defaults={"alphas": _STRENGTHS},
            suits=_few_rows,
        ),
        Family(
            "lasso",
            "Lasso",
            "least squares with an absolute penalty of strength --alpha",
            options=("alpha",),
        ),
        Family(
            "lasso-cv",
            "LassoCV",
            "lasso whose strength is chosen by five folds",
            options=("rule",),
            defaults=_GRID,
        ),
        Family(
            "elastic-net",
            "ElasticNet",
            "a mixture of lasso (--l1-ratio 1) and ridge (--l1-ratio 0) of strength --alpha",
            options=("alpha", "l1_ratio"),
        ),
        Family(
            "elastic-net-cv",
            "ElasticNetCV",
            "elastic net whose strength is chosen by five folds",
            options=("l1_ratio", "rule"),
            defaults=_GRID,
        ),
        Family(
            "best-subset",
            "BestSubset",
            "least squares on the best columns of all choices, proven",
            options=("k", "criterion"),
        ),
        Family(
            "stepwise",
            "StepwiseRegression",
            "least squares on columns chosen step by step",
            options=("criterion",),
            takes_factors=True,
        ),
        Family(
            "least-absolute-deviations",
            "LeastAbsoluteDeviations",
            "the conditional median: outliers count no more than their sign",
            options=("alpha", "l1_ratio"),
        ),
        Family(
            "quantile",
            "QuantileRegressor",
            "the conditional quantile --quantile (0.5 is the median)",
            options=("quantile", "alpha", "l1_ratio"),
            defaults={"alpha": 0.0},
        ),
        Family(
            "huber",
            "HuberRegressor",
            "squared errors near the fit, absolute errors far from it",
            options=("alpha",),
        ),
        Family("chebyshev", "ChebyshevRegressor", "the smallest largest error"),
        Family(
            "bayesian",
            "BayesianLinearRegression",
            "the posterior mean under a vague prior, noise estimated along",
            # Columns are in the units of the table: hardly any shrinking for most of them.
            defaults={"prior_precision": 1e-3},
        ),
        Family("bayesian-ridge", "BayesianRidge", "ridge whose strength is the most probable one"),
        Family("relevance", "ARDRegression", "one strength per column, the most probable ones"),
        Family(
            "linear-svr",
            "LinearSVR",
            "support vector regression with C = 100 and an intercept that is nearly free",
            # Columns and target are in the units of the table, the target rarely around zero.
            defaults={"C": 100.0, "intercept_scaling": 1000.0},
        ),
        Family(
            "svr",
            "SVR",
            "support vector regression with a Gaussian kernel on standardised columns, C = 1000",
            # The target is in the units of the table.
            defaults={"C": 1000.0},
            is_kernel=True,
        ),
        Family(
            "gaussian-process",
            "GaussianProcessRegressor",
            "a smooth function of standardised columns, with noise; for up to 10,000 rows or so",
            defaults={"normalize_y": True},
            is_kernel=True,
        ),
        Family(
            "logistic",
            "LogisticRegression",
            "logistic or softmax regression with a squared penalty of strength 1",
            task="classification",
            options=("l1_ratio",),
            suits=_classes,
        ),
        Family(
            "svc",
            "SVC",
            "support vectors with a Gaussian kernel on standardised columns, C = 1",
            task="classification",
            is_kernel=True,
        ),
        Family(
            "perceptron",
            "Perceptron",
            "a perceptron that keeps the weights with the fewest errors on its way (pocket)",
            task="classification",
            # Rows of tables are rarely separable: passes would not end by themselves.
            defaults={"variant": "pocket", "max_iter": 100},
        ),
        Family(
            "zero-one",
            "ZeroOneHalfspace",
            "the hyperplane with the fewest errors, proven; what is known after 60 s otherwise",
            task="classification",
            defaults={"time_limit": 60.0},
        ),
    )
}


def find_family(name: str) -> Family:
    """A family by name; the error suggests names that look alike."""
    if name in FAMILIES:
        return FAMILIES[name]
    word = name.lower().replace("_", "-")
    # Longer and shorter forms of a name (linear-regression, log), then what is spelled alike.
    forms = [known for known in FAMILIES if word.startswith(known) or known.startswith(word)]
    close = (word and forms) or difflib.get_close_matches(word, FAMILIES, n=1, cutoff=0.7)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise TableError(f"--model {name} is not known: take one of auto, {', '.join(FAMILIES)}.{hint}")


def family_with(task: str, options: Sequence[str]) -> tuple[Family, str]:
    """The first family of a task that has all of these options, and the reason.

    Examples
    --------
    >>> from trueline.cli.families import family_with
    >>> family_with("regression", ["k"])[0].name
    'best-subset'
    """
    names = " and ".join(flag(name) for name in options)
    for family in FAMILIES.values():
        if family.task == task and set(options) <= set(family.options):
            return family, f"{names} {'was' if len(options) == 1 else 'were'} given"
    raise TableError(f"No model has {names} together; say which one is meant with --model.")


def choose_family(task: str, rows: int, columns: int) -> tuple[Family, str]:
    """The family for ``--model auto``, and the reason.

    Examples
    --------
    >>> from trueline.cli.families import choose_family
    >>> choose_family("regression", rows=1000, columns=10)[0].name
    'linear'
    >>> choose_family("regression", rows=20, columns=10)[0].name
    'ridge-cv'
    """
    for family in FAMILIES.values():
        reason = family.suits(rows, columns) if family.task == task else None
        if reason is not None:
            return family, reason
    raise TableError(f"There is no model for {task} on the command line yet.")
