"""How many files a fit runs through: a reader who follows it has no more than these to open."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import trueline
from trueline import Lasso, LassoCV, LogisticRegression, Ridge

ROOT = Path(trueline.__file__).parent
RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 60))
Y = X[:, :5].sum(axis=1) + RNG.normal(size=400)
TEXT = sp.random(2000, 5000, density=0.01, random_state=0, format="csr")
LABELS = RNG.integers(0, 2, 2000)

FITS = {
    "ridge": (Ridge(), X, Y),
    "lasso": (Lasso(alpha=0.1), X, Y),
    "logistic, dense": (LogisticRegression(), X, Y > 0),
    "logistic, sparse": (LogisticRegression(), TEXT, LABELS),
    "lasso, by cross-validation": (LassoCV(), X, Y),
}
# No more than this; a number is lowered when a way becomes shorter.
MOST = {
    "ridge": 22,
    "lasso": 28,
    "logistic, dense": 32,
    "logistic, sparse": 31,
    "lasso, by cross-validation": 32,
}


def files_of(fit):
    """The files of the package in which a function is called, in a fit that is not the first."""
    files = set()

    def note(frame, event, argument):
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(ROOT)):
            files.add(str(Path(path).relative_to(ROOT)))

    fit()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        fit()
    finally:
        sys.setprofile(before)
    return sorted(files)


@pytest.mark.parametrize("name", FITS)
def test_a_fit_runs_through_few_files(name):
    model, rows, target = FITS[name]
    files = files_of(lambda: model.fit(rows, target))
    print(f"{name}: {len(files)} files", *files, sep="\n  ")  # noqa: T201 shown by -s, and where it fails
    assert "planner.py" in files
    assert len(files) <= MOST[name]
