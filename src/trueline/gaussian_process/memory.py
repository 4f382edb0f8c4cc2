"""What a fit would need, compared with what there is, before anything is allocated."""

from __future__ import annotations

import os

from trueline.errors import MemoryNeededError

__all__ = ["available_bytes", "check_memory"]


def available_bytes() -> int | None:
    """Memory that could be allocated now; None where the system does not say.

    Examples
    --------
    >>> from trueline.gaussian_process.memory import available_bytes
    >>> found = available_bytes()
    >>> found is None or found > 0
    True
    """
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def check_memory(needed: float, what: str, instead: str) -> None:
    """Raise :class:`~trueline.errors.MemoryNeededError` if so many bytes are not there.

    Parameters
    ----------
    needed : float
        Bytes.
    what : str
        What they are for.
    instead : str
        The way out.
    """
    available = available_bytes()
    if available is not None and needed > available:
        raise MemoryNeededError(
            f"{what} needs {int(needed):,} bytes ({needed / 1e9:.3g} GB), and {available:,} bytes "
            f"({available / 1e9:.3g} GB) are available. {instead}"
        )
