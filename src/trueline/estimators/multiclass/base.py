"""What the multiclass schemes have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import _safe_indexing, check_consistent_length, get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted

from trueline.check import Check, Verification
from trueline.estimators.multiclass.linear import planes_of
from trueline.estimators.multiclass.parts import Binary, ConstantPredictor, is_ours, scores_of
from trueline.estimators.multiclass.proof import (
    CombinedCertificate,
    certified_parts,
    verified_parts,
)
from trueline.estimators.shared.parameters import KW_ONLY, REQUIRED, given, parameters
from trueline.estimators.shared.validation import validate_data
from trueline.wording import Readable, counted

__all__ = ["BinaryReduction", "SchemeExplanation", "parts_have", "speaker_of"]

Array = NDArray[np.float64]


def parts_have(name: str) -> Callable[[Any], bool]:
    """For ``available_if``: the wrapped estimator, or a part of it once fitted, has a method."""

    def check(self: Any) -> bool:
        parts = getattr(self, "estimators_", None)
        getattr(self.estimator if parts is None else speaker_of(parts), name)
        return True

    return check


def speaker_of(parts: Sequence[Any]) -> Any:
    """A part that can tell what the others can do: the first that was a fit."""
    return next((part for part in parts if not isinstance(part, ConstantPredictor)), parts[0])


@dataclass(frozen=True, repr=False)
class SchemeExplanation(Readable):
    """How the classes were taken apart, and what happened to the binary problems.

    Prints as text; ``table()`` gives one row per binary problem.
    """

    scheme: str
    names: tuple[str, ...]
    parts: tuple[Any, ...]
    certificate: CombinedCertificate | None = None
    shared: str = ""

    def table(self) -> list[dict[str, object]]:
        """One row per binary problem: the solver that ran, its iterations and seconds."""
        rows: list[dict[str, object]] = []
        for name, part in zip(self.names, self.parts):
            facts = getattr(part, "facts", None) or {}
            row: dict[str, object] = {"problem": name}
            row.update({key: facts.get(key) for key in ("solver", "n_iter", "seconds")})
            rows.append(row)
        return rows

    def __str__(self) -> str:
        lines = [f"scheme     {self.scheme}"]
        if self.shared:
            lines.append(f"shared     {self.shared}")
        if self.certificate is not None:
            lines.append(f"proof      {self.certificate}")
        first = next((k for k, part in enumerate(self.parts) if part is not None), None)
        if first is not None:
            lines.append(f"one of them: {self.names[first]}")
            lines += [f"  {line}" for line in str(self.parts[first]).splitlines()]
        return "\n".join(lines)


@parameters()
class BinaryReduction(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A multiclass model made of binary ones."""

    _doc_link_module = "trueline"

    estimator: Any = given(REQUIRED, HasMethods(["fit"]))
    _: KW_ONLY
    n_jobs: int | None = given(None, "int", None)

    #: Methods of the wrapped estimator that metadata are routed to.
    _routed: ClassVar[tuple[str, ...]] = ("fit", "partial_fit")

    @abstractmethod
    def _binaries(self, y: Any) -> Sequence[Binary]:
        """The binary problems of labels y, for a model that knows its classes."""

    @abstractmethod
    def _scheme(self) -> str:
        """The scheme in a few words."""

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        return len(self.classes_)

    # --- fitting --------------------------------------------------------------------------------

    def _routed_params(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Metadata for the parts."""
        _raise_for_params(params, self, method)
        routed = process_routing(self, method, **params)
        return dict(routed.estimator[method])

    def _validated_once(self, X: Any, y: Any) -> Any:
        """X checked here, for all parts of this package; others look for themselves."""
        check_consistent_length(X, y)
        if not is_ours(self.estimator):
            return X
        return validate_data(
            self,
            X,
            accept_sparse=["csr", "csc"],
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        )

    def _take_over(self) -> None:
        """Columns and their names as the parts saw them, and the other way round."""
        if is_ours(self.estimator):
            names = getattr(self, "feature_names_in_", None)
            for part in self.estimators_ if names is not None else ():
                part.feature_names_in_ = names
            return
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            known = [getattr(part, name) for part in self.estimators_ if hasattr(part, name)]
            if known:
                setattr(self, name, known[0])

    # --- scores ---------------------------------------------------------------------------------

    def _part_scores(self, X: Any) -> NDArray[Any]:
        """Scores of shape (n, L); of linear parts by one product."""
        planes = planes_of(self.estimators_) if len(self.estimators_) > 1 else None
        if planes is None:
            return np.column_stack([scores_of(part, X) for part in self.estimators_])
        if hasattr(self, "n_features_in_"):
            X = validate_data(
                self,
                X,
                accept_sparse=["csr", "csc", "coo"],
                dtype=[np.float64, np.float32],
                reset=False,
            )
        return planes.scores(X)

    # --- proof ----------------------------------------------------------------------------------

    def _part_names(self) -> list[str]:
        raise NotImplementedError

    def _proven(self) -> Iterator[tuple[str, Any]]:
        """Names and models of the parts that were fits."""
        check_is_fitted(self)
        for name, part in zip(self._part_names(), self.estimators_):
            if not isinstance(part, ConstantPredictor):
                yield name, part

    @property
    def certificate_(self) -> CombinedCertificate:
        """What is proven about the binary fits, one by one and in sum."""
        proven = list(self._proven())
        names = tuple(name for name, _ in proven)
        parts = certified_parts(self, (part for _, part in proven))
        return CombinedCertificate(names, parts, self.verify)

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Verification:
        """Check the certificates of the parts against the data that were fitted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,) or (n, k)
            Labels.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        verification : Verification
            True in a boolean context if every claim about every part holds.
        """
        if not self.certificate_.parts:
            raise AttributeError("No binary problem was fitted: there is nothing to verify.")
        outcomes = []
        for binary, part in zip(self._binaries(y), self.estimators_, strict=True):
            if isinstance(part, ConstantPredictor):
                holds = bool((binary.labels == part.y_[0]).all())
                found = "the same" if holds else "different ones"
                outcome = Verification((Check("labels", "all the same", found, holds),))
            else:
                data = X if binary.rows is None else _safe_indexing(X, binary.rows)
                weight = _rows_of(sample_weight, binary.rows)
                outcome = part.verify(data, binary.labels, weight)
            outcomes.append((binary.name, outcome))
        return verified_parts(outcomes)

    def explain(self, X: Any = None, y: Any = None, *, all: bool = False) -> SchemeExplanation:
        """Say what will be done with (X, y), or what was done in the last fit.

        Parameters
        ----------
        X : array-like or sparse matrix, optional
            With ``y``: the plan of the first binary problem, without fitting it.
        y : array-like, optional
        all : bool, default=False
            Whether every solver is listed, those for other losses and penalties too.

        Returns
        -------
        explanation : SchemeExplanation
            Prints as text; ``table()`` gives one row per binary problem.
        """
        if X is not None:
            return self._plan(X, y, all)
        check_is_fitted(self)
        proof = self.certificate_ if hasattr(self, "certificate_") else None
        explained = tuple(
            part.explain(all=all) if hasattr(part, "explain") else None for part in self.estimators_
        )
        names = tuple(self._part_names())
        return SchemeExplanation(self._described(len(names)), names, explained, proof, self._shared)

    def _plan(self, X: Any, y: Any, all: bool) -> SchemeExplanation:
        if y is None:
            raise ValueError("explain(X, y) needs the labels y beside X.")
        planned = type(self)(**self.get_params(deep=False))
        binaries = planned._learn_classes(y)
        both = (one for one in binaries if (one.labels != one.labels[0]).any())
        binary = next(both, binaries[0])
        part = None
        if hasattr(self.estimator, "explain"):
            data = X if binary.rows is None else _safe_indexing(X, binary.rows)
            part = self.estimator.explain(data, binary.labels, all=all)
        names = tuple(one.name for one in binaries)
        return SchemeExplanation(planned._described(len(names)), (binary.name,), (part,))

    @abstractmethod
    def _learn_classes(self, y: Any) -> Sequence[Binary]:
        """Set what the labels determine, and state the binary problems."""

    def _described(self, count: int) -> str:
        wrapped = type(self.estimator).__name__
        return f"{self._scheme()}: {counted(count, 'binary problem')} for {wrapped}"

    # --- scikit-learn ---------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        wrapped = get_tags(self.estimator).input_tags
        tags.input_tags.pairwise, tags.input_tags.sparse = wrapped.pairwise, wrapped.sparse
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Which metadata go to the wrapped estimator."""
        mapping = MethodMapping()
        for method in self._routed:
            mapping.add(caller=method, callee=method)
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)


def _rows_of(sample_weight: Any, rows: NDArray[np.intp] | None) -> Any:
    if sample_weight is None or rows is None or np.ndim(sample_weight) == 0:
        return sample_weight
    return np.asarray(sample_weight)[rows]
