"""``TranslationFeatures``: how good a translation may be, without a reference to compare it to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.features.annotations import LECTURE, Annotations
from trueline.features.text import read_texts
from trueline.features.translation_models import (
    SURFACE,
    Corpus,
    LanguageModel,
    Scores,
    Vocabulary,
    given_lexicon,
    learn_lexicon,
    surface,
)
from trueline.wording import shown_as_text

Array = NDArray[np.float64]

# A word has so many translations: those with at least this probability.
_THRESHOLDS = (0.2, 0.01)
_QUARTERS = ("rarest quarter", "second quarter", "third quarter", "most frequent quarter", "unseen")
_LEXICON = (
    "translations per source word (p > 0.2)",
    "translations per source word (p > 0.01)",
    "translations per rare source word (p > 0.01)",
    "log p(target | source) per token",
    "log p(source | target) per token",
    "share of target tokens without a source",
    "share of source tokens without a target",
)
# A sentence of one word repeated twenty times should not decide alone; tails of the normal
# distribution end here in any table of fewer than ten thousand rows.
_FARTHEST = 4.0
# What a translating system may report, as further columns of the table.
_SYSTEM = ("n-best size", "score", "phrases", "pruned nodes", "recombined nodes")
_WITHOUT = 0.01  # no word of the other side explains the token with this probability


@dataclass
class Side:
    """What was learned of one language."""

    vocabulary: Vocabulary
    model: LanguageModel
    own: bool  # whether the model was learned from the pairs themselves


@parameters()
class TranslationFeatures(TransformerMixin, BaseEstimator):
    """Numbers about a source text and its translation, for estimating the translation's quality.

    They need no reference translation: token counts of both sides and their ratio; probabilities
    of both under language models of runs of words; the share of runs in each quarter of frequency
    (rare words are hard to translate); punctuation and numbers of both sides; how many
    translations the words of the source have; how well each side is explained by the other.

    Counts and lexicon are learned from the rows of ``fit`` unless other texts are given. Rows of
    ``fit`` would then look better than new rows, which have not been counted. ``fit_transform``
    therefore leaves each row out of the counts by which it is scored, in the language models
    exactly, in the lexicon up to the last step of its iteration; it is not ``fit`` followed by
    ``transform``.

    Parameters
    ----------
    source_corpus, target_corpus : sequence of str, optional
        Texts from which the language models learn; by default the two sides of the pairs.
    lexicon : dict of str, optional
        Source word -> list of translations, or dict of translations and their probabilities. By
        default learned from the pairs (model 1 of Brown et al., 1993).
    order : int, default=3
        The longest runs of words.
    rounds : int, default=5
        Of expectation-maximisation for the lexicon.
    source_text, target_text : transformer, optional
        Of texts, such as ``TextFeatures()``: its columns stand beside those of the pair.
    annotations : dict of str to (callable or None, callable or None), optional
        What programs from outside read in the source and in the target: a function from a text to a
        list of str. ``"part of speech"``, ``"dependency"``, ``"entity"`` and ``"phrase"`` are those
        of lectures; any other name will do. Columns are how many labels each side has, how often
        each of the fifty most frequent ones occurs, the ratio of target to source, and the same of
        content words (nouns, verbs, adjectives, adverbs) where ``"part of speech"`` tells them.
    standardize : bool, default=True
        The columns of pairs to mean zero and variance one, so that a penalty treats them alike;
        values more than four standard deviations off are moved to four. Beside columns of words
        they are divided by the square root of their number, so that a row of them weighs as much
        as a row of tf-idf, one.

    Attributes
    ----------
    n_features_in_ : int

    Examples
    --------
    >>> from trueline import TranslationFeatures
    >>> pairs = [("the house", "das Haus"), ("a house", "ein Haus"), ("the cat", "die Katze")]
    >>> features = TranslationFeatures(standardize=False).fit(pairs)
    >>> X = features.transform([("the house is old", "das Haus")])
    >>> dict(zip(features.get_feature_names_out()[:3], X[0, :3].tolist()))
    {'source tokens': 4.0, 'target tokens': 2.0, 'target tokens per source token': 0.5}
    >>> print(features.explain().splitlines()[-2])
    not given as annotations: part of speech, dependency, entity, phrase
    """

    _: KW_ONLY
    source_corpus: Any = given(None, "no_validation")
    target_corpus: Any = given(None, "no_validation")
    lexicon: dict[str, Any] | None = given(None, dict, None)
    order: int = given(3, "int [1, 5]")
    rounds: int = given(5, "int [1, inf)")
    source_text: Any = given(None, "no_validation")
    target_text: Any = given(None, "no_validation")
    annotations: dict[str, Any] | None = given(None, dict, None)
    standardize: bool = True

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn language models and lexicon.

        Parameters
        ----------
        X : sequence of pairs (source, target), or table with these as its first columns
            Further columns of a table are numbers that come with the pairs, such as the
            confidence of the translating system.
        y : ignored

        Returns
        -------
        self : object
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn, and describe each row by what the other rows teach.

        Parameters
        ----------
        X : sequence of pairs (source, target), or table with these as its first columns
            Further columns of a table are numbers that come with the pairs, such as the
            confidence of the translating system.
        y : ignored

        Returns
        -------
        features : array, or sparse matrix if there are columns of words
        """
        self._validate_params()
        pairs = read_pairs(X)
        sources, targets = pairs.sources, pairs.targets
        if not sources:
            raise ValueError("There are no pairs to learn from.")
        self.n_features_in_ = 2 + len(pairs.names)
        self._more = pairs.names
        self._annotations = Annotations.checked(self.annotations)
        for kind in self._annotations:
            kind.learn((sources, targets))
        self._source = self._side(sources, self.source_corpus, (self.lexicon or {}).keys())
        words = [word for value in (self.lexicon or {}).values() for word in value]
        self._target = self._side(targets, self.target_corpus, words)
        read = self._read(sources, targets)
        scores = self._learn_lexicons(*read)
        numbers = self._numbers(pairs, read, scores)
        self._mean, self._spread = np.zeros(numbers.shape[1]), np.ones(numbers.shape[1])
        if self.standardize:
            self._mean, spread = numbers.mean(axis=0), numbers.std(axis=0)
            self._spread = np.where(spread > 0, spread, 1.0)
        self._texts = {}
        parts = []
        for side, transformer, texts in (
            ("source", self.source_text, sources),
            ("target", self.target_text, targets),
        ):
            if transformer is not None:
                self._texts[side] = clone(transformer)
                parts.append(self._texts[side].fit_transform(texts))
        return self._join(numbers, parts)

    def transform(self, X: Any) -> Any:
        """Describe other pairs.

        Parameters
        ----------
        X : sequence of pairs (source, target), or table with these as its first columns
            Further columns of a table are numbers that come with the pairs, such as the
            confidence of the translating system.

        Returns
        -------
        features : array, or sparse matrix if there are columns of words
        """
        check_is_fitted(self, "n_features_in_")
        pairs = read_pairs(X)
        if pairs.names != self._more:
            raise ValueError(
                f"Besides the texts, fit saw the columns {self._more}, but this table has "
                f"{pairs.names}."
            )
        numbers = self._numbers(pairs, self._read(pairs.sources, pairs.targets), None)
        chosen = {"source": pairs.sources, "target": pairs.targets}
        parts = [fitted.transform(chosen[side]) for side, fitted in self._texts.items()]
        return self._join(numbers, parts)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The name of every column.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : array of str
        """
        check_is_fitted(self, "n_features_in_")
        names = list(SURFACE)
        for side in ("source", "target"):
            names += [f"{side} log probability", f"{side} log probability per token"]
            names += [
                f"{side} runs of {k}: {quarter}"
                for k in range(1, self.order + 1)
                for quarter in _QUARTERS
            ]
        names += [*_LEXICON, *(name for kind in self._annotations for name in kind.names())]
        names += self._more
        for side, fitted in self._texts.items():
            names += [f"{side}: {name}" for name in fitted.get_feature_names_out()]
        return np.array(names, dtype=object)

    @shown_as_text
    def explain(self) -> str:
        """What was learned, in words."""
        names = self.get_feature_names_out()
        how = "given" if self.lexicon is not None else "learned from the pairs"
        lines = [f"TranslationFeatures: {len(names):,} columns"]
        for name, side in (("source", self._source), ("target", self._target)):
            learned = "the pairs" if side.own else "the given texts"
            weights = ", ".join(f"{weight:.2f}" for weight in side.model.weights)
            lines.append(
                f"{name}: {len(side.vocabulary.number):,} words, runs of up to {self.order} from "
                f"{learned}; weights of unseen words and runs of 1, 2, ...: {weights}"
            )
        lines.append(f"lexicon: {len(self._forward.keys):,} pairs of words, {how}")
        given = {kind.name for kind in self._annotations}
        told = {name.lower().replace("_", " ") for name in self._more}
        absent = {
            "annotations": [name for name in LECTURE if name not in given],
            "columns of the table": [name for name in _SYSTEM if name not in told],
        }
        lines += [f"not given as {w}: {', '.join(names)}" for w, names in absent.items() if names]
        return "\n".join(lines)

    def _side(self, texts: list[str], corpus: Any, more: Any) -> Side:
        known = texts if corpus is None else read_texts(corpus)
        vocabulary = Vocabulary.learn([*known, *texts, *more])
        model = LanguageModel.learn(vocabulary.read(known), len(vocabulary), self.order)
        return Side(vocabulary, model, corpus is None)

    def _read(self, sources: Sequence[str], targets: Sequence[str]) -> tuple[Corpus, Corpus]:
        return self._source.vocabulary.read(sources), self._target.vocabulary.read(targets)

    def _learn_lexicons(self, source: Corpus, target: Corpus) -> list[Scores]:
        """Both directions; the scores of each row as left out."""
        sizes = len(self._source.vocabulary), len(self._target.vocabulary)
        self._backward, back = learn_lexicon(target, source, sizes[0], self.rounds)
        if self.lexicon is None:
            self._forward, there = learn_lexicon(source, target, sizes[1], self.rounds)
        else:
            words = self._source.vocabulary, self._target.vocabulary
            self._forward = given_lexicon(self.lexicon, *words)
            there = self._forward.scores(source, target)
        return [there, back]

    def _numbers(
        self, pairs: Pairs, read: tuple[Corpus, Corpus], left_out: list[Scores] | None
    ) -> Array:
        """All columns but those of words; rows of ``fit`` come with scores as left out."""
        learning = left_out is not None
        parts = [surface(pairs.sources, pairs.targets)]
        for side, corpus in zip((self._source, self._target), read):
            out = learning and side.own
            logs = side.model.log_probabilities(corpus, out)
            mean = corpus.mean(logs)
            parts += [np.column_stack([mean * corpus.lengths, mean])]
            parts += [side.model.quartile_shares(corpus, out)]
        scores = left_out or [
            self._forward.scores(*read),
            self._backward.scores(read[1], read[0]),
        ]
        parts.append(self._translations(read[0], learning and self.lexicon is None))
        parts.append(self._explained(*read, scores))
        parts += [kind.columns((pairs.sources, pairs.targets)) for kind in self._annotations]
        return np.hstack([*parts, pairs.numbers])

    def _translations(self, source: Corpus, leave_out: bool) -> Array:
        """How many translations the source words have; none if only this row taught them."""
        counts = self._source.model.counts(source, leave_out and self._source.own)[0]
        size = len(self._source.vocabulary)
        many = [
            np.where((counts > 0) | (not leave_out), row[source.ids], 0.0)
            for row in (self._forward.translations(p, size) for p in _THRESHOLDS)
        ]
        rarity = 1.0 / np.maximum(counts, 1.0)
        weight = source.mean(rarity)
        rare = source.mean(many[1] * rarity) / np.where(weight > 0, weight, 1.0)
        return np.column_stack([*(source.mean(count) for count in many), rare])

    def _explained(self, source: Corpus, target: Corpus, scores: list[Scores]) -> Array:
        """How well each side is explained by the other."""
        (there, best_there), (back, best_back) = scores
        return np.column_stack(
            [
                target.mean(there),
                source.mean(back),
                target.mean((best_there < _WITHOUT).astype(np.float64)),
                source.mean((best_back < _WITHOUT).astype(np.float64)),
            ]
        )

    def _join(self, numbers: Array, parts: list[Any]) -> Any:
        numbers = (numbers - self._mean) / self._spread
        if self.standardize:
            numbers = np.clip(numbers, -_FARTHEST, _FARTHEST)
        if not parts:
            return numbers
        if self.standardize:
            numbers /= np.sqrt(numbers.shape[1])
        joined = sparse.hstack([numbers, *parts], format="csr", dtype=np.float64)
        default = _get_output_config("transform", self)["dense"] == "default"
        return joined if default else joined.toarray()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags


@dataclass
class Pairs:
    """Sources, targets, and numbers that came with them."""

    sources: list[str]
    targets: list[str]
    numbers: Array
    names: list[str]


def read_pairs(X: Any) -> Pairs:
    """The two sides of pairs of texts, and the further columns of a table as numbers."""
    if hasattr(X, "columns") and hasattr(X, "shape"):
        names = list(X.column_names if hasattr(X, "column_names") else X.columns)
        if len(names) < 2:
            raise ValueError("A table of source and target is needed, got one column.")
        sources, targets = read_texts(X[names[0]]), read_texts(X[names[1]])
        columns = [np.asarray(X[name], dtype=np.float64) for name in names[2:]]
    else:
        rows = list(X)
        if any(isinstance(row, str) or len(row) != 2 for row in rows):
            raise ValueError("Pairs (source, target) are needed, or a table with both columns.")
        sources, targets = read_texts([r[0] for r in rows]), read_texts([r[1] for r in rows])
        names, columns = [], []
    numbers = np.column_stack(columns) if columns else np.zeros((len(sources), 0))
    if not np.isfinite(numbers).all():
        raise ValueError("Numbers beside the texts must be finite.")
    return Pairs(sources, targets, numbers, [str(name) for name in names[2:]])
