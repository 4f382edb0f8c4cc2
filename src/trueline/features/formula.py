"""The formula door: ``y ~ x1 + C(city) + poly(x2, 3)``, read by formulaic."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from trueline.errors import TableError, require
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.features.base import DesignMatrix, grouped_by_source
from trueline.wording import counted, shown_as_text

_INTERCEPT = "Intercept"


@parameters()
class FormulaFeatures(TransformerMixin, BaseEstimator):
    """The right-hand side of a formula, in R's language, as a design.

    The formula is read by `formulaic <https://matthewwardrop.github.io/formulaic>`_, with all it
    knows: ``a:b`` and ``a*b`` for interactions, ``C(city)`` for categories with a choice of
    contrasts, ``poly(x, 3)`` for orthogonal polynomials, ``bs(x, df=5)`` for splines, any function
    of NumPy as ``np.log(x)``. What it learns of the rows of ``fit`` (levels, knots, polynomials) is
    applied to other rows. Levels that ``fit`` has not seen have zeros in all columns, and
    formulaic warns; rows with missing values are refused.

    The column of ones is left out, as estimators fit an intercept of their own; categories lack
    their first level, as beside an intercept. With ``~ 0 + ...`` they have all levels: use
    ``fit_intercept=False`` then.

    Parameters
    ----------
    formula : str, default="~ ."
        With or without a left-hand side, of which nothing is looked at here.
    output : {"dense", "sparse"}, default="dense"
        Sparse pays for categories of many levels.

    Attributes
    ----------
    model_spec_ : formulaic.ModelSpec
        What was learned.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import pandas as pd
    >>> from trueline import FormulaFeatures
    >>> table = pd.DataFrame({"size": [1.0, 2.0, 3.0], "city": ["Oslo", "Rome", "Oslo"]})
    >>> features = FormulaFeatures("~ size + C(city)").fit(table)
    >>> list(features.get_feature_names_out())
    ['size', 'C(city)[T.Rome]']
    >>> features.transform(table)
    array([[1., 0.],
           [2., 1.],
           [3., 0.]])
    """

    formula: str = given("~ .", str)
    _: KW_ONLY
    output: str = given("dense", one_of("dense", "sparse"))

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn levels, knots and polynomials.

        Parameters
        ----------
        X : DataFrame
        y : ignored

        Returns
        -------
        self : object
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn levels, knots and polynomials, and make the design.

        Parameters
        ----------
        X : DataFrame
        y : ignored

        Returns
        -------
        features : array or sparse matrix of shape (n, m)
        """
        self._validate_params()
        table = _table(X)
        matrix = _model_matrix(_right_hand_side(self.formula), table, self.output)
        self.model_spec_ = matrix.model_spec
        self.feature_names_in_ = np.array([str(name) for name in table.columns], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self._design(matrix)

    def transform(self, X: Any) -> Any:
        """The design of other rows.

        Parameters
        ----------
        X : DataFrame

        Returns
        -------
        features : array or sparse matrix of shape (n, m)
        """
        check_is_fitted(self)
        return self._design(_apply(self.model_spec_, _table(X)))

    @property
    def sources_(self) -> NDArray[np.object_]:
        """The term of the formula that each column comes from."""
        check_is_fitted(self)
        columns = self.model_spec_.column_names
        found = {
            str(columns[j]): str(term)
            for term, places in self.model_spec_.term_indices.items()
            for j in places
        }
        return np.array([found[name] for name in self.get_feature_names_out()], dtype=object)

    def by_source(self, coefficients: Any) -> dict[str, dict[str, float]]:
        """Coefficients of a model on this design, grouped by the term of the formula.

        Parameters
        ----------
        coefficients : array-like of shape (m,)

        Returns
        -------
        groups : dict of str to dict of str to float
            Term -> name of the column -> coefficient.
        """
        return grouped_by_source(self.get_feature_names_out(), self.sources_, coefficients)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names that formulaic gives to the columns.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : array of str
        """
        check_is_fitted(self)
        names = [str(name) for name in self.model_spec_.column_names]
        return np.array([name for name in names if name != _INTERCEPT], dtype=object)

    @shown_as_text
    def explain(self) -> str:
        """The terms and the columns they became, in words."""
        check_is_fitted(self)
        lines = [f"FormulaFeatures: {self.formula}"]
        for term, columns in self.model_spec_.term_indices.items():
            names = [str(self.model_spec_.column_names[j]) for j in columns]
            if names != [_INTERCEPT]:
                shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
                lines.append(f"{term}: {counted(len(names), 'column')}: {shown}")
        return "\n".join(lines)

    def _design(self, matrix: Any) -> Any:
        keep = [j for j, name in enumerate(matrix.model_spec.column_names) if name != _INTERCEPT]
        values = getattr(matrix, "__wrapped__", matrix)
        default = _get_output_config("transform", self)["dense"] == "default"
        if sparse.issparse(values):
            kept = sparse.csr_matrix(values)[:, keep]
            return kept if default else kept.toarray()
        return np.asarray(values, dtype=np.float64)[:, keep]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def formula(formula: str, data: Any, *, output: str = "dense") -> DesignMatrix:
    """Design, target and names of a formula, as :func:`~trueline.design_matrix` gives of a table.

    Parameters
    ----------
    formula : str
        Such as ``y ~ x1 + C(city) + poly(x2, 3)``; see :class:`FormulaFeatures`.
    data : DataFrame or dict of columns
    output : {"dense", "sparse"}, default="dense"

    Returns
    -------
    design : DesignMatrix
        ``design.X``, ``design.y`` and ``design.names``, for any estimator; it unpacks into these
        three. There is no column of ones: estimators fit an intercept. ``sources`` are the terms
        of the formula, and ``features`` makes the design of other rows.

    Examples
    --------
    >>> from trueline import LinearRegression, formula
    >>> data = {"y": [1.0, 3.0, 5.0, 9.0], "x": [0.0, 1.0, 2.0, 3.0], "sex": list("abab")}
    >>> X, y, names = formula("y ~ x + C(sex)", data)
    >>> list(names)
    ['x', 'C(sex)[T.b]']
    >>> model = LinearRegression().fit(X, y)
    """
    table = _table(data)
    left = _left_hand_side(formula)
    features = FormulaFeatures(formula, output=output)
    if left and _missing_rows(formula, table):
        raise TableError(_missing_message(formula, table))
    target = _target(left, table) if left else None
    design = features.fit_transform(table)
    names = features.get_feature_names_out()
    return DesignMatrix(design, target, names, features.sources_, features)


def _table(X: Any) -> Any:
    """A table that formulaic reads: a pandas DataFrame."""
    pandas = require("pandas", "formula")
    if isinstance(X, pandas.DataFrame):
        return X
    if isinstance(X, dict):
        return pandas.DataFrame(X)
    narwhals = require("narwhals", "formula")
    try:
        frame = narwhals.from_native(X)
    except TypeError as error:
        raise TableError(
            f"A formula names columns: a DataFrame is needed, got {type(X).__name__}."
        ) from error
    frame = frame.collect() if hasattr(frame, "collect") else frame
    return pandas.DataFrame({name: frame[name].to_list() for name in frame.columns})


def _parsed(text: str) -> Any:
    formulaic = require("formulaic", "formula")
    errors = require("formulaic.errors", "formula")
    try:
        return formulaic.Formula(text)
    except (errors.FormulaParsingError, errors.FormulaSyntaxError, SyntaxError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"The formula {text!r} cannot be read: {reason}") from error


def _right_hand_side(text: str) -> Any:
    parsed = _parsed(text)
    return getattr(parsed, "rhs", parsed)


def _left_hand_side(text: str) -> Any:
    return getattr(_parsed(text), "lhs", None)


def _model_matrix(terms: Any, table: Any, output: str) -> Any:
    kind = "numpy" if output == "dense" else "sparse"
    try:
        return terms.get_model_matrix(table, output=kind, na_action="raise")
    except Exception as error:
        raise _readable(error, table) from error


def _apply(spec: Any, table: Any) -> Any:
    try:
        return spec.get_model_matrix(table)
    except Exception as error:
        raise _readable(error, table) from error


def _readable(error: Exception, table: Any) -> Exception:
    """formulaic's errors of evaluation as ours; others as they are."""
    if not type(error).__module__.startswith("formulaic") and not isinstance(error, ValueError):
        return error
    columns = ", ".join(map(str, table.columns))
    reason = str(error).partition("\n")[0].rstrip(".")
    return TableError(f"The formula does not fit the table: {reason}. It has: {columns}.")


def _target(left: Any, table: Any) -> NDArray[Any]:
    names = [str(term) for term in left]
    if len(names) == 1 and names[0] in table.columns:
        values = table[names[0]]
        if values.dtype.kind not in "fiub":
            return np.asarray(values).astype(str)  # classes stay classes
        return np.asarray(values)
    matrix = _model_matrix(left, table, "dense")
    values = np.asarray(getattr(matrix, "__wrapped__", matrix), dtype=np.float64)
    return values[:, 0] if values.shape[1] == 1 else values


def _missing_rows(text: str, table: Any) -> int:
    used = [name for name in _parsed(text).required_variables if name in table.columns]
    return int(table[used].isna().any(axis=1).sum()) if used else 0


def _missing_message(text: str, table: Any) -> str:
    return (
        f"{_missing_rows(text, table):,} rows miss a value that {text!r} needs. Leave them out, or "
        "fill them; TableFeatures has columns for missing values."
    )
