"""Chains of classifiers without leaks: which models are needed, and what they may see.

Stage k sees X and what the stages before it say about each row. While it learns, those stages
must speak about rows they have not learned from, and so must the stages that taught them. With K
folds, write M(k, S) for stage k learned from the rows outside the folds in S. Its rows lie in folds
f not in S, and are described by M(j, S + {f}) for all j < k. So the models that are needed are
M(k, S) with at most L - k folds left out, for L stages counted from one, each learned once:

    M(L, {})  <-  M(L - 1, {f})  <-  M(L - 2, {f, g})  <-  ...

No target of a row, nor of its fold, has entered its features at any depth. (Ordinary stacking stops
after the first arrow: in the second, features of the rows that learn were made by models that saw
the targets of the fold to be predicted.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from trueline.wording import counted

__all__ = ["Learner", "Stage"]

Outside = frozenset[int]


@dataclass
class Stage:
    """One classifier of the chain, learned from some rows, and its own transformer, if any."""

    name: str
    position: int
    transformer: Any
    classifier: Any

    @classmethod
    def of(cls, name: str, position: int, model: Any) -> Stage:
        """A stage that is to be learned, from a classifier or a pipeline that ends in one."""
        pipeline = isinstance(model, Pipeline)
        transformer = clone(model[:-1]) if pipeline and len(model) > 1 else None
        return cls(name, position, transformer, clone(model[-1] if pipeline else model))

    def fit(
        self, chain: Any, X: Any, y: NDArray[Any], outputs: NDArray[np.float64], weights: Any
    ) -> Stage:
        X = X if self.transformer is None else self.transformer.fit_transform(X, y)
        given = {} if weights is None else {"sample_weight": weights}
        self.classifier.fit(self._join(chain, X, outputs), y, **given)
        return self

    def learned_from(
        self, chain: Any, X: Any, y: NDArray[Any], outputs: NDArray[np.float64]
    ) -> Any:
        """The features that it learned from, of the rows that it learned from.

        They are made anew: of these rows ``transform`` may say something else than
        ``fit_transform``, where that leaves out a row's own target.
        """
        X = X if self.transformer is None else clone(self.transformer).fit_transform(X, y)
        return self._join(chain, X, outputs)

    def sees(self, chain: Any, X: Any, outputs: NDArray[np.float64]) -> Any:
        """The features of rows."""
        X = X if self.transformer is None else self.transformer.transform(X)
        return self._join(chain, X, outputs)

    def _join(self, chain: Any, X: Any, outputs: NDArray[np.float64]) -> Any:
        if self.position == 0:
            return X
        if not chain.passthrough and self.transformer is None:
            return outputs
        if sparse.issparse(X):
            return sparse.hstack([X, outputs], format="csr")
        return np.hstack([np.asarray(X), outputs.astype(np.asarray(X).dtype, copy=False)])

    def says(self, chain: Any, X: Any, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """What later stages are told about rows."""
        seen = self.sees(chain, X, outputs)
        method = self._method(chain)
        if method == "labels":
            columns = self.classifier.predict(seen)[:, None] == chain.classes_[None, :]
            return columns[:, self._shown(chain)].astype(np.float64)
        if method == "probabilities":
            return self.classifier.predict_proba(seen)[:, self._shown(chain)].astype(np.float64)
        values = np.asarray(self.classifier.decision_function(seen), dtype=np.float64)
        return values.reshape(len(values), -1)

    def names(self, chain: Any) -> list[str]:
        if self._method(chain) == "decision" and len(chain.classes_) == 2:
            return [f"{self.name} says {chain.classes_[1]}"]
        shown = chain.classes_[self._shown(chain)]
        return [f"{self.name} says {label}" for label in shown]

    def _shown(self, chain: Any) -> slice:
        """Of two classes one says all: the other is one minus it."""
        return slice(1, None) if len(chain.classes_) == 2 else slice(None)

    def _method(self, chain: Any) -> str:
        has = {
            "probabilities": hasattr(self.classifier, "predict_proba"),
            "decision": hasattr(self.classifier, "decision_function"),
            "labels": True,
        }
        if chain.outputs == "auto":
            return next(name for name, there in has.items() if there)
        if not has[chain.outputs]:
            raise ValueError(
                f"Stage {self.name!r}, {type(self.classifier).__name__}, has no {chain.outputs}: "
                "set outputs='auto'."
            )
        return str(chain.outputs)


class Learner:
    """All M(k, S) of one fit, each learned when it is first asked for."""

    def __init__(
        self,
        chain: Any,
        models: list[tuple[str, Any]],
        X: Any,
        y: Any,
        fold: NDArray[np.intp],
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        self.chain, self.models, self.X, self.y, self.fold = chain, models, X, y, fold
        self.weights = weights
        self.learned: dict[tuple[int, Outside], Stage] = {}
        self.said: dict[tuple[int, Outside], NDArray[np.float64]] = {}
        self.n_fits = 0

    def stage(self, k: int, outside: Outside) -> Stage:
        """M(k, S)."""
        if (k, outside) not in self.learned:
            rows = self._inside(outside)
            missing = set(self.chain.classes_) - set(self.y[rows])
            if missing:
                raise ValueError(
                    f"Without {counted(len(outside), 'fold')} no row of class {missing.pop()} is "
                    "left. Use fewer or stratified folds, or fewer stages."
                )
            name, model = self.models[k]
            X, y = _safe_indexing(self.X, rows), self.y[rows]
            outputs = self.described(k, outside)[rows]
            weights = None if self.weights is None else self.weights[rows]
            stage = Stage.of(name, k, model)
            self.learned[k, outside] = stage.fit(self.chain, X, y, outputs, weights)
            self.n_fits += 1
        return self.learned[k, outside]

    def described(self, k: int, outside: Outside) -> NDArray[np.float64]:
        """For every row outside S, what the stages before k say with its fold left out, too."""
        if (k, outside) not in self.said:
            blocks = [np.zeros((len(self.y), 0))]
            inside = set(range(int(self.fold.max()) + 1)) - outside
            for j in range(k):
                rows = {f: np.flatnonzero(self.fold == f) for f in inside}
                said = {f: self._say(j, outside | {f}, rows[f]) for f in inside}
                block = np.zeros((len(self.y), next(iter(said.values())).shape[1]))
                for f in inside:
                    block[rows[f]] = said[f]
                blocks.append(block)
            self.said[k, outside] = np.hstack(blocks)
        return self.said[k, outside]

    def _say(self, j: int, outside: Outside, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """M(j, S) about rows of folds in S: its earlier stages have left the same folds out."""
        X = _safe_indexing(self.X, rows)
        outputs = np.zeros((len(rows), 0))
        for i in range(j):
            outputs = np.hstack([outputs, self.stage(i, outside).says(self.chain, X, outputs)])
        return self.stage(j, outside).says(self.chain, X, outputs)

    def _inside(self, outside: Outside) -> NDArray[np.intp]:
        return np.flatnonzero(~np.isin(self.fold, list(outside)))
