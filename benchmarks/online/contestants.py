"""Who takes part in the online suite: how each prepares, learns, and predicts.

Preparation (text files and caches for Vowpal Wabbit, dictionaries for River) is not timed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.online.problems import Split

__all__ = ["CONTESTANTS", "Contestant"]


@dataclass(frozen=True)
class Contestant:
    """One library in one setting.

    Attributes
    ----------
    package : str
        Distribution whose version is reported.
    learn : callable
        From what was prepared to a model; this is timed.
    accuracy : callable
        Of a model on held-out rows.
    prepare : callable
        From the rows to what ``learn`` takes.
    cases : tuple of str
    is_guest : bool
        Whether it may live in an environment of its own.
    """

    package: str
    learn: Callable[[Any], Any]
    accuracy: Callable[[Any, Split], float]
    prepare: Callable[[Split], Any] = lambda split: split
    cases: tuple[str, ...] = ("text", "dense")
    is_guest: bool = False


def _linear(model: Any, split: Split) -> float:
    return split.accuracy(np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]))


def _fit(make: Callable[[], Any]) -> Callable[[Split], Any]:
    return lambda split: make().fit(split.X, split.y)


def _rows(make: Callable[[], Any]) -> Callable[[Split], Any]:
    def learn(split: Split) -> Any:
        model = make()
        model.partial_fit(split.X[:1], split.y[:1], classes=[-1.0, 1.0])
        for i in range(1, len(split.y)):
            model.partial_fit(split.X[i : i + 1], split.y[i : i + 1])
        return model

    return learn


def _ours(name: str, **setting: Any) -> Callable[[], Any]:
    def make() -> Any:
        import trueline

        return getattr(trueline, name)(**setting)

    return make


def _sklearn(name: str, **setting: Any) -> Callable[[], Any]:
    def make() -> Any:
        import sklearn.linear_model

        return getattr(sklearn.linear_model, name)(**setting)

    return make


def _dictionaries(X: Any, y: np.ndarray) -> list[tuple[dict[int, float], bool]]:
    X = sp.csr_matrix(X)
    ends = zip(X.indptr[:-1], X.indptr[1:])
    rows = (dict(zip(X.indices[a:b].tolist(), X.data[a:b].tolist())) for a, b in ends)
    return list(zip(rows, (y > 0).tolist()))


def _by_dictionary(make: Callable[[], Any]) -> Callable[[list[Any]], Any]:
    def learn(rows: list[Any]) -> Any:
        model = make()
        model.learn_one(*rows[0], classes=[False, True])
        for x, y in rows[1:]:
            model.learn_one(x, y)
        return model

    return learn


def _accuracy_by_dictionary(model: Any, split: Split) -> float:
    rows = _dictionaries(split.X_held[:500], split.y_held[:500])
    return float(np.mean([model.predict_one(x) == y for x, y in rows]))


def _river(rows: list[Any]) -> Any:
    from river import linear_model

    model = linear_model.LogisticRegression()
    for x, y in rows:
        model.learn_one(x, y)
    return model


def _lines(X: Any, y: np.ndarray) -> Iterator[str]:
    for x, label in _dictionaries(X, y):
        words = " ".join(f"{j}:{v:.6g}" for j, v in x.items())
        yield f"{1 if label else -1} |f {words}"


def _vw_prepare(split: Split) -> tuple[str, str]:
    """The rows in Vowpal Wabbit's own cache; of dense rows at most 200,000."""
    import vowpalwabbit

    folder = Path(tempfile.mkdtemp())
    path, cache = folder / "rows.txt", folder / "rows.cache"
    rows = len(split.y) if sp.issparse(split.X) else min(len(split.y), 200_000)
    path.write_text("\n".join(_lines(split.X[:rows], split.y[:rows])) + "\n")
    vowpalwabbit.Workspace(f"-d {path} --cache_file {cache} --quiet -b 22").finish()
    return str(path), str(cache)


def _vw(options: str) -> Callable[[tuple[str, str]], Any]:
    def learn(files: tuple[str, str]) -> Any:
        import vowpalwabbit

        path, cache = files
        return vowpalwabbit.Workspace(
            f"-d {path} --cache_file {cache} --quiet -b 22 --loss_function logistic {options}"
        )

    return learn


def _vw_accuracy(model: Any, split: Split) -> float:
    lines = _lines(split.X_held, split.y_held)
    scores = np.array([model.predict(line.split(" ", 1)[1]) for line in lines])
    return float(np.mean(np.where(scores > 0, 1.0, -1.0) == split.y_held))


_ONE_PASS = {"max_iter": 1, "tol": None}
_BY_ROW = ("rows",)

CONTESTANTS = {
    "trueline Perceptron": Contestant("trueline", _fit(_ours("Perceptron", **_ONE_PASS)), _linear),
    "trueline Perceptron, averaged": Contestant(
        "trueline", _fit(_ours("Perceptron", variant="averaged", **_ONE_PASS)), _linear
    ),
    "trueline OnlineLogisticRegression": Contestant(
        "trueline", _fit(_ours("OnlineLogisticRegression", random_state=0, **_ONE_PASS)), _linear
    ),
    "trueline OnlineLogisticRegression, plain": Contestant(
        "trueline",
        _fit(_ours("OnlineLogisticRegression", update="plain", random_state=0, **_ONE_PASS)),
        _linear,
    ),
    "scikit-learn Perceptron": Contestant(
        "scikit-learn", _fit(_sklearn("Perceptron", **_ONE_PASS)), _linear
    ),
    "scikit-learn SGDClassifier, hinge": Contestant(
        "scikit-learn", _fit(_sklearn("SGDClassifier", loss="hinge", **_ONE_PASS)), _linear
    ),
    "scikit-learn SGDClassifier, logistic": Contestant(
        "scikit-learn", _fit(_sklearn("SGDClassifier", loss="log_loss", **_ONE_PASS)), _linear
    ),
    "Vowpal Wabbit, adaptive": Contestant(
        "vowpalwabbit", _vw(""), _vw_accuracy, _vw_prepare, is_guest=True
    ),
    "Vowpal Wabbit, plain": Contestant(
        "vowpalwabbit", _vw("--sgd"), _vw_accuracy, _vw_prepare, is_guest=True
    ),
    "trueline Perceptron, partial_fit": Contestant(
        "trueline", _rows(_ours("Perceptron")), _linear, cases=_BY_ROW
    ),
    "trueline OnlineLogisticRegression, partial_fit": Contestant(
        "trueline", _rows(_ours("OnlineLogisticRegression")), _linear, cases=_BY_ROW
    ),
    "scikit-learn Perceptron, partial_fit": Contestant(
        "scikit-learn", _rows(_sklearn("Perceptron")), _linear, cases=_BY_ROW
    ),
    "scikit-learn SGDClassifier, partial_fit": Contestant(
        "scikit-learn", _rows(_sklearn("SGDClassifier", loss="log_loss")), _linear, cases=_BY_ROW
    ),
    "trueline Perceptron, learn_one": Contestant(
        "trueline",
        _by_dictionary(_ours("Perceptron")),
        _accuracy_by_dictionary,
        lambda split: _dictionaries(split.X, split.y),
        cases=("rows", "documents"),
    ),
    "trueline OnlineLogisticRegression, learn_one": Contestant(
        "trueline",
        _by_dictionary(_ours("OnlineLogisticRegression")),
        _accuracy_by_dictionary,
        lambda split: _dictionaries(split.X, split.y),
        cases=("rows", "documents"),
    ),
    "River LogisticRegression, learn_one": Contestant(
        "river",
        _river,
        _accuracy_by_dictionary,
        lambda split: _dictionaries(split.X, split.y),
        cases=("rows", "documents"),
        is_guest=True,
    ),
}
