"""A Gaussian process over one feature, and the length scales of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from trueline.plots.style import COLOURS, GREY, Display, axes, legend, names_of, some_rows, tidy

__all__ = ["LengthScaleDisplay", "ProcessDisplay", "plot_length_scales", "plot_process"]

_GRID = 300


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
        Functions drawn from the process.
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
            How many functions to draw from the process.
        beyond : float, default=0.1
            How far to go beyond the data at both ends, as a share of their range.
        random_state : int, default=0
        **arguments
            For :meth:`plot`.
        """
        check_is_fitted(estimator)
        rows = np.asarray(X, dtype=float)
        column = rows[:, feature]
        air = beyond * (float(np.ptp(column)) or 1.0)
        grid = np.linspace(column.min() - air, column.max() + air, _GRID)
        at = np.tile(np.median(rows, axis=0), (_GRID, 1))
        at[:, feature] = grid
        names = getattr(estimator, "feature_names_in_", None)
        frame: Any = at
        if names is not None:
            frame = type(X)({str(name): at[:, j] for j, name in enumerate(names)})
        mean, std = estimator.predict(frame, return_std=True)
        drawn = None
        if samples:
            drawn = estimator.sample_y(frame, samples, random_state=random_state)
        name = (
            names_of(names, rows.shape[1])[feature]
            if rows.shape[1] > 1 or names is not None
            else "x"
        )
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
        grid, mean, std = (np.asarray(part, float) for part in (self.grid, self.mean, self.std))
        if not grid.shape == mean.shape == std.shape or grid.ndim != 1:
            raise ValueError(
                "grid, mean and std must be one-dimensional and equally long, got shapes "
                f"{grid.shape}, {mean.shape} and {std.shape}."
            )
        ax = axes(ax)
        tidy(ax)
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
        x, y = np.asarray(self.feature, float), np.asarray(self.target, float)
        keep, label = some_rows(len(x))
        ax.scatter(x[keep], y[keep], s=12, color=GREY, linewidths=0, zorder=3, label=label)
        ax.set_xlabel(self.name)
        ax.set_ylabel("target")
        legend(ax, "best")
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
        names = names_of(self.names, len(scales))
        ax = axes(ax, (6.4, 0.9 + 0.35 * len(scales)))
        tidy(ax)
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
