"""The command line: ``python -m benchmarks`` lists the suites."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from benchmarks.report import README, machine_text, place
from benchmarks.selection import Request
from benchmarks.store import Store

SUITES = (
    "speed",
    "sparse",
    "robust",
    "online",
    "separability",
    "zero_one",
    "multiclass",
    "bayes",
    "compare",
    "classification",
    "texts",
    "kernels",
    "startup",
    "cluster",
    "streams",
    "regret",
    "engines",
    "field",
    "tiny",
    "digits",
)


def suite_of(name: str) -> ModuleType:
    """The module of a suite: TITLE, run(request), tables(store)."""
    home = "benchmarks.digits" if name == "digits" else f"benchmarks.suites.{name}"
    return importlib.import_module(home)


def render(name: str, store: Store) -> str:
    """All tables of a suite, with the command and the machine."""
    dates = [row["date"] for rows in store.rows.values() for row in rows.values()]
    parts = [
        f"Made by `python -m benchmarks {name}`. {machine_text(store.machine, dates)}",
        *(str(table) for table in suite_of(name).tables(store)),
    ]
    return "\n\n".join(parts)


def parser() -> argparse.ArgumentParser:
    """What the command line understands."""
    out = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    out.add_argument("suites", nargs="*", help=f"of {', '.join(SUITES)}, or all")
    out.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="only rows whose 'case / contestant' contains this; may be repeated, all must hold",
    )
    out.add_argument("--redo", action="store_true", help="measure rows that are stored already")
    out.add_argument(
        "--redo-disturbed",
        action="store_true",
        help="measure stored rows again that failed or ran beside other load",
    )
    out.add_argument("--report", action="store_true", help="write README.md from what is stored")
    out.add_argument("--small", action="store_true", help="small sizes; results are thrown away")
    out.add_argument(
        "--limit",
        type=float,
        help="seconds for one call (60; sparse and robust: as their cases say)",
    )
    out.add_argument(
        "--patience", type=float, default=30.0, help="seconds to wait for a quiet machine (30)"
    )
    out.add_argument(
        "--priority", type=int, default=0, help="niceness of what is measured; below 0 needs rights"
    )
    out.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="another interpreter for a contestant that cannot live beside the others",
    )
    out.add_argument(
        "--peer-python",
        metavar="PATH",
        help="the interpreter of the libraries that need one of their own",
    )
    out.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="size of the problems of sparse and robust (1); others are not stored, see --results",
    )
    out.add_argument("--data", type=Path, help="a folder of data files for sparse and compare")
    out.add_argument(
        "--minutes",
        type=float,
        default=float("inf"),
        help="start no further row of sparse or robust after so many; run again to go on",
    )
    out.add_argument(
        "--results", type=Path, help="keep results here; tables are printed, README.md stays"
    )
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Run suites and write their tables."""
    options = parser().parse_args(arguments)
    # Asked to end, it ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    names = list(SUITES) if options.suites == ["all"] else options.suites
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        print(f"unknown suite {unknown[0]!r}; there are: {', '.join(SUITES)}, all", file=sys.stderr)
        return 2
    if not names:
        print("python -m benchmarks SUITE ...   (or: all)\n")
        for name in SUITES:
            print(f"  {name:<14}{suite_of(name).TITLE}")
        return 0
    request = Request(
        only=tuple(options.only),
        redo=options.redo,
        redo_disturbed=options.redo_disturbed,
        small=options.small,
        limit=options.limit or 60.0,
        own_limit=options.limit,
        patience=options.patience,
        priority=options.priority,
        folder=options.results,
        python=dict(item.split("=", 1) for item in options.python),
        peer_python=options.peer_python,
        scale=options.scale,
        data=options.data,
        minutes=options.minutes,
    )
    for name in names:
        if options.results:
            kept = Store(name, options.results)
            print(render(name, kept if options.report else suite_of(name).run(request)))
            continue
        if options.small or options.scale != 1.0:
            with tempfile.TemporaryDirectory() as folder:
                trial = Request(**{**vars(request), "folder": Path(folder), "patience": 0.0})
                print(render(name, suite_of(name).run(trial)))
            continue
        store = Store(name) if options.report else suite_of(name).run(request)
        README.write_text(place(README.read_text(), name, render(name, store)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
