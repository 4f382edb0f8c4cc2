"""The tour on built-in data: fit, explain, prove, and catch a forged coefficient."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from trueline.cli import show
from trueline.cli.families import FAMILIES
from trueline.cli.model_text import (
    show_certificate,
    show_explanation,
    show_model_coefficients,
    show_verdict,
)
from trueline.errors import MissingExtraError, require
from trueline.plots import CoefficientDisplay, FitDisplay
from trueline.plots.shared import new_axes

Array = NDArray[np.float64]

#: The columns of scikit-learn's diabetes data, with names that say what they are.
NAMES = [
    "age",
    "sex",
    "body mass index",
    "blood pressure",
    "cholesterol",
    "LDL cholesterol",
    "HDL cholesterol",
    "cholesterol / HDL",
    "log triglycerides",
    "glucose",
]
TARGET = "progression"
_FORGERY = 1.01


def load_data() -> tuple[Array, Array]:
    """442 patients: ten measurements, each in standard deviations, and the disease a year later."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True, scaled=False)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def run_demo(picture: Path) -> None:
    """Run the tour."""
    out = show.console()
    X, y = load_data()
    show.heading(out, "1. Data", "diabetes: 442 patients, from scikit-learn")
    show.show_facts(
        out,
        {
            "predict": "progression of the disease a year later (25 to 346)",
            "from": ", ".join(NAMES),
            "unit": "each measurement in standard deviations, so coefficients compare",
        },
    )
    model = FAMILIES["ridge-cv"].make().fit(X, y)
    model.feature_names_in_ = np.array(NAMES, dtype=object)
    show.heading(out, "2. Fit", FAMILIES["ridge-cv"].title)
    show.show_facts(
        out, {"alpha": f"{model.alpha_:.3g}", "R2": f"{_r_squared(model, X, y):.3f} on these rows"}
    )
    out.print()
    show_model_coefficients(out, model, NAMES)
    show.heading(out, "3. Explain", "which solver, and why")
    show_explanation(out, model.explain())
    _prove(out, model, X, y)
    _forge(out, model, X, y)
    _draw(out, model, X, y, picture)
    show.heading(out, "Your turn")
    show.note(out, "trueline fit data.csv --target COLUMN", "bold")
    show.note(out, "trueline verify model.trueline data.csv", "bold")


def _predict(model: Any, X: Array) -> Array:
    return X @ model.coef_ + model.intercept_


def _r_squared(model: Any, X: Array, y: Array) -> float:
    return 1.0 - float(np.var(y - _predict(model, X)) / np.var(y))


def _prove(out: Console, model: Any, X: Array, y: Array) -> None:
    show.heading(out, "4. Prove", "recomputed from the data, without any code of the solver")
    show_certificate(out, model.certificate_)
    out.print()
    outcome = model.verify(X, y)
    show.show_checks(out, outcome.checks)
    show_verdict(out, outcome)


def _forge(out: Console, model: Any, X: Array, y: Array) -> None:
    """Change one coefficient by a hundredth and let the checker find it."""
    model = deepcopy(model)
    j = int(np.argmax(np.abs(model.coef_)))
    before = model.coef_[j]
    model.coef_[j] *= _FORGERY
    rest = f"{NAMES[j]}: {before:.4g} becomes {model.coef_[j]:.4g}"
    show.heading(out, "5. Forge one coefficient", rest)
    outcome = model.verify(X, y)
    show.show_checks(out, outcome.checks)
    out.print()
    if outcome:
        show.note(out, "The forgery went unnoticed.", "bold red")
    else:
        show.note(out, "Caught: the proof does not hold for the forged model.", "bold green")


def _draw(out: Console, model: Any, X: Array, y: Array, path: Path) -> None:
    show.heading(out, "6. Picture")
    try:
        require("matplotlib", "plot")
        left, right = new_axes(1, 2, size=(11, 4.6))
        CoefficientDisplay(NAMES, model.coef_).plot(left)
        FitDisplay(y, _predict(model, X)).plot(right)
        left.figure.savefig(path, dpi=150)
        show.note(out, f"saved: {path}", "")
    except MissingExtraError as error:
        show.show_scatter(out, _predict(model, X), y, TARGET)
        show.note(out, f"As an image: {error}")
