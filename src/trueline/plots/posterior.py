"""Posteriors: of a line, updated point by point; of a Gaussian process over one feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from trueline.plots import shared
from trueline.plots.shared import COLOURS, GREY, Array, Display
from trueline.wording import Readable, counted

_GRID = 80


@dataclass(repr=False)
class PosteriorDisplay(Readable):
    """What is believed about a line after so many points: where it runs, and its coefficients.

    Above, the points so far, lines drawn from the posterior, and the band in which a new point lies
    with probability 0.95. Below, the region in which intercept and slope lie with probability
    0.5 and 0.95.

    Parameters
    ----------
    model : BayesianLinearRegression
        With an intercept; its parameters are used, not its fit.
    feature, target : arrays of shape (n,)
        In the order in which they arrive.
    steps : sequence of int, optional
        After how many points to draw; by default 2, 3, 5 and all of them.
    lines : int, default=20
        Drawn from each posterior.
    name : str, default="x"
        Of the feature.

    Attributes
    ----------
    axes_ : array of matplotlib Axes of shape (2, panels)
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from trueline import BayesianLinearRegression
    >>> from trueline.plots import PosteriorDisplay
    >>> x = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    >>> display = PosteriorDisplay(BayesianLinearRegression(), x, 2 * x + 1, steps=[3, 5]).plot()
    >>> [ax.get_title() for ax in display.axes_[0]]
    ['3 points', '5 points']
    """

    model: Any
    feature: ArrayLike
    target: ArrayLike
    steps: Sequence[int] | None = None
    lines: int = 20
    name: str = "x"
    axes_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def plot(self) -> PosteriorDisplay:
        """Draw.

        Returns
        -------
        self : PosteriorDisplay
        """
        x, y = shared.lines_of(feature=self.feature, target=self.target)
        if not self.model.fit_intercept:
            raise ValueError("The picture shows intercept and slope: fit_intercept must be True.")
        default = sorted({min(step, len(x)) for step in (2, 3, 5, len(x))})
        steps = default if self.steps is None else list(self.steps)
        if not steps or min(steps) < 1 or max(steps) > len(x) or steps != sorted(set(steps)):
            raise ValueError(
                f"steps must be ascending numbers of points between 1 and {len(x)}, got {steps}."
            )
        size, one_scale = (2.9 * len(steps) + 0.4, 5.6), {"sharex": "row", "sharey": "row"}
        self.axes_ = shared.new_axes(2, len(steps), size=size, squeeze=False, **one_scale)
        self.figure_ = self.axes_[0, 0].figure
        model = clone(self.model)
        seen = 0
        for number, step in enumerate(steps):
            model.partial_fit(x[seen:step, None], y[seen:step])  # posterior becomes prior
            seen = step
            self._over_data(self.axes_[0, number], model, x, y, step)
            self._over_coefficients(self.axes_[1, number], model)
        self._frame(x, y, steps[min(1, len(steps) - 1)])
        self.axes_[0, 0].set_ylabel("target")
        self.axes_[1, 0].set_ylabel("slope")
        self.axes_[1, -1].legend(title="probability", loc="upper right", frameon=False)
        return self

    def _frame(self, x: Array, y: Array, step: int) -> None:
        """Coefficients are shown as far as the second panel spreads: the first knows too little."""
        model = clone(self.model).fit(x[:step, None], y[:step])
        slopes, intercepts = model.credible_interval(0.99)[0], model.intercept_interval(0.99)
        for limits, ends in (("set_xlim", intercepts), ("set_ylim", slopes)):
            middle, half = ends.mean(), 0.75 * float(np.ptp(ends)) or 1.0
            getattr(self.axes_[1, 0], limits)(middle - half, middle + half)

    def _over_data(self, ax: Any, model: Any, x: Array, y: Array, step: int) -> None:
        shared.tidy(ax)
        air = 0.1 * (float(np.ptp(x)) or 1.0)
        grid = np.linspace(x.min() - air, x.max() + air, _GRID)
        low, high = model.predict_interval(grid[:, None]).T
        ax.fill_between(grid, low, high, color=COLOURS[0], alpha=0.14, linewidth=0)
        coef, intercept, _ = model.sample_posterior(self.lines)
        for w, b in zip(coef[:, 0], intercept):
            ax.plot(grid, b + w * grid, color=COLOURS[4], linewidth=0.6)
        ax.plot(grid, model.predict(grid[:, None]), color=COLOURS[1], linewidth=1.8)
        ax.scatter(x[step:], y[step:], s=10, color=GREY, alpha=0.35, linewidths=0)
        ax.scatter(x[:step], y[:step], s=18, color="black", linewidths=0, zorder=3)
        reach = float(np.ptp(y)) or 1.0
        ax.set(ylim=(y.min() - 0.6 * reach, y.max() + 0.6 * reach), xlabel=self.name)
        shared.title(ax, counted(step, "point"))

    def _over_coefficients(self, ax: Any, model: Any) -> None:
        """Ellipses of the Student distribution of (intercept, slope)."""
        shared.tidy(ax)
        posterior = model.posterior_
        slope = float(posterior.scale()[0, 0])
        at_centre = posterior.rate / posterior.shape / posterior.weight
        centre = float(posterior.centre[0])
        scale = np.array(
            [[at_centre + centre**2 * slope, -centre * slope], [-centre * slope, slope]]
        )
        root = np.linalg.cholesky(scale + 1e-300 * np.eye(2))
        angle = np.linspace(0, 2 * np.pi, _GRID)
        circle = np.stack([np.cos(angle), np.sin(angle)])
        freedom = posterior.degrees_of_freedom
        for level, width in ((0.5, 1.8), (0.95, 1.0)):
            # Half the squared distance is Pareto: (1 + r^2 / v)^(-v/2) = 1 - level.
            radius = np.sqrt(freedom * ((1 - level) ** (-2 / freedom) - 1))
            intercepts, slopes = radius * (root @ circle)
            ax.plot(
                float(model.intercept_) + intercepts,
                float(model.coef_[0]) + slopes,
                color=COLOURS[0],
                linewidth=width,
                label=f"{100 * level:g}%",
            )
        ax.plot(float(model.intercept_), float(model.coef_[0]), "o", color=COLOURS[1], markersize=4)
        ax.set_xlabel("intercept")


def plot_posterior(
    estimator: Any, X: ArrayLike, y: ArrayLike, steps: Sequence[int] | None = None
) -> PosteriorDisplay:
    """Draw the posterior of a line being updated; see :class:`PosteriorDisplay`.

    Parameters
    ----------
    estimator : BayesianLinearRegression
        Fitted or not: only its parameters are used, as the picture fits point by point.
    X : array-like of shape (n, 1) or (n,)
        In the order in which the points arrive.
    y : array-like of shape (n,)
    steps : sequence of int, optional
        After how many points to draw; by default 2, 3, 5 and all of them.

    Returns
    -------
    display : PosteriorDisplay
    """
    if np.ndim(X) == 2 and np.shape(X)[1] != 1:
        raise ValueError(f"X must have one column to draw over, got shape {np.shape(X)}.")
    feature = np.asarray(X, dtype=float).ravel()
    name = str(next(iter(getattr(X, "columns", ["x"]))))
    return PosteriorDisplay(estimator, feature, y, steps, name=name).plot()


_PROCESS_GRID = 300


@dataclass(repr=False)
class ProcessDisplay(Display):
    """Mean, bands of one and two standard deviations, and samples of a process over one feature.

    Parameters
    ----------
    feature, target : arrays of shape (n,)
        The data.
    grid, mean, std : arrays of shape (m,)
        Values of the feature, ascending, with mean and standard deviation there.
    samples : array of shape (m, s), optional
        Functions drawn from the process, without noise.
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
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from trueline import GaussianProcessRegressor
    >>> from trueline.plots import ProcessDisplay
    >>> X = np.linspace(0, 6, 20).reshape(-1, 1)
    >>> model = GaussianProcessRegressor(RBF() + WhiteKernel(0.1), optimizer=None)
    >>> model = model.fit(X, np.sin(X.ravel()))
    >>> display = ProcessDisplay.from_estimator(model, X, np.sin(X.ravel()), samples=2)
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['2 standard deviations', '1 standard deviation', '2 samples', 'mean', 'data']
    """

    feature: ArrayLike
    target: ArrayLike
    grid: ArrayLike
    mean: ArrayLike
    std: ArrayLike
    samples: ArrayLike | None = None
    name: str = "x"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        feature: int = 0,
        samples: int = 0,
        beyond: float = 0.1,
        random_state: int = 0,
        **arguments: Any,
    ) -> ProcessDisplay:
        """Predict over a grid and draw.

        Parameters
        ----------
        estimator : fitted GaussianProcessRegressor or SparseGaussianProcessRegressor
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
        feature : int, default=0
            The column to draw over; the others rest at their medians.
        samples : int, default=0
            How many functions to draw from the process: without the noise, which is in the bands.
        beyond : float, default=0.1
            How far to go beyond the data at both ends, as a share of their range.
        random_state : int, default=0
        **arguments
            For :meth:`plot`.
        """
        check_is_fitted(estimator)
        column, grid, frame, name = shared.over_feature(X, feature, _PROCESS_GRID, beyond)
        mean, std = estimator.predict(frame, return_std=True)
        drawn = None
        if samples:
            drawn = estimator.sample_y(frame, samples, random_state, noise=False)
        return cls(column, y, grid, mean, std, drawn, name).plot(**arguments)

    def plot(self, ax: Any = None) -> ProcessDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self : ProcessDisplay
        """
        grid, mean, std = shared.lines_of(grid=self.grid, mean=self.mean, std=self.std)
        ax = shared.axes(ax)
        for width, alpha in ((2, 0.14), (1, 0.22)):
            label = f"{width} standard deviation{'s' if width > 1 else ''}"
            shade = {"color": COLOURS[0], "alpha": alpha, "linewidth": 0, "label": label}
            ax.fill_between(grid, mean - width * std, mean + width * std, **shade)
        if self.samples is not None:
            samples = np.asarray(self.samples, float)
            for s in range(samples.shape[1]):
                name = f"{samples.shape[1]} samples" if s == 0 else None
                ax.plot(grid, samples[:, s], color=COLOURS[4], linewidth=0.8, label=name)
        ax.plot(grid, mean, color=COLOURS[1], linewidth=2.0, label="mean")
        shared.scatter_rows(ax, self.feature, self.target, s=12, color=GREY, zorder=3)
        ax.set(xlabel=self.name, ylabel="target")
        shared.legend(ax, "best")
        return self._drawn_on(ax)


@dataclass(repr=False)
class LengthScaleDisplay(Display):
    """Which features a process looks at: the inverse of each length scale, as bars.

    Parameters
    ----------
    length_scales : array of shape (d,)
    names : list of str, optional

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.plots import LengthScaleDisplay
    >>> LengthScaleDisplay([0.5, 20.0]).plot().ax_.get_xlabel()
    '1 / length scale'
    """

    length_scales: ArrayLike
    names: Any = None

    @classmethod
    def from_estimator(cls, estimator: Any, **arguments: Any) -> LengthScaleDisplay:
        """Read the length scales of a fitted kernel and draw.

        Parameters
        ----------
        estimator : fitted GaussianProcessRegressor or SparseGaussianProcessRegressor
        **arguments
            For :meth:`plot`.
        """
        check_is_fitted(estimator, "kernel_")
        d = estimator.n_features_in_
        found = [
            np.broadcast_to(np.asarray(value, float), d)
            for name, value in estimator.kernel_.get_params().items()
            if name.rpartition("__")[2] == "length_scale"
        ]
        if not found:
            raise ValueError(f"The kernel {estimator.kernel_} has no length scales.")
        # Of several kernels the one that changes fastest decides.
        scales = np.min(found, axis=0)
        return cls(scales, getattr(estimator, "feature_names_in_", None)).plot(**arguments)

    def plot(self, ax: Any = None) -> LengthScaleDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self : LengthScaleDisplay
        """
        scales = np.atleast_1d(np.asarray(self.length_scales, float))
        if not (scales > 0).all():
            raise ValueError(f"Length scales must be positive, got {self.length_scales!r}.")
        names = shared.names_of(self.names, len(scales))
        ax = shared.axes(ax, (6.4, 0.9 + 0.35 * len(scales)))
        order = np.argsort(-scales, kind="stable")
        ax.barh([names[j] for j in order], 1.0 / scales[order], color=COLOURS[0])
        ax.set_xlabel("1 / length scale")
        return self._drawn_on(ax)


def plot_process(
    estimator: Any, X: Any, y: ArrayLike, ax: Any = None, *, feature: int = 0, samples: int = 0
) -> ProcessDisplay:
    """Draw a process over one feature; see :class:`ProcessDisplay`."""
    return ProcessDisplay.from_estimator(estimator, X, y, feature=feature, samples=samples, ax=ax)


def plot_length_scales(estimator: Any, ax: Any = None) -> LengthScaleDisplay:
    """Draw the length scales of a process; see :class:`LengthScaleDisplay`."""
    return LengthScaleDisplay.from_estimator(estimator, ax=ax)
