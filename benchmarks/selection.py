"""What the command line asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["DISTURBED", "Request"]

#: Cores used by others from which on a measurement is not trusted.
DISTURBED = 0.3


@dataclass(frozen=True)
class Request:
    """Which rows to measure, and how.

    Attributes
    ----------
    only : tuple of str
        Parts of names; a row is measured if each part occurs in "group / name".
    redo : bool
        Measure rows that are already stored.
    redo_disturbed : bool
        Measure stored rows again if others used the machine meanwhile, or if they failed.
    small : bool
        Sizes for trying things out.
    limit : float
        Seconds for one call.
    own_limit : float, optional
        The limit if it was asked for: it then replaces those of the cases of sparse and robust.
    patience : float
        Seconds to wait for a quiet machine before each row.
    priority : int
        Niceness of the measured processes.
    folder : Path, optional
        Where results go; None is the repository's own folder.
    python : dict
        Interpreters for contestants that cannot live beside the others.
    peer_python : str, optional
        The interpreter of all guests that have none of their own.
    scale : float
        Size of the problems of sparse and robust; 1 is what is published.
    data : Path, optional
        A folder of data files for the sparse suite, of data sets for comparisons.
    minutes : float
        Start no further row of sparse or robust after so many.
    """

    only: tuple[str, ...] = ()
    redo: bool = False
    redo_disturbed: bool = False
    small: bool = False
    limit: float = 60.0
    own_limit: float | None = None
    patience: float = 30.0
    priority: int = 0
    folder: Path | None = None
    python: dict[str, str] = field(default_factory=dict)
    peer_python: str | None = None
    scale: float = 1.0
    data: Path | None = None
    minutes: float = float("inf")

    def wants(self, group: str, name: str, row: dict[str, Any] | None) -> bool:
        """Whether to measure, given what is stored."""
        label = f"{group} / {name}"
        if not all(part in label for part in self.only):
            return False
        if row is None or self.redo:
            return True
        disturbed = (row.get("other") or 0.0) > DISTURBED or bool(row.get("error"))
        return self.redo_disturbed and disturbed
