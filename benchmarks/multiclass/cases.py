"""The cases: which scheme on which rows, and who takes part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.problems import clouds

__all__ = ["CASES", "CONTESTANTS", "US", "Case", "Contestant", "data_of"]

US = "trueline, ridge"

Rows = tuple[NDArray[np.float64], NDArray[np.int64]]


def _clouds(n: int, d: int, classes: int, seed: int) -> Callable[[bool], Rows]:
    return lambda small: clouds(40 * classes if small else n, d, classes, seed=seed)


def _digits(small: bool) -> Rows:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return (X[:400], y[:400]) if small else (X, y)


_DATA = {
    "digits": ("digits, 1,797 x 64, 10 classes", _digits),
    "letters": ("20,000 x 16, 26 classes", _clouds(20_000, 16, 26, 1)),
    "images": ("10,000 x 400, 10 classes", _clouds(10_000, 400, 10, 2)),
}
_SCHEMES = {
    "OneVsRestClassifier": ("One-vs-rest", {}),
    "OneVsOneClassifier": ("One-vs-one", {}),
    "OutputCodeClassifier": ("Output code of 1.5 bits per class", {"random_state": 0}),
}


@dataclass(frozen=True)
class Case:
    """A scheme on some rows."""

    title: str
    scheme: str
    parameters: dict[str, Any]
    data: str


#: By name: every scheme on all rows.
CASES = {
    f"{scheme.partition('Classifier')[0]}_{data}": Case(f"{title}: {size}", scheme, extra, data)
    for data, (size, _) in _DATA.items()
    for scheme, (title, extra) in _SCHEMES.items()
}


@dataclass(frozen=True)
class Contestant:
    """Whose wrapper around whose estimator."""

    wrapper: str
    module: str
    estimator: str
    parameters: dict[str, Any]

    def build(self, case: Case) -> Any:
        """The model of a case."""
        from importlib import import_module

        part = getattr(import_module(self.module), self.estimator)(**self.parameters)
        return getattr(import_module(self.wrapper), case.scheme)(part, **case.parameters)


_OURS, _THEIRS, _LINEAR = "trueline", "sklearn.multiclass", "sklearn.linear_model"
#: By name; those of one family fit the same parts.
CONTESTANTS = {
    US: Contestant(_OURS, "trueline", "RidgeClassifier", {}),
    "scikit-learn, ridge": Contestant(_THEIRS, _LINEAR, "RidgeClassifier", {}),
    "scikit-learn, ridge by lsqr": Contestant(
        _THEIRS, _LINEAR, "RidgeClassifier", {"solver": "lsqr"}
    ),
    "trueline around scikit-learn's ridge": Contestant(_OURS, _LINEAR, "RidgeClassifier", {}),
}


def data_of(case: Case, small: bool) -> Rows:
    """Rows and labels of a case."""
    return _DATA[case.data][1](small)
