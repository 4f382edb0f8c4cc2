"""Fit random problems and compare with independent references.

Each problem has a number; ``--only`` fits the one of that number again and says what it is.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.fuzz.families import FAMILIES
from benchmarks.fuzz.frame import run


def parser() -> argparse.ArgumentParser:
    """What the command line understands."""
    out = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    out.add_argument("families", nargs="+", metavar="FAMILY", help=f"all, {', '.join(FAMILIES)}")
    out.add_argument("--fits", type=int, default=1000, help="how many of each family (1000)")
    out.add_argument("--seed", type=int, default=0)
    out.add_argument("--first", type=int, default=0, help="number of the first problem (0)")
    out.add_argument("--only", type=int, help="the number of one problem to fit again")
    out.add_argument("--seconds", type=float, default=60.0, help="limit of one fit (60)")
    out.add_argument("--verify", action="store_true", help="check every certificate as well")
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Run families; the exit status tells whether any fit was at fault."""
    options = parser().parse_args(arguments)
    names = list(FAMILIES) if options.families == ["all"] else options.families
    unknown = [name for name in names if name not in FAMILIES]
    if unknown:
        print(f"unknown family {unknown[0]!r}; there are: {', '.join(FAMILIES)}", file=sys.stderr)
        return 2
    numbers = range(options.first, options.first + options.fits)
    if options.only is not None:
        numbers = range(options.only, options.only + 1)
    is_clean = True
    for name in names:
        report = run(
            FAMILIES[name],
            options.seed,
            numbers,
            lambda line: print(line, flush=True),
            options.seconds,
            options.verify,
        )
        print(f"{name}: {report}", flush=True)
        is_clean = is_clean and not report.faults
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
