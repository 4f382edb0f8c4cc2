"""The command: so many attacks, or so many honest fits, and their counts."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from .campaign import attack, attacks, honest, pool_of
from .honest import make


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--attacks", type=int, default=0, help="how many forgeries")
    parser.add_argument("--honest", type=int, default=0, help="how many honest fits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pool", type=int, default=12, help="honest cases of each maker")
    parser.add_argument("--kind", action="append", help="only this kind of proof; repeatable")
    parser.add_argument("--maker", action="append", help="only these honest fits; repeatable")
    parser.add_argument("--show", type=int, default=40, help="how many faults are printed")
    parser.add_argument("--again", help="repeat one attack by its name, maker:seed#number")
    given = parser.parse_args()
    if given.again:
        name, _, number = given.again.partition("#")
        pool = pool_of(given.seed, given.pool, given.kind)
        print(attack(make(name), pool, int(number)))
        return 0
    start, faults = time.time(), 0

    def progress(done, tally):
        if done % 5000 == 0:
            counts = Counter(outcome for outcome, *_ in tally.faults)
            print(f"{done:,} in {time.time() - start:.0f} s, {dict(counts)}", file=sys.stderr)

    if given.honest:
        tally = honest(given.honest, given.seed, given.maker, progress)
        columns = ("verified", "conditional", "FAILED", "GAP TOO SMALL", "no fit")
        print(f"{given.honest:,} honest fits in {time.time() - start:.0f} s")
        faults += _report(tally, columns, given.show)
    if given.attacks:
        pool = pool_of(given.seed, given.pool, given.kind)
        tally = attacks(pool, given.attacks, given.seed * 10_000_000, progress)
        columns = (
            "refused", "conditional", "accepted, true", "FALSE ACCEPTANCE", "EXCEPTION",
            "NOT COMPUTABLE",
        )  # fmt: skip
        print(f"{given.attacks:,} attacks on {len(pool):,} certificates in "
              f"{time.time() - start:.0f} s")  # fmt: skip
        faults += _report(tally, columns, given.show)
    return int(faults > 0)


def _report(tally, columns, show):
    print(tally.table(columns))
    for outcome, kind, name, said in tally.faults[:show]:
        print(f"{outcome}  {kind}  {name}\n    {said[:400]}")
    if len(tally.faults) > show:
        print(f"... and {len(tally.faults) - show} more")
    return len(tally.faults)


if __name__ == "__main__":
    raise SystemExit(main())
