"""What the multiclass schemes have in common: fits, proofs, scores.

The certificates of the parts become one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, check_consistent_length, column_or_1d, get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _check_partial_fit_first_call
from sklearn.utils.validation import _check_method_params, check_is_fitted

from trueline.certificates.base import Certificate
from trueline.check import Check, Verification
from trueline.estimators.multiclass.joint_fits import fit_together
from trueline.estimators.multiclass.parts import (
    Binary,
    ConstantPredictor,
    fit_parts,
    is_ours,
    planes_of,
    scores_of,
    update_parts,
)
from trueline.estimators.shared.parameters import (
    KW_ONLY,
    REQUIRED,
    given,
    marked,
    named_by,
    parameters,
    tied,
)
from trueline.estimators.shared.validation import Array, new_rows, validate_data
from trueline.wording import Readable, counted, relative


def certified_parts(whole: Any, parts: Iterable[Any]) -> tuple[Any, ...]:
    """The certificates of fitted parts; raises if one brings none.

    Parameters
    ----------
    whole : estimator
        What is made of the parts, for messages.
    parts : iterable of estimators
    """
    parts = tuple(parts)
    for part in parts:
        if not hasattr(part, "certificate_"):
            kind = type(part)
            raise AttributeError(
                f"This {type(whole).__name__} has no certificate_: it would be made of those of "
                f"its parts, and {kind.__module__.partition('.')[0]}'s {kind.__name__} brings "
                "none. Wrap an estimator of trueline to have one."
            )
    return tuple(part.certificate_ for part in parts)


def verified_parts(outcomes: Iterable[tuple[str, Verification]]) -> Verification:
    """What was checked and is proven of all parts; the conditions of each are those of the whole.

    Examples
    --------
    >>> from trueline.check import Check, Verification
    >>> parts = [Verification((Check("gap", "0", "0", True),), "it is best", ("it is near",))]
    >>> print(verified_parts(zip("a", parts)))
    check   claimed  found
    a: gap  0        0      holds
    Proven: a: it is best.
    The certificate holds if a: it is near.
    """
    checks: list[Check] = []
    statements, conditions = [], []
    for name, part in outcomes:
        checks += (replace(check, name=f"{name}: {check.name}") for check in part.checks)
        statements += [f"{name}: {part.statement}"] if part.statement else []
        conditions += [f"{name}: {condition}" for condition in part.conditions]
    return Verification(tuple(checks), "; ".join(statements), tuple(conditions))


@dataclass(frozen=True, repr=False)
class CombinedCertificate(Readable):
    """What is proven about the fits that a model is made of, one by one and in sum.

    The problems do not interact, so that the sum of their objectives is proven within the sum of
    their gaps of its optimum.

    Attributes
    ----------
    names : tuple of str
        The problems.
    parts : tuple of Certificate
        One certificate for each; of a scheme within a scheme, one that is combined itself.
    fit : str
        What a part is called.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from trueline import OneVsRestClassifier, RidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> certificate = OneVsRestClassifier(RidgeClassifier()).fit(X, y).certificate_
    >>> certificate.names
    ('0 against the rest', '1 against the rest', '2 against the rest')
    >>> bool(certificate.relative_gap < 1e-12), bool(certificate.verify(X, y))
    (True, True)
    """

    names: tuple[str, ...]
    parts: tuple[Certificate | CombinedCertificate, ...]
    _verify: Callable[[Any, Any, Any], Verification] = field(repr=False, compare=False)
    fit: str = "binary fit"

    @property
    def objective(self) -> float:
        """The sum of the objectives."""
        return sum(part.objective for part in self.parts)

    @property
    def objective_rounding(self) -> float:
        """The sum of the bounds on their rounding, and that of the sum itself."""
        own = 2.3e-16 * len(self.parts) * sum(abs(part.objective) for part in self.parts)
        return sum(part.objective_rounding for part in self.parts) + own

    @property
    def gap(self) -> float:
        """The sum of the gaps."""
        return sum(part.gap for part in self.parts) * (1 + 2.3e-16 * len(self.parts))

    @property
    def lower_bound(self) -> float:
        """A number that the optimum of the sum is proven not to lie below."""
        return self.objective - self.objective_rounding - self.gap

    @property
    def relative_gap(self) -> float:
        """The gap divided by the objective."""
        if self.gap <= 1e-280:
            return 0.0
        return self.gap / abs(self.objective) if self.objective else float("inf")

    @property
    def kind(self) -> str:
        """The kinds of proof of the parts."""
        return ", ".join(sorted({part.kind for part in self.parts}))

    @property
    def statement(self) -> str:
        """What is proven, in a sentence."""
        return f"each of {counted(len(self.parts), self.fit)} by itself ({self.kind})"

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Verification:
        """Check every part's claims against its own rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows that were fitted.
        y : array-like of shape (n,) or (n, k)
            Their labels.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        verification : Verification
            True in a boolean context if everything holds for every part.
        """
        try:
            return self._verify(X, y, sample_weight)
        except ValueError as error:
            return Verification.refused(error)

    def __str__(self) -> str:
        return (
            f"objective {self.objective:.10g}, proven within {self.gap:.3g} of the optimum "
            f"({relative(self.relative_gap)}); {self.statement}"
        )


def parts_have(name: str) -> Callable[[Any], bool]:
    """For ``available_if``: the wrapped estimator, or a part of it once fitted, has a method."""

    def check(self: Any) -> bool:
        parts = getattr(self, "estimators_", None)
        getattr(self.estimator if parts is None else speaker_of(parts), name)
        return True

    return check


def speaker_of(parts: Sequence[Any]) -> Any:
    """A part that shows what the others can do: the first that was a fit."""
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

    verbose = 0

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

    @abstractmethod
    def _book(self) -> Array:
        """-1, 0 (takes no part) or +1 for each class and problem."""

    # --- fitting --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit one part per binary problem.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
            Labels; for one-vs-rest also indicators of sets of labels, of shape (n, k).
        **fit_params
            Routed to the parts, if metadata routing is enabled.

        Returns
        -------
        self : object
        """
        self._validate_params()
        params = self._routed_params("fit", fit_params)
        X, y, binaries = self._stated(X, y)
        parts, self._shared = fit_together(self, X, y, binaries, params)
        if parts is None:
            parts = fit_parts(self.estimator, X, binaries, params, self.n_jobs, self.verbose)
        self.estimators_ = parts
        self._take_over(binaries)
        self._mark_fitted()
        return self

    def _stated(self, X: Any, y: Any) -> tuple[Any, Any, Sequence[Binary]]:
        """Checked rows and labels, and the problems that they give."""
        binaries = self._learn_classes(y)
        return self._validated_once(X, y), y, binaries

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

    def _take_over(self, binaries: Sequence[Binary]) -> None:
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

    def _mark_fitted(self) -> None:
        """Remember which class each part is about, so that later changes are noticed."""
        self._as_fitted = marked(self._predicting())

    def _predicting(self) -> dict[str, Any]:
        own = {
            name: vars(self)[name] for name in ("code_book_", "multilabel_") if name in vars(self)
        }
        return {**named_by(self), **own}

    # --- scores ---------------------------------------------------------------------------------

    def _part_scores(self, X: Any) -> NDArray[Any]:
        """Scores of shape (n, L); of linear parts by one product."""
        planes = planes_of(self.estimators_) if len(self.estimators_) > 1 else None
        if planes is None:
            return np.column_stack([scores_of(part, X) for part in self.estimators_])
        if hasattr(self, "n_features_in_"):
            X = new_rows(self, X)
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
        before = getattr(self, "_as_fitted", {})
        return tied(before, self._predicting(), lambda: self._check_parts(X, y, sample_weight))

    def _check_parts(self, X: Any, y: Any, sample_weight: Any) -> Verification:
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


class LearnsBatches(BinaryReduction):
    """A reduction whose problems are known from the classes, so that rows may come in batches."""

    #: What must be among the classes, in scikit-learn's words.
    _must_be_known = "classes"

    @abstractmethod
    def _check_batch(self, X: Any, y: Any, first: bool) -> tuple[Any, Any]:
        """Rows and labels as the parts take them."""

    @available_if(parts_have("partial_fit"))
    def partial_fit(self, X: Any, y: Any, classes: Any = None, **partial_fit_params: Any) -> Self:
        """Give the parts a batch of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        classes : array of shape (k,), optional
            All classes there will be; needed in the first call.
        **partial_fit_params
            Routed to the parts, if metadata routing is enabled.

        Returns
        -------
        self : object
        """
        self._validate_params()
        params = self._routed_params("partial_fit", partial_fit_params)
        first = _check_partial_fit_first_call(self, classes)
        if first:
            self._indicators, self._shared = "no", ""
            self.estimators_ = [clone(self.estimator) for _ in self._part_names()]
        y = column_or_1d(y, warn=False)
        if len(np.setdiff1d(y, self.classes_)):
            raise ValueError(
                f"Mini-batch contains {np.unique(y)} while {self._must_be_known} must be subset "
                f"of {self.classes_}"
            )
        X, y = self._check_batch(X, y, first)
        batches = [
            (X, b.labels, params)
            if b.rows is None
            else (X[b.rows], b.labels, _check_method_params(X, params=params, indices=b.rows))
            for b in self._binaries(y)
        ]
        self.estimators_ = update_parts(self.estimators_, batches, np.arange(2), self.n_jobs)
        self._take_over(())
        if hasattr(self.estimators_[0], "n_features_in_"):
            self.n_features_in_ = self.estimators_[0].n_features_in_
        return self


def _rows_of(sample_weight: Any, rows: NDArray[np.intp] | None) -> Any:
    if sample_weight is None or rows is None or np.ndim(sample_weight) == 0:
        return sample_weight
    return np.asarray(sample_weight)[rows]
