"""Balls of the L1, L2 and L-infinity norm, and the contours of the squared error they touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from trueline.plots import shared
from trueline.plots.shared import COLOURS, GREY, PALE, Array, Display

_TITLES = {
    1.0: "$\\|w\\|_1 \\leq t$",
    2.0: "$\\|w\\|_2 \\leq t$",
    np.inf: "$\\|w\\|_\\infty \\leq t$",
}
_CONTOURS = 4
_GRID = 201


@dataclass(repr=False)
class BallDisplay(Display):
    """The least squared error in a ball, for three norms: where a contour touches the ball.

    Contours of equal squared error are ellipses around the least squares solution. The one that
    touches the ball does so at a corner of the L1 ball often, where a coefficient is zero.

    Parameters
    ----------
    centre : array of shape (2,)
        The coefficients of least squares.
    curvature : array of shape (2, 2)
        The squared error above its minimum is ``(w - centre)' curvature (w - centre)``.
    share : float, default=0.5
        The radius of each ball, as a share of the norm of the centre.
    names : pair of str, optional
        Of the columns.

    Attributes
    ----------
    ax_ : array of matplotlib Axes of shape (3,)
    figure_ : matplotlib Figure
    touching_ : dict of float to array of shape (2,)
        The best coefficients in each ball, by the order of the norm.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from trueline.plots import BallDisplay
    >>> display = BallDisplay([3.0, 1.0], np.eye(2), share=0.5).plot()
    >>> display.touching_[1.0]
    array([2., 0.])
    """

    centre: ArrayLike
    curvature: ArrayLike
    share: float = 0.5
    names: Sequence[str] | None = None
    touching_: dict[float, Array] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, share: float = 0.5, **arguments: Any
    ) -> BallDisplay:
        """Work out the contours of two columns, and draw.

        Parameters
        ----------
        estimator : fitted linear model of two columns
            It says whether there is an intercept, which is then the best one everywhere.
        X : array-like of shape (n, 2)
        y : array-like of shape (n,)
        share : float, default=0.5
        **arguments
            For :meth:`plot`.
        """
        model, names, transform = shared.fitted(estimator)
        A, target = np.asarray(transform(X), dtype=float), np.asarray(y, dtype=float)
        if A.ndim != 2 or A.shape[1] != 2 or target.ndim != 1:
            raise ValueError(f"The balls are drawn for two columns and one target, got {A.shape}.")
        if getattr(model, "fit_intercept", True):
            A, target = A - A.mean(axis=0), target - target.mean()
        centre = np.linalg.lstsq(A, target, rcond=None)[0]
        return cls(centre, A.T @ A, share, shared.names_of(names, 2)).plot(**arguments)

    def plot(self, ax: Sequence[Any] | None = None) -> BallDisplay:
        """Draw.

        Parameters
        ----------
        ax : sequence of three matplotlib Axes, optional

        Returns
        -------
        self : BallDisplay
        """
        centre, H = np.asarray(self.centre, float), np.asarray(self.curvature, float)
        if centre.shape != (2,) or H.shape != (2, 2) or not np.any(centre):
            raise ValueError("The centre must have two numbers that are not both zero.")
        if not 0 < self.share <= 1:
            raise ValueError(f"share must lie above 0 and not above 1, got {self.share!r}.")
        if ax is None:
            ax = shared.new_axes(1, 3, size=(10.8, 4.1), sharex=True, sharey=True)
        self.touching_ = {}
        for each, order in zip(ax, _TITLES, strict=True):
            self._panel(each, order, centre, H)
        shared.legend(ax[0], "lower left")
        ax[0].set_ylabel(f"coefficient of {shared.names_of(self.names, 2)[1]}")
        return self._drawn_on(np.asarray(ax))

    def _panel(self, ax: Any, order: float, centre: Array, H: Array) -> None:
        radius = self.share * float(np.linalg.norm(centre, order))
        best = self.touching_[order] = touching_point(centre, H, order, radius)
        reach = 1.15 * max(np.abs(centre).max(), self.share * np.abs(centre).sum())
        ticks = np.linspace(-reach, reach, _GRID)
        W = np.stack(np.meshgrid(ticks, ticks), axis=-1) - centre
        error = np.einsum("...i,ij,...j->...", W, H, W)
        level = float((best - centre) @ H @ (best - centre))
        shared.tidy(ax)
        ax.axhline(0.0, color=GREY, linewidth=0.8)
        ax.axvline(0.0, color=GREY, linewidth=0.8)
        # Equal steps of the root: the distance in the metric of the ellipses.
        levels = level * (np.arange(1, 2 * _CONTOURS + 1) / _CONTOURS) ** 2
        if level > 0:
            ax.contour(ticks, ticks, error, levels=levels, colors=PALE, linewidths=0.8)
            ax.contour(ticks, ticks, error, levels=[level], colors=COLOURS[1], linewidths=1.8)
        ball = radius * _sphere(order)
        ax.fill(*ball.T, facecolor=COLOURS[0], alpha=0.25, linewidth=0)
        ax.plot(*ball.T, color=COLOURS[0], linewidth=1.8)
        ax.plot(*centre, "o", color="black", markersize=5, label="least squares")
        style = {"color": COLOURS[1], "markersize": 8, "markeredgecolor": "white", "zorder": 5}
        ax.plot(*best, "o", label="best in the ball", **style)
        ax.set(aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach))
        ax.set_title(_TITLES[order])
        ax.set_xlabel(f"coefficient of {shared.names_of(self.names, 2)[0]}")


def _sphere(order: float) -> Array:
    """The boundary of the unit ball, closed."""
    if order == 1:
        return np.array([[1, 0], [0, 1], [-1, 0], [0, -1], [1, 0]], dtype=float)
    if order == np.inf:
        return np.array([[1, 1], [-1, 1], [-1, -1], [1, -1], [1, 1]], dtype=float)
    angle = np.linspace(0, 2 * np.pi, 361)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def touching_point(centre: Array, H: Array, order: float, radius: float) -> Array:
    """The point of a ball with the least (w - centre)' H (w - centre).

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.plots.textbook.balls import touching_point
    >>> touching_point(np.array([3.0, 4.0]), np.eye(2), order=2, radius=1.0).round(6)
    array([0.6, 0.8])
    """
    if np.linalg.norm(centre, order) <= radius:
        return centre

    def error(w: Array) -> float:
        return float((w - centre) @ H @ (w - centre))

    if order == 2:

        def at(angle: float) -> Array:
            return radius * np.array([np.cos(angle), np.sin(angle)])

        angles = np.linspace(-np.pi, np.pi, 361)
        near = angles[int(np.argmin([error(at(angle)) for angle in angles]))]
        found = minimize_scalar(
            lambda angle: error(at(angle)),
            bounds=(near - 0.02, near + 0.02),
            method="bounded",
            options={"xatol": 1e-12},
        )
        return at(float(found.x))
    corners = radius * _sphere(order)
    points = []
    for start, end in pairwise(corners):
        along = end - start
        curvature = float(along @ H @ along)
        share = float(along @ H @ (centre - start)) / curvature if curvature > 0 else 0.0
        points.append(start + min(max(share, 0.0), 1.0) * along)
    return points[int(np.argmin([error(point) for point in points]))]


def plot_balls(
    estimator: Any, X: Any, y: ArrayLike, ax: Any = None, *, share: float = 0.5
) -> BallDisplay:
    """Draw the balls of three norms and the contours they touch; see :class:`BallDisplay`.

    Parameters
    ----------
    estimator : fitted linear model of two columns
    X : array-like of shape (n, 2)
    y : array-like of shape (n,)
    ax : sequence of three matplotlib Axes, optional
    share : float, default=0.5
        The radius of each ball, as a share of the norm of the least squares solution.

    Returns
    -------
    display : BallDisplay
    """
    return BallDisplay.from_estimator(estimator, X, y, share=share, ax=ax)
