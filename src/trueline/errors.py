"""What can go wrong, in one tree.

::

    TruelineError
    |-- PairingError          (ValueError)   no solver for this loss, penalty, design and name
    |-- VerificationError     (ValueError)   a certificate does not hold
    |-- ProofFileError        (ValueError)   a proof file cannot be written or read
    |-- ModelFileError        (ValueError)   a model file cannot be read or trusted
    |-- MemoryNeededError     (MemoryError)  more memory than there is; the message has a way out
    |-- ClusterError          (RuntimeError) workers or their scheduler are gone
    |-- TableError            (ValueError)   a table of the command line cannot be used
    `-- MissingExtraError     (ImportError)  an optional dependency is not installed

Every message says what was given, what was expected and what to do.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from trueline.check.verdict import ProofFileError, TruelineError, VerificationError

__all__ = [
    "ClusterError",
    "MemoryNeededError",
    "MissingExtraError",
    "ModelFileError",
    "PairingError",
    "ProofFileError",
    "TableError",
    "TruelineError",
    "VerificationError",
    "require",
]


class PairingError(TruelineError, ValueError):
    """No admissible solver: the message says what is missing and what would work."""


class ModelFileError(TruelineError, ValueError):
    """A model file is damaged, of an unknown kind, or from a newer version."""


class MemoryNeededError(TruelineError, MemoryError):
    """More memory would be needed than there is: the message says how much, and the way out."""


class ClusterError(TruelineError, RuntimeError):
    """A cluster is gone or out of memory: the message says what is lost, and how to go on."""


class TableError(TruelineError, ValueError):
    """A CSV file cannot be read, or its columns do not fit what is asked."""


class MissingExtraError(TruelineError, ImportError):
    """An optional dependency is missing: the message names the extra to install."""


def squares_out_of_range(before: str = "") -> ValueError:
    """The error for data whose squares cannot be held."""
    return ValueError(
        "The squares of these values overflow or vanish in double precision: multiply the columns "
        f"or the target by a power of ten{before}."
    )


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra brings it.

    Parameters
    ----------
    module : str
        Dotted name of the module.
    extra : str
        The extra of this package that installs it.

    Returns
    -------
    module : module
        The imported module.

    Examples
    --------
    >>> from trueline.errors import require
    >>> require("json", "plot").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        top = module.partition(".")[0]
        raise MissingExtraError(
            f"{top} is needed here and is not installed. "
            f"Install it with: pip install 'trueline[{extra}]'"
        ) from error
