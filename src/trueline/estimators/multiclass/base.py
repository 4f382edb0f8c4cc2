"""What the multiclass schemes have in common: proofs and probabilities.

The certificates of the parts become one, and their probabilities those of the classes.

Problem l of a code book compares the classes on its sides I_l+ and I_l-; its part says with
probability r_l that a row is of the first, given that it is of either. Wanted are p_1, ..., p_K,
not negative and of sum one, with

    r_l  ~  q_l+ / q_l,     q_l+ = sum over c in I_l+ of p_c,     q_l = q_l+ + q_l-.

**likelihood** maximises sum_l [r_l log(q_l+ / q_l) + (1 - r_l) log(q_l- / q_l)] by the iteration

    p_c <- p_c  (sum over l with c in I_l+ of r_l / q_l+  +  over c in I_l- of (1 - r_l) / q_l-)
                / (sum over l with c in I_l of 1 / q_l),    then divided by the sum of all p,

which never lowers it (T.-K. Huang, R. C. Weng, C.-J. Lin, "Generalized Bradley-Terry models and
multi-class probability estimates", J. Machine Learning Research 7 (2006) 85-115). On pairs of
classes this is the coupling of T. Hastie, R. Tibshirani, "Classification by pairwise coupling",
Ann. Statist. 26 (1998) 451-471, with equal weights.

**least squares**, for pairs, minimises sum over i < j of (r_ji p_i - r_ij p_j)^2 by one system of
linear equations, whose solution is never negative (T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability
estimates for multi-class classification by pairwise coupling", J. Machine Learning Research 5
(2004) 975-1005, section 4.2).

Votes and distances decide by other means than probabilities, and now and then for another class
than the most probable one. :func:`agreeing` moves such rows to the nearest probabilities among
which the chosen class is the highest.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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

from trueline.certificates.base import Certificate
from trueline.check import Check, Verification
from trueline.estimators.multiclass.parts import (
    Binary,
    ConstantPredictor,
    is_ours,
    planes_of,
    scores_of,
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
from trueline.estimators.shared.validation import validate_data
from trueline.wording import Readable, counted, relative

Array = NDArray[np.float64]

# Certainty on both sides at once would contradict itself: a little doubt is always left.
_DOUBT = 1e-12
_BLOCK = 1 << 22  # numbers held at a time
_LIMIT = 2000
_TOLERANCE = 1e-10


def couple_least_squares(positive: Array, n_classes: int) -> Array:
    """Pairwise probabilities to those of the classes, by linear equations.

    Parameters
    ----------
    positive : array of shape (n, K (K - 1) / 2)
        For each pair i < j, in the order (0, 1), (0, 2), ..., the probability of j.
    n_classes : int

    Returns
    -------
    p : array of shape (n, K)

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.estimators.multiclass.base import couple_least_squares
    >>> p = np.array([0.5, 0.3, 0.2])
    >>> pairs = [[p[1] / (p[0] + p[1]), p[2] / (p[0] + p[2]), p[2] / (p[1] + p[2])]]
    >>> couple_least_squares(np.array(pairs), 3).round(12)
    array([[0.5, 0.3, 0.2]])
    """
    first, second = np.triu_indices(n_classes, 1)
    step = max(1, _BLOCK // (n_classes + 1) ** 2)
    out = np.empty((len(positive), n_classes))
    for start in range(0, len(positive), step):
        r = np.clip(positive[start : start + step], _DOUBT, 1 - _DOUBT)
        # Rewritten with an equality for the sum: [Q 1; 1^T 0] [p; b] = [0; 1].
        system = np.zeros((len(r), n_classes + 1, n_classes + 1))
        loses = np.zeros((len(r), n_classes, n_classes))  # loses[c, s] = r_sc, won by s over c
        loses[:, first, second], loses[:, second, first] = r, 1 - r
        system[:, :-1, :-1] = -loses * loses.transpose(0, 2, 1)
        each = np.arange(n_classes)
        system[:, each, each] = np.square(loses).sum(axis=2)
        system[:, -1, :-1] = system[:, :-1, -1] = 1.0
        right = np.zeros((len(r), n_classes + 1, 1))
        right[:, -1] = 1.0
        p = np.maximum(np.linalg.solve(system, right)[:, :-1, 0], 0.0)
        out[start : start + step] = p / p.sum(axis=1, keepdims=True)
    return out


def couple_likelihood(positive: Array, book: NDArray[np.floating]) -> Array:
    """Probabilities of binary problems to those of the classes, by maximum likelihood.

    Parameters
    ----------
    positive : array of shape (n, L)
        The probability of the side +1 of each problem.
    book : array of shape (K, L)
        -1, 0 or +1: the side of each class in each problem.

    Returns
    -------
    p : array of shape (n, K)
        Classes that no problem tells apart share their probability equally.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.estimators.multiclass.base import couple_likelihood
    >>> p = np.array([0.5, 0.3, 0.2])
    >>> book = np.array([[1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    >>> couple_likelihood(p[None], book).round(8)
    array([[0.5, 0.3, 0.2]])
    """
    plus, minus = (book > 0).astype(np.float64), (book < 0).astype(np.float64)
    tells = plus.any(axis=0) & minus.any(axis=0)  # a problem of one side tells nothing
    plus, minus, positive = plus[:, tells], minus[:, tells], positive[:, tells]
    step = max(1, _BLOCK // max(book.shape))
    out = np.empty((len(positive), len(book)))
    for start in range(0, len(positive), step):
        r = np.clip(positive[start : start + step], _DOUBT, 1 - _DOUBT)
        out[start : start + step] = _climb(r, plus, minus)
    return out


def _climb(r: Array, plus: Array, minus: Array) -> Array:
    """The iteration of the module's text, for rows that have not come to rest."""
    n_classes = len(plus)
    p = np.full((len(r), n_classes), 1.0 / n_classes)
    moving = np.arange(len(r))
    for _ in range(_LIMIT):
        now, ratio = p[moving], r[moving]
        on_plus, on_minus = now @ plus, now @ minus
        gain = (ratio / on_plus) @ plus.T + ((1 - ratio) / on_minus) @ minus.T
        cost = (1.0 / (on_plus + on_minus)) @ (plus + minus).T
        # A class in no problem has nothing to move it.
        new = now * np.divide(gain, cost, out=np.ones_like(gain), where=cost > 0)
        new /= new.sum(axis=1, keepdims=True)
        p[moving] = new
        moving = moving[np.abs(new - now).max(axis=1) > _TOLERANCE]
        if not len(moving):
            break
    return p


def agreeing(p: Array, chosen: NDArray[np.intp]) -> Array:
    """The nearest probabilities (by squared differences) whose highest is that of the chosen class.

    Only rows that have a higher one are changed: the chosen class and those above it get their
    common mean, which may bring further classes above it; these join in.

    Parameters
    ----------
    p : array of shape (n, K)
    chosen : array of shape (n,)
        The number of a class for each row.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.estimators.multiclass.base import agreeing
    >>> agreeing(np.array([[0.5, 0.4, 0.1]]), np.array([1])).round(6)
    array([[0.45, 0.45, 0.1 ]])
    """
    away = np.flatnonzero(p.argmax(axis=1) != chosen)
    if not len(away):
        return p
    p, some, which = p.copy(), p[away], chosen[away][:, None]
    own = np.take_along_axis(some, which, axis=1)
    others = some.copy()
    np.put_along_axis(others, which, -np.inf, axis=1)
    falling = -np.sort(-others, axis=1)[:, :-1]
    # Mean of the chosen one and the m highest others, for m = 0, 1, ...: the first that reaches
    # the next one is the level.
    sums = np.concatenate([own, own + np.cumsum(falling, axis=1)], axis=1)
    means = sums / np.arange(1, sums.shape[1] + 1)
    following = np.concatenate([falling, np.full((len(away), 1), -np.inf)], axis=1)
    level = np.take_along_axis(means, (means >= following).argmax(axis=1)[:, None], axis=1)
    lowered = np.minimum(some, level)
    # A hair above the others, so that the first of equals is no other class.
    np.put_along_axis(lowered, which, level * (1 + 1e-12), axis=1)
    p[away] = lowered
    return p


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


def _rows_of(sample_weight: Any, rows: NDArray[np.intp] | None) -> Any:
    if sample_weight is None or rows is None or np.ndim(sample_weight) == 0:
        return sample_weight
    return np.asarray(sample_weight)[rows]
