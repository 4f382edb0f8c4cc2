"""Output codes: classes as codewords of a code book, one binary problem per bit.

A row per class, a column per binary problem, entries -1, 0 (takes no part) and +1. Decoding mends
as many wrong columns as half the distance of the rows allows, so that the least distance between
two rows,

    min over c < c' of sum_l (1 - m_cl m_c'l) / 2,

is what a design makes large.

===========  ================================================================================
design       columns
===========  ================================================================================
random       each entry by a fair coin, as scikit-learn draws it
dense        no zeros; the best of many draws, improved entry by entry
sparse       half of the entries zero; the best of many draws, improved entry by entry
exhaustive   all 2^(K-1) - 1 ways to take K classes apart; distance 2^(K-2)
hadamard     N - 1 columns of a Hadamard matrix of order N, the power of two from K on; distance
             N / 2, the largest there is for so many columns
===========  ================================================================================

Dense and sparse are the codes of Allwein, Schapire and Singer (2000, section 6), who draw and keep
the best; exhaustive is T. G. Dietterich, G. Bakiri, "Solving multiclass learning problems via
error-correcting output codes", J. Artificial Intelligence Research 2 (1995) 263-286, section 2.3.1.
That no code of N - 1 columns has N rows further apart than N / 2 is M. Plotkin's bound (IRE Trans.
Inform. Theory 6 (1960) 445-450).

From the scores of a code book's columns to scores of the classes.

The score of class c is minus a distance between the row's scores f_1, ..., f_L and the codeword
m_c of the class (E. L. Allwein, R. E. Schapire, Y. Singer, J. Machine Learning Research 1 (2000)
113-141, section 3):

=============  =====================================================================
decoding       distance
=============  =====================================================================
euclidean      sum_l (m_cl - f_l)^2
hamming        sum_l (1 - sign(m_cl f_l)) / 2: bits that differ; zeros count half
hinge          sum_l max(0, 1 - m_cl f_l)
squared        sum_l (1 - m_cl f_l)^2
logistic       sum_l log(1 + exp(-2 m_cl f_l))
exponential    sum_l exp(-m_cl f_l)
linear         sum_l (- m_cl f_l)
=============  =====================================================================

The loss that the parts were fitted with is the natural choice among the last five: theorem 1 of
that paper bounds the training error by the parts' losses over the distance of the code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.multiclass.base import BinaryReduction, parts_have
from trueline.estimators.multiclass.parts import Binary
from trueline.estimators.shared.classifier import check_labels, encode_declared
from trueline.estimators.shared.coupling import agreeing, couple_likelihood
from trueline.estimators.shared.parameters import KW_ONLY, REQUIRED, given, one_of, parameters
from trueline.estimators.shared.validation import Array, validate_data

#: The designs by name.
DESIGNS = ("random", "dense", "sparse", "exhaustive", "hadamard")
_DRAWS = 40
_ROW_STEPS = 300
_PATIENCE = 1000
_MOST_EXHAUSTIVE = 12


def least_distance(book: NDArray[Any]) -> float:
    """The least distance between two rows; zeros count half, whatever stands opposite.

    Examples
    --------
    >>> from trueline.estimators.multiclass.output_code import design_book, least_distance
    >>> least_distance(design_book("exhaustive", 4, 1.5))
    4.0
    """
    return float(_distances(np.asarray(book, dtype=np.float64)).min())


def _distances(book: Array) -> Array:
    """Distances of all pairs of rows; of the last two axes of a stack of books."""
    first, second = np.triu_indices(book.shape[-2], 1)
    products = book @ np.swapaxes(book, -1, -2)
    return 0.5 * (book.shape[-1] - products[..., first, second])


def design_book(
    design: str, n_classes: int, code_size: float | str, random_state: Any = None
) -> Array:
    """A code book of -1, 0 and +1.

    Parameters
    ----------
    design : {"dense", "sparse", "exhaustive", "hadamard"}
    n_classes : int
    code_size : float or "auto"
        Columns per class. "auto" means 10 log2 K columns for dense and 15 log2 K for sparse codes,
        rounded up (Allwein, Schapire and Singer, section 6). The other designs have a size of
        their own.
    random_state : RandomState, optional
        Drawn from by dense and sparse.

    Returns
    -------
    book : array of shape (K, L)

    Examples
    --------
    >>> from trueline.estimators.multiclass.output_code import design_book
    >>> design_book("hadamard", 3, "auto").astype(int)
    array([[ 1,  1,  1],
           [-1,  1, -1],
           [ 1, -1, -1]])
    """
    if n_classes == 2:
        return np.array([[-1.0], [1.0]])  # there is but one way to take two classes apart
    if design == "exhaustive":
        return _exhaustive(n_classes)
    if design == "hadamard":
        return _hadamard(n_classes)
    per = 10 if design == "dense" else 15
    if code_size == "auto":
        columns = math.ceil(per * math.log2(n_classes))
    else:
        columns = max(math.ceil(math.log2(n_classes)), int(n_classes * float(code_size)))
    random_state = np.random.RandomState(0) if random_state is None else random_state
    if design == "dense":
        ways = 2 ** (n_classes - 1) - 1
        if columns >= ways:
            return _exhaustive(n_classes)
        return _searched(n_classes, columns, np.array([-1.0, 1.0]), random_state)
    return _searched(n_classes, columns, np.array([-1.0, 0.0, 0.0, 1.0]), random_state)


def check_book(book: Any, n_classes: int) -> Array:
    """A code book given by hand, as an array of -1, 0 and +1."""
    found = np.asarray(book, dtype=np.float64)
    if found.ndim != 2 or len(found) != n_classes or found.shape[1] < 1:
        raise ValueError(
            f"The code book must have one row for each of the {n_classes} classes and at least one "
            f"column, got shape {found.shape}."
        )
    if not np.isin(found, (-1.0, 0.0, 1.0)).all():
        raise ValueError("A code book holds -1, 0 (takes no part) and +1, nothing else.")
    one_sided = np.flatnonzero((found.max(axis=0) < 1) | (found.min(axis=0) > -1))
    if len(one_sided):
        raise ValueError(
            f"Column {one_sided[0]} of the code book has no class on one of its sides: every "
            "column needs a -1 and a +1 (0 means that a class takes no part)."
        )
    first, second = np.triu_indices(n_classes, 1)
    apart = (found[first] * found[second] < 0).any(axis=1)
    if not apart.all():
        pair = int(np.argmin(apart))
        raise ValueError(
            f"No column of the code book has rows {first[pair]} and {second[pair]} on different "
            "sides: these two classes could not be distinguished."
        )
    return found


def _exhaustive(n_classes: int) -> Array:
    """All columns that differ in more than their sign: bit l of 0, ..., 2^(K-1) - 2 for class l."""
    if n_classes > _MOST_EXHAUSTIVE:
        raise ValueError(
            f"The exhaustive code of {n_classes} classes has {2 ** (n_classes - 1) - 1} columns; "
            f"it is offered up to {_MOST_EXHAUSTIVE} classes. Choose code='dense' or 'hadamard'."
        )
    bits = np.arange(2 ** (n_classes - 1) - 1)
    below = [np.where(bits >> shift & 1, 1.0, -1.0) for shift in range(n_classes - 1)]
    return np.array([np.ones(len(bits)), *below[::-1]])


def _hadamard(n_classes: int) -> Array:
    """Sylvester's matrix, entry (-1)^(common bits of row and column), without its first column.

    Its order is the least power of two that K reaches or passes, so that the first K rows hold all
    powers of two: no column is constant on them, none repeats another or its opposite.
    """
    order = 1 << (n_classes - 1).bit_length()
    rows, columns = np.arange(n_classes)[:, None], np.arange(1, order)
    common = rows & columns
    parity = np.zeros(common.shape, dtype=int)
    while common.any():
        parity ^= common & 1
        common = common >> 1
    return np.where(parity, -1.0, 1.0)


def _searched(n_classes: int, columns: int, entries: Array, random_state: Any) -> Array:
    """The best of many draws, improved entry by entry while that makes it better."""
    drawn = [_valid_columns(entries, n_classes, columns, random_state) for _ in range(_DRAWS)]
    book = max(drawn, key=lambda one: _Quality.of(one).value())
    for _ in range(max(2, _ROW_STEPS // n_classes)):
        changed = [_improve_row(book, c, np.unique(entries)) for c in range(n_classes)]
        if not any(changed):
            break
    return book


class _Quality(NamedTuple):
    """Of some pairs of rows: how many are never opposite, the least distance, how many have it."""

    alike: Any
    least: Any
    ties: Any

    @classmethod
    def of(cls, book: Array) -> _Quality:
        """Of all pairs of a book."""
        first, second = np.triu_indices(len(book), 1)
        products, both = book @ book.T, np.abs(book) @ np.abs(book).T
        return cls.measured(
            0.5 * (book.shape[1] - products)[first, second], (both == products)[first, second]
        )

    @classmethod
    def measured(cls, distances: Array, alike: NDArray[np.bool_]) -> _Quality:
        """The first axis is that of the pairs."""
        least = distances.min(axis=0, initial=np.inf)
        return cls(alike.sum(axis=0), least, (distances == least).sum(axis=0))

    def joined(self, other: _Quality) -> _Quality:
        """Of these pairs and others."""
        least = np.minimum(self.least, other.least)
        ties = self.ties * (self.least == least) + other.ties * (other.least == least)
        return _Quality(self.alike + other.alike, least, ties)

    def value(self) -> Any:
        """Pairs told apart count before all, then the distance, then how many pairs have it."""
        return -1e12 * self.alike + 1e6 * self.least - self.ties


def _improve_row(book: Array, c: int, choices: Array) -> bool:
    """Change the entry of row c that makes the book better by most; False if none does.

    An entry changes the distances of its own row alone, so that all columns are tried at once.
    """
    neighbours, own = np.delete(book, c, axis=0), book[c].copy()
    rest = _Quality.of(neighbours)
    product, both = neighbours @ own, np.abs(neighbours) @ np.abs(own)
    now = float(_Quality.of(book).value())
    found: list[tuple[float, int, float]] = []
    for entry in choices:
        # Shape (others, columns): products and common entries if column l of the row were `entry`.
        products = product[:, None] + (entry - own) * neighbours
        common = both[:, None] + (abs(entry) - np.abs(own)) * np.abs(neighbours)
        quality = _Quality.measured(0.5 * (book.shape[1] - products), common == products)
        values = quality.joined(rest).value()
        found += [(float(values[k]), int(k), float(entry)) for k in np.flatnonzero(values > now)]
    for _, column, entry in sorted(found, reverse=True):
        book[c, column] = entry
        if _is_valid(book, column):
            return True
        book[c, column] = own[column]
    return False


def _is_valid(book: Array, column: int) -> bool:
    """Whether a column has two sides and is none of the others, up to its sign."""
    these = book[:, column]
    if these.max() < 1 or these.min() > -1:
        return False
    agreement = np.abs(these @ book)
    same = (agreement == np.abs(these).sum()) & (np.abs(book).sum(axis=0) == np.abs(these).sum())
    return int(same.sum()) == 1


def _valid_columns(entries: Array, n_classes: int, columns: int, random_state: Any) -> Array:
    """Columns drawn until there are enough of them with two sides and all different."""
    found = np.empty((0, n_classes))
    for _ in range(_PATIENCE):
        drawn = random_state.choice(entries, size=(columns, n_classes))
        found = np.concatenate([found, drawn[(drawn.max(axis=1) > 0) & (drawn.min(axis=1) < 0)]])
        leads = np.take_along_axis(found, (found != 0).argmax(axis=1)[:, None], axis=1)
        _, first = np.unique((leads * found).astype(np.int8), axis=0, return_index=True)
        found = found[np.sort(first)[:columns]]
        if len(found) == columns:
            return found.T.copy()
    raise ValueError(
        f"{n_classes} classes do not give {columns} different columns: choose a smaller code_size."
    )


_LOSSES: dict[str, Callable[[Array], Array]] = {
    "hamming": lambda margin: 0.5 * (1.0 - np.sign(margin)),
    "hinge": lambda margin: np.maximum(0.0, 1.0 - margin),
    "squared": lambda margin: np.square(1.0 - margin),
    "logistic": lambda margin: np.logaddexp(0.0, -2.0 * margin),
    # Beyond exp(700) a double is infinite; the order of the classes is decided long before.
    "exponential": lambda margin: np.exp(np.minimum(-margin, 700.0)),
    "linear": lambda margin: -margin,
}
#: The names of the distances.
DECODINGS = ("euclidean", *_LOSSES)


def class_scores(scores: Array, book: Array, decoding: str) -> Array:
    """Scores of shape (n, K) from the parts' scores of shape (n, L).

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.estimators.multiclass.output_code import class_scores
    >>> book = np.array([[1.0, 1.0, 1.0], [-1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]])
    >>> class_scores(np.array([[-2.0, 0.5, -0.1]]), book, "hamming")
    array([[-2., -2., -0.]])
    """
    if decoding == "euclidean":
        squares = np.square(scores).sum(axis=1, keepdims=True)
        lengths = np.square(book).sum(axis=1)
        return 2 * (scores @ book.T) - lengths - squares
    loss = _LOSSES[decoding]
    # A class stands at +1, at -1 or at 0 of a column: three losses per score, picked by products.
    out = -(loss(scores) @ (book > 0).T.astype(np.float64))
    out -= loss(-scores) @ (book < 0).T.astype(np.float64)
    return out - float(loss(np.zeros(1))[0]) * (book == 0).sum(axis=1)


@parameters()
class OutputCodeClassifier(BinaryReduction):
    """Classes as codewords of -1 and +1, one binary problem per bit; the nearest one is predicted.

    The part of bit l is fitted to the rows of the classes that have one (0 in a code book leaves a
    class out), with the class's bit as label; with the package's own linear models it minimises::

        sum_i s_i loss(m_(c_i) l, x_i.w_l + b_l) + penalty(w_l)

    where m_(c_i) l is the bit of the class of row i. More bits than classes need let decoding mend
    the mistakes of some parts.

    A drop-in for ``sklearn.multiclass.OutputCodeClassifier``, with designed codes, scores and
    probabilities.

    Parameters
    ----------
    estimator : estimator
        Any classifier with scores or probabilities.
    code_size : float or "auto", default=1.5
        Bits per class, for random, dense and sparse codes. "auto" is 10 log2 k bits for dense and
        15 log2 k for sparse ones.
    random_state : int, RandomState or None
        For the code; with a number the same code every time.
    n_jobs : int, optional
        Parts fitted at a time. None means one, and for estimators of this package as many as the
        BLAS library may use threads.
    code : {"random", "dense", "sparse", "exhaustive", "hadamard"} or array, default="random"
        "random" flips a coin for every bit, as scikit-learn does; the others make the distance
        between codewords large: "dense" by search among codes of -1 and +1, "sparse" among codes
        half of which are 0, "exhaustive" has all 2^(k-1) - 1 ways to take the classes apart, and
        "hadamard" the largest distance that so few bits allow. An array of shape (k, bits) is used
        as it is.
    decoding : str, default="euclidean"
        The distance between the scores and a codeword: "euclidean", "hamming" (bits that differ) or
        the loss of the parts: "hinge", "squared", "logistic", "exponential", "linear".

    Attributes
    ----------
    estimators_ : list of estimators
    classes_ : array of shape (k,)
    n_classes_ : int
    code_book_ : array of shape (k, bits)
        -1, 0 and +1. A random code for an estimator without scores holds 0 and 1.
    code_distance_ : float
        The least distance between two codewords; zeros count half a bit.
    certificate_ : CombinedCertificate
        Of the parts, if they have certificates.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from trueline import OutputCodeClassifier, RidgeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OutputCodeClassifier(RidgeClassifier(), code="hadamard").fit(X, y)
    >>> model.code_book_.shape, model.code_distance_
    ((10, 15), 8.0)
    """

    estimator: Any = given(
        REQUIRED, HasMethods(["fit", "decision_function"]), HasMethods(["fit", "predict_proba"])
    )
    _: KW_ONLY
    code_size: Any = given(1.5, "(0, inf)", one_of("auto"))
    random_state: Any = given(None, "random_state")
    code: Any = given("random", one_of(*DESIGNS), "array-like")
    decoding: str = given("euclidean", one_of(*DECODINGS))
    _routed = ("fit",)

    # --- labels ---------------------------------------------------------------------------------

    def _learn_classes(self, y: Any) -> Sequence[Binary]:
        check_labels(y, type(self).__name__)
        self.classes_ = np.unique(column_or_1d(y, warn=False))
        self.code_book_ = self._make_book()
        return self._binaries(y)

    def _make_book(self) -> Array:
        k, state = len(self.classes_), check_random_state(self.random_state)
        if k == 0:
            raise ValueError("OutputCodeClassifier can not be fit when no class is present.")
        if not isinstance(self.code, str):
            return check_book(self.code, k)
        if self.code != "random":
            if k == 1:
                raise ValueError(
                    "OutputCodeClassifier needs samples of at least two classes, but y holds one "
                    f"class only: {self.classes_.tolist()[0]!r}."
                )
            return design_book(self.code, k, self.code_size, state)
        if self.code_size == "auto":
            raise ValueError(
                "code_size='auto' is for designed codes; code='random' needs a number."
            )
        bits = int(k * self.code_size)
        if bits == 0:
            raise ValueError(
                f"code_size={self.code_size!r} leaves no bit for {k} classes: give at least "
                f"{1 / k:.3g}."
            )
        # Drawn as scikit-learn draws it: the same seed gives the same code.
        low = -1.0 if hasattr(self.estimator, "decision_function") else 0.0
        return np.where(state.uniform(size=(k, bits)) > 0.5, 1.0, low)

    def _book(self) -> Array:
        """The code in -1, 0 and +1."""
        book = self.code_book_
        is_zero_one = isinstance(self.code, str) and self.code == "random"
        return np.where(book > 0, 1.0, -1.0) if is_zero_one else book

    def _binaries(self, y: Any) -> Sequence[Binary]:
        codes = encode_declared(y, self.classes_)
        low = -1 if hasattr(self.estimator, "decision_function") else 0
        found = []
        for name, column in zip(self._part_names(), self._book().T):
            bits = column[codes]
            rows = None if column.all() else np.flatnonzero(bits)
            labels = np.where((bits if rows is None else bits[rows]) > 0, 1, low)
            found.append(Binary(name, labels, rows))
        return found

    def _part_names(self) -> list[str]:
        return [f"bit {k}" for k in range(self.code_book_.shape[1])]

    def _scheme(self) -> str:
        kind = self.code if isinstance(self.code, str) else "given"
        return f"output code ({kind}, least distance {self.code_distance_:g})"

    @property
    def code_distance_(self) -> float:
        """The least distance between two codewords."""
        return least_distance(self._book()) if self.n_classes_ > 1 else float("inf")

    # --- fitting --------------------------------------------------------------------------------

    def _stated(self, X: Any, y: Any) -> tuple[Any, Any, Sequence[Binary]]:
        return super()._stated(X, validate_data(self, X="no_validation", y=y))

    # --- predictions ----------------------------------------------------------------------------

    def _class_scores(self, X: Any) -> Array:
        check_is_fitted(self)
        scores = self._part_scores(X).astype(np.float64, copy=False)
        if not hasattr(self.estimator, "decision_function"):
            scores = 2 * scores - 1  # a probability as a score between -1 and 1
        return class_scores(scores, self._book(), self.decoding)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class whose codeword is nearest to the scores of the bits.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        y : array of shape (n,)
        """
        best = self._class_scores(X).argmax(axis=1)
        return self.classes_[best]

    def decision_function(self, X: Any) -> Array:
        """Minus the distance between the scores of the bits and each codeword.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        scores : array of shape (n,) or (n, k)
            For two classes one number, positive for ``classes_[1]``.
        """
        scores = self._class_scores(X)
        return scores[:, 1] - scores[:, 0] if self.n_classes_ == 2 else scores

    @available_if(parts_have("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes that make those of the bits most likely.

        By the generalised Bradley-Terry model of Huang, Weng and Lin (2006). Where bits contradict
        each other, the nearest codeword and the likeliest class can differ; such rows get the
        nearest probabilities among which the predicted class has the highest.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        probabilities : array of shape (n, k)
            Rows sum to one.
        """
        check_is_fitted(self)
        likely = np.column_stack([part.predict_proba(X)[:, 1] for part in self.estimators_])
        coupled = couple_likelihood(likely, self._book())
        return agreeing(coupled, self._class_scores(X).argmax(axis=1))
