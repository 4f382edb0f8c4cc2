"""Problems on disk, made once, so that every interpreter reads the same numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["key", "stored_rows"]


def key(name: str, scale: float, makers: Sequence[ModuleType]) -> str:
    """A name that changes with the code that makes the data."""
    code = "".join(Path(str(module.__file__)).read_text() for module in makers)
    return f"{name}-{hashlib.sha256(f'{code}{scale}'.encode()).hexdigest()[:10]}"


def stored_rows(
    cache: Path, stem: str, make: Callable[[], tuple[Any, Any]] | None = None
) -> tuple[Any, Any]:
    """X and y from the cache, sparse matrices in the layout they were made in.

    Parameters
    ----------
    cache : Path
    stem : str
        See :func:`key`.
    make : function, optional
        Makes them if they are not there.

    Raises
    ------
    FileNotFoundError
        If they are not there and nothing makes them.
    """
    dense, sparse, target = (cache / f"{stem}{end}" for end in (".npy", ".npz", ".y.npy"))
    if not target.exists():
        if make is None:
            raise FileNotFoundError(f"{stem} was not prepared")
        X, y = make()
        if sp.issparse(X):
            sp.save_npz(sparse, X, compressed=False)
        else:
            np.save(dense, X)
        np.save(target, y)
    return sp.load_npz(sparse) if sparse.exists() else np.load(dense), np.load(target)
