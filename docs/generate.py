"""Pages that are made from the code, so that they cannot disagree with it.

A page is a function that returns reStructuredText; PAGES says into which file below
docs/generated it goes. Pages are included from hand-written ones by ``.. include::``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

GENERATED = Path(__file__).parent / "generated"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A list-table directive: cells may hold any inline markup, widths need no counting."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in [header, *rows]:
        for i, cell in enumerate(row):
            lines.append(f"   {'* -' if i == 0 else '  -'} {cell}")
    return "\n".join(lines) + "\n"


def optional_module(name: str) -> ModuleType | None:
    """The module, or None when it does not exist. Errors inside it are not hidden."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and name.startswith(error.name):
            return None
        raise


def solver_matrix() -> str:
    """Loss x penalty -> solvers -> kind of proof.

    Uses ``trueline.solvers.registry.matrix()``: an iterable of objects or named tuples with the
    text fields ``loss, penalty, solvers, proof``.
    """
    registry = optional_module("trueline.solvers.registry")
    matrix = getattr(registry, "matrix", None)
    if matrix is None:
        return "The table appears here once solvers are registered.\n"
    header = ["loss", "penalty", "solvers, fastest first", "kind of proof"]
    rows = [(row.loss, row.penalty, row.solvers, row.proof) for row in matrix()]
    return table(header, rows)


PAGES: dict[str, Callable[[], str]] = {
    "matrix.rst": solver_matrix,
}


def write_pages(app: Any) -> None:
    """Write every page whose text has changed (unchanged ones need no rebuild)."""
    GENERATED.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        path = GENERATED / name
        text = page()
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's entry point."""
    app.connect("builder-inited", write_pages)
    # Generated fragments are included, never pages of their own.
    app.config.exclude_patterns.append("generated/matrix.rst")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
