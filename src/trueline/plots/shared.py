"""What the pictures share: axes, colours and lines that are read, and what the functions are given.

Plot functions take a fitted object first; plain numbers are drawn by the displays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
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


def new_axes(*shape: int, size: tuple[float, float], **options: Any) -> Any:
    """The axes of a new figure, one or an array of them."""
    pyplot = require("matplotlib.pyplot", "plot")
    return pyplot.subplots(*shape, figsize=size, layout="constrained", **options)[1]


def axes(ax: Any, size: tuple[float, float] = (6.4, 4.8), *, is_image: bool = False) -> Any:
    """The axes to draw on: the given ones, or those of a new figure."""
    ax = new_axes(size=size) if ax is None else ax
    if not is_image:
        tidy(ax)
    return ax


def grid_of_axes(count: int, across: int, size: Any, **options: Any) -> Any:
    """So many axes of a new figure in rows, of which the last may not be full."""
    across = min(count, across)
    found = new_axes(-(-count // across), across, size=size, squeeze=False, **options).ravel()
    for unused in found[count:]:
        unused.set_visible(False)
    return found[:count]


def pair_of_axes(ax: Any, reach: float) -> Any:
    """Two axes side by side, for curves from -reach to reach."""
    if not reach > 0:
        raise ValueError(f"reach must be positive, got {reach!r}.")
    pair = new_axes(1, 2, size=(9.6, 4.2)) if ax is None else ax
    for one in pair:
        tidy(one)
    return pair


def scatter_rows(ax: Any, x: ArrayLike, y: ArrayLike, **style: Any) -> None:
    """Draw rows, of very many the same ones each time, with their name in the legend."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    n, label = len(x), "data"
    keep: Any = slice(None)
    if n > _MOST_POINTS:
        keep = np.sort(np.random.default_rng(0).choice(n, _MOST_POINTS, replace=False))
        label = f"data ({_MOST_POINTS:,} of {n:,} rows)"
    ax.scatter(x[keep], y[keep], linewidths=0, label=label, **style)


def lines_of(**parts: ArrayLike) -> list[Array]:
    """Arrays of numbers that must be one-dimensional and equally long."""
    found = [np.asarray(part, dtype=float) for part in parts.values()]
    shapes = [str(array.shape) for array in found]
    if found[0].ndim != 1 or len(set(shapes)) > 1:
        *names, last = parts
        raise ValueError(
            f"{', '.join(names)} and {last} must be one-dimensional and equally long, got shapes "
            f"{', '.join(shapes[:-1])} and {shapes[-1]}."
        )
    return found


def over_feature(X: Any, j: int, points: int, beyond: float = 0.0) -> tuple[Any, Any, Any, str]:
    """A column, a grid over it, rows of the grid with the others at their medians, its name.

    ``beyond`` is how far the grid leaves the data at both ends, as a share of their range.
    """
    values = dense(X)
    names, column = getattr(X, "columns", None), values[:, j]
    air = beyond * (float(np.ptp(column)) or 1.0)
    grid = np.linspace(column.min() - air, column.max() + air, points)
    rows = np.tile(np.median(values, axis=0), (points, 1))
    rows[:, j] = grid
    if names is not None:
        return column, grid, type(X)(dict(zip(names, rows.T))), str(names[j])
    return column, grid, rows, "x" if values.shape[1] == 1 else f"x{j}"


def check_one_column(X: Any) -> None:
    """Refuse rows of several columns."""
    if np.ndim(X) != 2 or np.shape(X)[1] != 1:
        raise ValueError(f"X must have one column to draw over, got shape {np.shape(X)}.")


def limits(points: Array, air: float) -> tuple[Array, Array]:
    """The least and the largest coordinates to show, with some air around the points."""
    low, high = points.min(axis=0), points.max(axis=0)
    beside = np.where(high > low, air * (high - low), 1.0)
    return low - beside, high + beside


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


def check_is_model(given: Any) -> None:
    """Refuse what is not fitted, and plain numbers, which displays draw."""
    if not hasattr(given, "fit"):
        raise TypeError(
            f"A plot function takes the fitted object first, got {type(given).__name__}. Plain "
            "numbers are drawn by the displays, such as CoefficientDisplay(names, coef).plot()."
        )
    check_is_fitted(given)


class Fitted(NamedTuple):
    """A fitted model, the names of its columns, and what makes them out of the user's X."""

    model: Any
    names: Any
    transform: Callable[[Any], Any]


def fitted(estimator: Any) -> Fitted:
    """The model that was fitted: an estimator, or the last step of a pipeline.

    Of a search over parameters, such as scikit-learn's ``GridSearchCV``, it is the best one.
    """
    check_is_model(estimator)
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


def dense(X: Any) -> Array:
    """Rows as an array of numbers."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)


def column_number(feature: int | str, names: list[str]) -> int:
    """The number of a column, of which the name or the number is given."""
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"feature={feature!r} is not one of {names[:10]}.")
        return names.index(feature)
    if not -len(names) <= int(feature) < len(names):
        raise ValueError(f"There is no column {feature}: X has {len(names)}.")
    return int(feature) % len(names)


def coefficients_of(model: Any) -> Array:
    """The coefficients of a linear model, one row for each target or class."""
    if not hasattr(model, "coef_"):
        raise ValueError(f"{type(model).__name__} has no coefficients (coef_) to draw.")
    return np.atleast_2d(dense(model.coef_))


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
