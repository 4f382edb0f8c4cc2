"""The machine: what it is, and how much of it others are using."""

from __future__ import annotations

import os
import platform
import resource
import sys
import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path

__all__ = [
    "LoadMeter",
    "environment",
    "facts",
    "forget_peak",
    "peak_bytes",
    "prefer",
    "resident_bytes",
    "version",
    "wait_until_quiet",
]

LIBRARIES = (
    "trueline",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "scikit-learn-intelex",
    "statsmodels",
    "himalaya",
)


def facts() -> dict[str, str]:
    """Processor, cores, memory, system and versions, as text."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = {
        "processor": _from_file("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": str(cores),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
    for name in LIBRARIES:
        found[name] = version(name) or "not installed"
    return found


def _from_file(path: str, key: str) -> str:
    try:
        for line in Path(path).read_text().splitlines():
            if line.startswith(key):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return ""


def _memory() -> str:
    kilobytes = _from_file("/proc/meminfo", "MemTotal").split()
    return f"{int(kilobytes[0]) / 1e6:.0f} GB" if kilobytes else "unknown"


def environment() -> dict[str, str]:
    """Variables for a contestant's process: its threads are its own choice.

    OpenBLAS before 0.3.24 (in wheels of NumPy 1) does not know some processors with AVX-512 and
    falls back on kernels five times slower; naming the kernel set spares a contestant that.
    """
    variables = dict(os.environ, PYTHONWARNINGS="ignore")
    # Compiled at the first call, so that the calls after it are all alike.
    variables.setdefault("TRUELINE_COMPILE", "always")
    # Without compiled files every import would be a first one.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    if "avx512f" in _from_file("/proc/cpuinfo", "flags").split():
        variables.setdefault("OPENBLAS_CORETYPE", "SKYLAKEX")
    root = str(Path(__file__).resolve().parent.parent)
    paths = [root, *variables.get("PYTHONPATH", "").split(os.pathsep)]
    variables["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return variables


def prefer(process: int, niceness: int) -> None:
    """Give a process niceness (negative needs rights), where that is possible.

    Linux weighs sessions against each other first (autogroups), then processes within one.
    """
    if niceness == 0:
        return
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process, niceness)
        Path(f"/proc/{process}/autogroup").write_text(str(niceness))


class LoadMeter:
    """How many cores processes outside this session used between start and stop."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._busy, self._own = _busy_seconds(), _session_seconds()

    def stop(self) -> float | None:
        """Cores, or None if the interval is too short for the system's clock or unknown."""
        elapsed = time.perf_counter() - self._start
        busy, own = _busy_seconds(), _session_seconds()
        if busy is None or self._busy is None or elapsed < 0.1:
            return None
        return max(0.0, (busy - self._busy) - (own - self._own)) / elapsed


def _busy_seconds() -> float | None:
    """Seconds that all cores together were not idle, since the start of the system."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return None
    values = [int(field) for field in fields]
    return (sum(values) - values[3] - values[4]) / os.sysconf("SC_CLK_TCK")


def _session_seconds() -> float:
    """Processor seconds of this session's processes: pools of workers are not 'others'."""
    session, ticks = os.getsid(0), 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == session:
            ticks += sum(int(value) for value in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def wait_until_quiet(patience: float, load: float = 0.15) -> None:
    """Wait, at most so many seconds, until others leave the machine alone for a second."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        meter = LoadMeter()
        time.sleep(1.0)
        other = meter.stop()
        if other is None or other < load:
            return


def _status(key: str) -> int | None:
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(key):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def peak_bytes() -> int:
    """The largest resident set since :func:`forget_peak`, or of the whole process."""
    peak = _status("VmHWM:")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit if peak is None else peak


def resident_bytes() -> int:
    """The resident set now."""
    now = _status("VmRSS:")
    return peak_bytes() if now is None else now


def forget_peak() -> None:
    """Linux lets a process reset its own high-water mark; elsewhere the old one stays."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def version(package: str) -> str:
    """Of an installed distribution; empty if there is none, or no name."""
    if not package:
        return ""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
