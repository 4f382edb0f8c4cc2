"""The result of a comparison: a table, a picture, a DataFrame.

Whether a difference between two models is more than the luck of the folds.

Scores of folds are not independent: training rows overlap. The variance of their mean is larger
than var / J, and a plain paired t-test finds differences that are not there. With J folds, n1 rows
to learn from and n2 to be scored on, and d_j the differences of the scores, the corrected
resampled t-test (C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine
Learning 52 (2003) 239-281, eq. 19) takes

    t = mean(d) / sqrt((1 / J + n2 / n1) var(d)),    J - 1 degrees of freedom.

Several comparisons at once are adjusted by Holm's rule (S. Holm, Scand. J. Statist. 6 (1979)
65-70).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from trueline.errors import require
from trueline.evaluation.grid_search import GridScores
from trueline.evaluation.methods import Method
from trueline.wording import Readable, Text

Array = NDArray[np.float64]

# Targets that were measured are not predicted to so many digits.
_EXACT = 1e-12


# What a table has of each entry as it is.
_NUMBERS = (
    *("score", "standard_error", "train_score", "difference", "difference_error", "p_value"),
    *("p_adjusted", "fit_seconds", "search_seconds", "nonzeros", "coefficients", "gap"),
)


@dataclass(repr=False)
class Entry(Readable):
    """One model of a comparison.

    Attributes
    ----------
    name : str
    model : estimator
        Fitted to all rows with the chosen setting.
    setting : dict
        The chosen hyperparameters.
    score, standard_error : float
        Mean over the folds on test rows, and its standard error.
    train_score : float
        Mean over the folds on the rows that were fitted.
    fold_scores : array of shape (folds,)
    fit_seconds, search_seconds : float
        The fit to all rows; all fits and scores of the folds.
    nonzeros, coefficients : int or None
    gap : float or None
        What is proven about the fit to all rows: relative distance from the optimum at most.
    route : str
        How the fits of the folds were found.
    difference, difference_error, p_value, p_adjusted : float
        How much the best model is better, by the corrected resampled t-test; adjusted for the
        number of models by Holm's rule.
    grid : GridScores
        Scores of all settings.
    notes : list of str
        What the fit to all rows warned of.
    edge : str
        What it means that the setting is at an end of its grid; empty if it is inside.
    method : Method
        Deterministic or probabilistic, the loss, what is estimated, the kind of proof.
    """

    name: str
    model: Any
    setting: dict[str, Any]
    score: float
    standard_error: float
    train_score: float
    fold_scores: Array
    fit_seconds: float
    search_seconds: float
    nonzeros: int | None
    coefficients: int | None
    gap: float | None
    route: str
    grid: GridScores = field(repr=False)
    notes: list[str] = field(default_factory=list)
    edge: str = ""
    method: Method = Method("", "", "", "")
    difference: float = 0.0
    difference_error: float = float("nan")
    p_value: float = float("nan")
    p_adjusted: float = float("nan")

    def __str__(self) -> str:
        setting = setting_text(self.setting)
        return (
            f"{self.name}: {self.score:.6g} ± {self.standard_error:.2g} "
            f"({len(self.fold_scores)} folds)" + (f", {setting}" if setting else "")
        )


@dataclass(repr=False)
class Comparison(Readable):
    """Models side by side, the best mean score first.

    Attributes
    ----------
    entries : list of Entry
    scorer : str
        What was measured.
    folds : int
    rule : str
        How settings and the winner were picked.
    leaking : list of str
        Columns that tell the target exactly.
    unfinished : list of str
        Models that Ctrl-C left out.
    in_order : bool
        Whether the folds follow the order of the rows, and the target depends on that order.
    """

    entries: list[Entry]
    scorer: str
    folds: int
    rule: str
    leaking: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    in_order: bool = False

    @property
    def best(self) -> Entry:
        """The winner: of the best score or, by ``rule="1se"``, of the fewest coefficients among
        those within one standard error of it.
        """
        first = self.entries[0]
        if self.rule == "min" or not np.isfinite(first.standard_error):
            return first
        limit = first.score - first.standard_error
        near = [entry for entry in self.entries if entry.score >= limit]
        # Without coefficients to count (a constant, a kernel) nothing is known to be simpler.
        known = [entry for entry in near if entry.nonzeros is not None]
        return min(known, key=lambda entry: entry.nonzeros or 0) if known else first

    def __getitem__(self, name: str) -> Entry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(f"{name!r} was not compared. Compared: {[e.name for e in self.entries]}.")

    def __len__(self) -> int:
        return len(self.entries)

    def rows(self) -> list[dict[str, Any]]:
        """The table as dictionaries, one for each model."""
        return [
            {
                "model": entry.name,
                **{name: getattr(entry, name) for name in _NUMBERS},
                "settings": setting_text(entry.setting),
                "edge": entry.edge,
                "route": entry.route,
                **entry.method._asdict(),
            }
            for entry in self.entries
        ]

    def methods(self) -> Text:
        """A second table: whether a model is probabilistic, its loss, what it estimates, the proof.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from trueline import compare
        >>> X, y = load_diabetes(return_X_y=True)
        >>> compare(X, y, models=["ridge", "maximum error"], cv=3).methods()
        model          view           loss           estimates            proof
        -------------  -------------  -------------  -------------------  -------------
        ridge          probabilistic  1/2 (z - y)^2  mean                 quadratic
        maximum error  probabilistic  |z - y|        middle of the range  maximum error
        """
        table = [["model", *Method._fields]]
        table += [[entry.name, *entry.method] for entry in self.entries]
        return Text("\n".join(_lined_up(table, frozenset(range(5)))))

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame, indexed by model."""
        pandas = require("pandas", "tables")
        return pandas.DataFrame(self.rows()).set_index("model")

    def plot(self, ax: Any = None) -> Any:
        """Draw the scores with their standard errors; see ``trueline.plots.ComparisonDisplay``."""
        from trueline.plots.scores import ComparisonDisplay

        return ComparisonDisplay.from_comparison(self).plot(ax)

    def cells(self) -> list[list[str]]:
        """The table as text, with its header."""
        header = ["model", self.scorer, "± se", "train", "behind", "p", "non-zeros", "gap", "fit"]
        table = [[*header, "settings"]]
        for entry in self.entries:
            is_first = entry is self.entries[0]
            p = entry.p_adjusted
            table.append(
                [
                    ("* " if entry is self.best else "  ") + entry.name,
                    _number(entry.score),
                    _number(entry.standard_error, 2),
                    _number(entry.train_score),
                    "" if is_first else _number(entry.difference, 2),
                    "" if is_first or np.isnan(p) else ("<0.001" if p < 1e-3 else f"{p:.3f}"),
                    "" if entry.nonzeros is None else f"{entry.nonzeros} of {entry.coefficients}",
                    "" if entry.gap is None else (f"{entry.gap:.0e}" if entry.gap <= 1 else "> 1"),
                    _seconds(entry.fit_seconds),
                    setting_text(entry.setting) + (" (edge)" if entry.edge else ""),
                ]
            )
        return table

    def __str__(self) -> str:
        table = self.cells()
        lines = [*_lined_up(table, frozenset({0, len(table[0]) - 1})), ""]
        lines.append(
            f"{self.folds} folds. behind: mean difference to the first; p: corrected resampled "
            "t-test, Holm"
        )
        picked = "best mean score" if self.rule == "min" else "fewest within one standard error"
        lines.append(f"* {picked}. The score of a chosen setting is a little too good.")
        lines += [f"edge: {entry.name}: {entry.edge}." for entry in self.entries if entry.edge]
        if self.in_order:
            lines.append(
                "order: the rows are sorted by something that tells the target, so that every fold "
                "asks for targets unlike those it learns from. If the order means nothing: "
                "cv=KFold(5, shuffle=True, random_state=0)."
            )
        if self.unfinished:
            lines.append(f"stopped before these were finished: {', '.join(self.unfinished)}.")
        if self.leaking:
            tell = "tells" if len(self.leaking) == 1 else "tell"
            lines.append(
                f"LEAKAGE: {', '.join(self.leaking)} {tell} the target exactly. The scores are "
                "those of a copy of the target: leave out what is only known together with it."
            )
        elif self.scorer == "R2" and self.entries[0].score >= 1.0 - _EXACT:
            lines.append("LEAKAGE: the columns together tell the target exactly.")
        return "\n".join(lines)


def _lined_up(table: list[list[str]], to_the_left: frozenset[int]) -> list[str]:
    """Rows of equal columns, with a line below the header."""
    widths = [max(len(row[j]) for row in table) for j in range(len(table[0]))]
    lines = []
    for row in table:
        cells = [
            cell.ljust(width) if j in to_the_left else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths))
        ]
        lines.append("  ".join(cells).rstrip())
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def setting_text(setting: dict[str, Any]) -> str:
    """Hyperparameters in one line."""
    return ", ".join(
        f"{name.rpartition('__')[2]}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in setting.items()
    )


def _number(value: float, digits: int = 4) -> str:
    return "" if not np.isfinite(value) else f"{value:.{digits}g}"


def _seconds(value: float) -> str:
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


class PairedTest(NamedTuple):
    """A difference of scores, its corrected standard error, and how surprising it would be."""

    difference: float
    standard_error: float
    p_value: float


def paired_test(first: ArrayLike, second: ArrayLike, test_share: float) -> PairedTest:
    """The corrected resampled t-test of two models on the same folds.

    Parameters
    ----------
    first, second : arrays of shape (folds,)
        Scores of the two models.
    test_share : float
        Test rows for each training row, n2 / n1.

    Examples
    --------
    >>> from trueline.evaluation.report import paired_test
    >>> test = paired_test([0.9, 0.8, 0.85, 0.9, 0.8], [0.8, 0.75, 0.8, 0.8, 0.75], 0.25)
    >>> round(test.difference, 3), round(test.p_value, 3)
    (0.07, 0.019)
    """
    d = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    mean = float(d.mean())
    if len(d) < 2:
        return PairedTest(mean, float("nan"), float("nan"))
    variance = float(d.var(ddof=1))
    error = float(np.sqrt((1 / len(d) + test_share) * variance))
    if error == 0:
        return PairedTest(mean, 0.0, 1.0 if mean == 0 else 0.0)
    return PairedTest(mean, error, float(2 * student.sf(abs(mean) / error, len(d) - 1)))


def holm(p_values: ArrayLike) -> Array:
    """Holm's adjusted p-values, in the given order; NaN stays.

    Examples
    --------
    >>> from trueline.evaluation.report import holm
    >>> holm([0.01, 0.04, 0.03]).round(3)
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
