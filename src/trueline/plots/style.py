"""What the pictures share: axes, colours and lines that are read, and what the functions are given.

Plot functions take a fitted object first; earlier calls are understood too.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from trueline.errors import require
from trueline.losses import LOSSES, Loss, PerceptronLoss, ZeroOne
from trueline.wording import Readable

Array = NDArray[np.float64]

# Okabe and Ito's palette without its yellow, told apart by every kind of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#888888"
PALE = "#BBBBBB"
# More points than this only make a picture darker and its file larger.
_MOST_POINTS = 5000
# Points (1/72 inch) that the numbers and the label of an axis take.
_LABELS = 36

#: Criteria by name, as they are written on an axis.
CRITERION_WORDS = {
    "aic": "AIC",
    "aicc": "corrected AIC",
    "bic": "BIC",
    "adjusted_r2": "adjusted $R^2$",
    "cp": "Mallows' $C_p$",
    "cv": "mean squared error on held-out rows",
}


class Display(Readable):
    """A picture: a dataclass of what is drawn, whose ``plot`` draws it and keeps the axes."""

    ax_: Any = None
    figure_: Any = None

    def _drawn_on(self, ax: Any) -> Self:
        """Keep the axes, one or several."""
        self.ax_, self.figure_ = ax, np.ravel(ax)[0].figure
        return self


def axes(ax: Any, size: tuple[float, float] = (6.4, 4.8)) -> Any:
    """The axes to draw on: the given ones, or those of a new figure."""
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot", "plot")
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def pair_of_axes(ax: Any, reach: float) -> Any:
    """Two axes side by side, for curves from -reach to reach."""
    if not reach > 0:
        raise ValueError(f"reach must be positive, got {reach!r}.")
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot", "plot")
    return pyplot.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")[1]


def some_rows(n: int) -> tuple[Any, str]:
    """Which of n rows are drawn, the same each time, and how they are called in the legend."""
    if n <= _MOST_POINTS:
        return slice(None), "data"
    rows = np.sort(np.random.default_rng(0).choice(n, _MOST_POINTS, replace=False))
    return rows, f"data ({_MOST_POINTS:,} of {n:,} rows)"


def tidy(ax: Any) -> None:
    """Only the lines that are read."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="#DDDDDD", linewidth=0.6)
    ax.set_axisbelow(True)


def legend(ax: Any, loc: str) -> None:
    """A legend without a frame that stays readable where lines run behind it."""
    ax.legend(loc=loc, facecolor="white", edgecolor="none", framealpha=0.9)


def legend_below(ax: Any, ncols: int) -> None:
    """A legend under the axis and its label: the place above the picture is its title's.

    Without a layout engine nothing makes room for it there, and it stands inside.
    """
    from matplotlib.transforms import ScaledTranslation

    engine = ax.figure.get_layout_engine()
    if engine is None:
        legend(ax, "best")
        return
    below = ScaledTranslation(0.0, -_LABELS / 72, ax.figure.dpi_scale_trans)
    place = {"bbox_to_anchor": (0.5, 0.0), "bbox_transform": ax.transAxes + below}
    ax.legend(loc="upper center", ncols=ncols, frameon=False, **place)
    # Axes of one scale settle in the second round only; the first picture would be cut.
    engine.execute(ax.figure)


def title(ax: Any, text: str) -> None:
    """A title, unless the axes have one already."""
    if not ax.get_title():
        ax.set_title(text, fontsize="medium")


def colour_bar(image: Any, ax: Any, label: str, shrink: float = 1.0) -> None:
    """What the colours of an image mean."""
    bar = np.ravel(ax)[0].figure.colorbar(image, ax=ax, shrink=shrink)
    bar.set_label(label)
    bar.outline.set_visible(False)


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse what is not one of the choices."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} is not one of {tuple(choices)}.")


def names_of(names: Any, d: int) -> list[str]:
    """The names of d columns; x0, x1, ... if there are none."""
    if names is None:
        return [f"x{j}" for j in range(d)]
    if len(names) != d:
        raise ValueError(f"There are {len(names)} names for {d} columns.")
    return [str(name) for name in names]


P = ParamSpec("P")
R = TypeVar("R")


class Fitted(NamedTuple):
    """A fitted model, the names of its columns, and what makes them out of the user's X."""

    model: Any
    names: Any
    transform: Callable[[Any], Any]


def fitted(estimator: Any) -> Fitted:
    """The model that was fitted: an estimator, or the last step of a pipeline.

    Of a search over parameters, such as scikit-learn's ``GridSearchCV``, it is the best one.
    """
    check_is_fitted(estimator)
    estimator = getattr(estimator, "best_estimator_", estimator)
    if not isinstance(estimator, Pipeline):
        return Fitted(estimator, getattr(estimator, "feature_names_in_", None), lambda X: X)
    before, model = estimator[:-1], estimator[-1]
    names = getattr(model, "feature_names_in_", None)
    try:
        names = before.get_feature_names_out() if names is None else names
    except (AttributeError, ValueError):  # a step that cannot name its columns
        names = None
    return Fitted(model, names, before.transform if len(estimator) > 1 else lambda X: X)


def coefficients_of(model: Any) -> Array:
    """The coefficients of a linear model, one row for each target or class."""
    if not hasattr(model, "coef_"):
        raise ValueError(f"{type(model).__name__} has no coefficients (coef_) to draw.")
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    return np.atleast_2d(np.asarray(coef, dtype=float))


def losses_of(given: Any) -> dict[str, Loss]:
    """Losses by label: of a fitted model, a loss or its name, or a mapping of labels to these."""
    given = _named(given) if isinstance(given, str) else given
    if isinstance(given, Mapping):
        return {label: _loss_of(one) for label, one in given.items()}
    loss = _loss_of(given)
    return {(loss.name if given is loss else type(fitted(given).model).__name__): loss}


def _named(name: str) -> Loss:
    """A loss by its name, also one that is not minimised."""
    known: dict[str, type[Loss]] = {**LOSSES, "perceptron": PerceptronLoss, "zero_one": ZeroOne}
    check_choice("loss", name, sorted(known))
    return known[name]()


def _loss_of(given: Any) -> Loss:
    given = _named(given) if isinstance(given, str) else given
    if isinstance(given, Loss):
        return given
    model = fitted(given).model
    loss = getattr(getattr(model, "certificate_", None), "loss", None)
    if not isinstance(loss, Loss):
        raise ValueError(f"{type(model).__name__} does not minimise a loss of linear predictions.")
    return loss


def is_fitted_object(given: Any) -> bool:
    """Whether this is an estimator, or a mapping of names to estimators."""
    return isinstance(given, Mapping) or hasattr(given, "fit")


def is_axes(given: Any) -> bool:
    """Whether this is something to draw on."""
    return hasattr(given, "get_figure") and hasattr(given, "plot")


def replaces(
    earlier: Callable[..., Any],
    *,
    instead: str,
    when: Callable[..., bool] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a plot function that was called in another way before.

    Parameters
    ----------
    earlier : callable
        What the earlier call did, with its parameters.
    instead : str
        How to write it now, for the warning.
    when : callable, optional
        Whether the arguments are those of the earlier form; by default, whether the first one is
        neither an estimator nor a mapping of estimators.
    """
    parameters = inspect.signature(earlier)

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__name__
        first = next(iter(inspect.signature(function).parameters))

        def is_earlier(*args: Any, **named: Any) -> bool:
            return not is_fitted_object(args[0] if args else named.get(first))

        @functools.wraps(function)
        def plot(*args: Any, **named: Any) -> Any:
            if not (args or named) or not (when or is_earlier)(*args, **named):
                return function(*args, **named)
            try:
                parameters.bind(*args, **named)
            except TypeError as error:
                form = f"{name}{inspect.signature(function)}".partition(" ->")[0]
                given = type(args[0]).__name__ if args else f"only {', '.join(named)}"
                raise TypeError(
                    f"{name} takes the fitted object first, got {given}. Its form: {form}."
                ) from error
            warnings.warn(
                f"This form of {name} is deprecated: it takes the fitted object first. Write "
                f"{instead}.",
                FutureWarning,
                stacklevel=2,
            )
            return earlier(*args, **named)

        return cast("Callable[P, R]", plot)

    return decorate
