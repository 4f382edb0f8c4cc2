"""Losses and their derivatives, of residuals and margins, and their lines through outliers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from trueline.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    Quantile,
    Squared,
    SquaredHinge,
    ZeroOne,
)
from trueline.plots import shared
from trueline.plots.shared import COLOURS, GREY, Array, Display

_POINTS = 601
# Points that stand for the two sides of a kink.
_BESIDE = 1e-9


def _default_losses() -> dict[str, Loss]:
    return {
        "squared": Squared(),
        "absolute": Absolute(),
        "Huber, delta = 0.75": Huber(0.75),
        "quantile, q = 0.8": Quantile(0.8),
        "epsilon-insensitive, 0.5": EpsilonInsensitive(0.5),
    }


@dataclass(repr=False)
class LossDisplay(Display):
    """Losses on the left, their derivatives on the right, of the residual or of the margin.

    The derivative is the influence of a row on the fit: how much an outlier counts. At a corner
    every number between the slopes of both sides is a subgradient: a dotted line has them all.

    Parameters
    ----------
    losses : Loss, fitted estimator, or mapping of str to these, optional
        By label; without it those for regression, with common parameters. Losses of labels are
        drawn against the margin y z, with the 0-1 loss.
    reach : float, default=2.5
        Residuals (or margins) from -reach to reach are shown.
    properties : bool, default=False
        Whether the legend says what a lecture asks: convex, differentiable, Lipschitz, and which
        multiple is above the 0-1 loss.

    Attributes
    ----------
    ax_ : pair of matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.losses import Huber, Squared
    >>> from trueline.plots import LossDisplay
    >>> display = LossDisplay({"squared": Squared(), "Huber": Huber(1.0)}).plot()
    >>> [text.get_text() for text in display.ax_[0].get_legend().get_texts()]
    ['squared', 'Huber']
    """

    losses: Any = None
    reach: float = 2.5
    properties: bool = False

    def plot(self, ax: Sequence[Any] | None = None) -> LossDisplay:
        """Draw.

        Parameters
        ----------
        ax : pair of matplotlib Axes, optional
            For the losses, and for their derivatives.

        Returns
        -------
        self : LossDisplay
        """
        losses = _default_losses() if self.losses is None else shared.losses_of(self.losses)
        kinds = {_is_of_margins(loss) for loss in losses.values()}
        if len(kinds) > 1:
            raise ValueError("Losses of residuals and of margins are not drawn in one picture.")
        # The target: of a residual zero, so that the score is the residual; of a margin +1.
        y = 1.0 if kinds == {True} else 0.0
        value_ax, slope_ax = shared.pair_of_axes(ax, self.reach)
        if ax is None and self.properties:  # with a line below for each loss
            value_ax.figure.set_size_inches(9.6, 4.2 + 0.25 * len(losses))
        for number, (label, loss) in enumerate(losses.items()):
            # Later lines are thinner: where two coincide, both are seen.
            style: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)]}
            style |= {"linewidth": max(3.4 - 0.5 * number, 1.2)}
            name = f"{label}: {_answers(loss)}" if self.properties else label
            z = _grid(loss, y, self.reach)
            target = np.full_like(z, y)
            value_ax.plot(*_broken(z, loss.value(target, z), _steps(loss.value, loss, y)), **style)
            value_ax.plot([], [], label=name, **style)
            jumps = _steps(loss.gradient, loss, y)
            slope_ax.plot(*_broken(z, loss.gradient(target, z), jumps), label=name, **style)
            for kink, low, high in jumps:
                slope_ax.plot([kink, kink], [low, high], ":", color=style["color"], linewidth=1.4)
        for one, name in ((value_ax, "loss"), (slope_ax, "derivative: influence of a row")):
            one.axhline(0.0, color="black", linewidth=0.8, zorder=1)
            one.set_xlim(-self.reach, self.reach)
            one.set_xlabel("margin $y z$" if y else "residual, prediction minus target")
            one.set_ylabel(name)
        value_ax.set_ylim(bottom=0.0)
        if y:
            self._bounded(value_ax, slope_ax, list(losses.values()))
        if self.properties:
            shared.legend_below(value_ax, 1)
        else:
            value_ax.legend(
                loc="upper right" if y else "upper center", fontsize="small", frameon=False
            )
        return self._drawn_on((value_ax, slope_ax))

    def _bounded(self, value_ax: Any, slope_ax: Any, losses: list[Loss]) -> None:
        """The 0-1 loss, for losses to be compared with; squares do not press the others flat."""
        if not any(isinstance(loss, ZeroOne) for loss in losses):
            edges = [-self.reach, 0.0, np.nan, 0.0, self.reach]
            heights = [1.0, 1.0, np.nan, 0.0, 0.0]
            value_ax.plot(edges, heights, color=GREY, linewidth=1.2, label="0-1", zorder=1)
        value_ax.set_ylim(top=min(value_ax.get_ylim()[1], 2.0 * self.reach))
        slope_ax.set_ylim(bottom=max(slope_ax.get_ylim()[0], -self.reach))


def _is_of_margins(loss: Loss) -> bool:
    return "margins" in loss.capabilities or loss.least_at_mistake > 0


def _answers(loss: Loss) -> str:
    """What a lecture asks of a loss, in few words."""
    own = loss.properties
    convex = "strictly convex" if own.is_strictly_convex else "convex"
    said = [convex if own.is_convex else "not convex"]
    said += ["differentiable" if own.is_differentiable else "corner"] if own.is_convex else []
    said += [f"Lipschitz {own.lipschitz:.3g}"] if own.lipschitz < np.inf else ["not Lipschitz"]
    if own.mistake_factor < np.inf:
        said.append(f"{own.mistake_factor:.3g} l above 0-1".removeprefix("1 "))
    return ", ".join(said)


def _grid(loss: Loss, y: float, reach: float) -> Array:
    """Scores with points just beside the kinks, so that corners are sharp."""
    grid = np.linspace(-reach, reach, _POINTS)
    for kink in _places(loss, y):
        beside = np.array([kink - _BESIDE, kink + _BESIDE])
        grid = np.append(grid[np.abs(grid - kink) > _BESIDE], beside[np.abs(beside) < reach])
    return np.sort(grid)


def _places(loss: Loss, y: float) -> list[float]:
    """The scores at which a loss may have a corner or a step."""
    return [y + kink for kink in loss.kinks] or ([0.0] if "nonconvex" in loss.capabilities else [])


def _steps(
    function: Callable[[Array, Array], Array], loss: Loss, y: float
) -> list[tuple[float, float, float]]:
    """Where a function of the score jumps, and the values on both sides."""
    found = []
    for kink in _places(loss, y):
        low, high = function(np.full(2, y), np.array([kink - _BESIDE, kink + _BESIDE]))
        if abs(high - low) > 1e-6:
            found.append((kink, float(low), float(high)))
    return found


def _broken(
    z: Array, values: Array, jumps: list[tuple[float, float, float]]
) -> tuple[Array, Array]:
    """A line with gaps where it jumps: none is drawn through a jump."""
    at = [kink for kink, _, _ in jumps]
    places = np.searchsorted(z, at)
    return np.insert(z, places, at), np.insert(values, places, np.nan)


def plot_losses(
    estimator: Any = None, ax: Any = None, *, reach: float = 2.5, properties: bool = False
) -> LossDisplay:
    """Draw losses side by side with their derivatives; see :class:`LossDisplay`.

    Parameters
    ----------
    estimator : fitted estimator, Loss or its name, or mapping of str to these, optional
        The loss that a fitted model has minimised; by default those for regression.
    ax : pair of matplotlib Axes, optional
    reach : float, default=2.5
        How far to both sides of zero.
    properties : bool, default=False
        Whether the legend says if a loss is convex, differentiable, Lipschitz, above the 0-1 loss.

    Returns
    -------
    display : LossDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.plots import plot_losses
    >>> display = plot_losses({"hinge": "hinge", "Rosenblatt": "perceptron"}, properties=True)
    >>> display.ax_[0].get_legend().get_texts()[0].get_text()
    'hinge: convex, corner, Lipschitz 1, l above 0-1'
    """
    return LossDisplay(estimator, reach, properties).plot(ax)


_LINES = ("solid", "dashed", "dashdot", "dotted")


def _margin_losses() -> dict[str, Loss]:
    return {
        "0-1": ZeroOne(),
        "logistic": Logistic(),
        "hinge": Hinge(),
        "squared hinge": SquaredHinge(),
    }


@dataclass(repr=False)
class MarginLossDisplay(Display):
    """The sigmoid on the left, losses of the margin on the right.

    The margin of a row is y z: its score, with the sign of its class. Where it is negative the row
    is on the wrong side, and the 0-1 loss counts it. The other losses are convex, and what they say
    about a row grows with its distance from the right side.

    Parameters
    ----------
    losses : Loss, fitted classifier, or mapping of str to these, optional
        By label, losses for labels -1 and +1; without it 0-1, logistic, hinge and squared hinge.
    reach : float, default=3.0
        Margins from -reach to reach are shown; scores of the sigmoid from -2 reach to 2 reach.

    Attributes
    ----------
    ax_ : pair of matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.plots import plot_margin_losses
    >>> display = plot_margin_losses()
    >>> [text.get_text() for text in display.ax_[1].get_legend().get_texts()]
    ['0-1', 'logistic', 'hinge', 'squared hinge']
    """

    losses: Any = None
    reach: float = 3.0

    def plot(self, ax: Sequence[Any] | None = None) -> MarginLossDisplay:
        """Draw.

        Parameters
        ----------
        ax : pair of matplotlib Axes, optional
            For the sigmoid, and for the losses.

        Returns
        -------
        self : MarginLossDisplay
        """
        sigmoid_ax, loss_ax = shared.pair_of_axes(ax, self.reach)
        self._sigmoid(sigmoid_ax)
        self._losses(loss_ax)
        return self._drawn_on((sigmoid_ax, loss_ax))

    def _sigmoid(self, ax: Any) -> None:
        z = np.linspace(-2 * self.reach, 2 * self.reach, _POINTS)
        ax.axhline(0.5, color=GREY, linewidth=0.8, linestyle="dashed")
        ax.axvline(0.0, color=GREY, linewidth=0.8, linestyle="dashed")
        ax.plot(z, expit(z), color=COLOURS[0], linewidth=2.2)
        ax.set(xlim=(z[0], z[-1]), ylim=(-0.02, 1.02), xlabel="score $z = x \\cdot w + b$")
        ax.set_ylabel("probability of the second class, $1 / (1 + e^{-z})$")

    def _losses(self, ax: Any) -> None:
        losses = _margin_losses() if self.losses is None else shared.losses_of(self.losses)
        ax.axvline(0.0, color=GREY, linewidth=0.8, linestyle="dashed")
        highest = 0.0
        for number, (label, loss) in enumerate(losses.items()):
            margin = _grid(loss, 1.0, self.reach)
            value = loss.value(np.ones_like(margin), margin)
            highest = max(highest, float(value[np.abs(margin) <= 1.0].max()))
            ax.plot(
                *_broken(margin, value, _steps(loss.value, loss, 1.0)),
                color="black" if isinstance(loss, ZeroOne) else COLOURS[number % len(COLOURS)],
                linestyle=_LINES[number % len(_LINES)] if number else "solid",
                linewidth=2.2,
                label=label,
            )
        ax.set(xlim=(-self.reach, self.reach), ylim=(-0.05, 1.1 * highest))
        ax.set(xlabel="margin $y z$ (negative: on the wrong side)", ylabel="loss")
        ax.legend(loc="upper right", frameon=False)


def plot_margin_losses(
    estimator: Any = None, ax: Sequence[Any] | None = None, *, reach: float = 3.0
) -> MarginLossDisplay:
    """Draw the sigmoid and losses of the margin; see :class:`MarginLossDisplay`.

    Parameters
    ----------
    estimator : fitted estimator, Loss, or mapping of str to these, optional
        The loss that a fitted model has minimised; by default those for classification.
    ax : pair of matplotlib Axes, optional
    reach : float, default=3.0
        How far to both sides of zero.

    Returns
    -------
    display : MarginLossDisplay
    """
    return MarginLossDisplay(estimator, reach).plot(ax)


# Residuals beyond so many median absolute residuals are marked.
_FAR = 6.0


def _default_models() -> dict[str, Any]:
    import trueline

    return {
        "squared": trueline.LinearRegression(),
        "absolute": trueline.LeastAbsoluteDeviations(),
        "Huber": trueline.HuberRegressor(alpha=0.0),
        "maximum error": trueline.ChebyshevRegressor(),
    }


@dataclass(repr=False)
class OutlierDisplay(Display):
    """Data over one feature, outliers ringed, and one line for each model.

    Parameters
    ----------
    feature, target : arrays of shape (n,)
    lines : mapping of str to array of shape (n,)
        Predictions at the data, by label.
    outliers : array of bool of shape (n,), optional
        Which points to ring.
    name : str, default="x"
        Of the feature.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.plots import OutlierDisplay
    >>> display = OutlierDisplay([0.0, 1.0, 2.0], [0.0, 1.0, 9.0], {"fit": [0.0, 1.0, 2.0]}).plot()
    >>> display.ax_.get_xlabel()
    'x'
    """

    feature: ArrayLike
    target: ArrayLike
    lines: Mapping[str, ArrayLike]
    outliers: ArrayLike | None = None
    name: str = "x"

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, **arguments: Any
    ) -> OutlierDisplay:
        """Draw the lines of fitted models.

        Parameters
        ----------
        estimator : fitted regressor, or mapping of str to fitted regressors
        X : array-like of shape (n, 1)
        y : array-like of shape (n,)
        **arguments
            For :meth:`plot`.
        """
        models = dict(estimator) if isinstance(estimator, Mapping) else {"fit": estimator}
        shared.check_one_column(X)
        for model in models.values():
            shared.check_is_model(model)
        return _lines(cls, models, X, y).plot(**arguments)

    @classmethod
    def from_data(
        cls, X: Any, y: ArrayLike, models: Mapping[str, Any] | None = None, **arguments: Any
    ) -> OutlierDisplay:
        """Fit the models and draw.

        Parameters
        ----------
        X : array-like of shape (n, 1)
        y : array-like of shape (n,)
        models : mapping of str to regressor, optional
            By label, fitted or not (they are cloned and fitted here); by default least squares,
            least absolute deviations, Huber's and the smallest maximum error.
        **arguments
            For :meth:`plot`.
        """
        from sklearn.base import clone

        shared.check_one_column(X)
        models = _default_models() if models is None else models
        fitted = {label: clone(model).fit(X, y) for label, model in models.items()}
        return _lines(cls, fitted, X, y).plot(**arguments)

    def plot(self, ax: Any = None) -> OutlierDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self : OutlierDisplay
        """
        x, y = shared.lines_of(feature=self.feature, target=self.target)
        ax = shared.axes(ax)
        ax.scatter(x, y, s=16, color=GREY, alpha=0.7, linewidths=0, label="data", zorder=2)
        if self.outliers is not None and np.any(self.outliers):
            far = np.asarray(self.outliers, dtype=bool)
            ring = {"facecolors": "none", "edgecolors": "black", "linewidths": 1.0}
            ax.scatter(x[far], y[far], s=70, label="outliers", zorder=3, **ring)
        order = np.argsort(x, kind="stable")
        for number, (label, line) in enumerate(self.lines.items()):
            colour = COLOURS[number % len(COLOURS)]
            line = np.asarray(line, dtype=float)
            # Later lines are thinner: where two coincide, both are seen.
            width = max(3.6 - 0.6 * number, 1.2)
            ax.plot(x[order], line[order], color=colour, linewidth=width, label=label, zorder=4)
        ax.set(xlabel=self.name, ylabel="target")
        shared.legend(ax, "best")
        return self._drawn_on(ax)


def _far(X: Any, y: Array) -> Any:
    """Rows far from the line of least absolute deviations, which they hardly move."""
    from trueline.estimators.robust.quantile import LeastAbsoluteDeviations

    size = np.abs(y - LeastAbsoluteDeviations().fit(X, y).predict(X))
    return size > _FAR * np.median(size) + 1e-9 * np.abs(y).max(initial=0.0)


def _lines(
    cls: type[OutlierDisplay], models: Mapping[str, Any], X: Any, y: ArrayLike
) -> OutlierDisplay:
    """What fitted models predict over the only column of X."""
    name = "x"
    for model in models.values():
        name = str(getattr(model, "feature_names_in_", [name])[0])
    lines = {label: model.predict(X) for label, model in models.items()}
    target = np.asarray(y, dtype=float)
    return cls(np.asarray(X, dtype=float)[:, 0], target, lines, _far(X, target), name)


def plot_outliers(estimator: Any, X: Any, y: ArrayLike, ax: Any = None) -> OutlierDisplay:
    """Draw the lines of fitted models through data with outliers; see :class:`OutlierDisplay`.

    Parameters
    ----------
    estimator : fitted regressor, or mapping of str to fitted regressors
    X : array-like of shape (n, 1)
    y : array-like of shape (n,)
    ax : matplotlib Axes, optional

    Returns
    -------
    display : OutlierDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from trueline import HuberRegressor, LinearRegression
    >>> from trueline.plots import plot_outliers
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> y = X.ravel() + np.where(X.ravel() == 15, 30.0, 0.0)
    >>> models = {"squared": LinearRegression().fit(X, y), "Huber": HuberRegressor().fit(X, y)}
    >>> list(plot_outliers(models, X, y).lines)
    ['squared', 'Huber']
    """
    return OutlierDisplay.from_estimator(estimator, X, y, ax=ax)
