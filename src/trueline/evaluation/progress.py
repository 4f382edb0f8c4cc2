"""A line that says what is running, on terminals and in notebooks."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType
from typing import Self, TextIO

__all__ = ["Progress"]

_WIDTH = 16  # characters of the bar
_OFTEN = 0.1  # seconds between two changes of what is shown


class Progress:
    """``compare [####........]  2 of 8  lasso: fold 3 of 5, 1.2 s``, rewritten in place.

    Parameters
    ----------
    title : str
    names : list of str
        What is done, one after the other.
    shown : bool, optional
        None: if standard error is a terminal, or in a notebook.
    """

    def __init__(self, title: str, names: list[str], shown: bool | None = None) -> None:
        self._title, self._names = title, names
        self._stream = sys.stderr
        self.is_shown = _is_watched(self._stream) if shown is None else shown
        self._done, self._start, self._last = 0, time.perf_counter(), -1.0
        self._length = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave an empty line, on which the result can be printed."""
        if self._length:
            self._put("")

    def begin(self, number: int) -> None:
        """The number of names that are done; the next one is running."""
        self._done, self._last = number, -1.0
        self.say("")

    def say(self, what: str) -> None:
        """What is running now."""
        now = time.perf_counter()
        if not self.is_shown or now - self._last < _OFTEN:
            return
        self._last = now
        total = len(self._names)
        filled = round(_WIDTH * self._done / total)
        bar = "#" * filled + "." * (_WIDTH - filled)
        doing = self._names[self._done] + (f": {what}" if what else "")
        seconds = f"{now - self._start:.0f} s"
        self._put(f"{self._title} [{bar}] {self._done} of {total}  {doing}, {seconds}")

    def _put(self, line: str) -> None:
        line = line[: shutil.get_terminal_size().columns - 1]
        padding = " " * (self._length - len(line))
        # Twice to the beginning: what is printed next starts there.
        self._stream.write(f"\r{line}{padding}" + ("" if line else "\r"))
        self._stream.flush()
        self._length = len(line)


def _is_watched(stream: TextIO) -> bool:
    if stream.isatty():
        return True
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"  # a notebook
