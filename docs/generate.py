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
    from trueline.estimators.regression.ridge import RIDGE_SOLVERS

    theirs = ["auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs"]
    rows = [[f"``{name}``", f"``{RIDGE_SOLVERS[name]}``"] for name in theirs]
    rows[0][1] = "what the planner chooses"
    return table(["scikit-learn's name", "runs"], rows)


def signatures() -> str:
    """Parameters and defaults that differ from scikit-learn's, and why."""
    from signatures import found

    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for one in found():
        key = (one.parameter, _default(one.here), _default(one.there), one.reason)
        groups.setdefault(key, []).append(one.owner)
    rows = [
        [f"``{parameter}``", ", ".join(f"``{name}``" for name in owners), here, there, reason]
        for (parameter, here, there, reason), owners in sorted(groups.items())
    ]
    header = ["parameter", "of", "default here", "in scikit-learn", "what it is"]
    return table(header, rows, widths="18 30 12 12 28")


def _default(text: str) -> str:
    """A default in code style, without its place."""
    value = text.split(", argument")[0]
    return "--" if value == "none" else f"``{value}``"


#: What a loss says about noise, and when to take it.
_READINGS = {
    "squared": ("Gaussian noise", "amounts with ordinary errors; the mean is wanted"),
    "huber": ("Gaussian noise with Laplace tails", "amounts, a few of them wrong"),
    "absolute": ("Laplace noise", "amounts with wild values; the median is wanted"),
    "quantile": ("asymmetric Laplace noise", "limits that a given share stays below"),
    "epsilon_insensitive": ("none: a margin of error", "errors below a size do not matter"),
    "squared_epsilon_insensitive": (
        "none: a margin of error",
        "as before, with large errors worse",
    ),
    "maximum_error": ("uniform noise of unknown width", "guarantees: no error may be large"),
    "logistic": ("Bernoulli labels, logistic link", "two classes, probabilities wanted"),
    "softmax": ("categorical labels", "several classes, probabilities wanted"),
    "hinge": ("none: a margin", "two classes, the boundary alone matters"),
    "squared_hinge": ("none: a margin", "as before, smooth and fast"),
    "crammer_singer": ("none: a margin", "several classes in one problem"),
    "hard_margin": ("none: a margin", "classes that a hyperplane separates"),
    "zero_one": ("none: mistakes are counted", "few columns, the fewest mistakes are wanted"),
    "ordered_quantiles": ("asymmetric Laplace noise", "several quantiles that must not cross"),
}
_PRIORS = {
    "none": ("flat prior", "many more rows than columns"),
    "l2": ("Gaussian prior", "many columns that each matter a little"),
    "l1": ("Laplace prior", "few columns matter, and which ones is a question"),
    "elastic_net": ("Laplace times Gaussian prior", "few groups of similar columns matter"),
}
# The data that solvers are chosen for: many rows, some columns, dense.
_ROWS, _COLUMNS = 10_000, 50


def algorithms() -> str:
    """The algorithms side by side: reading, loss, penalty, solvers, cost, proof, use."""
    from trueline.losses import as_loss
    from trueline.penalties import as_penalty
    from trueline.solvers.registry import SOLVERS, pairing_table

    rows = []
    for pair in pairing_table():
        if pair["penalty"] not in _PRIORS or not pair["solvers"]:
            continue
        loss, penalty = as_loss(pair["loss"]), as_penalty(pair["penalty"])
        noise, use = _READINGS.get(loss.name, ("", ""))
        prior, when = _PRIORS[penalty.name]
        is_probabilistic = bool(noise) and not noise.startswith("none")
        reading = f"probabilistic: {noise}, {prior}" if is_probabilistic else "deterministic"
        chosen = _cheapest(pair["solvers"].split(", "), loss, penalty)
        others = [name for name in pair["solvers"].split(", ") if name != chosen]
        cost = SOLVERS[chosen].cost(_facts(penalty))
        each = cost.flops / max(cost.passes, 1.0) / (_ROWS * _COLUMNS)
        rows.append(
            [
                f"``{loss.formula}``",
                f"{penalty.name}",
                reading,
                f"**{chosen}**" + (f", {', '.join(others)}" if others else ""),
                f"{cost.passes:.0f} x {each:.3g}",
                _proof(pair),
                f"{use}; {when}" if use else when,
            ]
        )
    header = ["loss", "penalty", "reading", "solvers", "cost", "proof", "when to use"]
    return table(header, rows, widths="18 8 18 22 8 8 18")


def _facts(penalty: Any) -> Any:
    """A typical problem, as the planner sees it."""
    from trueline.solvers.base import Facts

    return Facts(
        n=_ROWS,
        d=_COLUMNS,
        k=1,
        nonzeros=_ROWS * _COLUMNS,
        is_sparse=False,
        fit_intercept=True,
        has_weights=False,
        strengths=1,
        unpenalised=penalty.name == "none",
        itemsize=8,
    )


def _cheapest(names: Sequence[str], loss: Any, penalty: Any) -> str:
    """The solver that the planner would take for the typical problem."""
    from trueline.solvers.registry import SOLVERS

    facts = _facts(penalty)
    able = [name for name in names if SOLVERS[name].refuses(facts) is None]
    usual = [name for name in able if not SOLVERS[name].is_textbook] or able or list(names)
    return min(usual, key=lambda name: SOLVERS[name].cost(facts).seconds)


def engines() -> str:
    """What each engine is worth, as it was measured last."""
    import json

    stored = json.loads((GENERATED.parents[1] / "benchmarks/results/engines.json").read_text())
    found: dict[str, list[tuple[float, str]]] = {}
    for case, row in stored["rows"]["cases"].items():
        for engine, one in row["engines"].items():
            found.setdefault(engine, []).append((float(one["worth"]), case.replace(" / ", ", ")))
    rows = []
    for engine, worths in sorted(found.items(), key=lambda item: -max(item[1])[0]):
        _, case = max(worths)
        alone = sum(worth == float("inf") for worth, _ in worths)
        finite = [worth for worth, _ in worths if worth < float("inf")]
        rows.append(
            [
                f"``{engine}``",
                str(len(worths)),
                str(alone) if alone else "",
                f"{max(finite):.1f}" if finite else "",
                case,
            ]
        )
    header = ["engine", "fits it takes part in", "nothing else solves it", "worth at most", "where"]
    return table(header, rows, widths="26 14 16 14 30")


def lecture_words() -> str:
    """The words of lectures, as a definition list."""
    from trueline.terms import terms

    def line(label: str, text: str) -> str:
        return f"   | {label}{text}\n" if text else ""

    def entry(term: Any) -> str:
        code = [f"``{part}``" if part else "" for part in (term.formula, term.call, term.picture)]
        return (
            f"**{term.name}**\n"
            + line("", term.definition)
            + line("Formula: ", code[0])
            + line("Call: ", code[1])
            + line("Picture: ", code[2])
            + line("Page: ", term.page and f":doc:`{term.page}`")
            + line("Also called: ", ", ".join(term.aliases))
            + line("See: ", ", ".join(term.see))
        )

    return "\n".join(entry(term) for term in terms())


def loss_properties() -> str:
    """Loss -> convex, strictly convex, differentiable, Lipschitz, above the 0-1 loss."""
    from trueline import losses

    def row(loss: Any) -> list[str]:
        own = loss.properties
        answers = (own.is_convex, own.is_strictly_convex, own.is_differentiable)
        numbers = (own.lipschitz, own.mistake_factor)
        shown = [f"{v:.4g}" if v < float("inf") else "none" for v in numbers]
        formula = f"``{loss.formula}``"
        return [repr(loss), formula, *("yes" if v else "no" for v in answers), *shown]

    listed = [kind() for kind in losses.LOSSES.values()]
    listed += [losses.PerceptronLoss(), losses.Softmax(), losses.CrammerSinger(), losses.ZeroOne()]
    header = ["loss", "formula", "convex", "strictly", "differentiable", "Lipschitz", "factor"]
    return table(header, [row(loss) for loss in listed])


PAGES: dict[str, Callable[[], str]] = {
    "engines.txt": engines,
    "algorithms.txt": algorithms,
    "lecture_words.txt": lecture_words,
    "loss_properties.txt": loss_properties,
    "matrix.txt": solver_matrix,
    "ridge_solvers.txt": ridge_solvers,
    "signatures.txt": signatures,
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
