"""Loss functions side by side with their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueline.losses import Absolute, EpsilonInsensitive, Huber, Loss, Quantile, Squared
from trueline.plots.fitted import losses_of
from trueline.plots.style import COLOURS, Array, Display, pair_of_axes, tidy

__all__ = ["LossDisplay", "plot_losses"]

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
    """Losses of the residual on the left, their derivatives on the right.

    The derivative is the influence of a row on the fit: how much an outlier counts.

    Parameters
    ----------
    losses : Loss, fitted estimator, or mapping of str to these, optional
        By label; without it those for regression, with common parameters.
    reach : float, default=2.5
        Residuals from -reach to reach are shown.

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
        value_ax, slope_ax = pair_of_axes(ax, self.reach)
        losses = _default_losses() if self.losses is None else losses_of(self.losses)
        for number, (label, loss) in enumerate(losses.items()):
            # Later lines are thinner: where two coincide, both are seen.
            width = max(3.4 - 0.5 * number, 1.2)
            style = {"color": COLOURS[number % len(COLOURS)], "linewidth": width, "label": label}
            r = self._residuals(loss)
            zero = np.zeros_like(r)
            value_ax.plot(r, loss.value(zero, r), **style)
            slope_ax.plot(*_broken(r, loss.gradient(zero, r), loss), **style)
        for one, name in ((value_ax, "loss"), (slope_ax, "derivative: influence of a row")):
            tidy(one)
            one.axhline(0.0, color="black", linewidth=0.8, zorder=1)
            one.set_xlim(-self.reach, self.reach)
            one.set_xlabel("residual, prediction minus target")
            one.set_ylabel(name)
        value_ax.set_ylim(bottom=0.0)
        value_ax.legend(loc="upper center", fontsize="small", frameon=False)
        return self._drawn_on((value_ax, slope_ax))

    def _residuals(self, loss: Loss) -> Array:
        """A grid with points just beside the kinks, so that corners are sharp."""
        grid = np.linspace(-self.reach, self.reach, _POINTS)
        for kink in loss.kinks:
            beside = np.array([kink - _BESIDE, kink + _BESIDE])
            grid = np.append(
                grid[np.abs(grid - kink) > _BESIDE], beside[np.abs(beside) < self.reach]
            )
        return np.sort(grid)


def _broken(r: Array, slope: Array, loss: Loss) -> tuple[Array, Array]:
    """The derivative with gaps where it jumps: no line is drawn through a jump."""
    jumps = [k for k in loss.kinks if _jumps_at(loss, k)]
    places = np.searchsorted(r, jumps)
    return np.insert(r, places, jumps), np.insert(slope, places, np.nan)


def _jumps_at(loss: Loss, kink: float) -> bool:
    sides = loss.gradient(np.zeros(2), np.array([kink - _BESIDE, kink + _BESIDE]))
    return bool(abs(sides[1] - sides[0]) > 1e-6)


def plot_losses(
    estimator: Any = None, ax: Sequence[Any] | None = None, *, reach: float = 2.5
) -> LossDisplay:
    """Draw losses side by side with their derivatives; see :class:`LossDisplay`.

    Parameters
    ----------
    estimator : fitted estimator, Loss, or mapping of str to these, optional
        The loss that a fitted model has minimised; by default those for regression.
    ax : pair of matplotlib Axes, optional
    reach : float, default=2.5
        How far to both sides of zero.

    Returns
    -------
    display : LossDisplay
    """
    return LossDisplay(estimator, reach).plot(ax)
