"""Pages that are made from the code, so that they cannot disagree with it.

A page is a function that returns reStructuredText; PAGES says into which file below
docs/generated it goes. The files end in .txt, so that Sphinx does not take them for pages of their
own; hand-written pages show them by ``.. include::``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

GENERATED = Path(__file__).parent / "generated"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], widths: str = "auto") -> str:
    """A list-table directive: cells may hold any inline markup, widths need no counting."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in [header, *rows]:
        for i, cell in enumerate(row):
            lines.append(f"   {'* -' if i == 0 else '  -'} {cell}")
    return "\n".join(lines) + "\n"


def solver_matrix() -> str:
    """Loss x penalty -> solvers -> kind of proof.

    A pair without solvers is left out: the page lists what can be fitted.
    """
    from trueline.solvers.registry import pairing_table

    rows = [
        [row["loss"], _penalty(row["penalty"]), _names(row["solvers"]), _proof(row)]
        for row in pairing_table()
        if row["solvers"]
    ]
    return table(["loss", "penalty", "solvers", "kind of proof"], rows, widths="12 20 50 18")


def _penalty(name: str) -> str:
    """The name of a penalty; a restriction in code style does not break."""
    base, comma, restriction = name.partition(", ")
    return f"{base}{comma and ', ``' + restriction + '``'}"


def _proof(row: Mapping[str, str]) -> str:
    """The kind of proof that a small problem of this loss and penalty gets."""
    import numpy as np

    from trueline.design import as_design
    from trueline.losses import as_loss
    from trueline.penalties import NonNegative, as_penalty
    from trueline.problem import Problem
    from trueline.solvers.iterative import make_prover

    name, _, restriction = row["penalty"].partition(", ")
    penalty = as_penalty(name)
    penalty = NonNegative(penalty) if restriction else penalty
    X = np.array([[1.0, 2.0], [3.0, 5.0], [2.0, 7.0], [4.0, 1.0]])
    return make_prover(Problem(as_design(X), X[:, :1] + 1.0, as_loss(row["loss"]), penalty)).kind


def _names(listed: str) -> str:
    """Names in code style, free to break between them."""
    return ", ".join(f"``{name}``" for name in listed.split(", "))


def ridge_solvers() -> str:
    """scikit-learn's names of ridge solvers -> ours."""
    from trueline.estimators.ridge import RIDGE_SOLVERS

    theirs = ["auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs"]
    rows = [[f"``{name}``", f"``{RIDGE_SOLVERS[name]}``"] for name in theirs]
    rows[0][1] = "what the planner chooses"
    return table(["scikit-learn's name", "runs"], rows)


PAGES: dict[str, Callable[[], str]] = {
    "matrix.txt": solver_matrix,
    "ridge_solvers.txt": ridge_solvers,
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
    return {"parallel_read_safe": True, "parallel_write_safe": True}
