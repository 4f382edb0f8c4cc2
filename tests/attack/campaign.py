"""Attacks and honest fits in numbers, each with a name by which it is repeated."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np

from .adapter import ask
from .grammar import edge, forge
from .honest import MAKERS, NoFit, make
from .truth import refute

__all__ = ["Tally", "attack", "attacks", "honest", "pool_of"]

#: The share of attacks that move one number to where the checker ends.
EDGES = 0.03
FAULTS = ("FALSE ACCEPTANCE", "EXCEPTION", "NOT COMPUTABLE")


@dataclass
class Tally:
    """Counts of outcomes by kind of proof, and the names of what went wrong."""

    counts: dict = field(default_factory=lambda: defaultdict(Counter))
    faults: list = field(default_factory=list)

    def add(self, kind, outcome, name, said):
        self.counts[kind][outcome] += 1
        if outcome in FAULTS or outcome in ("FAILED", "GAP TOO SMALL"):
            self.faults.append((outcome, kind, name, said))

    def total(self, outcome):
        return sum(count[outcome] for count in self.counts.values())

    def table(self, columns):
        rows = [["kind", "all", *columns]]
        for kind in sorted(self.counts):
            count = self.counts[kind]
            rows.append([kind, str(sum(count.values())), *(str(count[c]) for c in columns)])
        everything = sum(sum(count.values()) for count in self.counts.values())
        rows.append(["all", str(everything), *(str(self.total(c)) for c in columns)])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join(
            "  ".join([row[0].ljust(widths[0]), *(v.rjust(w) for v, w in zip(row[1:], widths[1:]))])
            for row in rows
        )


def pool_of(seed, size, kinds=None):
    """Honest cases, as many as there are of each maker."""
    pool = []
    for maker in MAKERS:
        for number in range(size):
            try:
                case = make(f"{maker}:{seed * 1000 + number}")
            except NoFit:
                continue
            if kinds is None or case.kind in kinds:
                pool.append(case)
    return pool


def attack(case, pool, number):
    """One forgery of a case: outcome, what was done, and what the checker said."""
    rng = np.random.default_rng([number, *case.name.encode()])
    certificate, data, said = (edge if rng.random() < EDGES else forge)(case, pool, rng)
    answer = ask(certificate, *data)
    if answer.word == "raised":
        return "EXCEPTION", said, answer.text
    if answer.word == "not computable":
        return "NOT COMPUTABLE", said, answer.text
    if answer.word != "proven":
        return answer.word, said, answer.text
    same = data[0] is case.X and data[1] is case.y and data[2] is case.weight
    reason = refute(certificate, *data, [case.certificate], same)
    if reason is None:
        return "accepted, true", said, answer.text
    return "FALSE ACCEPTANCE", said, f"{reason}; the checker: {answer.text}"


def attacks(pool, how_many, first=0, progress=None):
    """So many attacks on the cases of a pool, spread evenly over the kinds of proof."""
    tally, by_kind = Tally(), defaultdict(list)
    for case in pool:
        by_kind[case.kind].append(case)
    kinds = sorted(by_kind)
    for number in range(first, first + how_many):
        kind = kinds[number % len(kinds)]
        cases = by_kind[kind]
        case = cases[(number // len(kinds)) % len(cases)]
        outcome, said, text = attack(case, pool, number)
        tally.add(kind, outcome, f"{case.name}#{number}", f"{said} -> {text}")
        if progress is not None:
            progress(number - first + 1, tally)
    return tally


def honest(how_many, seed=0, makers=None, progress=None):
    """Honest fits: verified or not, and whether their gap bounds the distance to the optimum."""
    tally = Tally()
    names = list(makers or MAKERS)
    for number in range(how_many):
        name = f"{names[number % len(names)]}:{seed * 1_000_000 + number // len(names)}"
        try:
            case = make(name)
        except NoFit as reason:
            tally.add("no fit", "no fit", name, str(reason))
            continue
        answer = ask(case.certificate, case.X, case.y, case.weight)
        outcome = {"proven": "verified", "conditional": "conditional"}.get(answer.word, "FAILED")
        text = answer.text
        if outcome == "verified":
            certificate = case.certificate
            reason = refute(certificate, case.X, case.y, case.weight, [certificate], True)
            if reason is not None:
                outcome, text = "GAP TOO SMALL", reason
        said = f" (it warned: {case.said[0]})" if case.said else ""
        tally.add(case.kind, outcome, name, f"{', '.join(case.traits)}: {text}{said}")
        if progress is not None:
            progress(number + 1, tally)
    return tally
