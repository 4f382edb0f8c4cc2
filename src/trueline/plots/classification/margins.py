"""The sigmoid, and the losses of classification as functions of the margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from trueline.losses import Hinge, Logistic, Loss, SquaredHinge, ZeroOne
from trueline.plots.fitted import losses_of
from trueline.plots.style import COLOURS, GREY, Display, pair_of_axes, tidy

__all__ = ["MarginLossDisplay", "plot_margin_losses"]

_POINTS = 601
_LINES = ("solid", "dashed", "dashdot", "dotted")


def _default_losses() -> dict[str, Loss]:
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
        sigmoid_ax, loss_ax = pair_of_axes(ax, self.reach)
        self._sigmoid(sigmoid_ax)
        self._losses(loss_ax)
        return self._drawn_on((sigmoid_ax, loss_ax))

    def _sigmoid(self, ax: Any) -> None:
        z = np.linspace(-2 * self.reach, 2 * self.reach, _POINTS)
        tidy(ax)
        ax.axhline(0.5, color=GREY, linewidth=0.8, linestyle="dashed")
        ax.axvline(0.0, color=GREY, linewidth=0.8, linestyle="dashed")
        ax.plot(z, expit(z), color=COLOURS[0], linewidth=2.2)
        ax.set_xlim(z[0], z[-1])
        ax.set_ylim(-0.02, 1.02)
        ax.set_xlabel("score $z = x \\cdot w + b$")
        ax.set_ylabel("probability of the second class, $1 / (1 + e^{-z})$")

    def _losses(self, ax: Any) -> None:
        losses = _default_losses() if self.losses is None else losses_of(self.losses)
        margin = np.linspace(-self.reach, self.reach, _POINTS)
        # The 0-1 loss jumps at zero: a line through the jump would claim values in between.
        margin = np.insert(margin, np.searchsorted(margin, 0.0), [-1e-9, 0.0])
        tidy(ax)
        ax.axvline(0.0, color=GREY, linewidth=0.8, linestyle="dashed")
        highest = 0.0
        for number, (label, loss) in enumerate(losses.items()):
            value = loss.value(np.ones_like(margin), margin)
            highest = max(highest, float(value[np.abs(margin) <= 1.0].max()))
            broken = np.where(np.abs(np.diff(value, append=value[-1])) > 0.5, np.nan, value)
            ax.plot(
                margin,
                broken,
                color="black" if isinstance(loss, ZeroOne) else COLOURS[number % len(COLOURS)],
                linestyle=_LINES[number % len(_LINES)] if number else "solid",
                linewidth=2.2,
                label=label,
            )
        ax.set_xlim(-self.reach, self.reach)
        ax.set_ylim(-0.05, 1.1 * highest)
        ax.set_xlabel("margin $y z$ (negative: on the wrong side)")
        ax.set_ylabel("loss")
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
