"""``TableFeatures`` and ``design_matrix``: one table in, one design out.

Numbers, categories, booleans, dates and texts become one matrix; a column that gives the target
away is said.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from trueline.errors import TableError
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.validation import reads_batches
from trueline.features.base import DesignMatrix, grouped_by_source
from trueline.features.tables.assembly import assemble
from trueline.features.tables.batches import EncodedRows
from trueline.features.tables.columns import (
    KINDS,
    TableColumn,
    find_column,
    guess_kind,
    read_columns,
)
from trueline.features.tables.encoders import Booleans, Categories, Dates, Encoder, Numbers, Texts
from trueline.streams import Batches
from trueline.wording import counted, shown_as_text

# Rows looked at first: columns that do not give the target away there, and that is nearly all of
# them, need no look at the rest.
_FIRST = 2_000
# A level per few rows tells classes apart by chance; so many rows per level do not.
_ROWS_PER_LEVEL = 3
_CORRELATION = 1.0 - 1e-9
_CLASSES = ("binary", "multiclass")
# With fewer rows agreement is no surprise: a column splits ten rows of one class from ten others
# by chance once in 92,378 tables, but four from four once in 35.
_ROWS = 8
_ROWS_FOR_ORDER = 20


def gives_away(column: TableColumn, kind: str, y: NDArray[np.generic]) -> str:
    """How a column determines the target on all rows; empty if it does not.

    Looks for a copy of the target up to a monotone transformation, for a number that splits two
    classes without a mistake, and for categories within which the target never varies.
    """
    if y.ndim != 1 or len(y) < _ROWS or len(np.unique(y[:_FIRST])) < 2:
        return ""
    if kind == "number":
        return _number(column, y)
    if kind in ("category", "boolean", "date"):
        return _levels(column, y)
    return ""


def _number(column: TableColumn, y: NDArray[np.generic]) -> str:
    with np.errstate(invalid="ignore"):  # numbers too large to be whole ones
        is_class = y.dtype.kind not in "fiub" or type_of_target(y[:_FIRST]) in _CLASSES
    if is_class:
        codes = np.unique(y, return_inverse=True)[1].astype(np.float64)
    else:
        codes = y.astype(np.float64)
    said = ""
    for rows in (slice(_FIRST), slice(None)):
        x, t = column.numbers[rows], codes[rows]
        present = ~np.isnan(x)
        x, t = x[present], t[present]
        if len(x) < _ROWS or x.min() == x.max() or t.min() == t.max():
            return ""
        said = _same_order(x, t)
        if not said:
            return ""
    return said


def _same_order(x: NDArray[np.float64], t: NDArray[np.float64]) -> str:
    # Large numbers are brought to one, whose squares do not overflow.
    if abs(np.corrcoef(_scaled(x), _scaled(t))[0, 1]) > _CORRELATION:
        return "it is the target, or a multiple of it"
    order = np.argsort(x, kind="stable")
    values, sorted_t = x[order], t[order]
    starts = np.flatnonzero(np.r_[True, values[1:] > values[:-1]])
    low, high = np.minimum.reduceat(sorted_t, starts), np.maximum.reduceat(sorted_t, starts)
    rising, falling = (low[1:] >= high[:-1]).all(), (high[1:] <= low[:-1]).all()
    # Equal values must have equal targets, or the column is a coarse cousin and no copy.
    if not (rising or falling) or not (low == high).all() or len(t) < _ROWS_FOR_ORDER:
        return ""
    if len(np.unique(t)) == 2:
        return "it splits the classes without a mistake"
    return "it has the order of the target"


def _scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    largest = float(np.abs(values).max())
    return values / largest if 1.0 < largest < np.inf else values


def _levels(column: TableColumn, y: NDArray[np.generic]) -> str:
    codes, _ = column.coded
    classes = np.unique(y, return_inverse=True)[1]
    for rows in (slice(_FIRST), slice(None)):
        c, t = codes[rows] + 1, classes[rows]
        used = len(np.unique(c))
        if used < 2 or len(c) < _ROWS_PER_LEVEL * used:
            return ""
        first = np.full(int(c.max()) + 1, -1)
        first[c[::-1]] = t[::-1]
        if (first[c] != t).any():
            return ""
    return "within each of its values the target never varies"


# A text category of which nearly every row has its own value is a name or a number of the row.
_IDENTIFIER_SHARE = 0.9
_IDENTIFIER_ROWS = 50


@parameters()
class TableFeatures(TransformerMixin, BaseEstimator):
    """Numbers, categories, booleans, dates and texts of a table as one matrix with named columns.

    ===========  ===============================================================================
    a column of  becomes
    ===========  ===============================================================================
    numbers      itself; missing values the mean, and a column ``age is missing``. Texts such as
                 $4,733, 12.5 % and 0.31 are numbers; texts of digits alone may be codes and are
                 categories
    booleans     itself; missing values 0, and a column ``smoker is missing``
    categories   ``city=Rome``, ``city=Oslo``, ...; rare levels share ``city=(other)``; missing
                 values are a level, ``city=(missing)``
    dates        years since the first date, sine and cosine of the year (and of the day, if there
                 are times), one column per weekday. Texts such as 2024-05-31 are dates
    texts        what ``text`` makes of them; by default tf-idf of words
    ===========  ===============================================================================

    A category is a text that repeats, a text of several words that does not is free text. Columns
    that hold nothing a linear model could use are left out, with a reason in ``dropped_``: without
    any value, with one value only, texts that differ in nearly every row (names, identifiers).

    Parameters
    ----------
    columns : dict of str to str, optional
        The kind of some columns: "number", "boolean", "category", "date", "text" or "drop". The
        others are guessed.
    max_levels : int, default=10_000
        The most frequent levels of a category that have a column of their own.
    min_count : int, default=1
        How often a level must occur for a column of its own.
    n_hashed : int, default=0
        If positive, rare and unknown levels share this many columns by a hash of their text
        instead of one column.
    unknown : {"ignore", "error"}, default="ignore"
        Levels that ``fit`` has not seen go to the column of rare levels, or have zeros in all
        columns where there is none; or they are refused.
    dates_outside : {"clip", "extrapolate", "error"}, default="clip"
        Dates outside the range seen by ``fit``: their trend is that of the end of the range, with
        a warning if they are farther off than a tenth of it; or the trend goes on; or they are
        refused. Season and weekday know no range.
    text : transformer, optional
        Of a sequence of texts; a ``TextFeatures()`` with at most 5,000 words by default.
    standardize : bool, default=False
        Numbers to mean zero and variance one, for penalties that should treat them alike.
    drop_first : bool, default=False
        Leave out the first level of each category, for models without a penalty, in which the
        columns of all levels add up to the intercept.
    leakage : {"warn", "drop", "error", "ignore"}, default="warn"
        What to do about a column that gives the target away: a copy of it up to a monotone
        transformation, a number that splits two classes without a mistake, categories within
        which the target never varies. Looked for if ``fit`` is given y.
    sparse_threshold : float, default=0.3
        The design is sparse if less than this share of it is not zero.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64

    Attributes
    ----------
    sources_ : array of str
        For each column of the design, the column of the table that it comes from.
    kinds_ : dict of str to str
        The kind of each column of the table that is used.
    dropped_ : dict of str to str
        Columns of the table that are not used, and why.
    leaks_ : dict of str to str
        Columns that give the target away, and how.
    sparse_output_ : bool
    feature_names_in_ : array of str
    n_features_in_ : int

    Examples
    --------
    >>> import pandas as pd
    >>> from trueline import TableFeatures
    >>> table = pd.DataFrame(
    ...     {
    ...         "size": [50.0, None, 80.0],
    ...         "city": ["Rome", "Oslo", "Rome"],
    ...         "lift": [True, False, True],
    ...     }
    ... )
    >>> features = TableFeatures()
    >>> features.fit_transform(table)
    array([[50.,  0.,  0.,  1.,  1.],
           [65.,  1.,  1.,  0.,  0.],
           [80.,  0.,  0.,  1.,  1.]])
    >>> list(features.get_feature_names_out())
    ['size', 'size is missing', 'city=Oslo', 'city=Rome', 'lift']
    >>> list(features.sources_)
    ['size', 'size', 'city', 'city', 'lift']
    """

    columns: dict[str, str] | None = given(None, dict, None)
    _: KW_ONLY
    max_levels: int = given(10_000, "int [1, inf)")
    min_count: int = given(1, "int [1, inf)")
    n_hashed: int = given(0, "int [0, inf)")
    unknown: str = given("ignore", one_of("ignore", "error"))
    dates_outside: str = given("clip", one_of("clip", "extrapolate", "error"))
    text: Any = given(None, "no_validation")
    standardize: bool = False
    drop_first: bool = False
    leakage: str = given("warn", one_of("warn", "drop", "error", "ignore"))
    sparse_threshold: float = given(0.3, "[0, 1]")
    dtype: Any = given(np.float64, "no_validation")

    @reads_batches
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what becomes of each column.

        Parameters
        ----------
        X : DataFrame (pandas, polars, Arrow, ...), dict of columns, array of shape (n, d), or rows
            of :func:`trueline.open`
        y : array-like of shape (n,) or (n, k), optional
            Only to detect columns that give the target away; not where targets are missing.

        Returns
        -------
        self : object
        """
        self._learn(read_columns(X), _target_of(X, y))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn what becomes of each column, and do it; categories are read only once.

        Parameters
        ----------
        X : DataFrame (pandas, polars, Arrow, ...), dict of columns, array of shape (n, d), or rows
            of :func:`trueline.open`
        y : array-like of shape (n,) or (n, k), optional

        Returns
        -------
        features : array or sparse matrix of shape (n, m)
        """
        if isinstance(X, Batches):
            return self.fit(X, y).transform(X)
        columns = read_columns(X)
        self._learn(columns, y)
        return self._design(columns)

    def transform(self, X: Any) -> Any:
        """The design of another table, with the same columns in any order.

        Parameters
        ----------
        X : DataFrame (pandas, polars, Arrow, ...), dict of columns, array of shape (n, d), or rows
            of :func:`trueline.open`

        Returns
        -------
        features : array or sparse matrix of shape (n, m)
        """
        check_is_fitted(self)
        if isinstance(X, Batches):
            return EncodedRows(X, self.transform, len(self.sources_), self.dtype)
        return self._design(read_columns(X))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The name of every column of the design.

        Parameters
        ----------
        input_features : ignored
            The names of the columns of the table are known.

        Returns
        -------
        names : array of str
        """
        check_is_fitted(self)
        return np.array([name for e in self._encoders for name in e.names], dtype=object)

    def by_source(self, coefficients: Any) -> dict[str, dict[str, float]]:
        """Coefficients of a model on this design, grouped by the column of the table.

        Parameters
        ----------
        coefficients : array-like of shape (m,)

        Returns
        -------
        groups : dict of str to dict of str to float
            Column of the table -> name of the feature -> coefficient.
        """
        return grouped_by_source(self.get_feature_names_out(), self.sources_, coefficients)

    @shown_as_text
    def explain(self) -> str:
        """What became of each column, in words."""
        check_is_fitted(self)
        total = len(self.sources_)
        layout = "sparse" if self.sparse_output_ else "dense"
        taken = counted(self.n_features_in_, "column")
        lines = [f"TableFeatures: {taken} in, {total:,} out, {layout}"]
        for encoder in self._encoders:
            notes = "".join(f"; {note}" for note in encoder.notes)
            made = counted(len(encoder.names), "column")
            lines.append(f"{encoder.name}: {encoder.kind}, {made}{notes}")
        lines += [f"{name}: left out, {reason}" for name, reason in self.dropped_.items()]
        lines += [f"{name}: gives the target away, {how}" for name, how in self.leaks_.items()]
        return "\n".join(lines)

    def _learn(self, columns: list[TableColumn], y: Any) -> None:
        self._validate_params()
        if not len(columns[0]):
            raise TableError("The table has no rows.")
        self.feature_names_in_ = np.array([column.name for column in columns], dtype=object)
        self.n_features_in_ = len(columns)
        self.dropped_: dict[str, str] = {}
        self.leaks_: dict[str, str] = {}
        self._encoders: list[Encoder] = []
        kinds = {}
        for column in columns:
            kinds[column.name] = self._kind(column)
            column.release()
        for name in self.columns or {}:
            find_column(columns, name)
        self._find_leaks(columns, kinds, y)
        for column in columns:
            if column.name not in self.dropped_:
                self._encoders.append(self._encoder(column, kinds[column.name]))
                column.release()
        if not self._encoders:
            said = "; ".join(f"{name}: {reason}" for name, reason in self.dropped_.items())
            raise TableError(f"No column of the table can be used. {said}.")
        self.kinds_ = {encoder.name: encoder.kind for encoder in self._encoders}
        sources = [[encoder.name] * len(encoder.names) for encoder in self._encoders]
        self.sources_ = np.array([name for group in sources for name in group], dtype=object)
        density = sum(encoder.entries for encoder in self._encoders) / len(self.sources_)
        self.sparse_output_ = density < self.sparse_threshold

    def _kind(self, column: TableColumn) -> str:
        """The kind of a column; one that is left out is noted with its reason."""
        given = (self.columns or {}).get(column.name)
        if given is not None and given not in (*KINDS, "drop"):
            raise ValueError(
                f"The kind of column {column.name!r} must be one of {', '.join(KINDS)} or drop, "
                f"got {given!r}."
            )
        kind = given or guess_kind(column)
        reason = ""
        if given == "drop":
            reason = "as asked"
        elif column.all_missing or (kind == "number" and np.isnan(column.numbers).all()):
            reason = "no value at all"
        elif kind not in KINDS:
            reason = kind
        elif given is None:
            reason = _useless(column, kind)
        if reason:
            self.dropped_[column.name] = reason
        return kind

    def _encoder(self, column: TableColumn, kind: str) -> Encoder:
        if kind == "number":
            return Numbers.learn(column, self.standardize)
        if kind == "boolean":
            return Booleans.learn(column)
        if kind == "date":
            return Dates.learn(column, self.dates_outside)
        if kind == "text":
            return Texts.learn(column, self._text_transformer())
        return Categories.learn(
            column,
            min_count=self.min_count,
            max_levels=self.max_levels,
            n_hashed=self.n_hashed,
            unknown=self.unknown,
            drop_first=self.drop_first,
        )

    def _text_transformer(self) -> Any:
        if self.text is not None:
            return self.text
        from trueline.features.text import TextFeatures

        return TextFeatures(max_features=5_000)

    def _find_leaks(self, columns: list[TableColumn], kinds: dict[str, str], y: Any) -> None:
        if y is None or self.leakage == "ignore":
            return
        target = np.asarray(y)
        if len(target) != len(columns[0]):
            raise ValueError(f"The table has {len(columns[0])} rows, but y has {len(target)}.")
        if target.ndim == 1 and read_columns({"y": y})[0].missing.any():
            return  # whoever learns from y has to say what is to become of these rows
        for column in columns:
            if column.name not in self.dropped_:
                how = gives_away(column, kinds[column.name], target)
                if how:
                    self.leaks_[column.name] = how
        if not self.leaks_:
            return
        said = "; ".join(f"{name!r}: {how}" for name, how in self.leaks_.items())
        if self.leakage == "error":
            raise TableError(f"Columns give the target away. {said}. Take them out of the table.")
        if self.leakage == "drop":
            self.dropped_.update(dict.fromkeys(self.leaks_, "it gives the target away"))
            return
        warnings.warn(
            f"Columns give the target away: {said}. If they are not known before the target is, "
            "take them out of the table, or set leakage='drop'.",
            UserWarning,
            stacklevel=4,
        )

    def _design(self, columns: list[TableColumn]) -> Any:
        found = [find_column(columns, encoder.name) for encoder in self._encoders]
        blocks = []
        for encoder, column in zip(self._encoders, found):
            blocks += encoder.blocks(column)
            column.release()
        # DataFrames that scikit-learn was asked for cannot hold sparse matrices.
        default = _get_output_config("transform", self)["dense"] == "default"
        return assemble(blocks, len(columns[0]), self.sparse_output_ and default, self.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


def _target_of(X: Any, y: Any) -> Any:
    """The target that is given, or that batches bring along."""
    return X.target if y is None and isinstance(X, Batches) else y


def _useless(column: TableColumn, kind: str) -> str:
    """Why a column would be of no use, if so."""
    if kind in ("number", "boolean"):
        values = column.numbers
        present = values[~np.isnan(values)]
        # A column of infinity alone is no constant but a mistake, and refused as such.
        constant = present.min() == present.max() < np.inf and len(present) == len(values)
        return "one value only" if constant else ""
    if kind != "category":
        return ""
    codes, texts = column.coded
    coded = int((codes >= 0).sum())
    if len(texts) == 1 and coded == len(codes):
        return "one value only"
    if coded >= _IDENTIFIER_ROWS and len(texts) > _IDENTIFIER_SHARE * coded:
        return "nearly every row has a value of its own: a name or an identifier"
    return ""


def design_matrix(table: Any, target: Any = None, **options: Any) -> DesignMatrix:
    """One table in, one design out.

    Parameters
    ----------
    table : DataFrame (pandas, polars, Arrow, ...), dict of columns, or array of shape (n, d)
    target : str or array-like of shape (n,), optional
        What to predict: the name of a column, or its values. Rows without it are refused.
    **options
        Parameters of :class:`TableFeatures`.

    Returns
    -------
    design : DesignMatrix
        ``design.X``, ``design.y`` and ``design.names``; it unpacks into these three.

    Examples
    --------
    >>> from trueline import Ridge, design_matrix
    >>> table = {"size": [50.0, 60.0, 80.0], "city": ["Rome", "Oslo", "Rome"], "price": [5, 9, 8]}
    >>> design = design_matrix(table, target="price")
    >>> list(design.names)
    ['size', 'city=Oslo', 'city=Rome']
    >>> model = Ridge().fit(design.X, design.y)
    >>> sorted(design.features.by_source(model.coef_))
    ['city', 'size']
    """
    columns = read_columns(table)
    y = None
    if np.ndim(target) > 0:
        y = _target(_given(target, len(columns[0])))
    elif target is not None:
        column = find_column(columns, target, role="target")
        y = _target(column)
        columns = [other for other in columns if other is not column]
        if not columns:
            raise TableError(f"The table has no column besides the target {target!r}.")
    features = TableFeatures(**options)
    features._learn(columns, y)
    X = features._design(columns)
    return DesignMatrix(X, y, features.get_feature_names_out(), features.sources_, features)


def _given(target: Any, n: int) -> TableColumn:
    """A target that is no column of the table."""
    if np.ndim(target) > 1 or len(target) != n:
        raise TableError(
            f"The target must be the name of a column, or one value for each of the {n:,} rows; "
            f"got values of shape {np.shape(target)}."
        )
    name = str(getattr(target, "name", None) or "y")
    return read_columns({name: target})[0]


def _target(column: TableColumn) -> NDArray[Any]:
    kind = guess_kind(column)
    missing = np.isnan(column.numbers) if kind == "number" else column.missing
    if missing.any():
        rows = np.flatnonzero(missing)
        raise TableError(
            f"The target {column.name!r} is missing in {counted(len(rows), 'row')} (the first is "
            f"row {rows[0]}). Leave these rows out."
        )
    if kind == "number":
        values = column.arrow.to_numpy(zero_copy_only=False)
        return column.numbers if values.dtype == object else values
    codes, texts = column.coded
    if kind == "boolean":
        return column.numbers.astype(bool)
    return np.array(texts, dtype=object)[codes].astype(str)
