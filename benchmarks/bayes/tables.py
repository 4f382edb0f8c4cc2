"""Tables and targets of the Bayesian suite, from what is stored."""

from __future__ import annotations

from benchmarks.bayes.cases import CASES, TARGETS
from benchmarks.report import Table
from benchmarks.rows import US, is_good, scales, time_table, versions
from benchmarks.store import Store

__all__ = ["tables"]


def _targets(store: Store) -> Table:
    body = []
    for target in TARGETS:
        rows = store.rows.get(target.case, {})
        ours, theirs = rows.get(US, {}), rows.get(target.peer, {})
        spent = theirs.get("seconds", theirs.get("over"))
        if "seconds" not in ours or spent is None:
            continue
        ratio = spent / ours["seconds"]
        at_least = "" if "seconds" in theirs else "> "
        reached = is_good(ours, rows) and ratio >= target.bound
        goal = f"its time / ours at least {target.bound:g}"
        mark = "yes" if reached else "no"
        body.append([CASES[target.case].title, target.peer, goal, f"{at_least}{ratio:.2f}", mark])
    heads = ["case", "compared with", "goal", "measured", "reached"]
    return Table("Targets", heads, body, [*versions(store), *scales(store)])


def tables(store: Store) -> list[Table]:
    """The targets, then one table per case."""
    out = [_targets(store)]
    out += [
        time_table(case.title, store.rows[name])
        for name, case in CASES.items()
        if name in store.rows
    ]
    return out
