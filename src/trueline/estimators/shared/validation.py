"""What is given, checked: rows, targets and folds, with errors that say what to do."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import utils
from sklearn.utils import validation
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from trueline.cluster import on_cluster
from trueline.design import Design
from trueline.design.stacked import StackedDesign
from trueline.design.storage import is_dask
from trueline.streams import Batches
from trueline.streams import open as open_rows
from trueline.wording import counted

Array = NDArray[np.float64]


# Magnitudes beyond this need other units to be squared; rows without weight do without them.
_LARGE = 1e100
# What methods of a path pass on to ``trueline.open``.
_OPENING = frozenset(inspect.signature(open_rows).parameters) - {"source"}
# The rows that linear models take.
_USUAL = {"accept_sparse": ["csr", "csc", "coo"], "dtype": [np.float64, np.float32]}


def validate_data(
    estimator: Any, /, X: Any = "no_validation", y: Any = "no_validation", **options: Any
) -> Any:
    """scikit-learn's ``validate_data``; rows in batches are checked when they are read."""
    if isinstance(X, StackedDesign):
        return _validated_batches(estimator, X, y, **options)
    if is_dask(X):
        raise TypeError(
            f"{type(estimator).__name__} needs its rows in memory: give it X.compute(). Linear "
            "models with one strength of the penalty are fitted where the blocks are."
        )
    with naming_columns(X, type(estimator).__name__):
        return validation.validate_data(estimator, X, y, **options)


def _validated_batches(
    estimator: Any,
    X: StackedDesign,
    y: Any,
    reset: bool = True,
    multi_output: bool = False,
    **_: Any,
) -> Any:
    """Batches as they are, and the checked target if there is one."""
    if not hasattr(type(estimator).fit, "takes_batches"):
        refuse_batches(estimator)
    validation._check_n_features(estimator, X, reset=reset)
    if reset and X.columns is None:
        estimator.__dict__.pop("feature_names_in_", None)
    elif reset:
        estimator.feature_names_in_ = np.array(X.columns, dtype=object)
    elif (
        X.columns and list(known := getattr(estimator, "feature_names_in_", X.columns)) != X.columns
    ):
        how = "open the rows with columns=" if isinstance(X, Batches) else "give the columns "
        raise ValueError(
            f"The feature names should match those that were passed during fit: {how}"
            f"{list(known)[:20]}."
        )
    if isinstance(y, str) and y == "no_validation":
        return X
    if y is None:
        raise ValueError(
            f"requires y to be passed, but the target y is None: {type(estimator).__name__} learns "
            f"from a target. {_target_for(X)}"
        )
    y = validation._check_y(y, multi_output=multi_output, estimator=estimator)
    if len(y) != X.shape[0]:
        raise ValueError(f"Found rows with inconsistent numbers: {X.shape[0]} of X, {len(y)} of y.")
    return X, y


def _target_for(X: Any) -> str:
    """How rows in batches, or blocks on a cluster, come by a target."""
    if not isinstance(X, Batches):
        return "Give y beside X."
    return "Name its column: fit(path, target='y'), or trueline.open(..., target='y')."


def _opened(X: str | Path, y: Any = None, sample_weight: Any = None, **how: Any) -> Any:
    """Batches of the files of a path, target and weights; names are those of columns."""
    for name, given in (("target", y), ("weight", sample_weight)):
        if isinstance(given, str):
            how.setdefault(name, given)
    rows = open_rows(X, **how)
    y = rows.target if y is None or isinstance(y, str) else y
    is_name = sample_weight is None or isinstance(sample_weight, str)
    return rows, y, rows.weights if is_name else sample_weight


def names_of_columns(estimator: Any) -> list[str] | None:
    """The columns of a fitted model, if they have names."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def unpacked(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Rows, target and weights; batches bring their own, where these are not given."""
    if isinstance(X, str | Path):
        return _opened(X, y, sample_weight)
    if is_dask(X):
        X = on_cluster(X, y, sample_weight)
        return X, X.target, X.weights
    if not isinstance(X, StackedDesign):
        return X, y, sample_weight
    y = X.target if y is None else y
    return X, y, X.weights if sample_weight is None else sample_weight


def opening(named: dict[str, Any]) -> dict[str, Any]:
    """Take what ``trueline.open`` is told out of the arguments of a method."""
    return {name: named.pop(name) for name in _OPENING & set(named)}


def refuse_opening(method: Any, named: dict[str, Any]) -> None:
    """An error if a method of open rows is told how to open files."""
    told = _OPENING & set(named)
    if told and (told := told - set(inspect.signature(method).parameters)):
        raise TypeError(
            f"{', '.join(sorted(told))} go with the path of files: these rows are open already."
        )


def rows_of(X: Any, y: Any, sample_weight: Any, how: dict[str, Any]) -> tuple[Any, Any, Any]:
    """What a method is given, unpacked; ``how`` says what of the files of a path is read."""
    if isinstance(X, str | Path):
        return _opened(X, y, sample_weight, **how)
    if how:
        raise TypeError(
            f"{', '.join(sorted(how))} go with the path of files: these rows are open already."
        )
    return unpacked(X, y, sample_weight)


def takes_batches(fit: Any) -> Any:
    """Let ``fit(rows)`` be enough where rows bring their target; scikit-learn's signature stays.

    ``fit("folder/*.parquet", target="y")`` opens the rows first.
    """

    @functools.wraps(fit)
    def with_batches(self: Any, X: Any, *given: Any, **named: Any) -> Any:
        if isinstance(X, StackedDesign | str | Path) or is_dask(X):
            signature = inspect.signature(fit)
            how = opening(named)
            named = signature.bind_partial(self, X, *given, **named).arguments
            X, y, weights = rows_of(X, named.get("y"), named.get("sample_weight"), how)
            if "sample_weight" in signature.parameters:
                named["sample_weight"] = weights
            elif weights is not None:
                advice = "open the rows without weight=" if isinstance(X, Batches) else "give none"
                raise ValueError(f"{type(self).__name__} takes no weights: {advice}.")
            more = named.pop("params", {})
            X.remember(is_fit=True)
            try:
                fitted = fit(**{**named, "X": X, "y": y, **more})
            finally:
                X.remember(is_fit=False)
            if isinstance(X, Batches):
                X.forget_passes()
            return fitted
        if is_dask(given[0] if given else named.get("y")):
            raise TypeError(
                "y is a Dask collection, but X is in memory: give both in the same form. If a step "
                "of a pipeline has brought X here, let it work by blocks (X.map_blocks), or give "
                "y.compute()."
            )
        refuse_opening(fit, named)
        return fit(self, X, *given, **named)

    with_batches.takes_batches = True  # type: ignore[attr-defined]
    with_batches.opens_files = True  # type: ignore[attr-defined]
    return with_batches


def reads_batches(fit: Any) -> Any:
    """Mark a ``fit`` that reads batches by itself."""
    fit.takes_batches = True
    return fit


def with_rows_in_memory(fit: Any) -> Any:
    """Let ``fit(rows)`` say what to do, where rows in batches are not taken."""
    if hasattr(fit, "takes_batches"):
        return fit

    @functools.wraps(fit)
    def without_batches(self: Any, *given: Any, **named: Any) -> Any:
        X = given[0] if given else named.get("X")
        if isinstance(X, Batches) or (isinstance(X, str | Path) and _OPENING & set(named)):
            refuse_batches(self)
        return fit(self, *given, **named)

    return without_batches


def refuse_batches(estimator: Any) -> NoReturn:
    """An error for rows that are not in memory, of an estimator that needs them there."""
    raise TypeError(
        f"{type(estimator).__name__} needs its rows in memory: give it rows.toarray() and "
        "rows.target of rows = trueline.open(...). Linear models with one strength of the penalty "
        "read batches."
    )


def wrappers(method: Any) -> int:
    """How many functions are around a method."""
    inner = getattr(method, "__wrapped__", None)
    return 0 if inner is None else 1 + wrappers(inner)


def weights_of(sample_weight: Any, n: int) -> Array:
    """The weight of each of n rows, one where none is given."""
    given = 1.0 if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return np.broadcast_to(given, n)


def refuse_nonfinite(X: Any, estimator: Any = None) -> None:
    """An error if rows hold NaN or infinity; batches look for themselves.

    The columns are named as the estimator knows them.
    """
    if not isinstance(X, Design):
        names = getattr(estimator, "feature_names_in_", None)
        with naming_columns(X, type(estimator).__name__, names):
            utils.assert_all_finite(X, input_name="X")


def check_X_y(X: Any, y: Any, **options: Any) -> Any:
    """scikit-learn's ``check_X_y``."""
    with naming_columns(X, type(options.get("estimator")).__name__):
        return utils.check_X_y(X, y, **options)


def rows_and_target(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Rows, one target and weights for a function; batches look at their rows when reading."""
    X, y, sample_weight = unpacked(X, y, sample_weight)
    options = {"accept_sparse": ["csr", "csc"], "dtype": [np.float64, np.float32]}
    if not isinstance(X, StackedDesign):
        return *check_X_y(X, y, ensure_all_finite=False, **options), sample_weight
    if y is None:
        raise ValueError(f"A target is needed. {_target_for(X)}")
    y = check_array(y, dtype=np.float64, ensure_2d=False)
    validation.check_consistent_length(X, y)
    return X, y, sample_weight


def checked_rows(estimator: Any, X: Any, y: Any, reset: bool, **options: Any) -> Any:
    """Rows and targets for a fit, which resets the columns, or for a look that changes nothing."""
    options = {**_USUAL, "ensure_all_finite": False, **options}
    if reset or isinstance(X, StackedDesign):
        return validate_data(estimator, X, y, reset=reset, **options)
    return check_X_y(X, y, estimator=estimator, **options)


def row_weights(sample_weight: Any, X: Any, dtype: Any = np.float64) -> NDArray[Any]:
    """Sample weights, one for each row; zero everywhere is an error."""
    weights = validation._check_sample_weight(
        sample_weight, X, dtype=dtype, ensure_non_negative=True
    )
    if not weights.any():
        raise ValueError(
            "Sample weights are all zero: no row is left to fit. Give at least one row a positive "
            "weight."
        )
    return np.asarray(weights)


def with_weight(X: Any, weights: Array | None, *others: Any) -> tuple[Any, ...]:
    """X, weights and others (or None) of the rows that have a weight."""
    if weights is None or weights.all():
        return X, weights, *others
    present = np.flatnonzero(weights)
    X = X.tocsr() if sp.issparse(X) else X
    kept = (None if other is None else other[present] for other in others)
    return X[present], weights[present], *kept


def signed_row_weights(sample_weight: Any, n: int, X: Any) -> Array:
    """One weight for each of n rows; a support vector machine leaves out those not positive.

    The words of the errors are those of LIBSVM's wrappers.
    """
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight and X have incompatible shapes: {weights.shape} and "
            f"{getattr(X, 'shape', (n,))}; give one weight for each of {n} rows."
        )
    if not np.isfinite(weights).all():
        raise ValueError("Input sample_weight contains NaN or infinity.")
    if not (weights > 0).any():
        raise ValueError(
            "Invalid input - all samples have zero or negative weights: no row is left to fit."
        )
    return weights


def new_rows(model: Any, X: Any, **options: Any) -> Any:
    """Rows to predict, for a model that has been fitted."""
    validation.check_is_fitted(model)
    return validate_data(model, X, reset=False, **{**_USUAL, **options})


def dense_new_rows(model: Any, X: Any) -> Array:
    """The same as an array in double precision."""
    X = new_rows(model, X)
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def keep_columns_of(estimator: Any, X: Any) -> None:
    """Remember the columns of rows without names, which need no other check."""
    estimator.n_features_in_ = X.shape[1]
    estimator.__dict__.pop("feature_names_in_", None)


def check_array(X: Any, **options: Any) -> Any:
    """scikit-learn's ``check_array``."""
    with naming_columns(X, ""):
        return utils.check_array(X, **options)


@contextmanager
def naming_columns(X: Any, who: str, names: Any = None) -> Iterator[None]:
    """Where validation fails on a column that holds no numbers, say which and what to do.

    Columns of an array may have names, which are given.

    Examples
    --------
    >>> from trueline import Ridge
    >>> try:
    ...     Ridge().fit([[1.0, "Rome"], [2.0, "Oslo"]], [1.0, 2.0])
    ... except ValueError as error:
    ...     print(str(error)[:62])
    Column 1 of X holds text ('Rome' in row 0), and Ridge takes nu
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        name = who if who not in ("", "NoneType", "str") else ""
        model = f"{name}()" if name else "model"
        found = no_number(X)
        if found is None and "X contains NaN" in str(error):
            raise ValueError(
                f"Input X contains NaN{_missing_values(X, names)}. TableFeatures fills in missing "
                f"values and marks them: make_pipeline(TableFeatures(), {model})."
            ) from error
        if found is None and "X contains infinity" in str(error):
            raise ValueError(
                f"{str(error).rstrip('.')}{_missing_values(X, names, np.isinf)}. Correct these "
                "values (a division by zero, perhaps, or the logarithm of zero), or leave the rows "
                "out."
            ) from error
        if found is None and str(error).startswith("Input y contains"):
            raise ValueError(
                f"{error} Leave out the rows without a target: "
                "X[np.isfinite(y)], y[np.isfinite(y)]."
            ) from error
        text = _first_text(X)
        if text is not None:
            raise ValueError(
                f"X is a sequence of texts (the first is {text!r}), and {name or 'this'} takes "
                "rows of numbers. TextFeatures makes numbers of their words: "
                f"make_pipeline(TextFeatures(), {model})."
            ) from error
        if found is None:
            raise
        raise ValueError(
            f"{found}, and {name or 'this'} takes numbers. TableFeatures makes numbers of texts, "
            f"categories and dates: make_pipeline(TableFeatures(), {model})."
        ) from error


def no_number(X: Any) -> str | None:
    """The first column that holds texts or dates, in words; None if there is none.

    Examples
    --------
    >>> from trueline.estimators.shared.validation import no_number
    >>> no_number({"size": [1, 2], "city": ["Rome", "Oslo"]})
    "Column 'city' of X holds text ('Rome' in row 0)"
    """
    for name, values in _columns(X):
        if values.dtype.kind == "M":
            return f"Column {name} of X holds dates"
        if values.dtype.kind not in "OUST":
            continue
        for row, value in enumerate(values):
            if isinstance(value, date | np.datetime64):
                return f"Column {name} of X holds dates ({value} in row {row})"
            if is_word(value):
                return f"Column {name} of X holds text ({_shortened(value)!r} in row {row})"
    return None


def _first_text(X: Any) -> str | None:
    """The first of a sequence of texts, shortened; None if it is not such a sequence."""
    if isinstance(X, str | bytes) or getattr(X, "ndim", 1) != 1 or not hasattr(X, "__iter__"):
        return None
    first = next(iter(X), None)
    return _shortened(first) if isinstance(first, str) and is_word(first) else None


def _shortened(text: str) -> str:
    return str(text) if len(text) <= 30 else str(text[:27]) + "..."


def _missing_values(X: Any, names: Any = None, is_missing: Any = np.isnan) -> str:
    """Which columns hold NaN (or infinity), and in how many rows; empty where that is not seen."""
    columns = list(_columns(X))
    known = [name for name, _ in columns] if names is None else map(repr, names)
    counts = {
        name: int(is_missing(values).sum())
        for name, (_, values) in zip(known, columns, strict=False)
        if values.dtype.kind == "f"
    }
    found = [f"column {name} in {counted(count, 'row')}" for name, count in counts.items() if count]
    more = f" and {counted(len(found) - 3, 'more column')}" if len(found) > 3 else ""
    return f": {', '.join(found[:3])}{more}" if found else ""


def _columns(X: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Names and values of the columns of a table or an array; nothing of anything else."""
    if isinstance(X, dict):
        for key, given in X.items():
            yield repr(key), np.asarray(given)
    elif hasattr(X, "columns") or hasattr(X, "column_names"):
        names = list(getattr(X, "columns", None) or X.column_names) if not _is_pandas(X) else None
        for j, key in enumerate(X.columns if names is None else names):
            column = X.iloc[:, j] if names is None else X[key]
            yield repr(key), np.asarray(column)
    elif isinstance(X, np.ndarray | list | tuple):
        try:
            array = np.asarray(X) if isinstance(X, np.ndarray) else np.array(X, dtype=object)
        except ValueError:  # rows of unequal length
            return
        if array.ndim == 2:
            for j in range(array.shape[1]):
                yield str(j), array[:, j]


def _is_pandas(X: Any) -> bool:
    return hasattr(X, "iloc")


def is_word(value: Any) -> bool:
    """Whether it is text that is not a number."""
    try:
        if isinstance(value, str):
            float(value)
    except ValueError:
        return True
    return False


def refuse_missing(y: Any, name: str) -> None:
    """Raise if some target is None, which conversions would turn into NaN without a word.

    Parameters
    ----------
    y : array-like
        Targets as they were given. Those of numbers are left to the tests for NaN.
    name : str
        The estimator, for messages.

    Examples
    --------
    >>> from trueline.estimators.shared.validation import refuse_missing
    >>> try:
    ...     refuse_missing(["ham", None, "spam"], "LogisticRegression")
    ... except ValueError as error:
    ...     print(str(error)[:38])
    Input y contains NaN: y[1] is missing.
    """
    if np.dtype(object) != getattr(y, "dtype", np.dtype(object)):
        return
    try:
        values = np.asarray(y)
    except ValueError:  # rows of unequal length
        return
    if values.dtype != object or values.ndim == 0:  # no target at all is another matter
        return
    for place, value in np.ndenumerate(values):
        if value is None:
            at = ", ".join(map(str, place))
            raise ValueError(
                f"Input y contains NaN: y[{at}] is missing. {name} needs a target for every row: "
                "leave out the rows without one, or fill them in first."
            )


@contextmanager
def numeric_target(estimator: Any, y: Any) -> Iterator[None]:
    """Where validation fails on a target that holds no numbers, say which value and what to do.

    Examples
    --------
    >>> from trueline import LinearRegression
    >>> try:
    ...     LinearRegression().fit([[1.0], [2.0]], ["low", "high"])
    ... except ValueError as error:
    ...     print(str(error)[:64])
    LinearRegression predicts numbers, but y[0] is 'low'. Give y as
    """
    if sp.issparse(y):
        raise TypeError(
            f"Sparse data was passed for y, but dense data is required: {type(estimator).__name__} "
            "takes sparse X only. Give y.toarray()."
        )
    try:
        yield
    except (ValueError, TypeError) as error:
        found = _first_word(y)
        if found is None:
            raise
        place, value = found
        raise ValueError(
            f"{type(estimator).__name__} predicts numbers, but y[{place}] is {value!r}. Give y as "
            "numbers (an encoder such as scikit-learn's OrdinalEncoder makes ordered categories "
            "into numbers), or use a classifier if the values are classes."
        ) from error
    refuse_missing(y, type(estimator).__name__)


def _first_word(y: Any) -> tuple[str, str] | None:
    """The first text that is no number, and its place; None if there is none."""
    try:
        values = np.asarray(y)
    except ValueError:  # rows of unequal length
        return None
    if values.dtype.kind not in "OUST":
        return None
    for place, value in np.ndenumerate(values):
        if is_word(value):
            return ", ".join(map(str, place)), str(value)
    return None


def some_folds(splits: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """The pairs of rows to fit and rows to score, one by one; an error if there are none.

    Examples
    --------
    >>> from trueline.estimators.shared.validation import some_folds
    >>> list(some_folds([]))
    Traceback (most recent call last):
        ...
    ValueError: cv gives no folds: let it be a number of folds, a splitter, or pairs of rows.
    """
    is_any = False
    for fold in splits:
        is_any = True
        yield fold
    if not is_any:
        raise ValueError(
            "cv gives no folds: let it be a number of folds, a splitter, or pairs of rows."
        )


def router_of(
    owner: Any, splitter: Any, scorer: Any = None, scored: Iterable[str] = ("fit",)
) -> MetadataRouter:
    """Which metadata go to the splitter of a search, and to its scorer."""
    # By name: some releases of scikit-learn copy the owner, with a generator of splits.
    router = MetadataRouter(owner=type(owner).__name__).add_self_request(owner)
    router.add(splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split"))
    if scorer is not None:
        mapping = MethodMapping()
        for method in scored:
            mapping.add(caller=method, callee="score")
        router.add(scorer=scorer, method_mapping=mapping)
    return router


def is_plain(X: Any, y: Any, *, of_labels: bool = False) -> bool:
    """Whether X and y are what every check would leave as they are.

    These are float64 rows, dense or compressed, and as many finite or whole targets, or labels.
    Half of the time of a small fit would go into finding that out through the general checks.
    Whether X is finite is left to the fit.
    """
    if type(X) is not np.ndarray and not (sp.issparse(X) and X.format in ("csr", "csc")):
        return False
    if type(y) is not np.ndarray or X.ndim != 2 or X.dtype != np.float64 or not min(X.shape):
        return False
    if not 1 <= y.ndim <= 2 or X.shape[0] != len(y) or not y.size:
        return False
    if of_labels:
        return y.ndim == 1 and are_labels(y)
    # Whole numbers are as common as targets; they are finite.
    return y.dtype.kind in "iu" or (y.dtype == np.float64 and bool(np.isfinite(y).all()))


def are_labels(y: NDArray[Any]) -> bool:
    """Whether an array holds whole or finite numbers, truth values, or strings and nothing else."""
    if y.dtype.kind == "f":
        return bool(np.isfinite(y).all())
    return y.dtype.kind in "iub" or holds_words(y)


def holds_words(y: NDArray[Any]) -> bool:
    """Whether y holds strings and nothing else."""
    return y.dtype.kind == "U" or (y.dtype == object and set(map(type, y.tolist())) == {str})


def without_idle_extremes(X: Any, Y: Array, weights: Array) -> tuple[Any, Array]:
    """X and Y with zeros in rows of weight zero whose squares would overflow.

    These rows do not count, whatever they hold; NaN and infinity are left to be complained about.
    """
    idle = np.flatnonzero(weights == 0)
    Y_idle = Y[idle]
    beyond = (np.abs(Y_idle) > _LARGE) & np.isfinite(Y_idle)
    if beyond.any():
        Y = Y.copy()
        Y[idle] = np.where(beyond, 0.0, Y_idle)
    if X.dtype != np.float64 or isinstance(X, Design):
        return X, Y
    if sp.issparse(X):
        X = X.tocsr()
        X_idle = X[idle]
        if ((np.abs(X_idle.data) > _LARGE) & np.isfinite(X_idle.data)).any():
            X = X.copy()
            of_idle = np.repeat(weights == 0, np.diff(X.indptr))
            X.data[of_idle & (np.abs(X.data) > _LARGE) & np.isfinite(X.data)] = 0.0
        return X, Y
    X_idle = X[idle]
    beyond = (np.abs(X_idle) > _LARGE) & np.isfinite(X_idle)
    if beyond.any():
        X = X.copy()
        X[idle] = np.where(beyond, 0.0, X_idle)
    return X, Y
