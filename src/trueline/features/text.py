"""Texts as numbers: words, pieces of words, and style.

Words and runs of characters are counted by scikit-learn's vectorisers; style is how long a text is,
how it is punctuated and spelled.
"""

from __future__ import annotations

import collections
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.estimators.shared.validation import reads_batches
from trueline.features.text_batches import Terms, counted_rows, texts_of
from trueline.streams import Batches
from trueline.wording import shown_as_text

STYLE = (
    "characters",
    "words",
    "sentences",
    "mean word length",
    "share of punctuation",
    "share of digits",
    "share of capitals",
    "share of different words",
    "numbers",
    "exclamation marks",
    "question marks",
)
MISSPELLING = ("misspelled words", "share of misspelled words")

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SENTENCE_END = re.compile(r"[.!?…。！？]+(?=\s|$)")
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_][^\W_]*(?:['’-][^\W\d_]+)*|[^\w\s]|_")


def tokens(text: str) -> list[str]:
    """Words, numbers and signs of punctuation, in lower case, in any script.

    Examples
    --------
    >>> from trueline.features.text import tokens
    >>> tokens("Don't pay 3,50 € for mp3!")
    ["don't", 'pay', '3,50', '€', 'for', 'mp3', '!']
    """
    return _TOKEN.findall(text.lower())


@lru_cache(maxsize=4096)
def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def style(texts: Sequence[str]) -> NDArray[np.float64]:
    """The columns of STYLE. Shares of an empty text are zero."""
    return np.array([_style(text) for text in texts], dtype=np.float64).reshape(-1, len(STYLE))


def _style(text: str) -> tuple[float, ...]:
    words = _WORD.findall(text)
    letters = sum(map(len, words))
    length = len(text) or 1
    characters = collections.Counter(
        text
    ).items()  # a text has few different ones: look at each once
    count = len(words) or 1
    return (
        len(text),
        len(words),
        max(len(_SENTENCE_END.findall(text)), int(bool(words))),
        letters / count,
        sum(k for c, k in characters if _is_punctuation(c)) / length,
        sum(k for c, k in characters if c.isdigit()) / length,
        sum(k for c, k in characters if c.isupper()) / length,
        len({word.lower() for word in words}) / count,
        len(_NUMBER.findall(text)),
        text.count("!"),
        text.count("?"),
    )


def misspelling(texts: Sequence[str], vocabulary: Iterable[str]) -> NDArray[np.float64]:
    """The columns of MISSPELLING: words that a vocabulary does not have, without their case."""
    known = {word.lower() for word in vocabulary}
    rows = []
    for text in texts:
        words = [word.lower() for word in _WORD.findall(text)]
        unknown = sum(word not in known for word in words)
        rows.append((unknown, unknown / (len(words) or 1)))
    return np.array(rows, dtype=np.float64).reshape(-1, len(MISSPELLING))


@dataclass
class Counter:
    """Terms of one kind, counted and weighed.

    Attributes
    ----------
    analyzer : {"word", "char_wb"}
    shortest, longest : int
        Lengths of the runs that are terms.
    weights : {"tfidf", "counts", "binary"}
    lowercase : bool
    min_count : int
    max_features, n_hashed : int, optional
    terms : list of str, optional
        In the order of their columns; None before the fit, and where they are hashed.
    idf : array, optional
        Inverse document frequencies, of "tfidf".
    read : callable, optional
        From a text to the words, lemmas or tags that are counted.
    """

    analyzer: str
    shortest: int
    longest: int
    weights: str
    lowercase: bool
    min_count: int
    max_features: int | None
    n_hashed: int | None
    terms: list[str] | None = None
    idf: NDArray[np.float64] | None = None
    read: Callable[[str], Sequence[str]] | None = None

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        """The vectoriser and the weighting, with what was learned."""
        from sklearn.feature_extraction.text import (
            CountVectorizer,
            HashingVectorizer,
            TfidfTransformer,
        )

        common = {
            "analyzer": self.analyzer,
            "ngram_range": (self.shortest, self.longest),
            "lowercase": self.lowercase and self.read is None,
            "binary": self.weights == "binary",
            # Single letters are words, too; scikit-learn's default leaves them out.
            "token_pattern": r"(?u)\b\w+\b" if self.analyzer == "word" and not self.read else None,
            "tokenizer": self.read,
            "dtype": np.float64,
        }
        if self.n_hashed is not None:
            count = HashingVectorizer(
                n_features=self.n_hashed, norm=None, alternate_sign=False, **common
            )
        else:
            most = self.max_features
            count = CountVectorizer(min_df=self.min_count, max_features=most, **common)
            if self.terms is not None:
                count.vocabulary_ = {term: j for j, term in enumerate(self.terms)}
        weigh = TfidfTransformer() if self.weights == "tfidf" else None
        if weigh is not None and self.idf is not None:
            weigh.idf_, weigh.n_features_in_ = self.idf, len(self.idf)
        return count, weigh

    def fit_transform(self, texts: list[str]) -> Any:
        """Learn the terms, and count them."""
        count, weigh = self._parts
        X = count.fit_transform(self._hashable(texts))
        if self.n_hashed is None:
            self.terms = count.get_feature_names_out().tolist()
        if weigh is not None:
            X = weigh.fit_transform(X)
            self.idf = np.asarray(weigh.idf_)
        return X

    def counted(self, texts: list[str]) -> tuple[Any, list[str] | None]:
        """The counts of all terms of some texts, and these terms unless they are hashed."""
        every = replace(self, terms=None, idf=None, min_count=1, max_features=None)
        count, _ = every._parts
        if self.n_hashed is not None:
            return count.transform(self._hashable(texts)), None
        try:
            return count.fit_transform(texts), count.get_feature_names_out().tolist()
        except ValueError as error:
            if "empty vocabulary" not in str(error):
                raise
            return sparse.csr_array((len(texts), 0)), []

    def transform(self, texts: list[str]) -> Any:
        """Count the terms that were learned."""
        count, weigh = self._parts
        X = count.transform(self._hashable(texts))
        return X if weigh is None else weigh.transform(X)

    def _hashable(self, texts: list[str]) -> list[str]:
        """Halves of pairs of surrogates have no bytes to be hashed: they become question marks."""
        if self.n_hashed is None:
            return texts
        return [text.encode(errors="replace").decode() for text in texts]

    def names(self, kind: str) -> list[str]:
        """The names of the columns."""
        if self.n_hashed is not None:
            return [f"{kind} hash {k}" for k in range(self.n_hashed)]
        return [f"{kind} {term!r}" for term in self.terms or []]

    def explain(self, kind: str) -> str:
        """A line about the columns."""
        count = self.n_hashed or len(self.terms or [])
        hashed = ", hashed" if self.n_hashed else ""
        return f"{kind}: {count:,} columns, runs of {self.shortest} to {self.longest}{hashed}"


_WEIGHTS = StrOptions({"tfidf", "counts", "binary"})


def read_texts(X: Any, what: str = "texts") -> list[str]:
    """A sequence, a Series or a table of one column as a list of texts; missing ones are empty."""
    if isinstance(X, str | bytes):
        raise ValueError(f"A sequence of {what} is needed, got a single text. Put it into a list.")
    if hasattr(X, "columns") and hasattr(X, "shape") and len(X.shape) == 2:
        if X.shape[1] != 1:
            raise ValueError(
                f"One column of {what} is needed, got a table of {X.shape[1]}. TableFeatures takes "
                "tables with several."
            )
        X = X[next(iter(_names(X)))]
    if len(getattr(X, "shape", (0,))) == 2 and X.shape[1] != 1:  # an array, or a sparse matrix
        raise ValueError(
            f"A sequence of {what} is needed, got {type(X).__name__} of shape {X.shape}. Choose "
            "one column; if these are numbers already, leave this step out."
        )
    if hasattr(X, "to_pylist"):  # Arrow
        X = X.to_pylist()
    values = list(X)
    if values and isinstance(values[0], list | tuple | np.ndarray) and len(values[0]) == 1:
        values = [row[0] for row in values]
    return [_text(value, i) for i, value in enumerate(values)]


def _names(X: Any) -> Iterable[Any]:
    return X.column_names if hasattr(X, "column_names") else X.columns


def _text(value: Any, row: int) -> str:
    if isinstance(value, str):
        return str(value)
    # None, NaN and pandas' NA, whose comparison with itself is neither true nor false
    if value is None or value != value or str(value) == "<NA>":
        return ""
    raise ValueError(
        f"Row {row} is not a text but {type(value).__name__} ({value!r}). Convert it with str(), "
        "or decode bytes."
    )


@dataclass(frozen=True)
class _Reader:
    """Calls a program from outside with texts as they are written, and checks what it gives."""

    kind: str
    read: Callable[[str], Sequence[str]]
    lowercase: bool

    def __call__(self, text: str) -> list[str]:
        found = self.read(text)
        if isinstance(found, str) or not all(isinstance(one, str) for one in found):
            raise TypeError(
                f"What reads each {self.kind} must give a list of str; of {text[:40]!r} it gave "
                f"{found!r}."
            )
        lower = self.lowercase and self.kind != "tag"
        return [one.lower() for one in found] if lower else list(found)


@parameters()
class TextFeatures(TransformerMixin, BaseEstimator):
    """Occurrences of words and of pieces of words, and numbers about the style of a text.

    Parameters
    ----------
    words : {"tfidf", "counts", "binary"} or None, default="tfidf"
        What a word is worth: its count times log((1 + n) / (1 + documents with it)) + 1, each text
        scaled to length one; its count; or whether it occurs.
    word_ngrams : tuple (shortest, longest), default=(1, 1)
        Runs of words that are features.
    characters : tuple (shortest, longest) or None, default=None
        Runs of characters inside words that are features, worth the same way: pieces of words
        stand for spellings and endings.
    n_hashed : int or None, default=None
        If given, words and characters have this many columns by a hash of each, and no vocabulary
        is kept.
    style : bool, default=False
        Length, words, sentences, shares of punctuation, digits and capitals, numbers, ...
    vocabulary : collection of str or None, default=None
        Words that are spelled correctly; adds the count and the share of words that are not in it.
    min_count : int, default=1
        In how many texts a word must occur.
    max_features : int or None, default=None
        The most frequent words, and as many runs of characters.
    lowercase : bool, default=True
        Whether the case of words and characters is ignored.
    tokenizer, lemmas, tags : callable, optional
        From a text to a list of str: its words, by default runs of letters and digits; their
        lemmas; their parts of speech. Lemmas and tags are counted beside the words, in runs of the
        same lengths. Any program will do; ``words=None`` leaves the words themselves out.

    Attributes
    ----------
    n_features_in_ : int

    Examples
    --------
    >>> from trueline import TextFeatures
    >>> texts = ["The cat sat.", "The dog sat! Twice!"]
    >>> counts = TextFeatures("counts", style=True)
    >>> X = counts.fit_transform(texts)
    >>> names = list(counts.get_feature_names_out())
    >>> names[:4]
    ["word 'cat'", "word 'dog'", "word 'sat'", "word 'the'"]
    >>> float(X[1, names.index("exclamation marks")])
    2.0
    >>> def tag(text):
    ...     return ["DET" if word in ("the", "a") else "OTHER" for word in text.lower().split()]
    >>> TextFeatures(None, tags=tag, word_ngrams=(2, 2)).fit(texts).get_feature_names_out().tolist()
    ["tag 'DET OTHER'", "tag 'OTHER OTHER'"]
    """

    words: str | None = given("tfidf", _WEIGHTS, None)
    _: KW_ONLY
    word_ngrams: tuple[int, int] = given((1, 1), tuple, list)
    characters: tuple[int, int] | None = given(None, tuple, list, None)
    n_hashed: int | None = given(None, "int [1, inf)", None)
    style: bool = False
    vocabulary: Any = given(None, "no_validation")
    min_count: int = given(1, "int [1, inf)")
    max_features: int | None = given(None, "int [1, inf)", None)
    lowercase: bool = True
    tokenizer: Any = given(None, callable, None)
    lemmas: Any = given(None, callable, None)
    tags: Any = given(None, callable, None)

    @reads_batches
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the words.

        Parameters
        ----------
        X : sequence of str, table of one column, or rows of :func:`trueline.open` with one column
        y : ignored

        Returns
        -------
        self : object
        """
        if isinstance(X, Batches):
            self._learn_batches(X)
        else:
            self.fit_transform(X)
        return self

    def _learn_batches(self, rows: Batches) -> None:
        """Learn the words in one pass."""
        self._prepare()
        terms = {kind: Terms(counter) for kind, counter in self._counters.items()}
        for column in texts_of(rows):
            texts = read_texts(column)
            for own in terms.values():
                own.add(texts)
        for kind, own in terms.items():
            if not own.finish():
                del self._counters[kind]
        self._check_something_is_left()

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn the words, and count them.

        Parameters
        ----------
        X : sequence of str, table of one column, or rows of :func:`trueline.open` with one column
        y : ignored

        Returns
        -------
        features : sparse matrix, or array with style only, of shape (n, m)
        """
        if isinstance(X, Batches):
            return self.fit(X).transform(X)
        self._validate_params()
        texts = read_texts(X)
        if not texts:
            raise ValueError("There are no texts to learn from.")
        self._prepare()
        parts = []
        for kind, counter in list(self._counters.items()):
            try:
                parts.append(counter.fit_transform(texts))
            except ValueError as error:
                if "vocabulary" not in str(error) and "no terms remain" not in str(error).lower():
                    raise
                del self._counters[kind]  # texts without any word have no columns of words
        self._check_something_is_left()
        return self._join(parts, texts)

    def transform(self, X: Any) -> Any:
        """Count the words that were learned, in other texts.

        Parameters
        ----------
        X : sequence of str, table of one column, or rows of :func:`trueline.open` with one column

        Returns
        -------
        features : sparse matrix, or array with style only, of shape (n, m)
            Of rows in batches: what ``fit`` and the other methods of a model take.
        """
        check_is_fitted(self)
        if isinstance(X, Batches):
            return counted_rows(X, self)
        texts = read_texts(X)
        return self._join([counter.transform(texts) for counter in self._counters.values()], texts)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The name of every column: ``word 'house'``, ``characters 'ing'``, ``share of digits``.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : array of str
        """
        check_is_fitted(self)
        names: list[str] = []
        for kind, counter in self._counters.items():
            names += counter.names(kind)
        names += list(STYLE) * self.style
        names += list(MISSPELLING) * (self.vocabulary is not None)
        return np.array(names, dtype=object)

    @shown_as_text
    def explain(self) -> str:
        """What the columns are, in words."""
        names = self.get_feature_names_out()
        lines = [f"TextFeatures: {len(names):,} columns"]
        lines += [counter.explain(kind) for kind, counter in self._counters.items()]
        if self.style:
            lines.append(f"style: {', '.join(STYLE)}")
        if self.vocabulary is not None:
            lines.append(f"spelling: against {len(self.vocabulary):,} words")
        return "\n".join(lines)

    def _prepare(self) -> None:
        """What is known before the texts are read."""
        self._validate_params()
        self.n_features_in_ = 1
        self._counters = self._make_counters()
        if not (self._counters or self.style or self.vocabulary is not None):
            raise ValueError(
                "No feature is asked for: set words, characters, lemmas, tags, style or vocabulary."
            )

    def _make_counters(self) -> dict[str, Counter]:
        """One for words, lemmas, tags and characters each, as they are asked for."""
        runs = {
            "word": self.word_ngrams if self.words else None,
            "lemma": self.word_ngrams if self.lemmas else None,
            "tag": self.word_ngrams if self.tags else None,
            "characters": self.characters,
        }
        readers = {"word": self.tokenizer, "lemma": self.lemmas, "tag": self.tags}
        return {
            kind: Counter(
                "word" if kind in readers else "char_wb",
                *_run(kind, run),
                weights=self.words or "tfidf",
                lowercase=self.lowercase,
                min_count=self.min_count,
                max_features=self.max_features,
                n_hashed=self.n_hashed,
                read=_Reader(kind, read, self.lowercase) if (read := readers.get(kind)) else None,
            )
            for kind, run in runs.items()
            if run is not None
        }

    def _check_something_is_left(self) -> None:
        if not (self._counters or self.style or self.vocabulary is not None):
            raise ValueError(
                f"No word is left: the texts hold none that occurs in {self.min_count} of them."
            )

    def _join(self, parts: list[Any], texts: list[str]) -> Any:
        numbers = []
        if self.style:
            numbers.append(style(texts))
        if self.vocabulary is not None:
            numbers.append(misspelling(texts, self.vocabulary))
        if not parts:
            return np.hstack(numbers)
        joined = sparse.hstack([*parts, *numbers], format="csr", dtype=np.float64)
        # DataFrames that scikit-learn was asked for cannot hold sparse matrices.
        default = _get_output_config("transform", self)["dense"] == "default"
        return joined if default else joined.toarray()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _run(kind: str, run: Any) -> tuple[int, int]:
    if len(run) != 2 or not all(isinstance(k, Integral) for k in run) or not 1 <= run[0] <= run[1]:
        parameter = "characters" if kind == "characters" else "word_ngrams"
        raise ValueError(
            f"{parameter} must be (shortest, longest) with 1 <= shortest, got {run!r}."
        )
    return int(run[0]), int(run[1])
