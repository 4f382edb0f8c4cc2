"""What the commands print: the data, the model, its proof, an explanation, a verdict."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from rich.console import Console

from trueline.check import Verdict, Verification
from trueline.cli import show
from trueline.cli.prepare import Prepared, quiet_names
from trueline.wording import counted, quantity, relative

# Of several classes, this many are shown, with at least so many coefficients each.
_MOST_CLASSES, _FEWEST_ROWS = 6, 5


def show_data(out: Console, ready: Prepared) -> None:
    """Print the size of the table, its columns, and remarks about them."""
    table, encoding = ready.table, ready.encoded.encoding
    size = f"{table.path}: {table.n_rows:,} rows, {len(table.columns)} columns"
    show.heading(out, "Data", f"{size}, {table.delimiter_name} separated")
    used = [source.name for source in encoding.sources]
    show.show_columns(out, table, encoding.target, used)
    seen = [f"{name} left out" for name in list(table.columns)[: show.MOST_ROWS]]
    for text in ready.notes:
        if not text.startswith(tuple(seen)):  # the table says it already
            show.note(out, text, "yellow")


def show_model(out: Console, ready: Prepared, model: Any, seconds: float) -> None:
    """Print what was fitted, how well, and in which time."""
    X, y = ready.encoded.X, ready.encoded.y
    show.heading(out, "Model", f"{ready.family.title}")
    with quiet_names():
        score = model.score(X, y)
    facts = {
        "task": f"{ready.encoded.encoding.task} ({ready.encoded.encoding.target})",
        "model": f"{ready.family.name}: {ready.reason}",
    }
    alpha = getattr(model, "alpha_", getattr(model, "alpha", None))
    if alpha is not None and getattr(model, "penalty", "") is not None and np.ndim(alpha) == 0:
        facts["alpha"] = f"{np.max(alpha):.4g}"
    otherwise = "maximum likelihood" if ready.family.is_kernel else "passes over the rows"
    solver = getattr(model, "solver_", otherwise)
    facts["solver"] = f"{solver}, {quantity(seconds, 's')}"
    facts["fitted"] = f"{X.shape[0]:,} rows, {X.shape[1]} columns"
    used = X.shape[1] if ready.family.is_kernel else int(np.count_nonzero(model.coef_))
    if used < X.shape[1]:
        facts["used"] = f"{used} of {X.shape[1]} columns"
    is_class = ready.encoded.encoding.task == "classification"
    facts["accuracy" if is_class else "R2"] = f"{score:.4f} on these rows"
    show.show_facts(out, facts)
    if ready.family.is_kernel:
        return
    show.heading(out, "Coefficients")
    show_model_coefficients(out, model, ready.encoded.names)


def show_model_coefficients(out: Console, model: Any, names: list[str]) -> None:
    """The coefficients of a model with one target, or of each class."""
    coef = np.atleast_2d(model.coef_)
    most = max(show.MOST_ROWS // len(coef), _FEWEST_ROWS)
    for number, level in enumerate(np.ravel(model.intercept_)[:_MOST_CLASSES]):
        if len(coef) > 1:
            show.heading(out, "Class", str(model.classes_[number]))
        show.show_coefficients(out, names, coef[number].tolist(), float(level), most)
    if len(coef) > _MOST_CLASSES:
        more = counted(len(coef) - _MOST_CLASSES, "more class", "more classes")
        show.note(out, f"... and {more}; in Python, load(...).coef_ has them all")
    classes: Any = getattr(model, "classes_", ())
    if len(coef) == 1 and len(classes) == 2:
        show.note(out, f"positive coefficients speak for {classes[1]}, negative for {classes[0]}")


def show_proof(out: Console, model: Any) -> None:
    """What is proven about a model, and what is not."""
    show.heading(out, "Proof")
    show_certificate(out, model.certificate_)
    if hasattr(model, "history_"):
        text = "This is about the chosen columns: that no other choice is better is not claimed."
        show.note(out, text, "yellow")


def show_certificate(out: Console, certificate: Any) -> None:
    """What is proven, in words and numbers."""
    statement = certificate.statement
    show.note(out, f"{statement[0].upper()}{statement[1:]}.", "")
    if math.isinf(certificate.gap):  # what is proven is local
        show.show_facts(out, {"claim": str(certificate), "kind": certificate.kind})
        return
    show.show_facts(
        out,
        {
            "objective": f"{certificate.objective:.12g}",
            "gap": f"{certificate.gap:.3g}  ({relative(certificate.relative_gap)})",
            "kind": f"{certificate.kind} proof",
        },
    )


def show_explanation(out: Console, explanation: Any) -> None:
    """What is minimised and by which solver; after a fit, also what happened."""
    from trueline.estimators.shared.report import Explanation
    from trueline.selection.stepwise.report import StepwiseExplanation

    if isinstance(explanation, StepwiseExplanation):
        show_search(out, explanation)
        return
    if not isinstance(explanation, Explanation):
        show.note(out, str(explanation), "")
        return
    plan, happened = explanation.plan, explanation.facts
    facts = {"minimise": plan.objective, "solver": f"{plan.chosen}: {plan.reason}"}
    if happened is not None:
        times = "one pass" if happened["n_iter"] == 1 else f"{happened['n_iter']} iterations"
        seconds = quantity(happened["seconds"], "s")
        facts["happened"] = f"{happened['solver']}, {times}, {seconds}: {happened['status']}"
        remarks = happened["notes"]
        facts |= {"noted" if i == 0 else " " * i: text for i, text in enumerate(remarks)}
    show.show_facts(out, facts)
    show.heading(out, "Plan", "estimates before anything is computed")
    show.show_plan(out, plan)


def show_search(out: Console, explanation: Any) -> None:
    """What a stepwise search looks for; after a fit, also its steps."""
    lines = (line.split(maxsplit=1) for line in explanation.title)
    show.show_facts(out, dict(lines))
    if explanation.history:
        show.heading(out, "Steps")
        show.show_steps(out, explanation.table(), explanation.criterion)


def show_verdict(out: Console, outcome: Verification) -> None:
    """The end of a verification: which of the three answers, what is proven, and under what."""
    out.print()
    if outcome.verdict is Verdict.NOT_PROVEN:
        show.note(out, "The proof does NOT hold for this model and this data.", "bold red")
        return
    if outcome.verdict is Verdict.PROVEN:
        show.note(out, "The proof holds.", "bold green")
    else:
        show.note(out, f"The proof holds if {'; and if '.join(outcome.conditions)}.", "bold yellow")
    if outcome.statement:
        show.note(out, f"Proven: {outcome.statement}.", "")
