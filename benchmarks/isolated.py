"""Run something in a fresh process that reports one JSON line at a time; end it when it is late."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.machine import environment, prefer

__all__ = ["Outcome", "emit", "run_module"]

_MARK = "@benchmark "
# Imports and the making of data, before the first line arrives.
_PREPARATION = 120.0


@dataclass(frozen=True)
class Outcome:
    """What a process reported, and how it ended.

    Attributes
    ----------
    lines : list of dict
    is_late : bool
        It was ended because the next line did not arrive within the limit.
    error : str
        The last line of its error output if it failed by itself.
    """

    lines: list[dict[str, Any]]
    is_late: bool
    error: str


def emit(**values: Any) -> None:
    """Report from inside such a process."""
    print(_MARK + json.dumps(values, default=float), flush=True)


def run_module(
    module: str,
    arguments: Sequence[str],
    limit: float,
    python: str | None = None,
    priority: int = 0,
) -> Outcome:
    """Run ``python -m module arguments`` in a session of its own.

    Parameters
    ----------
    module : str
    arguments : sequence of str
    limit : float
        Seconds between two lines.
    python : str, optional
        Another interpreter, for a library that cannot live beside the others.
    priority : int, default=0
        Niceness of the process, see :func:`benchmarks.machine.prefer`.
    """
    command = [python or sys.executable, "-m", module, *arguments]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            command, stdout=out, stderr=err, env=environment(), start_new_session=True
        )
        prefer(process.pid, priority)
        try:
            is_late = _watch(process, out.fileno(), limit)
        finally:
            _end(process)
        out.seek(0)
        err.seek(0)
        lines = [
            json.loads(line[len(_MARK) :])
            for line in out.read().splitlines()
            if line.startswith(_MARK)
        ]
        complaint = err.read().strip().splitlines()
    error = ""
    if process.returncode != 0 and not is_late:
        error = complaint[-1] if complaint else f"exit code {process.returncode}"
    return Outcome(lines, is_late, error)


def _watch(process: subprocess.Popen[bytes], output: int, limit: float) -> bool:
    """Wait until it ends; True if the next line did not come in time."""
    seen, since = 0, time.monotonic()
    while process.poll() is None:
        time.sleep(0.02)
        size = os.fstat(output).st_size
        if size != seen:
            seen, since = size, time.monotonic()
        allowed = limit if seen else max(limit, _PREPARATION)
        if time.monotonic() - since > allowed:
            return True
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process, with helpers that it started, if it still runs."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
