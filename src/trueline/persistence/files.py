"""Saving and loading models."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trueline.errors import ModelFileError
from trueline.persistence.archive import read_archive, write_archive
from trueline.persistence.codec import Decoder, Encoder
from trueline.persistence.registry import is_estimator

FORMAT = "trueline model"
#: Raised when files written now could not be read by older releases.
VERSION = 1
_LONGEST_MESSAGE = 400  # characters; a paragraph


@dataclass(frozen=True)
class ModelFile:
    """What a model file holds.

    Attributes
    ----------
    model : estimator
    extra : dict
        Plain data that was saved beside the model.
    versions : dict
        Releases of trueline, NumPy and scikit-learn that wrote the file.
    """

    model: Any
    extra: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


def save(model: Any, path: str | os.PathLike[str], extra: Mapping[str, Any] | None = None) -> Path:
    """Write a model to a file.

    The file holds parameters and fitted attributes as plain data, never code. A model that is
    loaded again gives bit-identical predictions, its certificate still verifies, and
    ``partial_fit`` goes on where it stopped.

    An older file of that name is replaced once the new one is complete, and its permissions are
    kept; of a symbolic link, the file that it points to. If the process is killed in between, the
    older file is still there.

    Parameters
    ----------
    model : estimator
        Any estimator of this package, or one whose class was registered with
        :func:`trueline.persistence.register`; fitted or not. Also scikit-learn's ``Pipeline`` and
        ``ColumnTransformer`` with its usual scalers, encoders, imputers and vectorizers
        (:mod:`trueline.persistence.registry`); the folder in which a pipeline caches its work
        (``memory``) is not saved.
    path : str or path
        Where to write; by custom the name ends in ``.trueline``.
    extra : mapping, optional
        Plain data to keep beside the model; :func:`read` gives it back.

    Returns
    -------
    path : pathlib.Path
        The file that was written.

    Raises
    ------
    ModelFileError
        If the model holds something that is not data (a function, a random generator), or if
        ``path`` is not a regular file (a folder, a device, a named pipe).

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> from trueline import Ridge, load, save
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 4.0])
    >>> model = Ridge(alpha=0.1).fit(X, y)
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = save(model, os.path.join(folder.name, "line.trueline"))
    >>> again = load(path)
    >>> bool((again.predict(X) == model.predict(X)).all()), bool(again.certificate_.verify(X, y))
    (True, True)
    >>> folder.cleanup()
    """
    path = Path(path)
    if isinstance(model, type) or not is_estimator(type(model)):
        raise ModelFileError(
            f"Only estimators can be saved, got {model!r}. Fit one and save the fitted object."
        )
    encoder = Encoder()
    header = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": _versions(),
        "model": encoder.encode(model, "the model"),
        "extra": encoder.encode(dict(extra or {}), "extra"),
        "arrays": len(encoder.arrays),
    }
    write_archive(path, header, encoder.arrays)
    return path


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file. Nothing in the file can run.

    Parameters
    ----------
    path : str or path
        A file written by :func:`save`.

    Returns
    -------
    model : estimator

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFileError
        If the file is damaged, was written by a newer release, names an unknown class, or is
        not a regular file (a folder, a device, a named pipe).

    Examples
    --------
    >>> import os, tempfile
    >>> from pathlib import Path
    >>> from trueline import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "notes.txt")
    ...     _ = path.write_text("not a model")
    ...     try:
    ...         load(path)
    ...     except ValueError as error:
    ...         print(str(error).replace(folder, "folder").replace(os.sep, "/"))
    folder/notes.txt cannot be loaded: it is not a complete model file (File is not a zip file).
    """
    return read(path).model


def read(path: str | os.PathLike[str]) -> ModelFile:
    """Read a model together with the plain data saved beside it.

    Parameters and errors are those of :func:`load`.

    Returns
    -------
    file : ModelFile

    Examples
    --------
    >>> import os, tempfile
    >>> from trueline import Ridge
    >>> from trueline.persistence import read, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save(Ridge(), os.path.join(folder, "m.trueline"), extra={"source": "a.csv"})
    ...     read(path).extra
    {'source': 'a.csv'}
    """
    path = Path(path)
    try:
        with _collection_paused():
            header, arrays = read_archive(path)
            return _decode(header, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{path} cannot be loaded: {_shortened(error)}.") from error
    except OSError:
        raise
    # A header whose parts do not fit together fails in as many ways as there are parts.
    except Exception as error:
        raise ModelFileError(
            f"{path} cannot be loaded: its header does not make sense "
            f"({type(error).__name__}: {_shortened(error)})."
        ) from error


@contextmanager
def _collection_paused() -> Iterator[None]:
    """What is read holds no cycles; looking for some, again and again, takes most of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _shortened(error: Exception) -> str:
    """A message quotes the file, and names in a file can be as long as the file."""
    text = str(error)
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]} ..."


def _decode(header: Any, arrays: list[Any]) -> ModelFile:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"its header does not say {FORMAT!r}")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"its version is {version!r}")
    if version > VERSION:
        raise ModelFileError(
            f"it is of version {version}, this release reads versions up to {VERSION}: "
            "update with pip install --upgrade trueline"
        )
    if header.get("arrays") != len(arrays):
        raise ModelFileError(f"it should hold {header.get('arrays')} arrays, not {len(arrays)}")
    decoder = Decoder(arrays)
    model, extra = decoder.decode(header["model"]), decoder.decode(header["extra"])
    made_by = header.get("made_by")
    if not is_estimator(type(model)) or not isinstance(extra, dict):
        raise ModelFileError("it holds no estimator")
    if not isinstance(made_by, dict):
        raise ModelFileError("it does not say which release wrote it")
    return ModelFile(model, extra, made_by)


def _versions() -> dict[str, str]:
    import numpy
    import sklearn

    import trueline

    return {
        "trueline": trueline.__version__,
        "numpy": numpy.__version__,
        "scikit-learn": sklearn.__version__,
    }
