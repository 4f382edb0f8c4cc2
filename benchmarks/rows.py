"""Rows of suites with ladders: who is good, who is fastest, and how a row reads in a table."""

from __future__ import annotations

from typing import Any

from benchmarks.report import Table, number, seconds_text
from benchmarks.store import Store

__all__ = [
    "CRITERION",
    "US",
    "Line",
    "Row",
    "Rows",
    "against",
    "against_fastest",
    "fastest_peer",
    "is_good",
    "load_of",
    "ordered",
    "quality_of",
    "ratio_of",
    "scales",
    "seconds_of",
    "time_table",
    "versions",
]

US = "trueline"
#: Relative suboptimality at which an answer counts as solved.
CRITERION = 1e-6
Row = dict[str, Any]
Rows = dict[str, Row]
Line = tuple[str, str, str, str]


def is_good(row: Row, rows: Rows) -> bool:
    """Whether a row has a time and an answer within the criterion."""
    if "seconds" not in row:
        return False
    if "objective" in row:
        best = min(other["objective"] for other in rows.values() if "objective" in other)
        return bool(row["objective"] <= best * (1 + CRITERION))
    return bool(row.get("quality", 0.0) <= CRITERION)


def fastest_peer(rows: Rows) -> tuple[str, Row] | None:
    """The fastest contestant of another library that reached the criterion."""
    good = [
        (name, row) for name, row in rows.items() if not name.startswith(US) and is_good(row, rows)
    ]
    return min(good, key=lambda item: item[1]["seconds"], default=None)


def against(rows: Rows, peer: str, bound: float) -> Line | None:
    """The same for one peer, who may have been ended early; None if it was not measured."""
    ours, theirs = rows[US], rows.get(peer, {})
    spent = theirs.get("seconds", theirs.get("over"))
    if spent is None:
        return None
    ratio = spent / ours["seconds"]
    at_least = "" if "seconds" in theirs else "> "
    reached = is_good(ours, rows) and ratio >= bound
    goal = f"its time / ours at least {bound:g}"
    return peer, goal, f"{at_least}{ratio:.2f}", "yes" if reached else "no"


def against_fastest(rows: Rows, bound: float) -> Line | None:
    """The fastest peer, the goal, its time over ours, and whether that is at least the bound."""
    ours = rows[US]
    goal = f"its time / ours at least {bound:g}"
    if not is_good(ours, rows):
        return "fastest peer", goal, "trueline is not within 1e-6", "no"
    found = fastest_peer(rows)
    # Whoever was ended early may still be faster than the fastest of the others.
    ended = {name: row["over"] for name, row in rows.items() if "over" in row}
    least = min(ended, key=lambda name: ended[name], default=None)
    if least and (found is None or ended[least] < found[1]["seconds"]):
        ratio = ended[least] / ours["seconds"]
        mark = "yes" if ratio >= bound else f"not known: {least} was ended early"
        return "fastest peer", goal, f"> {ratio:.2f}", mark
    if found is None:
        return None
    name, row = found
    ratio = row["seconds"] / ours["seconds"]
    return name, goal, f"{ratio:.2f}", "yes" if ratio >= bound else "no"


def versions(store: Store) -> list[str]:
    """A note on the versions of the peers."""
    found = {
        f"{name.split(' ')[0]} {row['version']} (numpy {row['numpy']})"
        for rows in store.rows.values()
        for name, row in rows.items()
        if row.get("version") and not name.startswith(US)
    }
    return [f"Peers: {', '.join(sorted(found))}."] if found else []


def scales(store: Store) -> list[str]:
    """A note on sizes that are not those of the titles."""
    found = {row.get("scale", 1.0) for rows in store.rows.values() for row in rows.values()}
    return [f"A trial at scale {scale:g}, not the sizes named." for scale in found - {1.0}]


def ordered(rows: Rows) -> list[tuple[str, Row]]:
    """Good ones first, the fastest of them at the top."""
    return sorted(
        rows.items(),
        key=lambda item: (not is_good(item[1], rows), item[1].get("seconds", float("inf"))),
    )


def seconds_of(row: Row) -> str:
    """The time as text, or why there is none."""
    if "seconds" in row:
        return seconds_text(row["seconds"])
    return f"over {row['over']:.3g} s" if "over" in row else f"failed: {row.get('error', '')[:60]}"


def ratio_of(row: Row, ours: Row) -> str:
    """The time over ours."""
    if "seconds" not in ours:
        return ""
    if "seconds" not in row:
        return f"> {row['over'] / ours['seconds']:.3g}" if "over" in row else ""
    return f"{row['seconds'] / ours['seconds']:.3g}"


def load_of(row: Row) -> list[str]:
    """How many calls, and what others used meanwhile."""
    return [number(row.get("calls"), "d"), number(row.get("other"), ".2f")]


def quality_of(row: Row) -> str:
    """The suboptimality, marked if it is not below the criterion."""
    text = number(row.get("quality"), ".1e")
    return f"{text} (not reached)" if row.get("quality", 0.0) > CRITERION else text


def time_table(title: str, rows: Rows, has_alpha: bool = False) -> Table:
    """Times at the loosest tolerance that is good, and what was reached."""
    ours = rows.get(US, {})
    heads = ["", "seconds", "x trueline", "first call", "tolerance", "suboptimality"]
    has_conversion = any(row.get("conversion") for row in rows.values())
    body = []
    for name, row in ordered(rows):
        line = [name, seconds_of(row), ratio_of(row, ours), seconds_text(row.get("first"))]
        line += [number(row.get("tolerance"), ".0e"), quality_of(row)]
        if has_alpha:
            line.append(number(row.get("alpha"), ".4g"))
        if has_conversion:
            line.append(seconds_text(row.get("conversion")))
        body.append(line + load_of(row))
    more = ["chosen alpha"] * has_alpha + ["conversion"] * has_conversion
    return Table(title, heads + more + ["calls", "other load"], body)
