"""``ChainedClassifiers``: what earlier classifiers say becomes a feature of later ones.

Which models are needed for a chain without leaks, and what they may see:

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

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, assert_all_finite
from sklearn.utils.metaestimators import _BaseComposition, available_if
from sklearn.utils.validation import (
    _num_samples,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)

from trueline.check import Verification
from trueline.estimators.multiclass.base import (
    CombinedCertificate,
    certified_parts,
    verified_parts,
)
from trueline.estimators.shared.classifier import check_labels
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.validation import row_weights, validate_data
from trueline.wording import counted, shown_as_text

Outside = frozenset[int]


@dataclass
class Stage:
    """One classifier of the chain, learned from some rows, and its own transformer, if any."""

    name: str
    position: int
    transformer: Any
    classifier: Any
    classes: NDArray[Any]

    @classmethod
    def of(cls, name: str, position: int, model: Any, classes: NDArray[Any]) -> Stage:
        """A stage that is to be learned, from a classifier or a pipeline that ends in one."""
        pipeline = isinstance(model, Pipeline)
        transformer = clone(model[:-1]) if pipeline and len(model) > 1 else None
        return cls(name, position, transformer, clone(model[-1] if pipeline else model), classes)

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
            columns = self.classifier.predict(seen)[:, None] == self.classes[None, :]
            return columns[:, self._shown].astype(np.float64)
        if method == "probabilities":
            return self.classifier.predict_proba(seen)[:, self._shown].astype(np.float64)
        values = np.asarray(self.classifier.decision_function(seen), dtype=np.float64)
        return values.reshape(len(values), -1)

    def names(self, chain: Any) -> list[str]:
        """The names of the columns that later stages see of this one."""
        return [f"{self.name} says {label}" for label in self.classes[self._shown]]

    @property
    def _shown(self) -> slice:
        """Of two classes one says all: the other is one minus it."""
        return slice(1, None) if len(self.classes) == 2 else slice(None)

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


def said_in_turn(chain: Any, stages: list[Stage], X: Any) -> NDArray[np.float64]:
    """What stages say about rows, each with what those before it have said."""
    outputs = np.zeros((_num_samples(X), 0))
    for stage in stages:
        outputs = np.hstack([outputs, stage.says(chain, X, outputs)])
    return outputs


class Learner:
    """All M(k, S) of one fit, each learned when it is first asked for."""

    def __init__(
        self,
        chain: Any,
        models: list[tuple[str, Any]],
        X: Any,
        targets: list[NDArray[Any]],
        fold: NDArray[np.intp],
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        self.chain, self.models, self.X, self.targets, self.fold = chain, models, X, targets, fold
        self.weights = weights
        self.learned: dict[tuple[int, Outside], Stage] = {}
        self.said: dict[tuple[int, Outside], NDArray[np.float64]] = {}
        self.n_fits = 0

    def stage(self, k: int, outside: Outside) -> Stage:
        """M(k, S)."""
        if (k, outside) not in self.learned:
            rows = self._inside(outside)
            name, model = self.models[k]
            classes = np.unique(self.targets[k])
            X, y = _safe_indexing(self.X, rows), self.targets[k][rows]
            missing = set(classes) - set(y)
            if missing:
                raise ValueError(
                    f"Without {counted(len(outside), 'fold')} no row of class {missing.pop()} is "
                    f"left for stage {name!r}. Use fewer or stratified folds, or fewer stages."
                )
            outputs = self.described(k, outside)[rows]
            weights = None if self.weights is None else self.weights[rows]
            stage = Stage.of(name, k, model, classes)
            self.learned[k, outside] = stage.fit(self.chain, X, y, outputs, weights)
            self.n_fits += 1
        return self.learned[k, outside]

    def described(self, k: int, outside: Outside) -> NDArray[np.float64]:
        """For every row outside S, what the stages before k say with its fold left out, too."""
        if (k, outside) not in self.said:
            blocks = [np.zeros((len(self.fold), 0))]
            inside = set(range(int(self.fold.max()) + 1)) - outside
            for j in range(k):
                rows = {f: np.flatnonzero(self.fold == f) for f in inside}
                said = {f: self._say(j, outside | {f}, rows[f]) for f in inside}
                block = np.zeros((len(self.fold), next(iter(said.values())).shape[1]))
                for f in inside:
                    block[rows[f]] = said[f]
                blocks.append(block)
            self.said[k, outside] = np.hstack(blocks)
        return self.said[k, outside]

    def _say(self, j: int, outside: Outside, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """M(j, S) about rows of folds in S: its earlier stages have left the same folds out."""
        X = _safe_indexing(self.X, rows)
        outputs = said_in_turn(self.chain, [self.stage(i, outside) for i in range(j)], X)
        return self.stage(j, outside).says(self.chain, X, outputs)

    def _inside(self, outside: Outside) -> NDArray[np.intp]:
        return np.flatnonzero(~np.isin(self.fold, list(outside)))


def _last_has(name: str) -> Any:
    def check(self: Any) -> bool:
        if hasattr(self, "stages_"):
            getattr(self.stages_[-1].classifier, name)
        elif self.classifiers:
            getattr(self.classifiers[-1][1], name)
        return True

    return check


@parameters()
class ChainedClassifiers(ClassifierMixin, _BaseComposition, BaseEstimator):
    """Classifiers in a row, each with the out-of-fold outputs of those before it as features.

    Every stage minimises its own objective, sum_i s_i loss(y_i, f(x_i, outputs_i)), with outputs
    of earlier stages that have learned neither from row i nor from its fold, at any depth of the
    chain; new rows are described by stages that learned from all rows. Earlier stages may learn
    another target than the last one, such as tags that help with the task.

    Parameters
    ----------
    classifiers : list of (name, classifier), optional
        In order. One that is a ``Pipeline`` transforms X by its first steps, learned anew for each
        set of folds, and its last step sees the result with the outputs of earlier stages beside
        it: so stages may read different parts of a table, or texts. By default a logistic
        regression, twice.
    cv : int, splitter or iterable, default=5
        Folds that split the rows into disjoint parts, stratified if a number. The chain of L
        stages fits stage k for every choice of up to L - k of the folds to leave out.
    outputs : {"auto", "probabilities", "decision", "labels"}, default="auto"
        What stages pass on: probabilities if a stage has them, else decision values, else
        indicators of the predicted class.
    passthrough : bool, default=True
        Whether later stages see X, or only outputs.

    Attributes
    ----------
    stages_ : list
        The stages learned from all rows; ``stages_[k].classifier`` and ``stages_[k].transformer``.
    classes_ : array
    certificate_ : CombinedCertificate
        What is proven about the stages that learned from all rows, one by one and in sum: each on
        the features that it saw, of which ``out_of_fold_`` are taken as they are. Raises
        ``AttributeError`` if a classifier brings no proof.
    out_of_fold_ : array of shape (n, m)
        What the last stage has seen of the earlier ones for the rows of ``fit``.
    n_fits_ : int
        The number of classifiers that were fitted.
    n_features_in_ : int
        If the first stage has it.

    See Also
    --------
    sklearn.multioutput.ClassifierChain : A chain over the columns of a target of several labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from trueline import ChainedClassifiers, LogisticRegression, RidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> chain = ChainedClassifiers([("rough", RidgeClassifier()), ("fine", LogisticRegression())])
    >>> chain = chain.fit(X, y)
    >>> chain.n_fits_, chain.out_of_fold_.shape, bool(chain.score(X, y) > 0.95)
    (7, (150, 3), True)
    >>> chain.certificate_.names, bool(chain.verify(X, y))
    (('rough', 'fine'), True)

    A first stage that learns something else: whether the flower is large.

    >>> large = {"size": (X[:, 2] > 4.5).astype(int)}
    >>> chain = ChainedClassifiers([("size", LogisticRegression()), ("kind", RidgeClassifier())])
    >>> chain = chain.fit(X, y, targets=large)
    >>> list(chain.stage_scores(X, y, targets=large)), chain.stage_output_names().tolist()
    (['size', 'kind'], ['size says 1'])
    """

    classifiers: list[tuple[str, Any]] | None = given(None, list, None)
    _: KW_ONLY
    cv: Any = given(5, "cv_object")
    outputs: str = given("auto", one_of("auto", "probabilities", "decision", "labels"))
    passthrough: bool = True

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the chain and, by the names of its stages, of its classifiers."""
        if self.classifiers is None:
            return dict(BaseEstimator.get_params(self, deep=False))
        return dict(self._get_params("classifiers", deep=deep))

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``stage__C`` is the parameter C of the classifier named stage."""
        self._set_params("classifiers", **params)
        return self

    def fit(
        self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None, targets: Any = None
    ) -> Self:
        """Fit the chain.

        Parameters
        ----------
        X : array-like, DataFrame or sequence of n rows, as the first steps of the stages take it
        y : array-like of shape (n,)
        groups : array-like of shape (n,), optional
            For splitters that keep groups together.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows in the fits of all stages, each of which must take them. The folds
            do not depend on them: a row of weight zero is in a fold, and taught to no stage.
        targets : dict from names of stages to array-like of shape (n,), optional
            What stages learn that do not learn y. The last stage learns y.

        Returns
        -------
        self : object
        """
        self._validate_params()
        stages = self._checked_stages()
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y", estimator_name=type(self).__name__)
        check_labels(y, type(self).__name__)
        if _num_samples(X) != len(y):
            raise ValueError(f"X has {_num_samples(X)} rows, but y has {len(y)}.")
        X = self._rows(X, reset=True)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(
                "ChainedClassifiers needs samples of at least two classes, but y holds one class "
                f"only: {self.classes_.tolist()[0]!r}."
            )
        weights = self._checked_weights(sample_weight, stages, len(y))
        taught = self._taught([name for name, _ in stages], y, targets)
        self.own_targets_ = [name for name, _ in stages if name in (targets or {})]
        learner = Learner(self, stages, X, taught, self._folds(X, y, groups), weights)
        last = len(stages) - 1
        everything: frozenset[int] = frozenset()
        self.stages_ = [learner.stage(k, everything) for k in range(len(stages))]
        self.out_of_fold_ = learner.described(last, everything)
        self.n_fits_ = learner.n_fits
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The classes that the last stage predicts.

        Parameters
        ----------
        X : as for ``fit``

        Returns
        -------
        labels : array of shape (n,)
        """
        return self._last("predict", X)

    @available_if(_last_has("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probabilities of the last stage.

        Parameters
        ----------
        X : as for ``fit``

        Returns
        -------
        probabilities : array of shape (n, n_classes)
        """
        return self._last("predict_proba", X)

    @available_if(_last_has("decision_function"))
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The decision values of the last stage.

        Parameters
        ----------
        X : as for ``fit``

        Returns
        -------
        values : array of shape (n,) or (n, n_classes)
        """
        return self._last("decision_function", X)

    def stage_outputs(self, X: Any) -> NDArray[np.float64]:
        """What the last stage sees of the earlier ones.

        Parameters
        ----------
        X : as for ``fit``

        Returns
        -------
        outputs : array of shape (n, m)
        """
        check_is_fitted(self)
        return self._outputs_before(len(self.stages_) - 1, self._rows(X))

    def stage_predictions(self, X: Any) -> dict[str, NDArray[Any]]:
        """What every stage predicts, by its name: tags, say, and the classes in the end.

        Parameters
        ----------
        X : as for ``fit``

        Returns
        -------
        labels : dict from names of stages to arrays of shape (n,)
        """
        outputs, X = self.stage_outputs(X), self._rows(X)
        known, labels = 0, {}
        for stage in self.stages_:
            labels[stage.name] = stage.classifier.predict(stage.sees(self, X, outputs[:, :known]))
            known += len(stage.names(self))
        return labels

    def stage_scores(
        self, X: Any, y: Any, sample_weight: Any = None, targets: Any = None
    ) -> dict[str, float]:
        """The accuracy of every stage on rows, by its name.

        Parameters
        ----------
        X : as for ``fit``
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        targets : as for ``fit``

        Returns
        -------
        scores : dict from names of stages to numbers from 0 to 1
        """
        predicted = self.stage_predictions(X)
        taught = self._taught_again(column_or_1d(y), targets)
        return {
            name: float(np.average(labels == truth, weights=sample_weight))
            for (name, labels), truth in zip(predicted.items(), taught)
        }

    def stage_output_names(self) -> NDArray[np.object_]:
        """The names of what the last stage sees of the earlier ones: ``rough says spam``."""
        check_is_fitted(self)
        return np.array([n for s in self.stages_[:-1] for n in s.names(self)], dtype=object)

    @property
    def certificate_(self) -> CombinedCertificate:
        """What is proven about the stages that learned from all rows, one by one and in sum."""
        check_is_fitted(self)
        names = tuple(stage.name for stage in self.stages_)
        parts = certified_parts(self, (stage.classifier for stage in self.stages_))
        return CombinedCertificate(names, parts, self._verified, "stage")

    def verify(
        self, X: Any, y: Any, sample_weight: Any = None, targets: Any = None
    ) -> Verification:
        """Check the certificates of the stages against the data that were fitted.

        The first steps of the stages learn again, as in ``fit``; what earlier stages said is read
        from ``out_of_fold_``.

        Parameters
        ----------
        X : as for ``fit``
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        targets : as for ``fit``

        Returns
        -------
        verification : Verification
            True in a boolean context if every claim about every stage holds.
        """
        certificate = self.certificate_
        check = partial(self._verified, targets=targets)
        return replace(certificate, _verify=check).verify(X, y, sample_weight)

    def _verified(
        self, X: Any, y: Any, sample_weight: Any = None, targets: Any = None
    ) -> Verification:
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        y, X = column_or_1d(y), self._rows(X)
        if not _num_samples(X) == len(y) == len(self.out_of_fold_):
            raise ValueError(
                f"The chain was fitted to {len(self.out_of_fold_)} rows; X has {_num_samples(X)} "
                f"and y {len(y)}. Verify with the data that were fitted."
            )
        outcomes = []
        known = 0
        for stage, target in zip(self.stages_, self._taught_again(y, targets)):
            seen = stage.learned_from(self, X, target, self.out_of_fold_[:, :known])
            outcomes.append((stage.name, stage.classifier.verify(seen, target, **given)))
            known += len(stage.names(self))
        return verified_parts(outcomes)

    @shown_as_text
    def explain(self) -> str:
        """The chain in words: what each stage sees, how many fits that took, what is proven."""
        check_is_fitted(self)
        names = [stage.name for stage in self.stages_]
        lines = [
            f"ChainedClassifiers: {' -> '.join(names)}, {counted(self.n_fits_, 'fit')}",
            f"folds      {self.n_folds_}; a stage learns from rows described by stages that left "
            "their fold out, at every depth",
        ]
        for k, stage in enumerate(self.stages_):
            sees = ["X"] * (self.passthrough or k == 0) + [f"what {n} says" for n in names[:k]]
            own = " learns its own target," * (stage.name in self.own_targets_)
            model = type(stage.classifier).__name__
            lines.append(f"{stage.name}:{own} {model} on {', '.join(sees)}")
        if hasattr(self, "certificate_"):
            lines.append(f"proof      {self.certificate_}")
        return "\n".join(lines)

    def _checked_stages(self) -> list[tuple[str, Any]]:
        if self.classifiers is None:
            from trueline.estimators.classification.logistic import LogisticRegression

            return [("first", LogisticRegression()), ("second", LogisticRegression())]
        if not self.classifiers:
            raise ValueError("A chain needs at least one classifier.")
        names, classifiers = zip(*self.classifiers)
        self._validate_names(names)
        for name, classifier in self.classifiers:
            if not (hasattr(classifier, "fit") and hasattr(classifier, "predict")):
                raise ValueError(f"Stage {name!r} is no classifier: {classifier!r}.")
        return list(zip(names, classifiers))

    def _taught(self, names: list[str], y: NDArray[Any], targets: Any) -> list[NDArray[Any]]:
        """What each stage learns."""
        own = dict(targets or {})
        if wrong := own.keys() - set(names[:-1]):
            raise ValueError(
                f"targets has {', '.join(map(repr, sorted(wrong)))}, which is no stage before the "
                f"last one: {', '.join(map(repr, names[:-1]))}. The last stage, {names[-1]!r}, "
                "learns y."
            )
        for name, target in own.items():
            own[name] = target = column_or_1d(target)
            assert_all_finite(target, input_name=f"targets[{name!r}]")
            if len(target) != len(y):
                raise ValueError(f"targets[{name!r}] has {len(target)} rows, but y has {len(y)}.")
            if len(np.unique(target)) < 2:
                raise ValueError(f"targets[{name!r}] holds one class only: {target.tolist()[0]!r}.")
        return [own.get(name, y) for name in names]

    def _taught_again(self, y: NDArray[Any], targets: Any) -> list[NDArray[Any]]:
        if missing := set(self.own_targets_) - set(targets or {}):
            raise ValueError(
                f"Stage {missing.pop()!r} learned a target of its own: give targets as to fit."
            )
        return self._taught([stage.name for stage in self.stages_], y, targets)

    def _checked_weights(
        self, sample_weight: Any, stages: list[tuple[str, Any]], n: int
    ) -> NDArray[np.float64] | None:
        if sample_weight is None:
            return None
        for name, model in stages:
            last = model[-1] if isinstance(model, Pipeline) else model
            if not has_fit_parameter(last, "sample_weight"):
                raise ValueError(f"Stage {name!r}, {type(last).__name__}, takes no sample weights.")
        return row_weights(sample_weight, np.empty((n, 1)))

    def _rows(self, X: Any, reset: bool = False) -> Any:
        """Numeric arrays are checked here; tables and texts by the first steps of the stages."""
        if any(isinstance(c, Pipeline) for _, c in self.classifiers or []):
            return X
        dtypes = [np.float64, np.float32]
        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=dtypes)

    def _folds(self, X: Any, y: NDArray[Any], groups: Any) -> NDArray[np.intp]:
        """The fold of each row."""
        from sklearn.model_selection import check_cv

        counts = np.unique(y, return_counts=True)[1]
        if isinstance(self.cv, int) and counts.min() < 2:
            raise ValueError(
                f"Class {self.classes_[counts.argmin()]} has one row: no fold can learn it from "
                "the others. Leave it out, or give it more rows."
            )
        cv = min(self.cv, int(counts.min())) if isinstance(self.cv, int) else self.cv
        fold = np.full(len(y), -1, dtype=np.intp)
        splits = list(check_cv(cv, y, classifier=True).split(np.zeros(len(y)), y, groups))
        for k, (_, test) in enumerate(splits):
            if (fold[test] >= 0).any():
                raise ValueError("cv must split the rows into disjoint parts; some row is in two.")
            fold[test] = k
        if (fold < 0).any():
            raise ValueError("cv must split the rows into disjoint parts; some row is in none.")
        stages = 2 if self.classifiers is None else len(self.classifiers)
        if len(splits) < stages:
            raise ValueError(
                f"A chain of {stages} stages needs at least {stages} folds, so that some rows are "
                f"left to learn from; got {len(splits)}."
            )
        self.n_folds_ = len(splits)
        return fold

    def _outputs_before(self, k: int, X: Any) -> NDArray[np.float64]:
        """The outputs of stages before k for new rows."""
        return said_in_turn(self, self.stages_[:k], X)

    def _last(self, method: str, X: Any) -> Any:
        check_is_fitted(self)
        X = self._rows(X)
        stage = self.stages_[-1]
        seen = stage.sees(self, X, self._outputs_before(len(self.stages_) - 1, X))
        return getattr(stage.classifier, method)(seen)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
